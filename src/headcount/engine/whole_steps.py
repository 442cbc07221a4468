"""Whole training steps of all members by one kernel of the fused back end, some steps per call.

The batches, the learning rates and Adam are those of `Program.step_one`; only sums are rounded in another order. They
are drawn by a program that knows nothing of the model, so that all models and lengths share one.
"""

import functools
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from .._compile import compile_ahead, deterministic_jit
from ..backends.advance import ModelSizes, Moving, Step, advance
from ..models import AbstractModel
from ..tasks import AbstractObjective, Classification, Regression
from .buckets import ProgramShape
from .data import StoredTokens, chosen_examples
from .hardware import FUSED_STEPS, Sizes
from .schedule import batch_key, rate_at

if TYPE_CHECKING:
    from .train import Member

Totals = Float[Array, " members"]
_compiling = threading.Lock()


@dataclass(frozen=True)
class WholeSteps:
    """The kernel's settings for one program."""

    sizes: ModelSizes
    step: Step
    batch: int
    warmup: int

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
        return cls(model, step, train.batch, train.warmup)

    def advance(
        self,
        models: AbstractModel,
        moments: optax.OptState,
        taken: Int[Array, " members"],
        members: "Member",
        stored: StoredTokens,
        steps: int,
    ) -> tuple[Moving, Totals]:
        """The members' weights and moments after some steps, and the sum of the errors of each one's batches."""
        moving, totals = _begin(models, moments)
        for done in range(0, steps, FUSED_STEPS):
            rates, chosen = _drawing(self.batch)(members, taken, done, len(stored.tokens), self.warmup)
            count = min(FUSED_STEPS, steps - done)
            moving, totals = self._call(moving, totals, taken, done, members, count, rates, chosen, stored)
        return moving, totals

    def compile(
        self,
        models: AbstractModel,
        moments: optax.OptState,
        taken: Int[Array, " members"],
        members: "Member",
        stored: StoredTokens,
    ) -> tuple[Any, Any]:
        """Compile what `advance` runs, and give the shapes of its results."""
        drawing = _drawing(self.batch)
        draws = (members, taken, 0, len(stored.tokens), self.warmup)
        moving, totals = jax.eval_shape(_begin, models, moments)
        rates, chosen = jax.eval_shape(drawing, *draws)
        compile_ahead(_begin, models, moments)
        with _compiling:  # one for all programs: not by every thread at once
            compile_ahead(drawing, *draws)
        compile_ahead(self._call, moving, totals, taken, 0, members, 0, rates, chosen, stored)
        return moving, totals

    @functools.cached_property
    def _call(self) -> Callable[..., tuple[Moving, Totals]]:
        def call(moving: Moving, totals: Totals, taken, done, members, count, rates, chosen, stored: StoredTokens):
            targets = stored.targets[:, None].astype(jnp.float32) if self.step.labels else stored.targets
            heads = jnp.where(members.active, members.heads, 0)
            moving, errors = advance(
                moving,
                taken + done,
                heads,
                jnp.asarray(count, jnp.int32),
                rates,
                chosen,
                stored.tokens,
                targets,
                sizes=self.sizes,
                step=self.step,
            )
            return moving, totals + errors

        return deterministic_jit(call, donate=(0, 1), light=True)


@functools.cache
def _drawing(batch: int) -> Callable[..., tuple[Array, Array]]:
    """The learning rates and the examples of every member's next steps."""

    def draw(members: "Member", taken: Int[Array, " members"], done, examples, warmup) -> tuple[Array, Array]:
        def one(member: "Member", step: Int[Array, ""]) -> tuple[Array, Array]:
            rate = rate_at(step, member.learning_rate, member.steps, warmup)
            return rate, chosen_examples(batch_key(member.key, step), batch, examples)

        steps = (taken + done)[:, None] + jnp.arange(FUSED_STEPS, dtype=jnp.int32)
        return jax.vmap(jax.vmap(one, in_axes=(None, 0)))(members, steps)

    return deterministic_jit(draw, light=True)


@jax.jit  # nothing is computed, so nothing is to be deterministic
def _begin(models: AbstractModel, moments: optax.OptState) -> tuple[Moving, Totals]:
    """Weights and moments as the kernel has them, and no errors yet."""
    weights = jnp.concatenate([leaf.reshape(len(leaf), -1) for leaf in jax.tree.leaves(models)], axis=1)
    tree = optax.tree_utils
    return Moving(weights, tree.tree_get(moments, "mu"), tree.tree_get(moments, "nu")), jnp.zeros(len(weights))


def restored(
    moving: Moving, models: AbstractModel, moments: optax.OptState, taken: Int[Array, " members"]
) -> tuple[AbstractModel, optax.OptState]:
    """The models and moments that the kernel has moved, in the shapes of others, after `taken` steps."""
    leaves, structure = jax.tree.flatten(models)
    filled, start = [], 0
    for leaf in leaves:
        size = leaf[0].size
        filled.append(moving.weights[:, start : start + size].reshape(leaf.shape))
        start += size
    moments = optax.tree_utils.tree_set(moments, mu=moving.mean, nu=moving.square, count=taken)
    return jax.tree.unflatten(structure, filled), moments
