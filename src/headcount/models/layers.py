"""Maps, norms and draws that several kinds of model share. Norms have no gain and shift, which later maps can learn."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from numpy.random import Generator

from .._shapes import AnyArray
from ..keys import named_generator

LAYER_NORM_FLOOR = 1e-5
UNIT_NORM_FLOOR = 1e-12
POSITION_SCALE = 0.1
"""Standard deviation of the numbers in a table of positions before training."""
POSITION_CODE_DIM = 8
"""Numbers in a concatenated position code."""


if TYPE_CHECKING:
    Bias = Float[AnyArray, " after"]
else:
    Bias = Float[AnyArray, " after"] | None  # None in encoders without biases alone


class Linear(eqx.Module):
    weight: Float[AnyArray, "after before"]
    bias: Bias

    def __call__(self, x: Float[AnyArray, " before"]) -> Float[AnyArray, " after"]:
        return self.weight @ x if self.bias is None else self.weight @ x + self.bias

    def of_raw_tokens(self, mean: Float[AnyArray, " dim"], scale: Float[AnyArray, " dim"]) -> "Linear":
        """Return the same map of tokens before they were standardised; columns behind theirs stay."""
        dim = mean.shape[0]
        content = self.weight[:, :dim] / scale
        xp = self.weight.__array_namespace__()
        return Linear(xp.concat([content, self.weight[:, dim:]], axis=1), self.bias - content @ mean)

    def to_raw_targets(self, mean: Float[AnyArray, " after"], scale: Float[AnyArray, " after"]) -> "Linear":
        """Return the same map to targets before they were standardised."""
        return Linear(self.weight * scale[:, None], self.bias * scale + mean)


def layer_norm(vectors: Float[AnyArray, "*stack width"]) -> Float[AnyArray, "*stack width"]:
    """Give vectors mean 0 and variance 1 along the last axis; the floor is added to the variance."""
    centred = vectors - jnp.mean(vectors, axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + LAYER_NORM_FLOOR)


def unit_norm(vectors: Float[AnyArray, "*stack width"]) -> Float[AnyArray, "*stack width"]:
    """Give vectors length 1 along the last axis; the floor is added to the squared length."""
    return vectors * jax.lax.rsqrt(jnp.sum(vectors**2, axis=-1, keepdims=True) + UNIT_NORM_FLOOR)


def looked_up(
    table: Float[AnyArray, "numbers ids"], tokens: Float[AnyArray, "length 1"]
) -> Float[AnyArray, "length numbers"]:
    """Return the column of the table for every id: the product of the table with tokens of one 1 and zeros."""
    return jnp.asarray(table).T[tokens[:, 0].astype(jnp.int32)]


def with_zeros(array: AnyArray, *, axis: int, place: int) -> AnyArray:
    """Return the array with zeros at one place of an axis; NumPy stays NumPy."""
    xp = array.__array_namespace__()
    chosen = (xp.arange(array.shape[axis]) == place).reshape([-1 if i == axis else 1 for i in range(array.ndim)])
    return xp.where(chosen, xp.zeros_like(array), array)


def initial_array(seed: int | None, *names: str | int, shape: tuple[int, ...], draw: Callable[[Generator], Any]) -> Any:
    """Draw an array of initial weights; without a seed return its shape alone, which takes no memory."""
    if seed is None:
        return jax.ShapeDtypeStruct(shape, np.float32)
    return draw(named_generator(seed, "initial weights", *names)).astype(np.float32)


def draw_uniform(seed: int | None, *names: str | int, shape: tuple[int, ...], fan_in: int) -> Any:
    """Draw weights as PyTorch draws those of a linear layer: uniform within 1/sqrt(fan-in)."""
    return initial_array(seed, *names, shape=shape, draw=lambda random: random.uniform(-1, 1, shape) * fan_in**-0.5)


def draw_normal(seed: int | None, name: str, *, shape: tuple[int, ...], scale: float) -> Any:
    return initial_array(seed, name, shape=shape, draw=lambda random: scale * random.standard_normal(shape))


def draw_linear(seed: int | None, *names: str | int, before: int, after: int, fan_in: int | None = None) -> Linear:
    """Draw a linear layer. Of a table of ids one column is read at a time: its `fan_in` is that of one weight."""
    fan_in = fan_in or before
    return Linear(
        draw_uniform(seed, *names, "weight", shape=(after, before), fan_in=fan_in),
        draw_uniform(seed, *names, "bias", shape=(after,), fan_in=fan_in),
    )
