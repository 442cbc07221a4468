"""Sums of maxima over an alphabet: every token is one of q symbols, so that models can be compared with all hard heads.

    y = sum over i of max_t a_i(symbol t)        a_i(symbol) ~ N(0, 1), one draw per task seed

A token is the one-hot vector of its symbol; the T symbols of a sequence are independent and uniform.
"""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from .._shapes import Key, Target, Tokens
from ..errors import require_count
from ..keys import named_generator
from .base import DRAWN, Examples, GeneratedTask, Split


class AlphabetMaxima(GeneratedTask):
    """The sum over i of the maximum over a sequence of a_i(symbol), with `symbols` symbols.

    Args:
        length: Tokens per sequence.
        intrinsic_dim: D, the number of maxima.
        symbols: Symbols of the alphabet, q; also the numbers per token.
        task_seed: The draw of the values a_i(symbol).

    Raises:
        InputError: A size is no whole number, or there are fewer than two symbols.

    Example:
        >>> from headcount.tasks import AlphabetMaxima
        >>> task = AlphabetMaxima(length=8, intrinsic_dim=3)
        >>> task.dim, task.values.shape
        (5, (3, 5))
    """

    values: Float[Array, "D symbols"]
    length: int = eqx.field(static=True)
    dim: int = eqx.field(static=True)
    intrinsic_dim: int | None = eqx.field(static=True)
    task_seed: int = eqx.field(static=True)
    name: ClassVar[str] = "alphabet-maxima"

    def __init__(self, *, length: int = 8, intrinsic_dim: int = 3, symbols: int = 5, task_seed: int = 0):
        require_count("length", length)
        self.values = jnp.asarray(alphabet_values(intrinsic_dim, symbols, task_seed), jnp.float32)
        self.length, self.dim, self.intrinsic_dim, self.task_seed = length, symbols, intrinsic_dim, task_seed

    def sample(self, key: Key) -> Tokens:
        return jax.nn.one_hot(jr.randint(key, (self.length,), 0, self.dim), self.dim)

    def target(self, tokens: Tokens) -> Target:
        return jnp.sum(jnp.max(tokens @ self.values.T, axis=0), keepdims=True)

    def examples(self, train_examples: int, validation_examples: int, seed: int = 0) -> Split:
        """Draw examples; where validation asks for at least all sequences, it has each once: errors are exact."""
        count = self.dim**self.length
        if validation_examples < count:
            return super().examples(train_examples, validation_examples, seed)
        train = super().examples(train_examples, DRAWN, seed).train
        symbols = np.stack(np.unravel_index(np.arange(count), (self.dim,) * self.length), axis=1)
        targets = np.asarray(self.values)[:, symbols].max(axis=2).sum(axis=0)[:, None]
        return Split(train, Examples(np.eye(self.dim, dtype=np.float32)[symbols], targets))

    def at(self, length: int) -> "AlphabetMaxima":
        return AlphabetMaxima(length=length, intrinsic_dim=len(self.values), symbols=self.dim, task_seed=self.task_seed)

    def spec(self) -> dict[str, Any]:
        shared = {"task": self.name, "symbols": self.dim, "intrinsic_dim": self.intrinsic_dim}
        return shared | {"task_seed": self.task_seed}


def alphabet_values(intrinsic_dim: int, symbols: int, task_seed: int = 0) -> Float[np.ndarray, "D symbols"]:
    """Draw a_i(symbol), independent standard normal numbers; more components include those of fewer."""
    require_count("intrinsic_dim", intrinsic_dim)
    require_count("symbols", symbols, least=2)
    return named_generator(task_seed, "alphabet values", symbols).standard_normal((intrinsic_dim, symbols))
