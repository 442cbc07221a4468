"""Linear attention: weights in proportion to phi(q) . phi(k), with phi = elu + 1, in place of exp(q . k).

No weight of a token that is read is 0, and none can outgrow the others exponentially: a head averages rather than
picks. Source: Katharopoulos et al. (arXiv 2006.16236). Weights are formed here, so that what a head reads can be shown;
for one query that is linear in the length as it is.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from ..._shapes import AnyArray


def features(x: Float[AnyArray, "..."]) -> Float[AnyArray, "..."]:
    """phi: x + 1 above 0, exp(x) below. Always positive."""
    return jnp.where(x > 0, x + 1, jnp.exp(jnp.minimum(x, 0)))


def shares(
    kernel: Float[AnyArray, "..."], hidden: Bool[AnyArray, "..."] | None, *, axis: int
) -> Float[AnyArray, "..."]:
    """The kernel's values, less those of keys that are not read, as shares of their sum along an axis."""
    kernel = kernel if hidden is None else jnp.where(hidden, 0, kernel)
    least = np.finfo(kernel.dtype).tiny  # every feature may have underflowed
    return kernel / jnp.maximum(jnp.sum(kernel, axis=axis, keepdims=True), least)
