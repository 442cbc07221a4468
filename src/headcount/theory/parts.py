"""The parts of a retrieval task as the constructions want them: ridges where known, fits where not."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from .._errors import require
from .._keys import named_generator
from .._precision import in_double
from ..tasks import Retrieval
from .fitted import Fitted
from .ridges import RidgeSum, known_components, known_outer

PROBES = 200
SAME = 1e-6
"""How near a given part must come to the task's own, in float64: constants may have been rounded to float32."""
OUTSIDE = 1e-9
"""Rounding that a component may leave [0, 1] by."""


@dataclass(frozen=True)
class Parts:
    """f_1 .. f_D and F0."""

    components: tuple[RidgeSum | Fitted, ...]
    outer: RidgeSum | Fitted

    @property
    def proved(self) -> bool:
        """Whether errors and slopes of all parts are proved, not seen at sample points."""
        return all(isinstance(part, RidgeSum) for part in (*self.components, self.outer))


def parts_of(
    task: Retrieval, *, components: tuple[RidgeSum, ...] | None = None, outer: RidgeSum | None = None
) -> Parts:
    """The parts given, else those known of a preset, else the task's own functions, to be fitted.

    Given parts are compared with the task's own at random points. What Theorem 2 does not speak of is refused.
    """
    require(
        task.distribution == "cube",
        f"{task.name}: Theorem 2 speaks of tokens in the cube, its distribution is {task.distribution}.",
    )
    count = len(task.position_sets)
    answers = jax.eval_shape(task.outer, jax.ShapeDtypeStruct((count,), jnp.float32)).size
    require(answers == 1, f"{task.name}: this builds targets of one number, the task has {answers}.")
    if components is not None:
        require(len(components) == count, f"{task.name} has {count} components, {len(components)} were given.")
    own_components, own_outer = _own(task)
    parts = Parts(components or known_components(task) or own_components, outer or known_outer(task) or own_outer)
    for part, own in zip(parts.components, own_components, strict=True):
        _check_component(part, own)
    if isinstance(parts.outer, RidgeSum):
        _check_same(parts.outer, own_outer)
    return parts


def _own(task: Retrieval) -> tuple[tuple[Fitted, ...], Fitted]:
    """The task's functions as they are."""
    with jax.enable_x64(True):
        features, outer = in_double((task.features, task.outer))

    def component(i: int) -> Callable:
        return lambda token: features(token)[i]

    count = len(task.position_sets)
    parts = (Fitted(f"{task.name}: component f_{i + 1}", component(i), task.dim) for i in range(count))
    return tuple(parts), Fitted(f"{task.name}: outer map", outer, count)


def _check_component(part: RidgeSum | Fitted, own: Fitted) -> None:
    if isinstance(part, RidgeSum):
        _check_same(part, own)
    least, most = own.reach
    require(
        least >= -OUTSIDE and most <= 1 + OUTSIDE,
        f"{own.name}: Theorem 2 wants components in [0, 1], this one goes from {least:.3g} to {most:.3g}.",
    )


def _check_same(given: RidgeSum, own: Fitted) -> None:
    points = named_generator(0, "probed points").uniform(0, 1, (PROBES, own.dim))
    gap = float(np.abs([given(point) for point in points] - own.values(points)).max())
    require(gap < SAME, f"{own.name} given is not the task's, they differ by {gap:.2g}.")
