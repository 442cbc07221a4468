"""Whole training steps of all members by one kernel of the fused back end, some steps per call.

The batches, the learning rates and Adam are those of `Program.step_one`; only sums are rounded in another order.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from ..backends.advance import ModelSizes, Moving, Step, advance
from ..models import AbstractModel
from ..tasks import AbstractObjective, Classification, Regression
from .buckets import ProgramShape
from .hardware import FUSED_STEPS, Sizes


@dataclass(frozen=True)
class WholeSteps:
    """The kernel's settings for one program."""

    sizes: ModelSizes
    step: Step
    batch: int

    @classmethod
    def of(cls, shape: ProgramShape, sizes: Sizes, objective: AbstractObjective) -> "WholeSteps | None":
        """Those of a program; None where the kernel cannot take its steps."""
        model = shape.model.step_sizes(length=sizes.tokens, dim=sizes.dim, outputs=sizes.outputs)
        if model is None or sizes.sequences > 1 or not isinstance(objective, Regression | Classification):
            return None
        train = shape.train
        step = Step(
            labels=isinstance(objective, Classification),
            clip=train.clip,
            second_moment_decay=train.second_moment_decay,
            weight_decay=train.weight_decay,
        )
        return cls(model, step, train.batch)

    def advance(
        self,
        models: AbstractModel,
        moments: optax.OptState,
        taken: Int[Array, " members"],
        heads: Int[Array, " members"],
        steps: Any,
        plan: Callable[[Any, Int[Array, "members room"]], tuple[Array, Array]],
        members: Any,
        tokens: Float[Array, "examples length dim"],
        targets: Array,
    ) -> tuple[AbstractModel, optax.OptState, Float[Array, " members"]]:
        """The members after some steps, and the sum of the errors of each one's batches.

        `plan(members, steps)` gives the learning rate and the examples of every member's steps.
        """
        targets = targets[:, None].astype(jnp.float32) if self.step.labels else targets
        steps = jnp.asarray(steps, jnp.int32)

        def call(turn: Int[Array, ""], carried: tuple[Moving, Array]) -> tuple[Moving, Array]:
            moving, totals = carried
            done = turn * FUSED_STEPS
            at = (taken + done)[:, None] + jnp.arange(FUSED_STEPS, dtype=jnp.int32)
            rates, chosen = plan(members, at)
            count = jnp.minimum(FUSED_STEPS, steps - done)
            moving, errors = advance(
                moving, taken + done, heads, count, rates, chosen, tokens, targets, sizes=self.sizes, step=self.step
            )
            return moving, totals + errors

        tree = optax.tree_utils
        moving = Moving(ravelled(models), tree.tree_get(moments, "mu"), tree.tree_get(moments, "nu"))
        calls = (steps + FUSED_STEPS - 1) // FUSED_STEPS
        moving, totals = jax.lax.fori_loop(0, calls, call, (moving, jnp.zeros(len(taken), jnp.float32)))
        moments = tree.tree_set(moments, mu=moving.mean, nu=moving.square, count=taken + steps)
        return unravelled(moving.weights, models), moments, totals


def ravelled(models: AbstractModel) -> Float[Array, "members parameters"]:
    """The leaves of every member one after another, as `optax.flatten` puts the moments."""
    return jnp.concatenate([leaf.reshape(len(leaf), -1) for leaf in jax.tree.leaves(models)], axis=1)


def unravelled(flat: Float[Array, "members parameters"], like: AbstractModel) -> AbstractModel:
    """The members whose leaves are `flat`, in the shapes of others."""
    leaves, structure = jax.tree.flatten(like)
    filled, start = [], 0
    for leaf in leaves:
        size = leaf[0].size
        filled.append(flat[:, start : start + size].reshape(leaf.shape))
        start += size
    return jax.tree.unflatten(structure, filled)
