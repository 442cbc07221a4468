"""Ascent by the sign of the gradient, from which searches over token sequences are built."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def sign_ascent(
    objective: Callable[[Array], Float[Array, ""]],
    start: Float[Array, "*shape"],
    *,
    steps: int,
    low: float = 0.0,
    high: float = 1.0,
    step_size: float = 0.1,
    decay: float = 0.97,
) -> tuple[Float[Array, ""], Float[Array, "*shape"]]:
    """The largest value of `objective` met on one ascent inside [low, high], and where it was met.

    Step i moves every coordinate by step_size * decay^i along the sign of its derivative. Signs and not magnitudes:
    where softmax is sharp (large beta) slopes span many decades.
    """

    def step(i: Array, carried: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        x, best, where = carried
        value, slope = jax.value_and_grad(objective)(x)
        better = value > best
        moved = jnp.clip(x + step_size * decay**i * jnp.sign(slope), low, high)
        return moved, jnp.where(better, value, best), jnp.where(better, x, where)

    _, best, where = jax.lax.fori_loop(0, steps, step, (start, jnp.asarray(-jnp.inf), start))
    return best, where
