"""Checks of floors where the second paper (arXiv 2407.16153) gives an order or nothing: biased targets, many points.

Heads see the query through random r x d matrices Q_h. What they compute from Q_h y and the points is free: for each set
of points the best sum of polynomials of the Q_h y is fitted by least squares to one half of the queries, and its error
on the other half is compared with the floor. Nothing in the fit uses harmonics.
"""

import functools
import itertools
import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from ...answer.claim import Finding, promise_verdict
from ...keys import named_generator
from ...tasks.nearest import bias_quantiles
from ..rank.more_floors import many_points_floor, zonal_floor
from .rank import on_sphere

QUERIES, SETS, DEGREE = 12_000, 200, 11
"""Queries of the fit and as many unseen ones, sets of points, and the degree of the polynomials."""
DAMPING = 1e-10
"""Of the least squares, times the number of queries."""
BIASED = ((3, 1, 4, 3), (2, 2, 4, 5), (2, 2, 5, 3))
"""Heads, rank, dim and terms."""
MANY = ((3, 1, 4, 3), (1, 2, 4, 4), (1, 2, 5, 3))
"""Heads, rank, dim and points."""

Squares = Float[np.ndarray, "queries sets"]


def orthonormal_points(generator: np.random.Generator, count: int, length: int, dim: int) -> np.ndarray:
    """Sets of orthonormal points in directions that no rotation prefers."""
    return np.swapaxes(np.linalg.qr(generator.standard_normal((count, dim, length)))[0], 1, 2)


def polynomials(seen: Float[np.ndarray, "queries rank"], degree: int) -> Float[np.ndarray, "queries terms"]:
    """All products of Chebyshev polynomials of the numbers seen, up to this degree in all."""
    along = np.polynomial.chebyshev.chebvander(seen, degree)
    exponents = itertools.product(range(degree + 1), repeat=seen.shape[1])
    chosen = [each for each in exponents if sum(each) <= degree]
    return np.stack([np.prod([along[:, i, k] for i, k in enumerate(each)], axis=0) for each in chosen], axis=1)


def best_squares(heads: int, rank: int, dim: int, targets_of: Callable[..., np.ndarray]) -> Squares:
    """Squared errors, on unseen queries, of the best functions of what random heads of this rank see of a query.

    `targets_of(generator, queries)` gives the target of every query for every set of points, in orthonormal numbers.
    """
    generator = named_generator(0, "ledger", "floors", heads, rank, dim)
    queries = on_sphere(generator, 2 * QUERIES, dim)
    seen = [queries @ np.linalg.qr(generator.standard_normal((dim, rank)))[0] for _ in range(heads)]
    design = np.concatenate([polynomials(each, DEGREE) for each in seen], axis=1)
    targets = targets_of(generator, queries)
    flat = targets.reshape(len(queries), -1)
    fitted = design[:QUERIES]
    # Damped, since all heads have the constants in common.
    gram = fitted.T @ fitted + DAMPING * QUERIES * np.eye(design.shape[1])
    weights = np.linalg.solve(gram, fitted.T @ flat[:QUERIES])
    off = flat[QUERIES:] - design[QUERIES:] @ weights
    return np.sum(off.reshape(QUERIES, *targets.shape[1:]) ** 2, axis=2)


@functools.cache
def biased_squares(heads: int, rank: int, dim: int, terms: int) -> Squares:
    """Of the pattern g(u . y), whose sign times (x_1 - x_2) / 2, of length 1 / sqrt(2), is to be computed."""

    def targets_of(generator: np.random.Generator, queries: np.ndarray) -> np.ndarray:
        lead = math.sqrt(2) * queries @ on_sphere(generator, SETS, dim).T
        below = sum((lead > bias).astype(int) for bias in bias_quantiles(terms, dim))
        return (np.where(below % 2 == 1, 1.0, -1.0) / math.sqrt(2))[..., None]

    return best_squares(heads, rank, dim, targets_of)


@functools.cache
def nearest_squares(heads: int, rank: int, dim: int, length: int) -> Squares:
    """Of the weights 0 and 1 with which the nearest is the sum of the points, which are orthonormal."""

    def targets_of(generator: np.random.Generator, queries: np.ndarray) -> np.ndarray:
        points = orthonormal_points(generator, SETS // length, length, dim)
        products = np.einsum("snk,ek->esn", points, queries)
        return (products == products.max(axis=2, keepdims=True)).astype(float)

    return best_squares(heads, rank, dim, targets_of)


def judge_squares(rows: dict[str, tuple[Squares, float]]) -> Finding:
    """Squared errors and their floors, by what was tried. No row at all is no evidence."""
    parts, scores = [], []
    for name, (squares, floor) in rows.items():
        # Queries are shared by all sets, and sets by all queries.
        variance = sum(np.var(squares.mean(axis=axis)) / squares.shape[1 - axis] for axis in (0, 1))
        scores.append(float((squares.mean() - floor) / math.sqrt(variance)))
        parts.append(f"{name}: {squares.mean():.3f} of {floor:.3f} ({scores[-1]:+.1f})")
    return (
        f"error of floor (difference in standard errors): {'; '.join(parts) or 'no row'}",
        promise_verdict(bool(scores) and all(score > -4 for score in scores), estimated=True),
    )


def on_biased_targets(rank_less: int = 0) -> Finding:
    """Against the floor of a rank lower by `rank_less`."""
    return judge_squares(
        {
            f"H = {heads}, r = {rank}, d = {dim}, {terms} terms": (
                biased_squares(heads, rank, dim, terms),
                zonal_floor(heads, rank - rank_less, dim, terms=terms),
            )
            for heads, rank, dim, terms in BIASED
            if rank > rank_less
        }
    )


def on_many_points(rank_less: int = 0) -> Finding:
    """Against the floor of a rank lower by `rank_less`."""
    return judge_squares(
        {
            f"H = {heads}, r = {rank}, d = {dim}, {length} points": (
                nearest_squares(heads, rank, dim, length),
                many_points_floor(heads, rank - rank_less, dim, length),
            )
            for heads, rank, dim, length in MANY
            if rank > rank_less
        }
    )


def biased_floor() -> Finding:
    evidence, verdict = on_biased_targets()
    values = ", ".join(f"{zonal_floor(10_000, 32, 64, terms=terms):.3f} ({terms})" for terms in (1, 3, 5, 9))
    # The floor is proved; that fitted heads keep above it is sampled.
    return (
        f"the best functions of what random heads see, {evidence}; at d = 64, 10,000 heads of rank 32 the floor by "
        f"the number of terms is {values}",
        verdict,
    )


def many_points() -> Finding:
    evidence, verdict = on_many_points()
    values = ", ".join(f"{many_points_floor(8, 8, 64, length):.3f} ({length})" for length in (2, 4, 16, 64))
    return (
        f"the best functions of what random heads see, {evidence}; at d = 64, 8 heads of rank 8 the floor by the "
        f"number of points is {values}",
        verdict,
    )
