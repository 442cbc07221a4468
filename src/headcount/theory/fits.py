"""Least-squares and interpolating ReLU nets of functions of which only values are known.

One input: linear interpolation, every piece halved that is not good enough. Several inputs: a sum of ridges
g_k(a_k . x), each g_k linear between equal knots, its values there by least squares. The a_k are the axes, then the
diagonals of every two axes (with these alone squares and products are sums of ridges), then random directions.

The error of a fit is the largest at points that it did not see, times `SAFETY`: seen, not proved.
"""

import functools
import math
from collections.abc import Callable, Iterator

import numpy as np
from jaxtyping import Float
from scipy.sparse import csr_matrix
from scipy.stats import qmc

from .._keys import named_generator
from .relu_nets import ReluNet, ridges_net, through_net

SAFETY = 1.5
"""What is seen at sample points is multiplied by this before it is relied on."""
MOST_UNITS = 2048
MOST_DIRECTIONS = 128
POINTS_A_PIECE = 24
LEAST_POINTS = 4096
"""Points at which an interpolant is judged: this many inside every piece, and at least so many in all."""
POINTS_A_KNOT = 8
"""The least squares see about this many points for every unknown, as far as the sample goes."""
NARROWEST = 2.0**-30
"""Steeper than a rise over this an interpolant would lose digits: a function that jumps is not fitted."""
DAMPING = 1e-10
"""Of the least squares, relative to the sample: ridges along several directions share linear functions."""

Values = Callable[[np.ndarray], np.ndarray]
"""From points (points, dim) to as many numbers."""


@functools.cache
def sample_points(dim: int, purpose: str) -> Float[np.ndarray, "points dim"]:
    """A fixed sample of the cube: corners, 16,384 Sobol points (8,192 to fit by), a quarter as many on the faces.

    After the corners they come in random order, so that the first of them are a smaller sample.
    """
    generator = named_generator(0, "sample points", purpose)
    inside = qmc.Sobol(dim, rng=generator).random(2**13 if purpose == "fit" else 2**14)
    faces = inside[: len(inside) // 4].copy()
    pushed = generator.uniform(size=faces.shape) < 0.5
    faces[pushed] = faces[pushed].round()
    few = min(dim, 6)
    corners = generator.integers(0, 2, (2**few, dim)).astype(float)
    corners[:, :few] = np.stack(np.meshgrid(*[[0.0, 1.0]] * few), axis=-1).reshape(-1, few)  # all of them up to dim 6
    return np.concatenate([corners, generator.permutation(np.concatenate([inside, faces]))])


def interpolate(function: Values, delta: float) -> tuple[ReluNet | None, float]:
    """Two layers within `delta` on [0, 1] and the error seen; None where that is out of reach."""
    knots = np.array([0.0, 1.0])
    while True:
        pieces = len(knots) - 1
        inner = np.linspace(0, 1, max(POINTS_A_PIECE, math.ceil(LEAST_POINTS / pieces)) + 2)[1:-1]
        values = function(knots[:, None])
        points = knots[:-1, None] + np.diff(knots)[:, None] * inner
        chords = values[:-1, None] + np.diff(values)[:, None] * inner
        errors = SAFETY * np.abs(function(points.reshape(-1, 1)).reshape(points.shape) - chords).max(axis=1)
        coarse = errors > delta
        if not coarse.any():
            return through_net(knots, values), float(errors.max())
        if pieces + coarse.sum() > MOST_UNITS or np.diff(knots)[coarse].min() < NARROWEST:
            return None, float(errors.max())
        knots = np.sort(np.concatenate([knots, (knots[:-1] + np.diff(knots) / 2)[coarse]]))


def fit_ridges(function: Values, dim: int, delta: float) -> tuple[ReluNet | None, float]:
    """Two layers within `delta` on [0,1]^dim and the error seen; where that is out of reach None and the least seen."""
    points, held_out = sample_points(dim, "fit"), sample_points(dim, "held out")
    values, wanted = function(points), function(held_out)
    best = math.inf
    for count, pieces in _sizes(dim):
        directions = _directions(dim, count)
        # A small fit needs few points, and a bad one shows at few: most of the time goes into fits that fail.
        some = slice(POINTS_A_KNOT * count * (pieces + 1))
        heights = _least_squares(_hats(points[some], directions, pieces), values[some])
        for judged in (slice(1024), slice(None)):
            seen = _hats(held_out[judged], directions, pieces) @ heights
            error = SAFETY * float(np.abs(seen - wanted[judged]).max())
            if error > delta:
                break
        else:
            ends = zip(*_ends(directions), heights.reshape(count, pieces + 1), strict=True)
            profiles = [through_net(np.linspace(least, most, pieces + 1), row) for least, most, row in ends]
            return ridges_net(directions, profiles), error
        best = min(best, error)
    return None, best


def _least_squares(design: csr_matrix, values: Float[np.ndarray, " points"]) -> Float[np.ndarray, " unknowns"]:
    gram = (design.T @ design).toarray()
    gram[np.diag_indices(len(gram))] += DAMPING * len(values)
    return np.linalg.solve(gram, design.T @ values)


def _sizes(dim: int) -> Iterator[tuple[int, int]]:
    """(directions, pieces) to try, from the narrowest net to the widest: smooth functions want pieces, others
    directions too."""
    yield dim, 1
    counts = sorted({dim, *(min(times * dim**2, MOST_DIRECTIONS) for times in (1, 2, 4, 8))})
    units = 16
    while units <= MOST_UNITS:
        yield from ((count, units // count) for count in counts if 4 * count <= units)
        units *= 2


def _directions(dim: int, count: int) -> Float[np.ndarray, "directions dim"]:
    axes = np.eye(dim)
    diagonals = [(axes[i] + sign * axes[j]) / math.sqrt(2) for i in range(dim) for j in range(i) for sign in (1, -1)]
    drawn = named_generator(0, "directions of a fit").standard_normal((MOST_DIRECTIONS, dim))
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    return np.array([*axes, *diagonals, *drawn])[:count]


def _ends(directions: Float[np.ndarray, "directions dim"]) -> tuple[np.ndarray, np.ndarray]:
    """The least and greatest a . x on the cube, for every direction."""
    return np.minimum(directions, 0).sum(axis=1), np.maximum(directions, 0).sum(axis=1)


def _hats(
    points: Float[np.ndarray, "points dim"], directions: Float[np.ndarray, "directions dim"], pieces: int
) -> csr_matrix:
    """The share of every knot of every direction in linear interpolation at a . x: two knots a direction."""
    least, most = _ends(directions)
    places = np.clip((points @ directions.T - least) / (most - least), 0, 1) * pieces
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
