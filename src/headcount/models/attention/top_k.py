"""Top-k attention: a softmax over the largest scores, all others left out."""

import jax
import jax.numpy as jnp
from jaxtyping import Float

from ..._shapes import AnyArray


def largest(scores: Float[AnyArray, "..."], count: int, *, axis: int) -> Float[AnyArray, "..."]:
    """The `count` largest scores along an axis, the others at minus infinity; of equal scores, those of earlier places.

    All of them where there are no more.
    """
    size = scores.shape[axis]
    if count >= size:
        return scores
    moved = jnp.moveaxis(scores, axis, -1)
    _, places = jax.lax.top_k(jax.lax.stop_gradient(moved), count)
    kept = jnp.any(places[..., None] == jnp.arange(size), axis=-2)
    return jnp.moveaxis(jnp.where(kept, moved, -jnp.inf), -1, axis)
