"""Fits find the law the data were made from: with noise, with missing cells, and not where there is none."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.papers.fits import learning_curve, power_law, surface_fit

WIDTHS = np.array([8.0, 16, 32, 64, 128])
HEADS, LENGTHS = (2, 4, 6, 8, 10), (8, 16, 32, 64)


GRID = np.meshgrid(np.array(HEADS, float), np.array(LENGTHS, float), indexing="ij")


def surface(a=-1.4, b=0.6, c=2.0, delta=0.25) -> np.ndarray:
    h, t = GRID
    return c * t**b * np.exp(a * h / t**delta)


@given(st.floats(1e-6, 10), st.floats(-3, 3))
def test_an_exact_power_is_found_exactly(constant, exponent):
    fit = power_law(WIDTHS, constant * WIDTHS**exponent)
    assert fit is not None
    assert fit.exponent == pytest.approx(exponent, abs=1e-9)
    assert fit.constant == pytest.approx(constant, rel=1e-8)
    assert np.allclose(fit.at(WIDTHS), constant * WIDTHS**exponent)


def test_the_interval_holds_the_exponent_nine_times_in_ten():
    generator = np.random.default_rng(0)
    noisy = [WIDTHS**-0.7 * np.exp(0.3 * generator.standard_normal(5)) for _ in range(400)]
    held = np.mean([fit.low <= -0.7 <= fit.high for y in noisy if (fit := power_law(WIDTHS, y))])
    assert 0.86 <= held <= 0.94


def test_missing_points_are_left_out():
    y = WIDTHS**-1.0
    y[[1, 3]] = np.nan, 0.0
    fit = power_law(WIDTHS, y)
    assert fit is not None
    assert (fit.points, fit.exponent) == (3, pytest.approx(-1.0))


def test_two_points_make_a_line_of_unknown_error_and_one_makes_none():
    fit = power_law(WIDTHS[:2], np.array([1.0, 0.5]))
    assert fit is not None
    assert (fit.exponent, fit.low, fit.high) == (pytest.approx(-1.0), -np.inf, np.inf)
    assert power_law(WIDTHS[:1], np.ones(1)) is None
    assert power_law(np.array([8.0, 8.0]), np.ones(2)) is None


@settings(max_examples=10, deadline=None)
@given(st.floats(-3, -0.3), st.floats(-0.5, 1.5), st.floats(0.1, 5), st.floats(0.05, 1.0))
def test_an_exact_surface_is_found(a, b, c, delta):
    errors = surface(a, b, c, delta)
    fit = surface_fit(HEADS, LENGTHS, errors)
    assert fit.log_error < 2e-3
    assert np.allclose(np.log(fit.at(*GRID)), np.log(errors), atol=0.05)


def test_the_papers_surface_is_found_under_outliers_that_would_move_a_least_squares_fit():
    errors = surface()
    errors[1, 1] *= 30
    errors[3, 2] /= 30
    fit = surface_fit(HEADS, LENGTHS, errors)
    assert (fit.delta, fit.a) == (pytest.approx(0.25, abs=0.01), pytest.approx(-1.4, abs=0.03))


def test_noise_and_missing_cells_leave_the_surface_near():
    errors = surface() * np.exp(0.05 * np.random.default_rng(1).standard_normal((5, 4)))
    errors[0, 0] = errors[2, 3] = errors[4, 1] = np.nan
    fit = surface_fit(HEADS, LENGTHS, errors)
    assert fit.cells == 17
    assert fit.log_error < 0.06
    assert fit.a < 0
    assert fit.delta == pytest.approx(0.25, abs=0.15)


def test_no_other_surface_nearby_has_a_smaller_error():
    errors = surface() * np.exp(0.2 * np.random.default_rng(2).standard_normal((5, 4)))
    fit = surface_fit(HEADS, LENGTHS, errors)
    generator = np.random.default_rng(3)
    h, t = GRID
    for _ in range(300):
        a, b, delta = np.array([fit.a, fit.b, fit.delta]) + 0.05 * generator.standard_normal(3)
        other = np.log(fit.c) + 0.05 * generator.standard_normal() + b * np.log(t) + a * h / t**delta
        assert np.mean(np.abs(other - np.log(errors))) >= fit.log_error - 1e-6


@pytest.mark.parametrize("kept", [(slice(0, 1), slice(None)), (slice(None), slice(0, 1)), (slice(0, 2), slice(0, 2))])
def test_too_few_cells_have_no_surface(kept):
    errors = np.full((5, 4), np.nan)
    errors[kept] = surface()[kept]
    assert surface_fit(HEADS, LENGTHS, errors) is None


# Learning curves

QUERIES = (700, 1400, 2800, 5584)


def shares(slope: float, level: float, noise: float = 0.0, seeds: int = 3, seed: int = 0) -> np.ndarray:
    """Shares whose log-odds are a line in log(queries), with noise per seed."""
    scatter = noise * np.random.default_rng(seed).standard_normal((len(QUERIES), seeds))
    return 1 / (1 + np.exp(-(level + slope * np.log(np.array(QUERIES) / 2000)[:, None] + scatter)))


@given(st.floats(-1, 1), st.floats(-3, 3))
def test_an_exact_learning_curve_is_found_and_goes_on(slope, level):
    curve = learning_curve(QUERIES, shares(slope, level))
    assert curve is not None
    expected = 1 / (1 + np.exp(-(level + slope * np.log(14))))
    low, value, high = curve.at(28_000)
    assert (low, value, high) == pytest.approx((expected,) * 3, abs=1e-6)
    assert curve.line.slopes.value == pytest.approx(slope, abs=1e-6)


@pytest.mark.parametrize("seeds", [1, 3])
def test_the_interval_of_a_number_of_examples_that_was_not_measured_holds_nine_in_ten(seeds):
    generator, held = np.random.default_rng(1), []
    for draw in range(400):
        curve = learning_curve(QUERIES, shares(0.4, -1.0, 0.3, seeds, seed=draw))
        odds = -1.0 + 0.4 * np.log(14) + 0.3 * generator.standard_normal(seeds).mean()
        low, value, high = curve.at(28_000)
        assert low < value < high
        held.append(low <= 1 / (1 + np.exp(-odds)) <= high)
    assert 0.86 <= np.mean(held) <= (0.94 if seeds == 1 else 1.0), "the larger of two margins is the safer one"


def test_a_curve_through_points_that_bend_is_less_sure_than_through_points_on_a_line():
    line, bent = shares(0.4, -1.0), shares(0.4, -1.0)
    bent[0] = bent[1]
    widths = [np.ptp(learning_curve(QUERIES, each).at(28_000)) for each in (line, bent)]
    assert widths[0] < 1e-6
    assert widths[1] > 0.1


def test_seeds_that_scatter_widen_the_interval_even_where_their_means_are_on_a_line():
    scattered = shares(0.4, -1.0, seeds=2)
    odds = np.log(scattered / (1 - scattered)) + np.array([-0.5, 0.5])
    assert np.ptp(learning_curve(QUERIES, 1 / (1 + np.exp(-odds))).at(28_000)) > 0.1


def test_seeds_and_numbers_of_examples_that_are_missing_are_left_out():
    some = shares(0.4, -1.0, 0.1)
    holes = np.concatenate([some, np.full_like(some, np.nan)])
    holes = np.concatenate([holes, np.full((len(holes), 1), np.nan)], axis=1)
    assert learning_curve(QUERIES * 2, holes) == learning_curve(QUERIES, some)
    assert learning_curve(QUERIES, np.where(np.arange(4)[:, None] < 2, some, np.nan)) is None
    low, value, high = learning_curve(QUERIES, np.zeros((4, 1))).at(28_000)
    assert 0 < low <= value <= high < 0.001, "no wrong answer at all"
