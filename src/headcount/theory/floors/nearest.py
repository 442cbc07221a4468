"""The promise of `bounded` against heads of small size: all choices compared, nothing estimated."""

import itertools
import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.spatial import KDTree


class Nearest(NamedTuple):
    """Distance of the outputs of two choices, and log of the number of choices they are among."""

    distance: float
    log_choices: float


def random_head(
    points: int, head_dim: int, steepness: float, generator: np.random.Generator
) -> tuple[Float[np.ndarray, " points"], Float[np.ndarray, "points head_dim"]]:
    """Weights in (0, 1], the largest of which is 1, and values in [-1, 1], of every grid point."""
    weights = np.exp(-steepness * generator.random(points))
    return weights / weights.max(), generator.uniform(-1, 1, (points, head_dim))


def digit_head(
    points: int, head_dim: int, free: int
) -> tuple[Float[np.ndarray, " points"], Float[np.ndarray, "points head_dim"]]:
    """A head that keeps multisets apart: its moments hold the counts of grid points as digits of base free + 1."""
    digit, moment = np.divmod(np.arange(points), head_dim + 1)
    values = np.zeros((points, head_dim))
    values[moment > 0, moment[moment > 0] - 1] = 1.0
    return (free + 1.0) ** -digit, values


def nearest_outputs(
    weights: Float[np.ndarray, " points"], values: Float[np.ndarray, "points head_dim"], free: int
) -> Nearest:
    """How near one head puts two multisets of `free` grid points.

    Besides the free tokens the head sees its fixed one, the grid point of weight 1. What two multisets share is
    replaced by the last point, as in the proof. The pair is the one with the nearest moments.

    `weights` of grid points are at most 1, the largest of them 1, and `values` at most 1 in magnitude. All multisets
    are compared: sizes must be small.
    """
    points, head_dim = values.shape
    count = math.comb(free + points - 1, free)
    chosen = np.array(list(itertools.combinations_with_replacement(range(points), free)))
    counts = np.stack([np.sum(chosen == point, axis=1) for point in range(points)], axis=1)
    moments = counts @ np.concatenate([weights[:, None], weights[:, None] * values], axis=1)
    scaled = moments / np.concatenate([[1.0], np.full(head_dim, 2.0)])  # sides of the box are t and 2 V t
    gaps, neighbours = (np.asarray(part) for part in KDTree(scaled).query(scaled, k=2, p=np.inf))
    one = int(np.argmin(gaps[:, 1]))
    # Of two with equal moments either may come first.
    other = next(int(neighbour) for neighbour in neighbours[one] if neighbour != one)
    pair = counts[[one, other]]
    common = pair.min(axis=0)
    pair = pair - common
    pair[:, -1] += common.sum()
    fixed = int(np.argmax(weights))
    outputs = [_output(weights, values, counted, fixed) for counted in pair]
    return Nearest(float(np.linalg.norm(outputs[0] - outputs[1])), math.log(count))


def _output(weights: np.ndarray, values: np.ndarray, counts: np.ndarray, fixed: int) -> np.ndarray:
    weight = counts * weights
    weight[fixed] += weights[fixed]
    return weight @ values / weight.sum()
