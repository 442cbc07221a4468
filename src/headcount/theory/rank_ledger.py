"""The second paper's claims (Amsel et al., arXiv 2407.16153), run at small size. See `ledger`."""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from .._keys import named_generator
from .entries import Entry, Verdict, verdict_of
from .nearest import MajorityVote, exact_head, expected_error, soft_error
from .rank_bounds import PAPER, RankSetting, all_rank_bounds, heads_needed, rank_floor, rank_one_floor
from .rank_one import (
    RankOneHeads,
    plane_correlation,
    plane_heads,
    random_heads,
    sign_correlation,
    staircase_heads,
)

SAMPLES = 50_000


def on_sphere(generator: np.random.Generator, *shape: int) -> np.ndarray:
    rows = generator.standard_normal(shape)
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def orthogonal_pairs(generator: np.random.Generator, count: int, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of orthogonal points and queries, all uniform."""
    queries, one, other = (on_sphere(generator, count, dim) for _ in range(3))
    other = other - np.sum(one * other, axis=1, keepdims=True) * one
    return np.stack([one, other / np.linalg.norm(other, axis=1, keepdims=True)], axis=1), queries


def _scores(values: np.ndarray, mean: np.ndarray) -> float:
    """The largest distance of sampled means from what they should be, in standard errors."""
    errors = np.std(values, axis=0) / math.sqrt(len(values))
    return float(np.max(np.abs(np.mean(values, axis=0) - mean) / errors))


def full_rank() -> Entry:
    dim, beta, generator = 8, 20.0, named_generator(0, "ledger", "full rank")
    wrong, parts, worst = 0, [], 0.0
    hard, soft = exact_head(dim), exact_head(dim, beta)
    for length in (2, 16, 256):
        points, queries = on_sphere(generator, 500, length, dim), on_sphere(generator, 500, dim)
        distances = np.linalg.norm(points - queries[:, None], axis=2)
        nearest = points[np.arange(500), np.argmin(distances, axis=1)]
        with jax.enable_x64(True):
            answers, near = (
                np.asarray(jax.jit(jax.vmap(head))(jnp.asarray(points), jnp.asarray(queries))) for head in (hard, soft)
            )
        products = np.sort(np.einsum("enk,ek->en", points, queries), axis=1)
        gaps, off = products[:, -1] - products[:, -2], np.linalg.norm(near - nearest, axis=1)
        ratio = max(float(o) / soft_error(length, beta, float(gap)) for o, gap in zip(off, gaps, strict=True))
        wrong, worst = wrong + int(np.sum(np.linalg.norm(answers - nearest, axis=1) > 1e-6)), max(worst, ratio)
        parts.append(f"N = {length}: {ratio:.2f}")
    return Entry(
        claim="one head of rank d answers with the nearest of any N points, exactly when it is hard",
        source=f"{PAPER}, full rank",
        program="theory.exact_head, theory.nearest.soft_error",
        evidence=f"d = 8, 1,500 draws: {wrong} hard answers wrong; soft with beta = 20, the largest error of its bound "
        f"2 t / (1 + t), t = (N - 1) exp(-beta gap): {', '.join(parts)}",
        verdict=verdict_of(wrong == 0 and worst <= 1),
    )


def closed_forms() -> Entry:
    parts, holds = [], True
    for dim in (2, 8, 32):
        heads = random_heads(6, dim, distribution="spread")
        points, queries = orthogonal_pairs(named_generator(dim, "ledger", "closed forms"), SAMPLES, dim)
        along = points[:, 0] - points[:, 1]
        target = np.sign(np.sum(queries * along, axis=1))
        chosen = np.sign(queries @ heads.queries.T) * np.sign(along @ heads.keys.T)
        below = np.tril_indices(6, -1)
        kernel = _scores(0.5 + (chosen[:, :, None] * chosen[:, None])[:, *below] / 2, heads.gram()[below])
        with_target = _scores(0.5 + chosen * target[:, None] / 2, heads.with_target())
        holds &= max(kernel, with_target) < 4
        parts.append(f"d = {dim}: {kernel:.1f}, {with_target:.1f}")
    return Entry(
        claim="two hard heads of rank one correlate by 1/2 + (2/pi^2) asin(q . q') asin(k . k'), a head and the target "
        "by a series of Gegenbauer polynomials",
        source=f"{PAPER}, closed forms",
        program="theory.RankOneHeads",
        evidence=f"largest distances from {SAMPLES:,} samples in standard errors, 15 pairs and 6 heads: "
        + "; ".join(parts),
        verdict=verdict_of(holds),
        repair="the coefficients of the series are ours, by Funk and Hecke: lambda_l^3 N(d, l) for odd l",
    )


def plane() -> Entry:
    angles = np.linspace(0, np.pi, 1001)
    gap = float(np.abs(0.5 + sign_correlation(2, np.cos(angles)) / 2 - plane_correlation(angles)).max())
    aligned, stairs = (float(family(64).min_errors()[-1]) for family in (plane_heads, staircase_heads))
    return Entry(
        claim="in the plane the correlation with the target is 1/2 + sign(pi/2 - a) (1/4 - (a' / pi)^2)",
        source=f"{PAPER}, plane",
        program="theory.rank_one.plane_correlation",
        evidence=f"the series differs by {gap:.1e} at 1,001 angles; 64 heads with q = k err by {aligned:.4f} (limit "
        f"5/32), 64 in a staircase by {stairs:.4f}",
        verdict=verdict_of(gap < 2e-6 and stairs < 1 / 64),
    )


def floors() -> Entry:
    ratios, parts = [], []
    for dim, count in ((2, 64), (4, 512), (16, 512), (64, 512)):
        families: list[RankOneHeads] = [
            random_heads(count, dim, distribution="uniform"),
            random_heads(count, dim, distribution="spread"),
        ]
        if dim == 2:
            families += [plane_heads(count), staircase_heads(count)]
        floor = np.array([rank_one_floor(heads, dim) for heads in range(1, count + 1)])
        least = [errors / floor for errors in (family.min_errors() for family in families)]
        ratios.append(min(float(ratio.min()) for ratio in least))
        parts.append(f"d = {dim}: {ratios[-1]:.2f}")
    return Entry(
        claim="H hard heads of rank one err by (1/2) (1 - the H largest lambda_l^2) at least, whatever is done to the "
        "points before heads are added",
        source=f"ours, after Theorem 2 of {PAPER}",
        program="theory.rank_one_floor",
        evidence="best mixtures of random and equally spaced heads, least ratio of their error to the floor over every "
        f"number of heads up to 512 (64 in the plane): {', '.join(parts)}",
        verdict=verdict_of(min(ratios) >= 1),
    )


def orders() -> Entry:
    dims = np.array([32, 64, 128, 256])
    rise = float(np.polyfit(dims, [math.log(heads_needed(d, 0.1 / math.sqrt(d), d // 2)) for d in dims.tolist()], 1)[0])
    power = float(np.polyfit(np.log(dims), [math.log(heads_needed(d, 0.15)) for d in dims.tolist()], 1)[0])
    equal = rank_floor(2, 32, 64)
    return Entry(
        claim="heads of rank r < d must be exp(Omega(d - r)) many for high accuracy, and poly(d / r) in high dimension",
        source=f"{PAPER}, Theorem 2",
        program="theory.heads_needed, theory.rank_floor",
        evidence=f"our floor for N = 2, d = 32 to 256: within 0.1 / sqrt(d) heads of rank d / 2 grow as exp({rise:.2f} "
        f"d), within 0.15 those of rank one as d^{power:.2f}; two heads of rank 32 cost what one of rank 64 does, "
        f"which is exact, and err by {equal:.3f} at least",
        # The floor is proved at each d; that it goes on like this is seen, not proved.
        verdict=verdict_of(rise > 0.5 and power > 2.9 and equal > 0.1),
        repair="the paper gives the order only; the constants are ours, for two orthogonal points, from the harmonics "
        "that r coordinates can hold",
    )


def majority_vote() -> Entry:
    dim, count = 8, 2000
    generator, parts, holds = named_generator(0, "ledger", "majority vote"), [], True

    def answer(directions, points, at):
        return MajorityVote(directions)(points, at)

    for heads in (1, 15, 255):
        points, queries = orthogonal_pairs(generator, count, dim)
        directions = on_sphere(generator, count, heads, dim)
        with jax.enable_x64(True):
            answers = np.asarray(jax.jit(jax.vmap(answer))(*map(jnp.asarray, (directions, points, queries))))
        first = np.sum(queries * (points[:, 0] - points[:, 1]), axis=1) > 0
        errors = np.sum((answers - np.where(first[:, None], points[:, 0], points[:, 1])) ** 2, axis=1)
        score = _scores(errors, np.asarray(expected_error(heads, dim)))
        holds &= score < 4
        parts.append(f"H = {heads}: {np.mean(errors):.3f} of {expected_error(heads, dim):.3f}")
    many = 2.0 ** np.arange(10, 17)
    slope = float(np.polyfit(np.log(many), [math.log(expected_error(int(h), dim)) for h in many], 1)[0])
    two, one = expected_error(4096, 64), rank_one_floor(4096, 64)
    return Entry(
        claim="two layers of rank-one heads find the nearer of two points by majority vote",
        source=f"{PAPER}, two layers",
        program="theory.MajorityVote, theory.nearest.expected_error",
        evidence=f"d = 8, expected squared error seen of computed {', '.join(parts)}; it falls as H^{slope:.2f}; at d "
        f"= 64, H = 4096 it is {two:.3f}, and one layer of any hard heads of rank one has {one:.3f} at least",
        verdict=verdict_of(holds and abs(slope + 0.5) < 0.02 and two < one),
        repair="the second layer is ours: one head of rank one, at the mean answer less the mean point",
    )


def any_length() -> Entry:
    setting = RankSetting(heads=64, rank=1, dim=64, length=16, layers=2)
    (bound,) = (bound for bound in all_rank_bounds(setting) if bound.kind == "conjecture")
    return Entry(
        claim=bound.claim,
        source=f"{PAPER}, conjecture",
        program="theory.rank_bounds.any_length_conjecture",
        evidence="the vote above knows N = 2 only; no program here tries N > 2 with two layers",
        verdict=Verdict.CONJECTURE,
    )


RANK_CLAIMS: tuple[Callable[[], Entry], ...] = (
    full_rank,
    closed_forms,
    plane,
    floors,
    orders,
    majority_vote,
    any_length,
)
