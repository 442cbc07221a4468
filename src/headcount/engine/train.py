"""One compiled program a bucket: many members, each a model with its own seed and learning rate.

The program advances all members by a number of steps and measures them. Members are mapped the way the hardware likes:
one after another on a CPU (`lax.map`: least memory, and a member's numbers do not depend on its neighbours), side by
side on a GPU (`vmap`).
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from .._compile import repeatable
from .._keys import named_key
from .._shapes import Key
from ..models import AnyModel, ClassTokenTransformer, folded, init_model, predict, with_heads
from ..store import Cell, TrainSpec
from .data import Examples
from .sweep import Shape

EVALUATION_BLOCK = 256
"""Examples evaluated at a time: bounds the memory of a validation pass."""


class TrainState(NamedTuple):
    """What a member carries from step to step."""

    model: AnyModel
    optimiser: optax.OptState
    step: Int[Array, ""]
    best_nmse: Float[Array, ""]


class Member(NamedTuple):
    """What makes a member itself."""

    key: Key
    learning_rate: Float[Array, ""]


class Measured(NamedTuple):
    """What is watched at a checkpoint."""

    validation_nmse: Float[Array, ""]
    train_nmse: Float[Array, ""]
    """The mean over the batches since the last checkpoint, each measured before its own update."""


class Program(NamedTuple):
    """The compiled parts for one shape: `start` makes the members of some cells, `advance` trains and measures them."""

    start: Callable[[tuple[Cell, ...], Examples], tuple[TrainState, Member]]
    advance: Callable[[TrainState, Member, Examples, int], tuple[TrainState, Measured]]


@functools.lru_cache(maxsize=64)
def program(shape: Shape, dim: int, outputs: int, side_by_side: bool) -> Program:
    """The program for a shape; asked for again, it is the same one, already compiled."""
    sizes = {"length": shape.length, "dim": dim, "outputs": outputs}
    map_members = (lambda function, members: jax.vmap(function)(members)) if side_by_side else jax.lax.map
    # Flattened inside, Adam is a handful of operations on one vector instead of as many for each weight matrix.
    optimiser = optax.flatten(
        optax.chain(
            optax.clip_by_global_norm(shape.train.clip), optax.scale_by_adam(b2=shape.train.second_moment_decay)
        )
    )

    def loss(model, tokens, targets):
        return jnp.mean((jax.vmap(predict, in_axes=(None, 0))(model, tokens) - targets) ** 2)

    def nmse(model, tokens, targets):
        answers = jax.lax.map(functools.partial(predict, model), tokens, batch_size=EVALUATION_BLOCK)
        return jnp.mean((answers - targets) ** 2) / jnp.mean((targets - jnp.mean(targets, axis=0)) ** 2)

    def one_step(state: TrainState, member: Member, data: Examples) -> tuple[TrainState, Float[Array, ""]]:
        key = jr.fold_in(member.key, state.step)
        error, gradient = jax.value_and_grad(loss)(state.model, *data.train.batch(key, shape.train.batch))
        update, moments = optimiser.update(gradient, state.optimiser)
        rate = member.learning_rate * schedule(state.step, shape.train)
        model = jax.tree.map(lambda weight, change: weight - rate * change, state.model, update)
        return state._replace(model=model, optimiser=moments, step=state.step + 1), error

    def advance_one(state: TrainState, member: Member, data: Examples, steps) -> tuple[TrainState, Measured]:
        def body(_, carried):
            state, total = carried
            state, error = one_step(state, member, data)
            return state, total + error

        state, total = jax.lax.fori_loop(0, steps, body, (state, jnp.zeros(())))
        train_nmse = total / steps / data.target_variance
        measured = Measured(nmse(state.model, data.validation_tokens, data.validation_targets), train_nmse)
        return state._replace(best_nmse=jnp.fmin(state.best_nmse, measured.validation_nmse)), measured

    def advance(states: TrainState, members: Member, data: Examples, steps):
        # Full float32 products: a GPU's default would round them to 10 bits and hide errors below 1e-3.
        with jax.default_matmul_precision("highest"):
            return map_members(lambda pair: advance_one(pair[0], pair[1], data, steps), (states, members))

    def start(cells: tuple[Cell, ...], data: Examples) -> tuple[TrainState, Member]:
        # Drawn for its own head count and only then padded: a cell's initial weights do not depend on its bucket.
        models = [with_heads(init_model(cell.model, cell.seed, **sizes), shape.model.heads) for cell in cells]
        keys = jnp.stack([named_key(cell.seed, "batches") for cell in cells])
        rates = jnp.array([cell.train.learning_rate for cell in cells], jnp.float32)
        stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *models)
        return begin(stacked, data.probe[:EVALUATION_BLOCK]), Member(keys, rates)

    @repeatable
    def begin(models: AnyModel, tokens: Float[Array, "examples length dim"]) -> TrainState:
        return map_members(functools.partial(begin_one, tokens=tokens), models)

    def begin_one(model: AnyModel, tokens: Float[Array, "examples length dim"]) -> TrainState:
        if isinstance(model, ClassTokenTransformer):
            model = unit_readout(model, tokens)
        moments = optimiser.init(model)  # pyright: ignore[reportArgumentType]
        return TrainState(model, moments, jnp.zeros((), jnp.int32), jnp.full((), jnp.inf, jnp.float32))

    return Program(start, repeatable(advance, donate=(0,)))


def unit_readout(model: ClassTokenTransformer, tokens: Float[Array, "examples length dim"]) -> ClassTokenTransformer:
    """The model with its last W_O rescaled so that what reaches the readout varies by one over `tokens`.

    Averages over T tokens vary by 1/sqrt(T) only, so small that the readout net would start, and often stay, linear.
    """
    reached = jax.vmap(folded.class_output, in_axes=(None, 0))(model, tokens)
    variance = jnp.var(reached, axis=0)
    scale = jnp.sqrt(jnp.sum(variance) / jnp.maximum(jnp.sum(variance > 0), 1))  # padded numbers do not vary
    last = model.attention[-1].output / jnp.where(scale > 0, scale, 1.0)
    return eqx.tree_at(lambda m: m.attention[-1].output, model, last)


def schedule(step: Int[Array, ""], train: TrainSpec) -> Float[Array, ""]:
    """The share of the peak learning rate at a step: linear warm-up, then a cosine to zero."""
    warmup = min(train.warmup, train.steps // 10)
    rising = (step + 1) / max(warmup, 1)
    falling = 0.5 * (1 + jnp.cos(jnp.pi * (step - warmup) / max(train.steps - warmup, 1)))
    return jnp.where(step < warmup, rising, falling)
