"""A third kind of model in one file, to show what a new kind takes: features of every token, averaged, read out.

It has no attention at all; `heads` are groups of features, and `rank` is there for the protocol alone.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from headcount._choices import Precision
from headcount._shapes import AnyArray, Key, Target, Tokens
from headcount.errors import require_count
from headcount.keys import named_generator
from headcount.models import AbstractModel, AbstractSpec, axis_size, register


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
    precisions: ClassVar[tuple[Precision, ...]] = ("float32",)
    answered_at = "sequence"

    heads: int
    head_dim: int = 4
    rank: int = 1

    def __post_init__(self):
        for name in ("heads", "head_dim", "rank"):
            require_count(name, getattr(self, name))

    @property
    def total_dim(self) -> int:
        return self.heads * self.head_dim

    def init(self, seed: int, *, length: int, dim: int, outputs: int) -> MeanPool:
        def normal(name: str, *shape: int) -> Any:
            drawn = named_generator(seed, "initial weights", name).standard_normal(shape)
            return (drawn * shape[-1] ** -0.5).astype(np.float32)

        total = self.total_dim
        return MeanPool(
            normal("features", total, dim), normal("bias", total), normal("readout", outputs, total), spec=self
        )

    def parameters(self, *, length: int, dim: int, outputs: int) -> int:
        return self.total_dim * (dim + 1 + outputs)

    def flops(self, *, length: int, dim: int, outputs: int) -> int:
        return 2 * self.total_dim * (length * dim + outputs)

    def activations(self, *, length: int, dim: int) -> int:
        return length * (dim + 2 * self.total_dim)

    def with_rank(self, rank: int) -> Self:
        return replace(self, rank=rank)

    def sizes(self, arrays: dict[str, np.ndarray]) -> dict[str, int]:
        return {"length": 1, "dim": axis_size(arrays, "features", 1), "outputs": axis_size(arrays, "readout", 0)}
