"""Any function of a sequence as a task: for targets that are no retrievals, or whose D is the question."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._choices import require_choice
from .._shapes import Key, Target, Tokens
from ..errors import require_count
from .base import GeneratedTask
from .identity import CODE_LENGTHS, code_of, probe_of
from .retrieval import DISTRIBUTIONS, Distribution, draw_tokens


class FunctionTask(GeneratedTask):
    """A task whose target is `function(tokens)`, for sequences of every length.

    Args:
        function: Maps tokens of shape (length, dim) to a scalar or a vector, in JAX.
        length: Tokens per sequence.
        dim: Numbers per token.
        distribution: Of the tokens: "gaussian" (standard normal) or "cube" (uniform on [0, 1]^dim).
        name: Name of the task in tables and reports.
        uses_positions: Whether the order of tokens matters.
        intrinsic_dim: D, where it is known.
        options: What identifies the task, as JSON, such as {"version": 1}; by default the function is identified by
            the program that JAX traces it to at each length.

    Raises:
        InputError: An argument is out of range. `examples` raises it where the function fails, or where its values are
            constant, not finite, or neither scalars nor vectors.

    Example:
        >>> import jax.numpy as jnp
        >>> import headcount as hc
        >>> task = hc.FunctionTask(function=lambda tokens: jnp.max(tokens[:, 0]), length=8, dim=2)
        >>> task.outputs
        1
        >>> task.at(16).examples(100, 50).train.content.shape
        (100, 16, 2)
    """

    function: Callable[[Tokens], Float[Array, "*outputs"]]
    length: int = eqx.field(static=True)
    dim: int = eqx.field(static=True)
    distribution: Distribution = eqx.field(static=True, default="gaussian")
    name: str = eqx.field(static=True, default="function")
    uses_positions: bool = eqx.field(static=True, default=False)
    intrinsic_dim: int | None = eqx.field(static=True, default=None)
    options: dict[str, Any] | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        require_count("length", self.length)
        require_count("dim", self.dim)
        require_choice("distribution", self.distribution, DISTRIBUTIONS)

    def sample(self, key: Key) -> Tokens:
        return draw_tokens(self.distribution, key, (self.length, self.dim))

    def target(self, tokens: Tokens) -> Target:
        """Return `function` of the tokens, as a vector."""
        return jnp.atleast_1d(self.function(tokens))

    def at(self, length: int) -> "FunctionTask":
        require_count("length", length)
        return self._with_length(length)

    def spec(self) -> dict[str, Any]:
        shared = {"task": self.name, "distribution": self.distribution, "dim": self.dim}
        if self.options is not None:
            return shared | self.options
        shapes = [(length, self.dim) for length in CODE_LENGTHS]
        code = code_of(self.name, (self.function, shapes))
        return shared | {"uses_positions": self.uses_positions, "code": code}

    def probe(self) -> str:
        return probe_of(self, self.function, is_named=self.options is not None)
