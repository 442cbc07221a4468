"""Linear regression learned in context: pairs of a line's inputs and outputs, and one input to answer for.

Symbols: w the weights of a sequence, pairs (x_i, y_i) with y_i = w . x_i + noise, X the matrix of the x_i.
Source: Garg et al., "What Can Transformers Learn In-Context?" (arXiv 2208.01066), as used in arXiv 2407.16153.
"""

import math
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

from .._shapes import Key, Target, Tokens
from ..errors import require, require_count
from .base import GeneratedTask


class InContextRegression(GeneratedTask):
    """The best prediction of w . x for the last token's x, given length - 1 pairs (x_i, y_i); w differs per sequence.

    Tokens are (x_i, y_i), dim = inputs + 1 numbers, and the last is (x, 0). With x_i ~ N(0, I), w ~ N(0, I / inputs)
    and y_i = w . x_i + noise * N(0, 1), the prediction of minimal mean squared error is ridge regression with penalty
    noise^2 * inputs. Without noise it is the minimum-norm least-squares solution, which is w . x itself once there are
    as many pairs as inputs.

    Garg et al. alternate x and y as tokens and have a causal decoder predict after every prefix, against w . x; here
    pairs are tokens and the last token alone is the query.
    """

    inputs: int = eqx.field(static=True)
    noise: float = eqx.field(static=True)
    length: int = eqx.field(static=True)
    name: ClassVar[str] = "in-context-regression"
    answered_at = "query"

    def __init__(self, *, inputs: int = 8, noise: float = 0.0, length: int | None = None):
        """`length` is 2 * inputs + 1 by default: two pairs per input, and the query."""
        require_count("inputs", inputs)
        is_valid = isinstance(noise, int | float) and math.isfinite(noise) and noise >= 0
        require(is_valid, what="noise", given=noise, needed="a number of at least 0")
        self.length = 2 * inputs + 1 if length is None else length
        require_count("length", self.length, least=2)  # a pair and the query
        self.inputs, self.noise = inputs, float(noise)

    @property
    def dim(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.inputs + 1

    def sample(self, key: Key) -> Tokens:
        of_inputs, of_weights, of_noise = jr.split(key, 3)
        x = jr.normal(of_inputs, (self.length, self.inputs))
        weights = jr.normal(of_weights, (self.inputs,)) / math.sqrt(self.inputs)
        y = jnp.matmul(x, weights, precision="highest") + self.noise * jr.normal(of_noise, (self.length,))
        return jnp.column_stack([x, y.at[-1].set(0)])

    def target(self, tokens: Tokens) -> Target:
        tokens = jnp.asarray(tokens)
        x, y, query = tokens[:-1, :-1], tokens[:-1, -1], tokens[-1, :-1]
        return _ridge_prediction(x, y, query, penalty=self.noise**2 * self.inputs)[None]

    def at(self, length: int) -> "InContextRegression":
        return InContextRegression(inputs=self.inputs, noise=self.noise, length=length)

    def spec(self) -> dict[str, Any]:
        return {"task": self.name, "inputs": self.inputs, "noise": self.noise}


def _ridge_prediction(
    x: Float[Array, "pairs inputs"], y: Float[Array, " pairs"], query: Float[Array, " inputs"], penalty: float
) -> Float[Array, ""]:
    """Return query . w for the w of least norm that minimises |x w - y|^2 + penalty |w|^2.

    By singular values: the normal equations would square the condition number, too much for float32 where there are
    about as many pairs as inputs.
    """
    left, values, right = jnp.linalg.svd(x, full_matrices=False)
    rounding = jnp.finfo(values.dtype).eps * max(x.shape) * values[0]
    gains = jnp.where(values > rounding, values / (values**2 + penalty), 0)
    along_y = jnp.matmul(y, left, precision="highest")
    along_query = jnp.matmul(right, query, precision="highest")
    return jnp.sum(along_y * gains * along_query)
