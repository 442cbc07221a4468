"""The components and outer map of a retrieval task: sums of ridges where known, fitted functions elsewhere.

`RidgeSum` proves its error, `Fitted`, a function known by its values only, measures it.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..._precision import in_double
from ...errors import InputError, require
from ...keys import named_generator
from ...tasks import Retrieval
from .fits import MAX_UNITS, SAFETY, fit_ridges, interpolate, sample_points
from .relu_nets import ReluNet, RidgeSum, affine, compose, known_components, known_outer

CHUNK = 4096
"""Points evaluated at once: one shape, one compilation."""
PROBES = 200
SAME = 1e-6
"""How far a given part may differ from the task's, in float64: constants may have been rounded to float32."""
OUTSIDE = 1e-9
"""Rounding by which a component may leave [0, 1]."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """A function on [0,1]^dim, known by its values and gradients; `name` is used in error messages."""

    name: str
    function: Callable[[Float[Array, " dim"]], Float[Array, ""]]
    dim: int

    def values(self, points: Float[np.ndarray, "points dim"]) -> Float[np.ndarray, " points"]:
        """Its values in float64."""
        values = _in_chunks(self.function, points, slopes=False)
        bad = ~np.isfinite(values)
        require(not bad.any(), f"{self.name} must be finite on the cube, it is {_first(values, points, bad)}.")
        return values

    @functools.cached_property
    def steepness(self) -> float:
        """The largest |grad|_1 at sample points, times `SAFETY`."""
        points = sample_points(self.dim, "held out")
        slopes = np.abs(_in_chunks(self.function, points, slopes=True)).reshape(len(points), -1).sum(axis=1)
        bad = ~np.isfinite(slopes)
        require(not bad.any(), f"{self.name} must have a finite slope, it is {_first(slopes, points, bad)}.")
        return SAFETY * float(slopes.max())

    @functools.cached_property
    def range(self) -> tuple[float, float]:
        """Its minimum and maximum over sample points."""
        values = self.values(sample_points(self.dim, "held out"))
        return float(values.min()), float(values.max())

    def net(self, *, low: float = 0.0, high: float = 1.0, delta: float) -> ReluNet:
        """A two-layer net within `delta` of it on [0,1]^dim, measured at sample points.

        A larger cube [low, high]^dim is rescaled onto [0,1]^dim first, since the function need not exist outside. With
        low = -m and high = 1 + m, a point within e of some z in [0,1]^dim becomes one within e + m of it.
        """
        require(delta > 0, f"delta must be positive, got {delta!r}.")
        fit, error = interpolate(self.values, delta) if self.dim == 1 else fit_ridges(self.values, self.dim, delta)
        if fit is None:
            raise InputError(
                f"{self.name}: no two-layer ReLU net of at most {MAX_UNITS} units was found within {delta:.2g} of it, "
                f"the best is within {error:.2g}; use a larger eps, or give the part as a RidgeSum."
            )
        if (low, high) == (0.0, 1.0):
            return fit
        width = high - low
        return compose(affine(np.eye(self.dim) / width, np.full(self.dim, -low / width)), fit)


@eqx.filter_jit
def _evaluate(function: Callable[[Array], Array], points: Float[Array, "points dim"], slopes: bool) -> Array:
    """The values of a function, or its gradients."""

    def value(point: Array) -> Array:
        return jnp.reshape(function(point), ())

    return jax.vmap(jax.grad(value) if slopes else value)(points)


def _in_chunks(function: Callable, points: Float[np.ndarray, "points dim"], *, slopes: bool) -> np.ndarray:
    with jax.enable_x64(True):
        padded = np.concatenate([points, np.repeat(points[-1:], -len(points) % CHUNK, axis=0)])
        chunks = [jnp.asarray(chunk) for chunk in np.split(padded, len(padded) // CHUNK)]
        parts = [np.asarray(_evaluate(function, chunk, slopes), float) for chunk in chunks]
    return np.concatenate(parts)[: len(points)]


def _first(values: np.ndarray, points: np.ndarray, bad: np.ndarray) -> str:
    worst = int(np.argmax(bad))
    return f"{values[worst]} at ({', '.join(f'{number:.3g}' for number in points[worst])})"


@dataclass(frozen=True)
class RetrievalParts:
    """f_1 .. f_D and F0."""

    components: tuple[RidgeSum | Fitted, ...]
    outer: RidgeSum | Fitted

    @property
    def proved(self) -> bool:
        """Whether errors and slopes of all parts are proved, not measured at sample points."""
        return all(isinstance(part, RidgeSum) for part in (*self.components, self.outer))


def parts_of(
    task: Retrieval, *, components: tuple[RidgeSum, ...] | None = None, outer: RidgeSum | None = None
) -> RetrievalParts:
    """The parts given, else those known of a preset, else the task's own functions, to be fitted. Raises `InputError`
    where Theorem 2 does not cover the task, or a given part differs from the task's at random points.
    """
    require(
        task.distribution == "cube",
        f"{task.name}: Theorem 2 needs tokens in the cube, its distribution is {task.distribution}.",
    )
    count = len(task.position_sets)
    outputs = jax.eval_shape(task.outer, jax.ShapeDtypeStruct((count,), jnp.float32)).size
    require(outputs == 1, f"{task.name}: constructions need one target number, the task has {outputs}.")
    if components is not None:
        require(len(components) == count, f"{task.name} has {count} components, got {len(components)}.")
    with jax.enable_x64(True):
        features, function = in_double((task.features, task.outer))
    task_outer = Fitted(f"{task.name}: outer map", function, count)
    components_read = [_Component(features, np.asarray(i)) for i in range(count)]
    task_components = tuple(
        Fitted(f"{task.name}: component f_{i + 1}", f, task.dim) for i, f in enumerate(components_read)
    )
    known = components or known_components(task) or task_components
    parts = RetrievalParts(known, outer or known_outer(task) or task_outer)
    for part, function in zip(parts.components, task_components, strict=True):
        if isinstance(part, RidgeSum):
            _check_same(part, function)
        low, high = function.range
        require(
            low >= -OUTSIDE and high <= 1 + OUTSIDE,
            f"{function.name}: Theorem 2 needs components in [0, 1], this one ranges from {low:.3g} to {high:.3g}.",
        )
    if isinstance(parts.outer, RidgeSum):
        _check_same(parts.outer, task_outer)
    return parts


class _Component(eqx.Module):
    """f_i of a token. The index is an array, so that all components of a task are compiled once."""

    features: Callable[[Float[Array, " dim"]], Float[Array, " D"]]
    index: Int[np.ndarray, ""]

    def __call__(self, token: Float[Array, " dim"]) -> Float[Array, ""]:
        return self.features(token)[self.index]


def _check_same(given: RidgeSum, function: Fitted) -> None:
    points = named_generator(0, "probed points").uniform(0, 1, (PROBES, function.dim))
    gap = float(np.abs([given(point) for point in points] - function.values(points)).max())
    require(gap < SAME, f"{function.name}: the given part differs from the task's by {gap:.2g}.")
