"""Functions whose ReLU nets come with a proved error: sums of ridges g(a . x) of known slope and curvature."""

from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...tasks import Retrieval
from ...tasks.presets import Basins, ScalarEnds, largest_plus_smallest
from .relu_nets import ReluNet, interpolation_net, ridges_net


@dataclass(frozen=True)
class Ridge:
    """g(a . x) with |g'| <= slope and |g''| <= curvature wherever it is used."""

    direction: tuple[float, ...]
    function: Callable[[float], float]
    slope: float
    curvature: float

    def range(self, low: float, high: float) -> tuple[float, float]:
        """The minimum and maximum of a . x for x in [low, high]^d."""
        ends = [(min(a * low, a * high), max(a * low, a * high)) for a in self.direction]
        return sum(smallest for smallest, _ in ends), sum(largest for _, largest in ends)


@dataclass(frozen=True)
class RidgeSum:
    """A sum of ridges over one space."""

    ridges: tuple[Ridge, ...]

    def __call__(self, x: Float[np.ndarray, " dim"]) -> float:
        return sum(float(ridge.function(float(np.dot(ridge.direction, x)))) for ridge in self.ridges)

    @property
    def steepness(self) -> float:
        """A bound on |grad|_1: how far the sum moves when every coordinate moves by at most 1."""
        return sum(ridge.slope * float(np.sum(np.abs(ridge.direction))) for ridge in self.ridges)

    def net(self, *, low: float, high: float, delta: float) -> ReluNet:
        """A two-layer net within `delta` of it on [low, high]^d, every ridge interpolated within its share of delta."""
        share = delta / len(self.ridges)
        parts = []
        for ridge in self.ridges:
            start, stop = ridge.range(low, high)
            parts.append(
                interpolation_net(ridge.function, curvature=ridge.curvature, low=start, high=stop, delta=share)
            )
        return ridges_net(np.array([ridge.direction for ridge in self.ridges], float), parts)


Ridges = tuple[RidgeSum, ...]


def linear(weights: tuple[float, ...], shift: float = 0.0) -> RidgeSum:
    """w . x + shift: one ridge without curvature."""
    return RidgeSum((Ridge(weights, lambda s: s + shift, slope=1.0, curvature=0.0),))


def known_components(task: Retrieval) -> tuple[RidgeSum, ...] | None:
    """The components of a preset, where they are ridges inside [0, 1]; None for other tasks."""
    if isinstance(task.features, ScalarEnds):
        return linear((-1.0,), 1.0), linear((1.0,))
    if isinstance(task.features, Basins):
        return tuple(_bowl(centre) for centre in np.asarray(task.features.centres, float))
    return None


def known_outer(task: Retrieval) -> RidgeSum | None:
    """The outer map where it is the plain sum or that of `max_plus_min`; None otherwise."""
    if task.outer is jnp.sum:
        return linear((1.0,) * len(task.position_sets))
    if task.outer is largest_plus_smallest:
        return linear((-1.0, 1.0), 1.0)
    return None


def _bowl(centre: Float[np.ndarray, " dim"]) -> RidgeSum:
    """|x - c|^2 / d on the cube: a parabola along every axis."""
    dim = len(centre)

    def along(axis: int) -> Ridge:
        middle, direction = float(centre[axis]), tuple(float(k == axis) for k in range(dim))
        return Ridge(direction, lambda s: (s - middle) ** 2 / dim, slope=2 / dim, curvature=2 / dim)

    return RidgeSum(tuple(along(axis) for axis in range(dim)))
