"""One compiled program a bucket: many members, each a model with its own seed and learning rate.

The program advances all members by a number of steps and measures them. Members are mapped the way the hardware likes:
one after another on a CPU (`lax.map`: least memory, and a member's numbers do not depend on its neighbours), side by
side on a GPU (`vmap`).
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int

from .._compile import deterministic_jit
from .._keys import named_key
from .._shapes import Key
from ..models import AbstractModel
from ..store import Cell, TrainSpec
from ..tasks import GradedBy
from .data import Examples, Kept, Stored
from .grading import ERROR, Grades, grades_of, loss_of, respond
from .sweep import Shape

EVALUATION_BLOCK = 256
"""Examples evaluated at a time, of lists of candidates at most a batch: bounds the memory of a validation pass."""
DROPPED = 1
"""What a step's key is told to draw what is dropped."""


class TrainState(NamedTuple):
    """What a member carries from step to step."""

    model: AbstractModel
    optimiser: optax.OptState
    step: Int[Array, ""]
    best_error: Float[Array, ""]


class Member(NamedTuple):
    """What makes a member itself."""

    key: Key
    learning_rate: Float[Array, ""]


class Measured(NamedTuple):
    """What is watched at a checkpoint."""

    validation: Grades
    train_error: Float[Array, ""]
    """The mean over the batches since the last checkpoint, each measured before its own update."""


class Program(NamedTuple):
    """The compiled parts for one shape: `start` makes the members of some cells, `advance` trains and measures them.

    `judge` grades them on other examples than those of the checkpoints.
    """

    start: Callable[[tuple[Cell, ...], Examples], tuple[TrainState, Member]]
    advance: Callable[[TrainState, Member, Examples, int], tuple[TrainState, Measured]]
    judge: Callable[[TrainState, Stored | Kept], dict[str, Float[Array, " members"]]]


@functools.lru_cache(maxsize=64)
def program(shape: Shape, dim: int, outputs: int, side_by_side: bool, graded_by: GradedBy = "distance") -> Program:
    """The program for a shape; asked for again, it is the same one, already compiled."""
    sizes = {"length": shape.length, "dim": dim, "outputs": outputs}
    block = EVALUATION_BLOCK if graded_by != "choice" else min(EVALUATION_BLOCK, shape.train.batch)
    map_members = (lambda function, members, _begun: jax.vmap(function)(members)) if side_by_side else sequential_map
    # Flattened inside, Adam is a handful of operations on one vector instead of as many for each weight matrix.
    optimiser = optax.flatten(
        optax.chain(
            optax.clip_by_global_norm(shape.train.clip), optax.scale_by_adam(b2=shape.train.second_moment_decay)
        )
    )

    lowered, grades = loss_of(graded_by, shape.length), grades_of(graded_by, shape.length)
    drops = shape.model.drops
    decay = shape.train.weight_decay

    def rounded(numbers):
        """Weights or tokens in the precision they are multiplied in."""
        if shape.train.precision == "float32":
            return numbers
        return jax.tree.map(lambda part: part.astype(jnp.bfloat16), numbers)

    def loss(model, tokens, targets, keys):
        answers = jax.vmap(respond, in_axes=(None, 0, 0 if drops else None))(rounded(model), rounded(tokens), keys)
        return lowered(answers, targets)

    def judge_one(model, examples: Stored | Kept) -> Grades:
        exact = rounded(model)
        places = jnp.arange(len(examples.targets))
        answers = jax.lax.map(
            lambda place: respond(exact, rounded(examples.tokens_at(place))), places, batch_size=block
        )
        return grades(answers, examples.targets)

    def one_step(state: TrainState, member: Member, data: Examples) -> tuple[TrainState, Float[Array, ""]]:
        key = jr.fold_in(member.key, state.step)
        dropped = jr.split(jr.fold_in(key, DROPPED), shape.train.batch) if drops else None
        batch = data.train.batch(key, shape.train.batch)
        (_, error), gradient = jax.value_and_grad(loss, has_aux=True)(state.model, *batch, dropped)
        update, moments = optimiser.update(gradient, state.optimiser)
        rate = member.learning_rate * schedule(state.step, shape.train)
        # AdamW: the decay is no part of the gradient, so Adam does not rescale it.
        shrunk = (lambda weight: (1 - rate * decay) * weight) if decay else (lambda weight: weight)
        model = jax.tree.map(lambda weight, change: shrunk(weight) - rate * change, state.model, update)
        return state._replace(model=model, optimiser=moments, step=state.step + 1), error

    def advance_one(state: TrainState, member: Member, data: Examples, steps) -> tuple[TrainState, Measured]:
        def body(_, carried):
            state, total = carried
            state, error = one_step(state, member, data)
            return state, total + error

        state, total = jax.lax.fori_loop(0, steps, body, (state, jnp.zeros(())))
        measured = Measured(judge_one(state.model, data.validation), total / steps / data.target_variance)
        least = jnp.fmin(state.best_error, measured.validation[ERROR[graded_by]])
        return state._replace(best_error=least), measured

    # Full float32 products: a GPU's default would round them to 10 bits and hide errors below 1e-3.
    products = "highest" if shape.train.precision == "float32" else "default"

    def advance(states: TrainState, members: Member, data: Examples, steps):
        with jax.default_matmul_precision(products):
            pairs = (states, members)
            return map_members(lambda pair: advance_one(pair[0], pair[1], data, steps), pairs, states.step >= 0)

    def judge(states: TrainState, examples: Stored | Kept) -> dict[str, Float[Array, " members"]]:
        with jax.default_matmul_precision(products):
            return map_members(lambda model: judge_one(model, examples), states.model, states.step >= 0)

    def start(cells: tuple[Cell, ...], data: Examples) -> tuple[TrainState, Member]:
        # Drawn for its own head count and only then padded: a cell's initial weights do not depend on its bucket.
        models = [cell.model.init(cell.seed, **sizes).with_heads(shape.model.heads) for cell in cells]
        keys = jnp.stack([named_key(cell.seed, "batches") for cell in cells])
        rates = jnp.array([cell.train.learning_rate for cell in cells], jnp.float32)
        stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *models)
        return begin(stacked, None if data.probe is None else data.probe[:EVALUATION_BLOCK]), Member(keys, rates)

    @deterministic_jit
    def begin(models: AbstractModel, tokens: Float[Array, "examples length dim"] | None) -> TrainState:
        map_all = jax.vmap if side_by_side else lambda function: functools.partial(jax.lax.map, function)
        return map_all(functools.partial(begin_one, tokens=tokens))(models)

    def begin_one(model: AbstractModel, tokens: Float[Array, "examples length dim"] | None) -> TrainState:
        model = model if tokens is None else model.calibrated(tokens)
        moments = optimiser.init(model)  # pyright: ignore[reportArgumentType]
        return TrainState(model, moments, jnp.zeros((), jnp.int32), jnp.full((), jnp.inf, jnp.float32))

    return Program(start, deterministic_jit(advance, donate=(0,)), deterministic_jit(judge))


def sequential_map(function: Callable[[Any], Any], members: Any, begun: Bool[Array, " members"]) -> Any:
    """`jax.lax.map` over members, as a loop whose length the compiler cannot know.

    What is known to be done once is compiled in another way, and its sums are then ordered anew: a member trained alone
    would differ in its last bits from the same one among others. So there is always room for two, and `begun`, true of
    every member, tells only at run time that there are any.
    """
    count = begun.shape[0]
    if count == 1:
        members = jax.tree.map(lambda part: jnp.concatenate([part, part]), members)
    one = jax.eval_shape(function, jax.tree.map(lambda part: part[0], members))
    room = jax.tree.map(lambda part: jnp.zeros((max(2, count), *part.shape), part.dtype), one)

    def turn(place: Int[Array, ""], filled: Any) -> Any:
        done = function(jax.tree.map(lambda part: part[place], members))
        return jax.tree.map(lambda all_of, own: all_of.at[place].set(own), filled, done)

    filled = jax.lax.fori_loop(0, jnp.where(begun[0], count, 0), turn, room)
    return jax.tree.map(lambda part: part[:count], filled)


def schedule(step: Int[Array, ""], train: TrainSpec) -> Float[Array, ""]:
    """The share of the peak learning rate at a step: linear warm-up, then a cosine to zero."""
    warmup = min(train.warmup, train.steps // 10)
    rising = (step + 1) / max(warmup, 1)
    falling = 0.5 * (1 + jnp.cos(jnp.pi * (step - warmup) / max(train.steps - warmup, 1)))
    return jnp.where(step < warmup, rising, falling)
