"""Heads of rank one: closed forms are what sampling sees, the series is the plane's formula, one factor gives all."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount._errors import InputError
from headcount.theory.rank_one import (
    RankOneHeads,
    harmonics,
    plane_correlation,
    random_heads,
    sign_correlation,
    sign_eigenvalue,
)


def sampled_signs(heads: RankOneHeads, count: int = 100_000) -> tuple[np.ndarray, np.ndarray]:
    """Signs of target and heads at random orthogonal points and queries, by the definition."""
    generator = np.random.default_rng(0)
    query, one, other = generator.standard_normal((3, count, heads.dim))
    one /= np.linalg.norm(one, axis=1, keepdims=True)
    other -= np.sum(one * other, axis=1, keepdims=True) * one
    other /= np.linalg.norm(other, axis=1, keepdims=True)
    nearer = np.where(np.sum(query * one, axis=1) > np.sum(query * other, axis=1), 1.0, -1.0)
    scores = [(query @ heads.queries.T) * (points @ heads.keys.T) for points in (one, other)]
    return nearer, np.where(scores[0] > scores[1], 1.0, -1.0)


@pytest.mark.parametrize("dim", [2, 3, 8, 32])
def test_the_closed_forms_are_what_sampling_sees(dim):
    heads = random_heads(6, dim)
    nearer, chosen = sampled_signs(heads)
    spread = 4 / math.sqrt(len(nearer))
    assert np.abs(0.5 + np.mean(chosen * nearer[:, None], axis=0) / 2 - heads.with_target()).max() < spread
    assert np.abs(0.5 + chosen.T @ chosen / len(nearer) / 2 - heads.gram()).max() < spread


@pytest.mark.parametrize("dim", [2, 8])
def test_the_error_of_a_mixture_is_what_sampling_sees(dim):
    heads = random_heads(4, dim, seed=3)
    weights = np.array([0.4, -0.2, 0.5, 0.3])
    nearer, chosen = sampled_signs(heads)
    # An answer is (x_1 + x_2) / 2 + s (x_1 - x_2) / 2, and these two are orthogonal, of squared length 1/2 each.
    along, across = 1 - weights.sum(), nearer - chosen @ weights
    assert heads.error(weights) == pytest.approx(np.mean(along**2 + across**2) / 2, abs=0.02)


@given(st.floats(0, math.pi))
def test_in_the_plane_the_series_is_the_published_formula(angle):
    wanted = plane_correlation(np.array(angle)) if abs(angle - math.pi / 2) > 1e-9 else 0.5
    # Terms are 16 / (pi l)^3 in the plane, and half of what is left after 200 degrees is 1.6e-6.
    assert 0.5 + sign_correlation(2, np.array(math.cos(angle))) / 2 == pytest.approx(float(wanted), abs=2e-6)


@pytest.mark.parametrize("dim", [2, 3, 5, 16, 64])
def test_the_eigenvalues_are_those_of_a_sign(dim):
    """The first is E|u_1|, all squares together make E[sign^2] = 1, even degrees vanish."""
    first = math.exp(math.lgamma(dim / 2) - math.lgamma((dim + 1) / 2)) / math.sqrt(math.pi)
    assert sign_eigenvalue(dim, 1) == pytest.approx(first)
    assert sign_eigenvalue(dim, 4) == 0
    total = sum(sign_eigenvalue(dim, degree) ** 2 * harmonics(dim, degree) for degree in range(1, 20_001, 2))
    assert total == pytest.approx(1, abs=0.06)  # squares fall as 1 / degree^2 only, with dim in front


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 40), st.integers(2, 20), st.integers(0, 1000))
def test_one_factor_gives_the_least_error_of_every_number_of_heads(count, dim, seed):
    heads = random_heads(count, dim, seed)
    errors = heads.least_errors()
    assert np.all(np.diff(errors) <= 1e-9)
    assert np.all(errors > 0)
    for size in (1, count // 2, count):
        own = RankOneHeads(heads.queries[:size], heads.keys[:size])
        weights = np.linalg.solve(own.gram() + 1e-12 * np.eye(size), own.with_target())
        assert own.error(weights) == pytest.approx(errors[size - 1], abs=1e-6)


def test_more_heads_begin_with_those_of_fewer_and_higher_dimensions_need_more():
    assert np.array_equal(random_heads(8, 5).queries, random_heads(20, 5).queries[:8])
    errors = [random_heads(300, dim).least_errors()[-1] for dim in (4, 8, 16, 32)]
    assert errors == sorted(errors)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: random_heads(0, 4), "heads"),
        (lambda: random_heads(4, 1), "dim of at least 2"),
        (lambda: sign_correlation(4, np.array([1.5])), "cosine"),
        (lambda: RankOneHeads(np.ones((2, 3)), np.ones((2, 3))), "must lie on the sphere"),
        (lambda: RankOneHeads(np.eye(3), np.eye(3)[:2]), "two arrays"),
        (lambda: RankOneHeads(np.eye(2)[[0, 0]], np.eye(2)[[0, 0]]).least_errors(ridge=0.0), "singular"),
    ],
)
def test_what_cannot_be_right_is_refused(call, words):
    with pytest.raises(InputError, match=words):
        call()
