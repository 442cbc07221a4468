"""Whole training steps of all members by one kernel of the fused back end, some steps per call.

The batches, the learning rates and Adam are those of `Program.step_one`; only sums are rounded in another order. They
are drawn by a program that knows nothing of the model, so that all models and lengths share one.
"""

import functools
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from .._choices import Backend
from .._compile import compile_ahead, deterministic_jit
from ..backends.advance import Aside, ModelSizes, Moving, Step, advance, advance_aside
from ..store import TrainSpec
from ..tasks import Classification
from .buckets import ProgramShape
from .data import StoredTokens, chosen_examples
from .hardware import FUSED_STEPS, TaskShape, kernel_sizes
from .steps import Member, TrainState, batch_key, schedule

Totals = Float[Array, " members"]
Draws = tuple[Array, Array, Array]
"""The steps that every member has taken, and the learning rates and the examples of its next ones."""
_compiling = threading.Lock()


@dataclass(frozen=True)
class WholeSteps:
    """The kernel for one program; `labels` says whether targets are labels."""

    sizes: ModelSizes
    train: TrainSpec
    labels: bool

    @classmethod
    def for_program(cls, shape: ProgramShape, task: TaskShape, backend: Backend) -> "WholeSteps | None":
        """Return the kernel of a program; None where it has none."""
        sizes = kernel_sizes(shape, task, backend)
        return None if sizes is None else cls(sizes, shape.train, isinstance(task.objective, Classification))

    @property
    def step(self) -> Step:
        """The settings of a step."""
        train = self.train
        return Step(
            labels=self.labels,
            clip=train.clip,
            second_moment_decay=train.second_moment_decay,
            weight_decay=train.weight_decay,
        )

    def advance(self, states: TrainState, members: Member, stored: StoredTokens, steps: int) -> tuple[Moving, Totals]:
        """The members' weights and moments after some steps, and the sum of the errors of each one's batches."""
        moving, totals, heads, targets = begin(states, members, stored)
        for done in range(0, steps, FUSED_STEPS):
            now, rates, chosen = self.draw_steps(states, members, stored, done)
            count = min(FUSED_STEPS, steps - done)
            moving, totals = self._call(moving, totals, now, heads, count, rates, chosen, stored.tokens, targets)
        return moving, totals

    def draw_steps(self, states: TrainState, members: Member, stored: StoredTokens, done: int) -> Draws:
        drawing = _drawing(self.train.batch, self.train.max_warmup)
        return drawing(members, states.step, done, len(stored.tokens), self.train.warmup)

    def compile(self, states: TrainState, members: Member, stored: StoredTokens) -> tuple[Any, Any]:
        """Compile what `advance` and `advance_together` run, and give the shapes of its results."""
        drawing = _drawing(self.train.batch, self.train.max_warmup)
        draws = (members, states.step, 0, len(stored.tokens), self.train.warmup)
        moving, totals, heads, targets = jax.eval_shape(begin, states, members, stored)
        now, rates, chosen = jax.eval_shape(drawing, *draws)
        compile_ahead(begin, states, members, stored)
        with _compiling:  # one for all programs: not by every thread at once
            compile_ahead(drawing, *draws)
        count = jax.ShapeDtypeStruct((), jnp.int32)
        given = (moving, totals, now, heads, count, rates, chosen, stored.tokens, targets)
        compile_ahead(self.aside if jax.default_backend() == "gpu" else self._call, *given)
        return moving, totals

    @functools.cached_property
    def _call(self) -> Callable[..., tuple[Moving, Totals]]:
        def call(moving: Moving, totals: Totals, now, heads, count, rates, chosen, tokens, targets):
            count = jnp.asarray(count, jnp.int32)
            given = (moving, now, heads, count, rates, chosen, tokens, targets)
            moving, errors = advance(*given, sizes=self.sizes, step=self.step)
            return moving, totals + errors

        return deterministic_jit(call, donate=(0, 1), light=True)

    @functools.cached_property
    def aside(self) -> Callable[..., Aside]:
        """The same next to XLA's stream. The program is the call alone: it has no memory to release."""
        return deterministic_jit(
            functools.partial(advance_aside, sizes=self.sizes, step=self.step), donate=(0, 1), light=True
        )


@functools.cache
def _drawing(batch: int, max_warmup: float) -> Callable[..., Draws]:

    def drawn(members: Member, taken: Int[Array, " members"], done, examples, warmup) -> Draws:
        def one(member: Member, step: Int[Array, ""]) -> tuple[Array, Array]:
            rate = member.learning_rate * schedule(step, member.steps, warmup, max_warmup)
            return rate, chosen_examples(batch_key(member.key, step), batch, examples)

        now = taken + done
        steps = now[:, None] + jnp.arange(FUSED_STEPS, dtype=jnp.int32)
        return now, *jax.vmap(jax.vmap(one, in_axes=(None, 0)))(members, steps)

    return deterministic_jit(drawn, light=True)


@jax.jit  # nothing is computed, so nothing is to be deterministic
def begin(states: TrainState, members: Member, stored: StoredTokens) -> tuple[Moving, Totals, Array, Array]:
    """Weights, moments, heads and targets as the kernel has them, and no errors yet."""
    weights = jnp.concatenate([leaf.reshape(len(leaf), -1) for leaf in jax.tree.leaves(states.model)], axis=1)
    tree = optax.tree_utils
    moving = Moving(weights, tree.tree_get(states.optimiser, "mu"), tree.tree_get(states.optimiser, "nu"))
    heads = jnp.where(members.active, members.heads, 0)  # an empty slot has none
    targets = stored.targets
    return moving, jnp.zeros(len(weights)), heads, targets if targets.ndim > 1 else targets[:, None].astype(jnp.float32)


def restored(moving: Moving, states: TrainState, steps: Any) -> TrainState:
    """The states that the kernel has moved by some steps."""
    leaves, structure = jax.tree.flatten(states.model)
    filled, start = [], 0
    for leaf in leaves:
        size = leaf[0].size
        filled.append(moving.weights[:, start : start + size].reshape(leaf.shape))
        start += size
    taken = states.step + steps
    moments = optax.tree_utils.tree_set(states.optimiser, mu=moving.mean, nu=moving.square, count=taken)
    return states._replace(model=jax.tree.unflatten(structure, filled), optimiser=moments, step=taken)
