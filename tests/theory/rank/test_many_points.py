"""The nearest of N orthonormal points: shares of degrees against sampling, and floors that no heads get below."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import eval_gegenbauer

from headcount.answer.claim import Verdict
from headcount.errors import InputError
from headcount.theory.claims.rank import on_sphere
from headcount.theory.claims.zonal import judge_squares, orthonormal_points
from headcount.theory.rank.harmonics import harmonics, rank_floor, sign_eigenvalue
from headcount.theory.rank.more_floors import degree_shares, many_points_floor


@pytest.mark.parametrize(("dim", "length"), [(4, 3), (5, 5)])
def test_shares_are_those_of_sampled_pairs_of_queries(dim, length):
    generator = np.random.default_rng([dim, length])
    one, other = on_sphere(generator, 2, 200_000, dim)
    same = np.argmax(one[:, :length], axis=1) == np.argmax(other[:, :length], axis=1)
    cosine = np.sum(one * other, axis=1)
    for degree, share in enumerate(degree_shares(length, dim)):
        polynomial = eval_gegenbauer(degree, dim / 2 - 1, cosine) / eval_gegenbauer(degree, dim / 2 - 1, 1.0)
        values = harmonics(dim, degree) * polynomial * same
        assert abs(values.mean() - share) < 4 * values.std() / np.sqrt(len(values))


@given(st.integers(2, 300))
def test_two_points_have_the_shares_of_the_sign(dim):
    shares = degree_shares(2, dim)
    degrees = [sign_eigenvalue(dim, degree) ** 2 * harmonics(dim, degree) / 2 for degree in (1, 3)]
    assert shares == pytest.approx((0.5, degrees[0], 0.0, degrees[1]), abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(st.integers(3, 200), st.integers(1, 10**5), st.data())
def test_the_floor_falls_with_heads_and_rank_and_is_no_higher_than_what_is_known_of_two_points(dim, heads, data):
    length, rank = data.draw(st.integers(2, dim)), data.draw(st.integers(1, dim - 1))
    floor = many_points_floor(heads, rank, dim, length)
    assert sum(degree_shares(length, dim)) <= 1 + 1e-9
    assert 0 <= many_points_floor(heads, rank + 1, dim, length) <= floor <= 1 - 1 / length + 1e-12
    assert many_points_floor(2 * heads, rank, dim, length) <= floor
    assert many_points_floor(heads, dim, dim, length) == 0
    assert many_points_floor(heads, rank, dim, 2) <= rank_floor(heads, rank, dim) + 1e-9


@given(st.integers(2, 200), st.data())
def test_the_share_that_a_head_holds_never_rises_with_the_degree(dim, data):
    """So that counting all higher degrees as the fourth can only lower the floor."""
    rank = data.draw(st.integers(1, dim - 1))
    held = [math.comb(degree + rank - 1, rank - 1) / harmonics(dim, degree) for degree in range(9)]
    assert all(later <= held[place] * (1 + 1e-9) for place, later in enumerate(held[1:]))


def fitted_error(answers: list[np.ndarray], target: np.ndarray) -> float:
    """The mean squared error of the best sum of the answers, each through a matrix of its own, on unseen samples."""
    seen = np.concatenate([*answers, np.ones((len(target), 1))], axis=1)
    half = len(target) // 2
    weights = np.linalg.lstsq(seen[:half], target[:half])[0]
    return float(np.mean(np.sum((target[half:] - seen[half:] @ weights) ** 2, axis=1)))


@pytest.mark.parametrize(("heads", "rank", "hard"), [(1, 1, True), (4, 1, False), (2, 2, True)])
def test_no_heads_with_any_value_matrices_beat_the_floor(heads, rank, hard):
    dim, length, count = 5, 4, 8000
    generator = np.random.default_rng([heads, rank, hard])
    points, queries = orthonormal_points(generator, count, length, dim), on_sphere(generator, count, dim)
    nearest = points[np.arange(count), np.argmax(np.einsum("enk,ek->en", points, queries), axis=1)]
    answers = []
    for query, key in generator.standard_normal((heads, 2, rank, dim)):
        scores = 5 * np.einsum("er,enr->en", queries @ query.T, points @ key.T)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights = (scores == scores.max(axis=1, keepdims=True)) if hard else weights / weights.sum(1, keepdims=True)
        answers.append(np.einsum("en,enk->ek", weights, points))
    assert fitted_error(answers, nearest) > many_points_floor(heads, rank, dim, length) > 0


def test_errors_below_a_floor_and_no_errors_at_all_are_no_evidence():
    squares = np.random.default_rng(0).uniform(0.3, 0.5, (50, 40))
    assert judge_squares({"above": (squares, 0.39)})[1] is Verdict.ESTIMATED
    assert judge_squares({"above": (squares, 0.39), "below": (squares, 0.45)})[1] is Verdict.FAILS
    assert judge_squares({})[1] is Verdict.FAILS


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: many_points_floor(1, 1, 4, 5), "got 5"),
        (lambda: many_points_floor(1, 4, 4, 5), "got 5"),
        (lambda: many_points_floor(1, 1, 4, 1), "got 1"),
        (lambda: many_points_floor(0, 1, 4, 2), "got 0"),
        (lambda: many_points_floor(1, 5, 4, 2), "got 5"),
    ],
)
def test_a_floor_out_of_range_is_refused(call, words):
    with pytest.raises(InputError, match=words):
        call()
