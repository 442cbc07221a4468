"""The gradient of a batch: at once, or on a CPU summed over parts of it that stay in the caches.

What the layers of a batch keep for its gradient is hundreds of megabytes for an encoder of the published sizes. On a
CPU every layer then waits for memory. A batch in parts gives the same mean, with its sums in another order.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..models import AbstractModel

Loss = Callable[..., tuple[Float[Array, ""], Float[Array, ""]]]


def gradient_of(loss: Loss, model: AbstractModel, batch: Any, at_once: int) -> tuple[Float[Array, ""], Any]:
    """The error of a batch and the gradient of its loss, both means over its examples.

    `loss` takes the model and the arrays of `batch`, whose first axis is the examples. It must itself be a mean over
    examples.
    """
    graded = jax.value_and_grad(loss, has_aux=True)
    count = len(jax.tree.leaves(batch)[0])
    if at_once >= count:
        (_, error), gradient = graded(model, *batch)
        return error, gradient
    parts = jax.tree.map(lambda array: array.reshape(-1, at_once, *array.shape[1:]), batch)

    def add(total: Any, part: Any) -> tuple[Any, None]:
        (_, error), gradient = graded(model, *part)
        return jax.tree.map(jnp.add, total, (error, gradient)), None

    total, _ = jax.lax.scan(add, (jnp.zeros(()), jax.tree.map(jnp.zeros_like, model)), parts)
    return jax.tree.map(lambda sums: sums * (at_once / count), total)
