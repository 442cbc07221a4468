"""A third kind of model in one file, to show what a new kind takes: features of every token, averaged, read out.

It has no attention at all; `heads` are groups of features, and `rank` is there for the protocol alone.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, final

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float

from headcount._shapes import AnyArray, Key, Target, Tokens
from headcount.models import AbstractModel, AbstractSpec, register
from headcount.models.layers import draw_normal


@final
class MeanPool(AbstractModel):
    """y = W mean_t relu(F x_t + b)."""

    features: Float[AnyArray, "total dim"]
    bias: Float[AnyArray, " total"]
    readout: Float[AnyArray, "outputs total"]
    spec: "MeanPoolSpec" = eqx.field(static=True)

    def __call__(self, tokens: Tokens, *, key: Key | None = None) -> Target:
        return self.readout @ jnp.mean(jax.nn.relu(tokens @ self.features.T + self.bias), axis=0)


@register
@final
@dataclass(frozen=True, kw_only=True)
class MeanPoolSpec(AbstractSpec):
    """`heads` groups of `head_dim` features."""

    kind: ClassVar[str] = "mean-pool"
    standardises: ClassVar[bool] = False
    answered_at = "sequence"

    heads: int
    head_dim: int = 4
    rank: int = 1

    @property
    def total_dim(self) -> int:
        return self.heads * self.head_dim

    def init(self, seed: int | None, *, length: int, dim: int, outputs: int) -> MeanPool:
        def normal(name: str, *shape: int) -> Any:
            return draw_normal(seed, name, shape=shape, scale=shape[-1] ** -0.5)

        total = self.total_dim
        return MeanPool(
            normal("features", total, dim), normal("bias", total), normal("readout", outputs, total), spec=self
        )

    def flops(self, *, length: int, dim: int, outputs: int) -> int:
        return 2 * self.total_dim * (length * dim + outputs)

    def activations(self, *, length: int, dim: int) -> int:
        return length * (dim + 2 * self.total_dim)

    def sizes_of(self, shapes: dict[str, tuple[int, ...]]) -> dict[str, int]:
        return {"length": 1, "dim": shapes["features"][1], "outputs": shapes["readout"][0]}
