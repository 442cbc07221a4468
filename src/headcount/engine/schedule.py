"""The learning rate and the batch of a member's every step: functions of its key and of the step's number."""

import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Int

from .._shapes import Key
from ..store.cell import MAX_WARMUP


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


def rate_at(
    step: Int[Array, ""],
    peak: Float[Array, ""] | float,
    steps: Int[Array, ""] | int,
    warmup: int | Int[Array, ""],
    max_warmup: float = MAX_WARMUP,
) -> Float[Array, ""]:
    """The learning rate at one of `steps` steps."""
    return peak * schedule(step, steps, warmup, max_warmup)


def batch_key(key: Key, step: Int[Array, ""]) -> Key:
    """Draws the batch of one of a member's steps."""
    return jr.fold_in(key, step)
