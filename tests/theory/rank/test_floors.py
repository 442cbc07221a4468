"""No heads of low rank have an error below their floor, and the floor grows as the theorem says."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import eval_legendre

from headcount.errors import InputError
from headcount.theory.claims.rank import orthogonal_pairs
from headcount.theory.rank.harmonics import (
    first_degree_error,
    harmonics,
    heads_needed,
    rank_floor,
    rank_one_floor,
    sign_eigenvalue,
)
from headcount.theory.rank.rank_one import plane_heads, random_heads, staircase_heads

DIMS = st.integers(2, 200)


def sphere_grid(rings: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights on the sphere of R^3 that integrate polynomials of degree below 2 `rings`."""
    heights, weights = np.polynomial.legendre.leggauss(rings)
    turns = np.arange(2 * rings) * np.pi / rings
    flat = np.sqrt(1 - heights**2)[:, None]
    points = np.stack(
        [flat * np.cos(turns), flat * np.sin(turns), np.broadcast_to(heights[:, None], (rings, 2 * rings))]
    )
    return points.reshape(3, -1).T, np.repeat(weights / (4 * rings), 2 * rings)


@pytest.mark.parametrize("degree", [1, 3, 5])
@pytest.mark.parametrize("rank", [1, 2])
def test_harmonics_that_see_r_numbers_have_the_dimension_of_the_proof(degree, rank):
    points, weights = sphere_grid(12)
    seen = points @ np.linalg.qr(np.random.default_rng(0).standard_normal((3, rank)))[0]
    powers = [(i, j) for i in range(degree + 1) for j in range(degree + 1 - i) if rank > 1 or j == 0]
    functions = np.stack([seen[:, 0] ** i * seen[:, -1] ** j for i, j in powers], axis=1)
    # The projection on degree l has the kernel N(d, l) P_l(y . y').
    onto = harmonics(3, degree) * eval_legendre(degree, points @ points.T) * weights
    assert np.linalg.matrix_rank(onto @ functions, tol=1e-8) == math.comb(degree + rank - 1, rank - 1)


def test_the_singular_values_are_those_of_the_targets_kernel():
    points, weights = sphere_grid(16)
    root = np.sqrt(weights)
    # E_u[sign(u . y) sign(u . y')] = 1 - 2 angle / pi; its eigenvalues are lambda_l^2.
    square = 1 - 2 * np.arccos(np.clip(points @ points.T, -1, 1)) / np.pi
    found = np.linalg.eigvalsh(root[:, None] * square * root)[::-1]
    wanted = np.repeat([sign_eigenvalue(3, degree) ** 2 for degree in (1, 3, 5)], [3, 7, 11])
    assert found[:21] == pytest.approx(wanted, abs=1e-3)


def test_the_floor_of_one_head_of_rank_one_is_attained_by_a_head_that_may_compute_anything():
    """The best function of q . y and of the points holds one harmonic of each degree."""
    points, weights = sphere_grid(40)
    level = points[:, 2]
    basis = np.stack([math.sqrt(2 * degree + 1) * eval_legendre(degree, level) for degree in range(40)], axis=1)
    square = 1 - 2 * np.arccos(np.clip(points @ points.T, -1, 1)) / np.pi
    held = np.einsum("yk,y,yz,z,zk->", basis, weights, square, weights, basis, optimize=True)
    assert (1 - held) / 2 == pytest.approx(rank_floor(1, 1, 3), abs=2e-4)


@settings(max_examples=15, deadline=None)
@given(st.integers(2, 40), st.sampled_from(["uniform", "spread"]), st.integers(0, 1000))
def test_no_random_heads_beat_the_floor(dim, distribution, seed):
    errors = random_heads(150, dim, seed, distribution).min_errors()
    floors = [rank_one_floor(heads, dim) for heads in range(1, 151)]
    assert np.all(errors >= floors)


@pytest.mark.parametrize(
    ("heads", "rank", "hard"), [(4, 1, True), (16, 1, True), (4, 1, False), (2, 2, False), (4, 2, True)]
)
def test_no_value_matrices_beat_the_floor(heads, rank, hard):
    """Answers of random heads, each through the best matrix of its own, by least squares over many samples."""
    dim, count = 4, 20_000
    generator = np.random.default_rng([heads, rank, hard])
    points, queries = orthogonal_pairs(generator, count, dim)
    scores = np.einsum(
        "hrd,ed,hrk,enk->hen",
        generator.standard_normal((heads, rank, dim)),
        queries,
        generator.standard_normal((heads, rank, dim)),
        points,
        optimize=True,
    )
    first = scores[..., 0] > scores[..., 1] if hard else 1 / (1 + np.exp(5 * (scores[..., 1] - scores[..., 0])))
    answers = first[..., None] * points[:, 0] + (1 - first[..., None]) * points[:, 1]
    nearer = np.where(np.sum(queries * (points[:, 0] - points[:, 1]), axis=1)[:, None] > 0, points[:, 0], points[:, 1])
    seen = np.concatenate(list(answers), axis=1)
    errors = np.sum((nearer - seen @ np.linalg.lstsq(seen, nearer)[0]) ** 2, axis=1)
    floor = rank_one_floor(heads, dim) if hard and rank == 1 else rank_floor(heads, rank, dim)
    assert np.mean(errors) > floor > 0


def test_equally_spaced_heads_of_the_plane_keep_within_five_times_the_floor():
    for heads in (16, 64, 256):
        floor = rank_one_floor(heads, 2)
        assert floor * heads == pytest.approx(2 / math.pi**2, rel=2e-3)
        assert floor < staircase_heads(heads).min_errors()[-1] < 5 * floor
        assert plane_heads(heads).min_errors()[-1] > floor


@given(DIMS, st.integers(1, 10**9))
def test_hard_heads_have_the_higher_floor_and_both_fall_with_heads(dim, heads):
    hard, any_kind = rank_one_floor(heads, dim), rank_floor(heads, 1, dim)
    assert 0 <= any_kind <= hard + 1e-12 <= 0.5
    assert rank_one_floor(heads + 1, dim) <= hard
    assert rank_floor(heads + 1, 1, dim) <= any_kind


@given(DIMS, st.integers(1, 300), st.data())
def test_a_higher_rank_has_the_lower_floor_and_full_rank_none(dim, heads, data):
    rank = data.draw(st.integers(1, dim - 1))
    assert rank_floor(heads, rank + 1, dim) <= rank_floor(heads, rank, dim) <= 0.5
    assert rank_floor(heads, dim, dim) == 0


@given(st.integers(2, 100))
def test_as_many_hard_heads_as_dimensions_leave_what_the_first_degree_leaves(dim):
    assert rank_one_floor(dim, dim) == pytest.approx(first_degree_error(dim), abs=1e-9)
    assert rank_one_floor(1, dim) == pytest.approx((1 - sign_eigenvalue(dim, 1) ** 2) / 2, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 100), st.floats(0.01, 0.6), st.booleans())
def test_heads_needed_are_the_first_whose_floor_is_low_enough(dim, eps, hard):
    needed = heads_needed(dim, eps, hard=hard)
    floor = rank_one_floor if hard else lambda heads, dim: rank_floor(heads, 1, dim)
    assert floor(needed, dim) <= eps
    if 1 < needed < 2**52:
        assert needed == round(needed)
        assert floor(needed - 1, dim) > eps


def test_below_the_first_degree_heads_of_rank_one_grow_as_the_cube_of_the_dimension():
    dims = 2 ** np.arange(5, 10)
    for hard in (True, False):
        needed = [heads_needed(int(dim), 0.15, hard=hard) for dim in dims]
        assert np.polyfit(np.log(dims), np.log(needed), 1)[0] == pytest.approx(3, abs=0.1)


def test_in_high_dimension_heads_grow_as_a_power_of_d_over_r():
    ranks = 2 ** np.arange(4, 8)
    needed = [heads_needed(2048, 0.15, int(rank)) for rank in ranks]
    assert np.polyfit(np.log(2048 / ranks), np.log(needed), 1)[0] == pytest.approx(3, abs=0.2)


def test_for_high_accuracy_heads_grow_exponentially_in_d_minus_r():
    dims = np.array([32, 64, 96, 128, 192, 256])
    logs = np.log([heads_needed(int(dim), 0.1 / math.sqrt(dim), int(dim) // 2) for dim in dims])
    steps = np.diff(logs) / np.diff(dims)
    assert steps == pytest.approx(0.674, abs=0.003)  # a straight line: exp(1.35 (d - r)) at r = d / 2


def test_more_heads_than_can_be_told_are_told_as_the_most():
    assert heads_needed(1024, 0.003) == 1e300


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: rank_floor(0, 1, 4), "heads must be at least 1"),
        (lambda: rank_floor(1, 5, 4), "at most dim = 4, got 5"),
        (lambda: rank_one_floor(1, 1), "dim must be at least 2"),
        (lambda: heads_needed(4, 1.0), "eps"),
        (lambda: heads_needed(4, 0.1, 2, hard=True), "rank 1 only"),
    ],
)
def test_a_formula_out_of_range_is_refused(call, words):
    with pytest.raises(InputError, match=words):
        call()
