"""One head of full rank is exact and its bound is never exceeded; the vote errs as computed, and falls as a rate."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betaln

from headcount.errors import InputError
from headcount.theory.claims.rank import on_sphere, orthogonal_pairs
from headcount.theory.rank.harmonics import rank_one_floor
from headcount.theory.rank.nearest import (
    AttentionHead,
    MajorityVote,
    exact_head,
    expected_error,
    farthest_head,
    soft_error,
    vote_error,
)
from headcount.theory.rank.rank_one import random_heads


@settings(max_examples=20, deadline=None)
@given(st.sampled_from([(1, 2), (20, 4)]), st.integers(0, 2**16))
def test_the_hard_head_of_full_rank_is_exact_for_any_number_of_points(shape, seed):
    length, dim = shape
    generator = np.random.default_rng(seed)
    points, query = jnp.asarray(on_sphere(generator, length, dim)), jnp.asarray(on_sphere(generator, dim))
    distances = np.linalg.norm(np.asarray(points - query), axis=1)
    assert np.allclose(exact_head(dim)(points, query), points[np.argmin(distances)], atol=1e-6)
    assert np.allclose(farthest_head(dim)(points, query), points[np.argmax(distances)], atol=1e-6)


def test_self_attention_answers_every_point_with_the_one_farthest_from_it():
    points = jnp.asarray(on_sphere(np.random.default_rng(0), 12, 5))
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    assert np.allclose(farthest_head(5).among(points), points[np.argmax(distances, axis=1)], atol=1e-6)
    # The nearest to a point on the sphere is the point itself.
    assert np.allclose(exact_head(5).among(points), points, atol=1e-6)


@settings(deadline=None)
@given(st.sampled_from([2, 40]), st.floats(0.1, 100), st.integers(0, 2**16), st.booleans())
def test_no_soft_head_errs_more_than_its_bound(length, beta, seed, opposite):
    generator = np.random.default_rng(seed)
    points, query = on_sphere(generator, length, 4), on_sphere(generator, 4)
    if opposite:  # two opposite points attain it
        points = np.concatenate([points[:1], np.repeat(-points[:1], length - 1, axis=0)])
    with jax.enable_x64(True):
        read = np.asarray(exact_head(4, beta)(jnp.asarray(points), jnp.asarray(query)))
    products = np.sort(points @ query)
    bound = soft_error(length, beta, max(float(products[-1] - products[-2]), 0.0))
    assert np.linalg.norm(read - points[np.argmax(points @ query)]) <= bound + 1e-9


def test_the_bound_is_attained_by_opposite_points_and_falls_exponentially_in_beta():
    points, query = jnp.array([[1.0, 0.0], [-1.0, 0.0]]), jnp.array([0.6, 0.8])
    betas, gap = [float(beta) for beta in range(2, 16)], 1.2
    with jax.enable_x64(True):
        errors = [float(np.linalg.norm(exact_head(2, beta)(points, query) - points[0])) for beta in betas]
    assert errors == pytest.approx([soft_error(2, beta, gap) for beta in betas], rel=1e-4)
    assert np.polyfit(betas, np.log(errors), 1)[0] == pytest.approx(-gap, rel=0.02)


def test_a_head_is_an_ordinary_module():
    head = AttentionHead(jnp.ones((1, 3)), jnp.ones((1, 3)), jnp.eye(3))
    points = on_sphere(np.random.default_rng(0), 6, 4, 3)
    assert eqx.filter_jit(eqx.filter_vmap(head))(points, points[:, 0]).shape == (6, 3)


def expected_error_bound(heads: int, dim: int) -> float:
    """c pi sqrt(pi / (2 H)): Hoeffding's exp(-2 H (t / pi)^2) against the density, which is at most c."""
    density = 2 * math.exp(-betaln(0.5, (dim - 1) / 2))
    return density * math.pi * math.sqrt(math.pi / (2 * heads))


def voted(heads: int, dim: int, count: int, *, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Squared errors of votes by directions drawn anew each time, and the angles between y and x_1 - x_2."""
    generator = np.random.default_rng([seed, heads, dim])
    points, queries = orthogonal_pairs(generator, count, dim)
    directions = on_sphere(generator, count, heads, dim)
    with jax.enable_x64(True):
        answer = jax.jit(jax.vmap(lambda directions, pair, at: MajorityVote(directions)(pair, at)))
        answers = np.asarray(answer(*map(jnp.asarray, (directions, points, queries))))
    cosine = np.sum(queries * (points[:, 0] - points[:, 1]), axis=1) / math.sqrt(2)
    nearer = np.where(cosine[:, None] > 0, points[:, 0], points[:, 1])
    return np.sum((answers - nearer) ** 2, axis=1), np.arccos(cosine)


@pytest.mark.parametrize(("heads", "dim"), [(1, 2), (31, 16)])
def test_the_vote_errs_as_often_as_computed(heads, dim):
    errors, angles = voted(heads, dim, 4000, seed=0)
    assert np.all((errors < 1e-9) | (np.abs(errors - 2) < 1e-9))  # it answers x_1 or x_2 itself
    spread = 4 * np.std(errors) / math.sqrt(len(errors))
    assert abs(np.mean(errors) - expected_error(heads, dim)) < spread
    assert abs(np.mean(errors - 2 * vote_error(heads, angles))) < spread


def test_the_second_layer_takes_the_side_of_the_majority_whatever_its_direction():
    generator = np.random.default_rng(1)
    points, queries = map(jnp.asarray, orthogonal_pairs(generator, 50, 6))
    directions = on_sphere(generator, 7, 6)
    voted_by = jax.jit(lambda directions, points, queries: jax.vmap(MajorityVote(directions))(points, queries))
    answers = [voted_by(jnp.asarray(np.roll(directions, turn, axis=0)), points, queries) for turn in range(7)]
    assert all(np.allclose(answer, answers[0], atol=1e-5) for answer in answers)
    votes = np.sign(np.sign(queries @ directions.T) * np.sign((points[:, 0] - points[:, 1]) @ directions.T)).sum(axis=1)
    assert np.allclose(answers[0], np.where(votes[:, None] > 0, points[:, 0], points[:, 1]), atol=1e-5)


@pytest.mark.parametrize("dim", [2, 8, 64])
def test_the_error_of_the_vote_falls_as_one_over_the_root_of_heads(dim):
    heads = 2 ** np.arange(14, 21)
    errors = [expected_error(int(count), dim) for count in heads]
    assert np.polyfit(np.log(heads), np.log(errors), 1)[0] == pytest.approx(-0.5, abs=0.01)
    # c sqrt(pi / (2 H)), the limit, is the bound without its factor pi.
    assert errors[-1] * math.pi == pytest.approx(expected_error_bound(int(heads[-1]), dim), rel=1e-3)


@given(st.integers(1, 10**6), st.integers(2, 512))
def test_the_error_of_the_vote_keeps_its_bound_and_needs_more_heads_in_more_dimensions(heads, dim):
    error = expected_error(heads, dim)
    assert 0 < error <= min(expected_error_bound(heads, dim), 1)
    assert error < expected_error(heads, dim + 1)
    assert expected_error(heads + 2, dim) < error


def test_one_vote_is_a_head_of_rank_one_and_many_beat_any_layer_of_them():
    # With q = k = g a head errs by 1 - E[s s*], the vote of one by the same.
    single = random_heads(1, 8)
    aligned = type(single)(single.queries, single.queries)
    assert expected_error(1, 8) == pytest.approx(aligned.error(np.ones(1)), abs=1e-6)
    assert expected_error(4096, 64) < rank_one_floor(4096, 64)
    assert expected_error(2048, 64) < random_heads(2048, 64, distribution="spread").min_errors()[-1]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: exact_head(4, 0.0), "beta must be positive"),
        (lambda: exact_head(0), "dim"),
        (lambda: soft_error(1, 1.0, 1.0), "length must be a whole number of at least 2"),
        (lambda: soft_error(2, 1.0, -1.0), "gap"),
        (lambda: expected_error(3, 1), "dim must be at least 2"),
        (lambda: expected_error(0, 4), "heads"),
    ],
)
def test_what_cannot_be_right_is_refused(call, words):
    with pytest.raises(InputError, match=words):
        call()
