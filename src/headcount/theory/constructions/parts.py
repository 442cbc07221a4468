"""The components and outer map of a retrieval task: sums of ridges where known, fitted functions elsewhere.

A `RidgeSum` proves its error, from the slope and curvature of g(a . x) that it states; `Fitted`, a function known by
its values only, measures it.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypedDict, Unpack

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..._precision import in_double
from ...errors import InputError, require
from ...keys import named_generator
from ...tasks import Retrieval
from ...tasks.presets import Basins, ScalarEnds, largest_plus_smallest
from .fits import MAX_UNITS, SAFETY, fit_ridges, interpolate, sample_points
from .relu_nets import ReluNet, affine, compose, interpolation_net, ridges_net

CHUNK = 4096
"""Points evaluated at once: one shape, one compilation."""
PROBES = 200
SAME = 1e-6
"""Largest difference of a given part from the task's, in float64: constants may have been rounded to float32."""
OUTSIDE = 1e-9
"""Rounding by which a component may leave [0, 1]."""
RIDGE_PROBES = 1001
"""Points at which the slope and curvature that a ridge states are tested: as many equally spaced as random ones, since
a wave may vanish at all of the first. Steps of no power of two: on dyadic points a polynomial in float64 has values
that look like float32."""
COARSE = 20
"""Of values in float32 only every 20th is used: their second differences over short steps are rounding."""
SLACK = 1e-6
"""Relative excess of a difference over a stated bound that is not refused: constants may have been rounded."""


@dataclass(frozen=True)
class Ridge:
    """g(a . x) with |g'| <= slope and |g''| <= curvature wherever it is used.

    Both bounds are taken as stated; a net of the ridge is refused where its values contradict them.
    """

    direction: tuple[float, ...]
    function: Callable[[float], float]
    slope: float
    curvature: float

    def check(self, low: float, high: float) -> None:
        """Raise `InputError` where values of g on [low, high] are steeper or more curved than stated.

        Every first (second) divided difference is a value of g' (g'') in between, so one that exceeds the stated bound
        by more than rounding refutes it. Differences that do not exceed it are no proof.
        """
        drawn = named_generator(0, "probes of a ridge").uniform(low, high, RIDGE_PROBES)
        for points in (np.linspace(low, high, RIDGE_PROBES), np.sort(drawn)):
            with jax.enable_x64(True):
                values = np.array([float(self.function(float(point))) for point in points])
            if high == low or not np.isfinite(values).all():
                return  # `interpolation_net` refuses these
            for name, stated, (differences, off) in zip(
                ("slope", "curvature"), (self.slope, self.curvature), _divided_differences(points, values), strict=True
            ):
                above = np.abs(differences) - off
                seen = float(np.abs(differences)[np.argmax(above)])
                require(
                    bool(np.max(above) <= stated * (1 + SLACK)),
                    f"the ridge along {self.direction} has a {name} of at least {seen:.4g} on [{points[0]:.4g}, "
                    f"{points[-1]:.4g}], it states at most {stated:.4g}.",
                    what=name,
                    given=stated,
                    needed=f"at least {seen:.4g}",
                )


def _divided_differences(
    points: Float[np.ndarray, " points"], values: Float[np.ndarray, " points"]
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """First and second divided differences at increasing points, each with what rounding can add."""
    single = np.array_equal(values, values.astype(np.float32))
    stride = COARSE if single else 1
    points, values = points[::stride], values[::stride]
    rounding = 4 * float(np.finfo(np.float32 if single else float).eps) * max(1.0, float(np.abs(values).max()))
    steps = np.maximum(np.diff(points), np.finfo(float).tiny)
    slopes, unsure = np.diff(values) / steps, rounding / steps
    between = (steps[1:] + steps[:-1]) / 2
    return (slopes, unsure), (np.diff(slopes) / between, (unsure[1:] + unsure[:-1]) / between)


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

    def net(self, *, low: float = 0.0, high: float = 1.0, delta: float) -> ReluNet:
        """Interpolate it within `delta` on [low, high]^d by a two-layer net, every ridge within its share of delta.

        Raises `InputError` where a ridge is steeper or more curved there than it states.
        """
        profiles = []
        for ridge in self.ridges:
            ends = [sorted((a * low, a * high)) for a in ridge.direction]
            start, stop = sum(least for least, _ in ends), sum(most for _, most in ends)
            ridge.check(start, stop)
            share = {"low": start, "high": stop, "delta": delta / len(self.ridges)}
            profiles.append(interpolation_net(ridge.function, curvature=ridge.curvature, **share))
        return ridges_net(np.array([ridge.direction for ridge in self.ridges], float), profiles)


class GivenParts(TypedDict, total=False):
    """f_1 .. f_D and F0 as sums of ridges, where they are given. Presets with known parts need none."""

    components: tuple[RidgeSum, ...] | None
    outer: RidgeSum | None


def linear(weights: tuple[float, ...], shift: float = 0.0) -> RidgeSum:
    """w . x + shift: one ridge without curvature."""
    return RidgeSum((Ridge(weights, lambda s: s + shift, slope=1.0, curvature=0.0),))


def known_components(task: Retrieval) -> tuple[RidgeSum, ...] | None:
    """Return the components of a preset, where they are ridges inside [0, 1]; None for other tasks."""
    if isinstance(task.features, ScalarEnds):
        return linear((-1.0,), 1.0), linear((1.0,))
    if isinstance(task.features, Basins):
        return tuple(_bowl(centre) for centre in np.asarray(task.features.centres, float))
    return None


def known_outer(task: Retrieval) -> RidgeSum | None:
    """Return the outer map where it is the plain sum or that of `max_plus_min`; None otherwise."""
    if task.outer is jnp.sum:
        return linear((1.0,) * len(task.position_sets))
    return linear((-1.0, 1.0), 1.0) if task.outer is largest_plus_smallest else None


def _bowl(centre: Float[np.ndarray, " dim"]) -> RidgeSum:
    """|x - c|^2 / d on the cube: a parabola along every axis."""
    dim = len(centre)

    def along(axis: int) -> Ridge:
        middle, direction = float(centre[axis]), tuple(float(k == axis) for k in range(dim))
        return Ridge(direction, lambda s: (s - middle) ** 2 / dim, slope=2 / dim, curvature=2 / dim)

    return RidgeSum(tuple(along(axis) for axis in range(dim)))


@dataclass(frozen=True, eq=False)
class Fitted:
    """A function on [0,1]^dim, known by its values and gradients; `name` is used in error messages."""

    name: str
    function: Callable[[Float[Array, " dim"]], Float[Array, ""]]
    dim: int

    def values_at(self, points: Float[np.ndarray, "points dim"]) -> Float[np.ndarray, " points"]:
        """Return its values in float64."""
        values = _in_chunks(self.function, points, slopes=False)
        self._require_finite(values, points, "be finite on the cube")
        return values

    @functools.cached_property
    def steepness(self) -> float:
        """The largest |grad|_1 at sample points, times `SAFETY`."""
        points = sample_points(self.dim, "held out")
        slopes = np.abs(_in_chunks(self.function, points, slopes=True)).reshape(len(points), -1).sum(axis=1)
        self._require_finite(slopes, points, "have a finite slope")
        return SAFETY * float(slopes.max())

    @functools.cached_property
    def range(self) -> tuple[float, float]:
        """Its minimum and maximum over sample points."""
        values = self.values_at(sample_points(self.dim, "held out"))
        return float(values.min()), float(values.max())

    def net(self, *, low: float = 0.0, high: float = 1.0, delta: float) -> ReluNet:
        """Return a two-layer net within `delta` of it on [0,1]^dim, measured at sample points.

        A larger cube [low, high]^dim is rescaled onto [0,1]^dim first, since the function need not exist outside. With
        low = -m and high = 1 + m, a point within e of some z in [0,1]^dim becomes one within e + m of it.
        """
        fit, error = (
            interpolate(self.values_at, delta) if self.dim == 1 else fit_ridges(self.values_at, self.dim, delta)
        )
        if fit is None:
            raise InputError(
                f"{self.name}: no two-layer ReLU net of at most {MAX_UNITS} units was found within {delta:.2g} of it, "
                f"the best is within {error:.2g}; use a larger eps, or give the part as a RidgeSum."
            )
        if (low, high) == (0.0, 1.0):
            return fit
        width = high - low
        return compose(affine(np.eye(self.dim) / width, np.full(self.dim, -low / width)), fit)

    def _require_finite(self, numbers: np.ndarray, points: np.ndarray, needed: str) -> None:
        if np.isfinite(numbers).all():
            return
        worst = int(np.argmin(np.isfinite(numbers)))
        where = ", ".join(f"{number:.3g}" for number in points[worst])
        raise InputError(f"{self.name} must {needed}, it is {numbers[worst]} at ({where}).")


@eqx.filter_jit
def _evaluate(function: Callable[[Array], Array], points: Float[Array, "points dim"], slopes: bool) -> Array:

    def value(point: Array) -> Array:
        return jnp.reshape(function(point), ())

    return jax.vmap(jax.grad(value) if slopes else value)(points)


def _in_chunks(function: Callable, points: Float[np.ndarray, "points dim"], *, slopes: bool) -> np.ndarray:
    with jax.enable_x64(True):
        padded = np.concatenate([points, np.repeat(points[-1:], -len(points) % CHUNK, axis=0)])
        chunks = [jnp.asarray(chunk) for chunk in np.split(padded, len(padded) // CHUNK)]
        parts = [np.asarray(_evaluate(function, chunk, slopes), float) for chunk in chunks]
    return np.concatenate(parts)[: len(points)]


class RetrievalParts(NamedTuple):
    """f_1 .. f_D and F0, and whether errors and slopes of all of them are proved, not measured at sample points."""

    components: tuple[RidgeSum | Fitted, ...]
    outer: RidgeSum | Fitted
    proved: bool


def parts_of(task: Retrieval, **given: Unpack[GivenParts]) -> RetrievalParts:
    """Return the parts given, else those known of a preset, else the task's own functions, to be fitted.

    Raises `InputError` where Theorem 2 does not cover the task, or a given part differs from the task's.
    """
    require(
        task.distribution == "cube",
        f"{task.name}: Theorem 2 needs tokens in the cube, its distribution is {task.distribution}.",
    )
    count = len(task.position_sets)
    outputs = jax.eval_shape(task.outer, jax.ShapeDtypeStruct((count,), jnp.float32)).size
    require(outputs == 1, f"{task.name}: constructions need one target number, the task has {outputs}.")
    components = given.get("components")
    if components is not None:
        require(len(components) == count, f"{task.name} has {count} components, got {len(components)}.")
    with jax.enable_x64(True):
        features, function = in_double((task.features, task.outer))
    task_outer = Fitted(f"{task.name}: outer map", function, count)
    task_components = tuple(
        Fitted(f"{task.name}: component f_{i + 1}", _Component(features, np.asarray(i)), task.dim) for i in range(count)
    )
    used = components or known_components(task) or task_components
    outer = given.get("outer") or known_outer(task) or task_outer
    for part, function in zip(used, task_components, strict=True):
        _require_same(part, function)
        low, high = function.range
        require(
            low >= -OUTSIDE and high <= 1 + OUTSIDE,
            f"{function.name}: Theorem 2 needs components in [0, 1], this one ranges from {low:.3g} to {high:.3g}.",
        )
    _require_same(outer, task_outer)
    return RetrievalParts(used, outer, all(isinstance(part, RidgeSum) for part in (*used, outer)))


class _Component(eqx.Module):
    """f_i of a token. The index is an array, so that all components of a task are compiled once."""

    features: Callable[[Float[Array, " dim"]], Float[Array, " D"]]
    index: Int[np.ndarray, ""]

    def __call__(self, token: Float[Array, " dim"]) -> Float[Array, ""]:
        return self.features(token)[self.index]


def _require_same(part: RidgeSum | Fitted, function: Fitted) -> None:
    """Compare a sum of ridges with the task's own function at random points."""
    if isinstance(part, RidgeSum):
        points = named_generator(0, "probed points").uniform(0, 1, (PROBES, function.dim))
        gap = float(np.abs([part(point) for point in points] - function.values_at(points)).max())
        require(gap < SAME, f"{function.name}: the given part differs from the task's by {gap:.2g}.")
