"""Any function of a whole sequence as a task: for targets that are not retrievals, or whose D is the question."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from .._errors import require, require_count
from .._shapes import Key, Target, Tokens
from .base import GeneratedTask, fingerprint, user_supplied
from .retrieval import Distribution


class FunctionTask(GeneratedTask):
    """The target is `function(tokens)`, a scalar or a vector, for sequences of every length.

    Say `uses_positions=True` when the order of tokens matters.
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
        require(
            self.distribution in ("gaussian", "cube"),
            f'distribution must be "gaussian" or "cube", got "{self.distribution}".',
        )

    def sample(self, key: Key) -> Tokens:
        draw = jr.normal if self.distribution == "gaussian" else jr.uniform
        return draw(key, (self.length, self.dim))

    def target(self, tokens: Tokens) -> Target:
        return jnp.atleast_1d(self.function(tokens))

    def at(self, length: int) -> "FunctionTask":
        require_count("length", length)
        return FunctionTask(
            function=self.function,
            length=length,
            dim=self.dim,
            distribution=self.distribution,
            name=self.name,
            uses_positions=self.uses_positions,
            intrinsic_dim=self.intrinsic_dim,
            options=self.options,
        )

    def spec(self) -> dict[str, Any]:
        shared = {"task": self.name, "distribution": self.distribution, "dim": self.dim}
        if self.options is not None:
            return shared | self.options
        # A function has no content to hash, so it is known by its values, at two lengths.
        probes = []
        for length in (4, 8):
            tokens = jax.vmap(self.at(length).sample)(jr.split(jr.key(0), 16))
            probes.append(np.asarray(user_supplied(jax.vmap(self.function), tokens, name=self.name)))
        return shared | {"uses_positions": self.uses_positions, "fingerprint": fingerprint(*probes)}
