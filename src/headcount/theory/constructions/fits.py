"""ReLU nets fitted to functions that are known by their values only.

One input: piecewise linear interpolation; pieces whose error is too large are halved. Several inputs: a sum of ridges
g_k(a_k . x), each g_k linear between equally spaced knots, its values there by least squares. The a_k are the axes,
then the diagonals of every two axes (squares and products are sums of ridges along these), then random directions.

The error of a fit is the largest at held-out points, times `SAFETY`: measured, not proved.
"""

import functools
import math
from collections.abc import Callable, Iterator

import numpy as np
from jaxtyping import Float
from scipy.sparse import csr_matrix
from scipy.stats import qmc

from ...keys import named_generator
from .relu_nets import ReluNet, ridges_net, through_net

SAFETY = 1.5
"""Factor on every maximum over sample points."""
MAX_UNITS = 2048
MAX_DIRECTIONS = 128
POINTS_PER_PIECE, MIN_POINTS = 24, 4096
"""Points at which an interpolant is checked: per piece, and the minimum in all."""
POINTS_PER_KNOT = 8
"""Points per unknown of the least squares, as far as the sample goes."""
NARROWEST = 2.0**-30
"""Pieces are not halved below this width: a function that jumps is not fitted."""
DAMPING = 1e-10
"""Of the least squares, times the number of points: linear functions are shared between directions."""

Values = Callable[[np.ndarray], np.ndarray]
"""From points (points, dim) to one value per point."""


@functools.cache
def sample_points(dim: int, purpose: str) -> Float[np.ndarray, "points dim"]:
    """Draw a fixed sample of the cube: corners, 16,384 Sobol points (8,192 for "fit"), a quarter as many on the faces.

    Points after the corners are in random order, so that any prefix is a smaller sample.
    """
    generator = named_generator(0, "sample points", purpose)
    inside = qmc.Sobol(dim, rng=generator).random(2**13 if purpose == "fit" else 2**14)
    faces = inside[: len(inside) // 4].copy()
    pushed = generator.uniform(size=faces.shape) < 0.5
    faces[pushed] = faces[pushed].round()
    few = min(dim, 6)  # all corners up to dimension 6
    corners = generator.integers(0, 2, (2**few, dim)).astype(float)
    corners[:, :few] = np.stack(np.meshgrid(*[[0.0, 1.0]] * few), axis=-1).reshape(-1, few)
    return np.concatenate([corners, generator.permutation(np.concatenate([inside, faces]))])


def interpolate(function: Values, delta: float) -> tuple[ReluNet | None, float]:
    """Fit a two-layer net within `delta` on [0, 1]; returns it, None if `MAX_UNITS` are too few, and its error."""
    knots = np.array([0.0, 1.0])
    while True:
        pieces = len(knots) - 1
        inner = np.linspace(0, 1, max(POINTS_PER_PIECE, math.ceil(MIN_POINTS / pieces)) + 2)[1:-1]
        values = function(knots[:, None])
        points = knots[:-1, None] + np.diff(knots)[:, None] * inner
        chords = values[:-1, None] + np.diff(values)[:, None] * inner
        errors = SAFETY * np.abs(function(points.reshape(-1, 1)).reshape(points.shape) - chords).max(axis=1)
        coarse = errors > delta
        if not coarse.any():
            return through_net(knots, values), float(errors.max())
        if pieces + coarse.sum() > MAX_UNITS or np.diff(knots)[coarse].min() < NARROWEST:
            return None, float(errors.max())
        knots = np.sort(np.concatenate([knots, (knots[:-1] + np.diff(knots) / 2)[coarse]]))


def fit_ridges(function: Values, dim: int, delta: float) -> tuple[ReluNet | None, float]:
    """Fit a two-layer net within `delta` on [0,1]^dim; returns it and its error, else None and the smallest error."""
    points, held_out = sample_points(dim, "fit"), sample_points(dim, "held out")
    values, wanted = function(points), function(held_out)
    best = math.inf
    for count, pieces in _net_sizes(dim):
        directions = _directions(dim, count)
        # Most of the time goes into fits that fail: fit small nets to few points, and reject bad ones on few.
        some = slice(POINTS_PER_KNOT * count * (pieces + 1))
        design = _hats(points[some], directions, pieces)
        gram = (design.T @ design).toarray()
        gram[np.diag_indices(len(gram))] += DAMPING * len(values[some])
        heights = np.linalg.solve(gram, design.T @ values[some])
        for checked in (slice(1024), slice(None)):
            fitted = _hats(held_out[checked], directions, pieces) @ heights
            error = SAFETY * float(np.abs(fitted - wanted[checked]).max())
            if error > delta:
                break
        else:
            ends = zip(*_ends(directions), heights.reshape(count, pieces + 1), strict=True)
            profiles = [through_net(np.linspace(low, high, pieces + 1), row) for low, high, row in ends]
            return ridges_net(directions, profiles), error
        best = min(best, error)
    return None, best


def _net_sizes(dim: int) -> Iterator[tuple[int, int]]:
    """(directions, pieces) to try, narrowest net first: smooth functions need pieces, others directions too."""
    yield dim, 1
    counts = sorted({dim, *(min(times * dim**2, MAX_DIRECTIONS) for times in (1, 2, 4, 8))})
    units = 16
    while units <= MAX_UNITS:
        yield from ((count, units // count) for count in counts if 4 * count <= units)
        units *= 2


def _directions(dim: int, count: int) -> Float[np.ndarray, "directions dim"]:
    axes = np.eye(dim)
    diagonals = [(axes[i] + sign * axes[j]) / math.sqrt(2) for i in range(dim) for j in range(i) for sign in (1, -1)]
    drawn = named_generator(0, "directions of a fit").standard_normal((MAX_DIRECTIONS, dim))
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    return np.array([*axes, *diagonals, *drawn])[:count]


def _ends(directions: Float[np.ndarray, "directions dim"]) -> tuple[np.ndarray, np.ndarray]:
    """Return the minimum and maximum of a . x on the cube, per direction."""
    return np.minimum(directions, 0).sum(axis=1), np.maximum(directions, 0).sum(axis=1)


def _hats(
    points: Float[np.ndarray, "points dim"], directions: Float[np.ndarray, "directions dim"], pieces: int
) -> csr_matrix:
    """Return the weight of every knot in linear interpolation at a . x: two non-zero weights per direction."""
    low, high = _ends(directions)
    places = np.clip((points @ directions.T - low) / (high - low), 0, 1) * pieces
    left = np.minimum(places.astype(int), pieces - 1)
    columns = left + np.arange(len(directions)) * (pieces + 1)
    shares = places - left
    return csr_matrix(
        (
            np.concatenate([1 - shares, shares], axis=1).ravel(),
            np.concatenate([columns, columns + 1], axis=1).ravel(),
            np.arange(len(points) + 1) * 2 * len(directions),
        ),
        shape=(len(points), len(directions) * (pieces + 1)),
    )
