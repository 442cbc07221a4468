"""The largest error that a search finds: what a construction's promise is tested against."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._precision import in_double
from ..._shapes import Target, Tokens
from ...keys import named_generator
from ...models import ClassTokenTransformer
from ...tasks import Retrieval

STEP = 0.1
"""First step of an ascent from tokens anywhere in the cube."""


def sign_ascent(
    objective: Callable[[Array], Float[Array, ""]],
    start: Float[Array, "*shape"],
    *,
    steps: int,
    low: float = 0.0,
    high: float = 1.0,
    step_size: float | Float[Array, ""] = STEP,
    decay: float = 0.97,
) -> tuple[Float[Array, ""], Float[Array, "*shape"]]:
    """Return the largest value of `objective` met on one ascent inside [low, high], and where it was met.

    Step i moves every coordinate by step_size * decay^i along the sign of its derivative. Signs and not magnitudes:
    where softmax is sharp (large beta) slopes span many decades.
    """

    def move(i: Array, carried: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        x, best, where = carried
        value, slope = jax.value_and_grad(objective)(x)
        better = value > best
        way = jnp.where(jnp.isnan(slope), 0.0, jnp.sign(slope))  # where there is no slope, stay inside the box
        moved = jnp.clip(x + step_size * decay**i * way, low, high)
        return moved, jnp.where(better, value, best), jnp.where(better, x, where)

    _, best, where = jax.lax.fori_loop(0, steps, move, (start, jnp.asarray(-jnp.inf), start))
    return best, where


def highest_of_ascents(
    objective: Callable[[Array], Float[Array, ""]],
    starts: Float[np.ndarray, "starts length dim"],
    step_sizes: Float[np.ndarray, " starts"],
    steps: int,
) -> tuple[float, Float[np.ndarray, "length dim"]]:
    """Return the largest value met on ascents from many starts, NaN aside, and where; use it in float64."""
    ascend = jax.jit(jax.vmap(lambda x, size: sign_ascent(objective, x, steps=steps, step_size=size)))
    values, where = ascend(jnp.asarray(starts), jnp.asarray(step_sizes))
    highest = int(jnp.nanargmax(values))
    return float(values[highest]), np.asarray(where[highest])


def _spreads(model: object, count: int, generator: np.random.Generator) -> Float[np.ndarray, " count"]:
    """Return distances between the tokens of a start: about 1 / beta, or at every scale where beta is not known."""
    if isinstance(model, ClassTokenTransformer):
        low, high = (times / model.spec.beta for times in (0.3, 10.0))
    else:
        low, high = 1e-6, 1.0
    return np.exp(generator.uniform(np.log(low), np.log(high), count))


def _near_one_point(
    spreads: Float[np.ndarray, " count"], task: Retrieval, generator: np.random.Generator
) -> Float[np.ndarray, "count length dim"]:
    """Return sequences around one point each: all tokens moved at random, in every second one a single token."""
    centres = generator.uniform(0, 1, (len(spreads), 1, task.dim))
    moves = generator.uniform(-1, 1, (len(spreads), task.length, task.dim))
    alone = np.eye(task.length)[generator.integers(task.length, size=len(spreads))][..., None]
    moves[::2] *= alone[::2]
    return np.clip(centres + spreads[:, None, None] * moves, 0, 1)


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
    Gives the largest error found in any target number, a lower bound of the true supremum, and the sequence that has
    it. An answer that is not finite has the error inf.

    Half of the starts have their tokens within a few 1 / beta of one point, and move by steps of that size: there a
    softmax is worst. Tokens far apart are read almost exactly, and so are tokens that coincide.
    """
    generator = named_generator(seed, "starts of an adversary")
    tokens = generator.uniform(0, 1, (starts, task.length, task.dim))
    tokens[: starts // 4] = tokens[: starts // 4].round()  # corners, where minima tie
    step_sizes = np.full(starts, STEP)
    near = starts // 2
    if near:
        spreads = _spreads(model, near, generator)
        tokens[-near:] = _near_one_point(spreads, task, generator)
        step_sizes[-near:] = np.minimum(STEP, spreads)
    with jax.enable_x64(True):
        wide_model, wide_task = in_double((model, task))

        def error(x: Array) -> Array:
            largest = jnp.max(jnp.abs(wide_model(x) - wide_task.target(x)))
            return jnp.where(jnp.isfinite(largest), largest, jnp.inf)

        return highest_of_ascents(error, tokens, step_sizes, steps)
