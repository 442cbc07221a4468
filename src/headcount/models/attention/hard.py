"""Hard attention: all weight on the largest score, the first of equal ones. Scores get no gradient."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Float

from ..._shapes import AnyArray


def largest_alone(scores: Float[AnyArray, "..."], *, axis: int, dtype: Any = None) -> Float[AnyArray, "..."]:
    """1 at the largest score along an axis, and 0 elsewhere."""
    chosen = jnp.argmax(scores, axis=axis)
    return jax.nn.one_hot(chosen, scores.shape[axis], dtype=scores.dtype if dtype is None else dtype, axis=axis)
