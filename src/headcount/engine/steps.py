"""Members in training, and the parts of their steps: the batch, the learning rate, and the gradient of a batch."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import optax
from jaxtyping import Array, Bool, Float, Int

from .._shapes import Key
from ..models import AbstractModel
from ..store.cell import MAX_WARMUP

Loss = Callable[..., tuple[Float[Array, ""], Float[Array, ""]]]


class TrainState(NamedTuple):
    """State of a member, carried from step to step."""

    model: AbstractModel
    optimiser: optax.OptState
    step: Int[Array, ""]
    best_error: Float[Array, ""]


class Member(NamedTuple):
    """Per-member training inputs. Slots that are not active are padding: copies of another member."""

    key: Key
    learning_rate: Float[Array, ""]
    steps: Int[Array, ""]
    active: Bool[Array, ""]
    heads: Int[Array, ""]
    """Its own, without those that pad it."""


def schedule(
    step: Int[Array, ""],
    steps: Int[Array, ""] | int,
    warmup: int | Int[Array, ""],
    max_warmup: float = MAX_WARMUP,
) -> Float[Array, ""]:
    """The share of the peak learning rate at one of `steps` steps: a linear warm-up of at most the share `max_warmup`
    of them, then a cosine to zero."""
    # A tenth in whole numbers: the rates of stored results are to come out again to the last bit.
    longest = steps // 10 if max_warmup == MAX_WARMUP else jnp.floor(steps * max_warmup).astype(jnp.int32)
    rise = jnp.minimum(warmup, longest)
    rising = (step + 1) / jnp.maximum(rise, 1)
    falling = 0.5 * (1 + jnp.cos(jnp.pi * (step - rise) / jnp.maximum(steps - rise, 1)))
    return jnp.where(step < rise, rising, falling)


def batch_key(key: Key, step: Int[Array, ""]) -> Key:
    """Draws the batch of one of a member's steps."""
    return jr.fold_in(key, step)


def gradient_of(loss: Loss, model: AbstractModel, batch: Any, at_once: int) -> tuple[Float[Array, ""], Any]:
    """The error of a batch and the gradient of its loss, both means over its examples.

    On a CPU it is summed over parts of the batch that stay in the caches: what the layers keep for the gradient of a
    whole one is hundreds of megabytes for an encoder of the published sizes, and every layer waits for memory. The sums
    of a batch in parts run in another order.

    `loss` takes the model and the arrays of `batch`, whose first axis is the examples. It must itself be a mean over
    examples.
    """
    graded = jax.value_and_grad(loss, has_aux=True)
    count = len(jax.tree.leaves(batch)[0])
    if at_once >= count:
        (_, error), gradient = graded(model, *batch)
        return error, gradient
    parts = jax.tree.map(lambda array: array.reshape(-1, at_once, *array.shape[1:]), batch)

    def add_part(total: Any, part: Any) -> tuple[Any, None]:
        (_, error), gradient = graded(model, *part)
        return jax.tree.map(jnp.add, total, (error, gradient)), None

    total, _ = jax.lax.scan(add_part, (jnp.zeros(()), jax.tree.map(jnp.zeros_like, model)), parts)
    return jax.tree.map(lambda sums: sums * (at_once / count), total)
