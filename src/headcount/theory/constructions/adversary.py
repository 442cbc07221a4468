"""The largest error that a search finds: what a construction's promise is tested against."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._keys import named_generator
from ..._precision import in_double
from ..._shapes import Target, Tokens
from ...models import ClassTokenTransformer
from ...tasks import Retrieval


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


def largest_error(
    model: ClassTokenTransformer | Callable[[Tokens], Target],
    task: Retrieval,
    *,
    starts: int = 64,
    steps: int = 200,
    seed: int = 0,
) -> tuple[float, Float[np.ndarray, "length dim"]]:
    """Search the cube for the sequence with the largest error.

    `model` is a class-token transformer or any function of one sequence; weights held as a pytree are used in float64.
    Gives the largest error found, a lower bound of the true supremum, and the sequence that has it.
    """
    tokens = named_generator(seed, "starts of an adversary").uniform(0, 1, (starts, task.length, task.dim))
    tokens[: starts // 4] = tokens[: starts // 4].round()  # corners, where minima tie
    with jax.enable_x64(True):
        wide_model, wide_task = in_double((model, task))

        def error(x: Array) -> Array:
            return jnp.abs(wide_model(x) - wide_task.target(x))[0]

        errors, where = jax.jit(jax.vmap(lambda x: sign_ascent(error, x, steps=steps)))(jnp.asarray(tokens))
        worst = int(jnp.argmax(errors))
        return float(errors[worst]), np.asarray(where[worst])
