"""DeepSets and the max-pooling MLP: a net for every token, a maximum or mean over tokens, a readout net.

    phi(x) = W2 relu(W1 x + b1) + b2        r(X) = max_t phi(x(t)), mean_t phi(x(t)), or both

The order of the tokens enters through a position code alone. A maximum over tokens is a minimum of minus it: pooling w
features is w retrievals at once, none of which chooses what it reads by what another token holds.
Source: Zaheer et al., "Deep Sets" (arXiv 1703.06114); the maximum as in PointNet (arXiv 1612.00593).
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, Self, final

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float

from ..._shapes import AnyArray, Tokens
from ..layers import Linear, draw_linear, draw_uniform, looked_up
from .base import AbstractControl, AbstractControlSpec, draw_ends

Pool = Literal["max", "mean", "both"]


@final
@dataclass(frozen=True, kw_only=True)
class PoolingSpec(AbstractControlSpec):
    """`width` features of every token, pooled; the net that makes them has `hidden` units, as the readout net has.

    `pool` is "max", "mean" (DeepSets) or "both", one after the other. Where the task is answered at a query, the query
    is not pooled: its features join the pooled ones (`query_at="readout"`), and with `query_at="tokens"` every token's
    net reads the query, too.

    Example:
        >>> import numpy as np
        >>> from headcount.models.controls import PoolingSpec
        >>> model = PoolingSpec(heads=4, width=16, pool="max").init(0, length=8, dim=3, outputs=1)
        >>> model(np.zeros((8, 3))).shape
        (1,)
    """

    kind: ClassVar[str] = "pooling"

    pool: Pool = "max"
    query_at: Literal["readout", "tokens"] = "readout"

    @property
    def read_dim(self) -> int:
        return self.width * ((2 if self.pool == "both" else 1) + (self.answered_at == "query"))

    @property
    def asks_tokens(self) -> bool:
        """Whether every token's net reads the query."""
        return self.answered_at == "query" and self.query_at == "tokens"

    def init(self, seed: int | None, *, length: int, dim: int, outputs: int) -> "Pooling":
        shape = (self.hidden, self.vocabulary or dim)
        query_in = draw_uniform(seed, "query in", shape=shape, fan_in=dim) if self.asks_tokens else None
        return Pooling(
            **draw_ends(self, seed, length=length, dim=dim, outputs=outputs, after=self.hidden),
            token_out=draw_linear(seed, "token out", before=self.hidden, after=self.width),
            query_in=query_in,
            spec=self,
        )

    def flops(self, *, length: int, dim: int, outputs: int) -> int:
        ends = self.flops_of_ends(length=length + self.asks_tokens, dim=dim, outputs=outputs, after=self.hidden)
        return ends + 2 * length * self.hidden * self.width

    def activations(self, *, length: int, dim: int) -> int:
        return length * (dim + 3 * self.hidden + 2 * self.width) + 2 * self.read_dim


@final
class Pooling(AbstractControl):
    """The weights of one model."""

    token_in: Linear
    token_out: Linear
    query_in: Float[AnyArray, "hidden before"] | None
    position_table: Float[AnyArray, "length code"] | None
    readout_in: Linear
    readout_out: Linear
    spec: PoolingSpec = eqx.field(static=True)

    def reads(self, tokens: Tokens, absent: Bool[AnyArray, " length"]) -> Float[AnyArray, " read"]:
        first = self.first_layer(tokens)
        if self.query_in is not None:
            query = tokens[-1:]
            asked = looked_up(self.query_in, query) if self.spec.vocabulary else query @ self.query_in.T
            first = first + asked
        features = jax.nn.relu(first) @ self.token_out.weight.T + self.token_out.bias
        if self.spec.answered_at == "sequence":
            return pooled(features, absent, self.spec.pool)
        return jnp.concatenate([pooled(features[:-1], absent[:-1], self.spec.pool), features[-1]])

    def in_raw_tokens(self, mean: Float[AnyArray, " dim"], scale: Float[AnyArray, " dim"]) -> Self:
        model = super().in_raw_tokens(mean, scale)
        if self.query_in is None:
            return model
        query_in = self.query_in / scale
        return eqx.tree_at(
            lambda model: (model.query_in, model.token_in.bias),
            model,
            (query_in, model.token_in.bias - query_in @ mean),
        )


def pooled(
    features: Float[AnyArray, "tokens width"], absent: Bool[AnyArray, " tokens"], pool: Pool
) -> Float[AnyArray, " pooled"]:
    """Return the maximum, the mean, or both one after the other, over the tokens that are there."""
    there = ~absent[:, None]
    largest = jnp.max(jnp.where(there, features, -jnp.inf), axis=0)
    if pool == "max":
        return largest
    mean = jnp.sum(jnp.where(there, features, 0), axis=0) / jnp.sum(there)
    return mean if pool == "mean" else jnp.concatenate([largest, mean])
