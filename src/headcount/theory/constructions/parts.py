"""The components and outer map of a retrieval task: sums of ridges where known, fitted functions elsewhere."""

from collections.abc import Callable
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..._errors import require
from ..._keys import named_generator
from ..._precision import in_double
from ...tasks import Retrieval
from .fitted import Fitted
from .ridges import RidgeSum, known_components, known_outer

PROBES = 200
SAME = 1e-6
"""How far a given part may differ from the task's, in float64: constants may have been rounded to float32."""
OUTSIDE = 1e-9
"""Rounding by which a component may leave [0, 1]."""


@dataclass(frozen=True)
class Parts:
    """f_1 .. f_D and F0."""

    components: tuple[RidgeSum | Fitted, ...]
    outer: RidgeSum | Fitted

    @property
    def proved(self) -> bool:
        """Whether errors and slopes of all parts are proved, not measured at sample points."""
        return all(isinstance(part, RidgeSum) for part in (*self.components, self.outer))


def parts_of(
    task: Retrieval, *, components: tuple[RidgeSum, ...] | None = None, outer: RidgeSum | None = None
) -> Parts:
    """The parts given, else those known of a preset, else the task's own functions, to be fitted.

    Raises:
        InputError: Theorem 2 does not cover the task, or a given part differs from the task's at random points.
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
    task_components, task_outer = _as_fitted(task)
    parts = Parts(components or known_components(task) or task_components, outer or known_outer(task) or task_outer)
    for part, function in zip(parts.components, task_components, strict=True):
        _check_component(part, function)
    if isinstance(parts.outer, RidgeSum):
        _check_same(parts.outer, task_outer)
    return parts


class _Component(eqx.Module):
    """f_i of a token. The index is an array, so that all components of a task are compiled once."""

    features: Callable[[Float[Array, " dim"]], Float[Array, " D"]]
    index: Int[np.ndarray, ""]

    def __call__(self, token: Float[Array, " dim"]) -> Float[Array, ""]:
        return self.features(token)[self.index]


def _as_fitted(task: Retrieval) -> tuple[tuple[Fitted, ...], Fitted]:
    """The task's own functions."""
    with jax.enable_x64(True):
        features, outer = in_double((task.features, task.outer))

    count = len(task.position_sets)
    parts = (
        Fitted(f"{task.name}: component f_{i + 1}", _Component(features, np.asarray(i)), task.dim) for i in range(count)
    )
    return tuple(parts), Fitted(f"{task.name}: outer map", outer, count)


def _check_component(part: RidgeSum | Fitted, function: Fitted) -> None:
    if isinstance(part, RidgeSum):
        _check_same(part, function)
    low, high = function.range
    require(
        low >= -OUTSIDE and high <= 1 + OUTSIDE,
        f"{function.name}: Theorem 2 needs components in [0, 1], this one ranges from {low:.3g} to {high:.3g}.",
    )


def _check_same(given: RidgeSum, function: Fitted) -> None:
    points = named_generator(0, "probed points").uniform(0, 1, (PROBES, function.dim))
    gap = float(np.abs([given(point) for point in points] - function.values(points)).max())
    require(gap < SAME, f"{function.name}: the given part differs from the task's by {gap:.2g}.")
