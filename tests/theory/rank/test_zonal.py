"""Biased nearest neighbours: the shares of degrees are by Funk and Hecke, and no heads get below the floor."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import eval_gegenbauer, eval_legendre

from headcount.errors import InputError
from headcount.tasks.nearest import bias_quantiles
from headcount.theory.rank.harmonics import captured_by, harmonics, rank_floor
from headcount.theory.rank.more_floors import pattern_shares, zonal_floor

from .test_floors import sphere_grid

TERMS = st.integers(0, 5).map(lambda half: 2 * half + 1)


def pattern(terms: int, dim: int, cosine: np.ndarray) -> np.ndarray:
    """g(u . y) as the task has it: the first point where an odd number of biases lie below."""
    below = np.sum(np.sqrt(2) * cosine[..., None] > bias_quantiles(terms, dim), axis=-1)
    return np.where(below % 2 == 1, 1.0, -1.0)


@pytest.mark.parametrize(("terms", "dim"), [(1, 3), (3, 4), (5, 8), (9, 30)])
def test_shares_are_those_of_a_quadrature_between_the_jumps(terms, dim):
    edges = np.concatenate([[-1.0], bias_quantiles(terms, dim) / np.sqrt(2), [1.0]])
    nodes, weights = np.polynomial.legendre.leggauss(200)
    low, high = edges[:-1, None], edges[1:, None]
    angle_low, angle_high = np.arccos(high), np.arccos(low)
    angles = (angle_low + angle_high) / 2 + (angle_high - angle_low) / 2 * nodes
    density = np.sin(angles) ** (dim - 2) * (angle_high - angle_low) / 2 * weights
    density, cosine = density / density.sum(), np.cos(angles)
    g = pattern(terms, dim, cosine)
    for place, degree in enumerate((1, 3, 5, 7, 21)):
        polynomial = eval_gegenbauer(degree, (dim - 2) / 2, cosine) / eval_gegenbauer(degree, (dim - 2) / 2, 1.0)
        eigenvalue = float(np.sum(g * polynomial * density))
        share = pattern_shares(terms, dim)[degree // 2]
        assert share == pytest.approx(eigenvalue**2 * harmonics(dim, degree), abs=1e-10), place


@settings(max_examples=20, deadline=None)
@given(TERMS, st.integers(2, 120))
def test_shares_add_up_to_no_more_than_the_whole(terms, dim):
    shares = pattern_shares(terms, dim)
    assert np.all(shares >= 0)
    assert 0.9 < shares.sum() <= 1 + 1e-12


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 100), st.integers(1, 10**6), st.data())
def test_one_term_is_the_floor_of_the_nearest_point(dim, heads, data):
    rank = data.draw(st.integers(1, dim))
    assert zonal_floor(heads, rank, dim, terms=1) == pytest.approx(rank_floor(heads, rank, dim), abs=1e-12)


@settings(max_examples=20, deadline=None)
@given(TERMS, st.integers(3, 60), st.integers(1, 10**6), st.data())
def test_the_floor_falls_with_heads_and_with_rank_to_none_at_full_rank(terms, dim, heads, data):
    rank = data.draw(st.integers(1, dim - 1))
    floor = zonal_floor(heads, rank, dim, terms=terms)
    assert 0 <= zonal_floor(heads, rank + 1, dim, terms=terms) <= floor <= 0.5
    assert zonal_floor(2 * heads, rank, dim, terms=terms) <= floor
    assert zonal_floor(heads, dim, dim, terms=terms) == 0


def test_more_terms_raise_the_floor_of_many_heads():
    floors = [zonal_floor(10_000, 32, 64, terms=terms) for terms in (1, 3, 5, 9)]
    assert [round(floor, 3) for floor in floors] == [0.054, 0.17, 0.367, 0.421]
    # A sum that stops at degree 119 is lower, and a floor too.
    captured = np.minimum(captured_by(10_000, 32, 64), 1)[:60]
    stopped = [float(pattern_shares(terms, 64)[:60] @ (1 - captured)) / 2 for terms in (1, 3, 5, 9)]
    assert [round(floor, 3) for floor in stopped] == [0.041, 0.135, 0.303, 0.34]


def test_one_head_that_may_compute_anything_from_one_number_attains_the_floor():
    """In R^3, from the target's own kernel by quadrature over u: no harmonics of g are used."""
    points, weights = sphere_grid(24)
    level = points[:, 2]
    basis = np.stack([np.sqrt(2 * degree + 1) * eval_legendre(degree, level) for degree in range(24)], axis=1)
    coefficients = pattern(3, 3, points @ points.T) @ (weights[:, None] * basis)  # by u and the function of y_3
    held = float(weights @ np.sum(coefficients**2, axis=1))
    assert (1 - held) / 2 == pytest.approx(zonal_floor(1, 1, 3, terms=3), abs=1e-2)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: zonal_floor(1, 1, 4, terms=2), "terms must be odd.* got 2"),
        (lambda: zonal_floor(0, 1, 4), "got 0"),
        (lambda: zonal_floor(1, 5, 4), "got 5"),
        (lambda: zonal_floor(1, 1, 1), "got 1"),
    ],
)
def test_a_floor_out_of_range_is_refused(call, words):
    with pytest.raises(InputError, match=words):
        call()
