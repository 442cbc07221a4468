"""Heads of rank one: the closed forms agree with sampling, and one factor gives the error of every number of heads."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.errors import InputError
from headcount.theory.rank import rank_one
from headcount.theory.rank.harmonics import first_degree_error
from headcount.theory.rank.rank_one import RIDGE, RankOneHeads, plane_heads, random_heads, staircase_heads


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


@pytest.mark.parametrize(("dim", "distribution"), [(2, "spread"), (3, "uniform"), (8, "uniform"), (32, "spread")])
def test_the_closed_forms_are_what_sampling_sees(dim, distribution):
    heads = random_heads(6, dim, distribution=distribution)
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


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 40), st.integers(2, 20), st.integers(0, 1000))
def test_one_factor_gives_the_least_error_of_every_number_of_heads(count, dim, seed):
    heads = random_heads(count, dim, seed)
    errors = heads.min_errors()
    assert np.all(np.diff(errors) <= 1e-9)
    assert np.all(errors > 0)
    for size in (1, count // 2, count):
        own = RankOneHeads(heads.queries[:size], heads.keys[:size])
        weights = np.linalg.solve(own.gram() + 1e-12 * np.eye(size), own.with_target())
        assert own.error(weights) == pytest.approx(errors[size - 1], abs=1e-6)


@pytest.mark.parametrize("distribution", ["uniform", "spread"])
def test_more_heads_begin_with_those_of_fewer_and_higher_dimensions_need_more(distribution):
    few, many = random_heads(8, 5, distribution=distribution), random_heads(20, 5, distribution=distribution)
    assert np.array_equal(few.queries, many.queries[:8])
    assert np.array_equal(few.keys, many.keys[:8])
    errors = [random_heads(300, dim, distribution=distribution).min_errors()[-1] for dim in (4, 8, 16, 32)]
    assert errors == sorted(errors)


@pytest.mark.parametrize("dim", [2, 3, 64])
def test_spread_heads_have_every_cosine_alike_and_no_side_of_the_query(dim):
    heads = random_heads(4000, dim, distribution="spread")
    cosine = np.sort(np.sum(heads.queries * heads.keys, axis=1))
    assert np.abs(cosine - np.linspace(-1, 1, 4000)).max() < 0.06  # Kolmogorov's distance, twice 1.9 / sqrt(4000)
    across = heads.keys - np.sum(heads.queries * heads.keys, axis=1, keepdims=True) * heads.queries
    assert np.abs(np.mean(across, axis=0)).max() < 4 * np.std(across) / math.sqrt(4000)


@pytest.mark.parametrize("distribution", ["uniform", "spread"])
def test_a_head_given_twice_or_turned_round_adds_nothing(distribution):
    heads = random_heads(3, 8, distribution=distribution)
    once = heads.min_errors()
    twice = RankOneHeads(np.repeat(heads.queries, 2, axis=0), np.repeat(heads.keys, 2, axis=0)).min_errors()
    assert twice == pytest.approx(np.repeat(once, 2), abs=1e-8)
    turned = RankOneHeads(
        np.repeat(heads.queries, 2, axis=0) * np.tile([[1], [-1]], (3, 1)), np.repeat(heads.keys, 2, axis=0)
    )
    # Three heads with their opposites hold the mean of the points thrice: four answers are independent of six.
    assert np.linalg.matrix_rank(turned.gram(), tol=1e-9) == 4
    assert turned.min_errors()[4] == pytest.approx(turned.min_errors()[5], abs=1e-8)


def test_many_heads_are_made_block_by_block():
    heads = random_heads(1100, 3)
    weights = np.linalg.solve(heads.gram() + RIDGE * np.eye(1100), heads.with_target())
    assert heads.min_errors()[-1] == pytest.approx(1 - weights @ heads.with_target(), abs=1e-6)


def test_the_first_degree_leaves_less_than_its_limit_and_spread_heads_level_off_there():
    errors = [first_degree_error(dim) for dim in (2, 4, 16, 64, 256, 1024)]
    limit = (1 - 2 / math.pi) / 2
    assert errors == sorted(errors)
    assert errors[-1] < limit
    assert errors[-1] == pytest.approx(limit, abs=2e-4)
    curve = random_heads(2048, 16, distribution="spread").min_errors()
    assert curve[511] - curve[1023] > 2 * (curve[1023] - curve[2047]) > 0
    assert curve[-1] == pytest.approx(first_degree_error(16), abs=0.02)


def plane_error(heads: int) -> float:
    """The minimum error of `plane_heads`, as derived in its docstring."""
    return 1 - 9 / (8 * (4 / 3 + 2 / (3 * heads**2)))


def staircase_weights(heads: int) -> np.ndarray:
    """The weights with which `staircase_heads` compute the target with its angles rounded."""
    weights = np.repeat([0.5, -0.5], heads // 2)
    weights[-1] = 0.5
    return weights


def test_aligned_heads_of_the_plane_level_off_at_5_32_and_near_it_as_the_square_of_heads():
    heads = [1, 2, 3, 8, 32, 128]
    errors = [plane_heads(count).min_errors()[-1] for count in heads]
    assert errors == pytest.approx([plane_error(count) for count in heads], abs=1e-9)
    excess = [plane_error(count) - 5 / 32 for count in heads[3:]]
    assert np.polyfit(np.log(heads[3:]), np.log(excess), 1)[0] == pytest.approx(-2, abs=0.05)


def test_a_staircase_in_the_plane_errs_by_one_over_heads():
    heads = [2, 4, 10, 32, 128, 512]
    plain = [staircase_heads(count).error(staircase_weights(count)) for count in heads]
    assert plain == pytest.approx([1 / count for count in heads], rel=1e-6)
    least = [staircase_heads(count).min_errors()[-1] for count in heads]
    assert all(0.87 / count < error < 1 / count for count, error in zip(heads, least, strict=True))
    assert np.polyfit(np.log(heads[2:]), np.log(least[2:]), 1)[0] == pytest.approx(-1, abs=0.02)


@pytest.mark.parametrize("heads", [plane_heads(6), staircase_heads(6)], ids=["aligned", "staircase"])
def test_heads_of_the_plane_err_as_sampling_sees(heads):
    weights = np.linalg.solve(heads.gram() + 1e-12 * np.eye(6), heads.with_target())
    nearer, chosen = sampled_signs(heads)
    errors = ((1 - weights.sum()) ** 2 + (nearer - chosen @ weights) ** 2) / 2
    seen = 4 * np.std(errors) / math.sqrt(len(errors))
    assert abs(np.mean(errors) - heads.min_errors()[-1]) < seen


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: random_heads(0, 4), "heads"),
        (lambda: random_heads(4, 1), "dim must be at least 2"),
        (lambda: random_heads(4, 4, distribution="gaussian"), 'got "gaussian"'),
        (lambda: plane_heads(0), "heads"),
        (lambda: staircase_heads(5), "got 5"),
        (lambda: RankOneHeads(np.ones((2, 3)), np.ones((2, 3))), "norm 1"),
        (lambda: RankOneHeads(np.eye(3), np.eye(3)[:2]), r"\(3, 3\) and \(2, 3\)"),
    ],
)
def test_what_cannot_be_right_is_refused(call, words):
    with pytest.raises(InputError, match=words):
        call()


def test_a_singular_gram_matrix_is_refused(monkeypatch):
    monkeypatch.setattr(rank_one, "RIDGE", 0.0)
    with pytest.raises(InputError, match="2 heads"):
        RankOneHeads(np.eye(2)[[0, 0]], np.eye(2)[[0, 0]]).min_errors()


def test_the_script_leaves_keys_shorter_at_the_same_angles_and_gets_errors_of_no_heads():
    ours, script = (random_heads(200, 8, 3, distribution=distribution) for distribution in ("spread", "script"))
    lengths = np.linalg.norm(script.keys, axis=1)
    assert np.all(lengths <= 1 + 1e-12)
    assert lengths.min() < 0.99
    assert np.sum(script.queries * script.keys, axis=1) == pytest.approx(np.sum(ours.queries * ours.keys, axis=1))
    with pytest.raises(InputError, match="norm 1"):
        RankOneHeads(script.queries, script.keys)
    scaled = RankOneHeads(script.queries, script.keys / lengths[:, None])
    assert scaled.with_target() != pytest.approx(script.with_target()), "the true correlations are other ones"
