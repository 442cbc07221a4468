"""Functions known by their values, as parts of a construction: `RidgeSum` proves its error, `Fitted` measures it."""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._errors import InputError, require
from .fits import MAX_UNITS, SAFETY, fit_ridges, interpolate, sample_points
from .relu_nets import ReluNet, affine, compose

CHUNK = 4096
"""Points evaluated at once: one shape, one compilation."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """A function on [0,1]^dim, known by its values and gradients; `name` is used in error messages."""

    name: str
    function: Callable[[Float[Array, " dim"]], Float[Array, ""]]
    dim: int

    def values(self, points: Float[np.ndarray, "points dim"]) -> Float[np.ndarray, " points"]:
        """Its values in float64.

        Raises:
            InputError: a value is not finite.
        """
        values = _in_chunks(_values, self.function, points)
        bad = ~np.isfinite(values)
        require(not bad.any(), f"{self.name} must be finite on the cube, it is {_first(values, points, bad)}.")
        return values

    @functools.cached_property
    def steepness(self) -> float:
        """The largest |grad|_1 at sample points, times `SAFETY`."""
        points = sample_points(self.dim, "held out")
        slopes = np.abs(_in_chunks(_gradients, self.function, points)).reshape(len(points), -1).sum(axis=1)
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

        Raises:
            InputError: no net of at most `MAX_UNITS` units is within `delta`.
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
def _values(function: Callable[[Array], Array], points: Float[Array, "points dim"]) -> Float[Array, " points"]:
    return jax.vmap(lambda point: jnp.reshape(function(point), ()))(points)


@eqx.filter_jit
def _gradients(function: Callable[[Array], Array], points: Float[Array, "points dim"]) -> Float[Array, "points dim"]:
    return jax.vmap(jax.grad(lambda point: jnp.reshape(function(point), ())))(points)


def _in_chunks(
    evaluate: Callable[[Callable, Array], Array], function: Callable, points: Float[np.ndarray, "points dim"]
) -> np.ndarray:
    with jax.enable_x64(True):
        padded = np.concatenate([points, np.repeat(points[-1:], -len(points) % CHUNK, axis=0)])
        parts = [
            np.asarray(evaluate(function, jnp.asarray(part)), float) for part in np.split(padded, len(padded) // CHUNK)
        ]
    return np.concatenate(parts)[: len(points)]


def _first(values: np.ndarray, points: np.ndarray, bad: np.ndarray) -> str:
    worst = int(np.argmax(bad))
    return f"{values[worst]} at ({', '.join(f'{number:.3g}' for number in points[worst])})"
