"""Norms of one vector, or of every vector of a stack. Both are without gain and shift, which later maps can learn."""

import jax
import jax.numpy as jnp
from jaxtyping import Float

from .._shapes import AnyArray

LAYER_NORM_FLOOR = 1e-5
UNIT_NORM_FLOOR = 1e-12


def layer_norm(vectors: Float[AnyArray, "*stack width"]) -> Float[AnyArray, "*stack width"]:
    """Mean 0 and variance 1 along the last axis; the floor is added to the variance."""
    centred = vectors - jnp.mean(vectors, axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + LAYER_NORM_FLOOR)


def unit_norm(vectors: Float[AnyArray, "*stack width"]) -> Float[AnyArray, "*stack width"]:
    """Length 1 along the last axis; the floor is added to the squared length."""
    return vectors * jax.lax.rsqrt(jnp.sum(vectors**2, axis=-1, keepdims=True) + UNIT_NORM_FLOOR)
