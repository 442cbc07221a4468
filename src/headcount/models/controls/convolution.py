"""A 1-D convolutional net: residual dilated convolutions over the tokens, pooled, read out.

    h = W x + b;    h(t) <- h(t) + C_l relu(h(t - s), h(t), h(t + s)) + c_l,   s = 2^l,  l = 0 .. layers - 1

r(X) is the maximum and the mean of h over tokens, and where the task is answered at a query h of the last token, too.
Three layers see 7 tokens to each side. Zeros lie beyond the ends, and in place of absent tokens.
"""

from dataclasses import dataclass
from typing import ClassVar, final

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float

from ..._shapes import AnyArray, Tokens
from ..layers import Linear, draw_linear
from .base import AbstractControl, AbstractControlSpec, draw_ends
from .pooling import pooled

KERNEL = 3
"""Tokens that one convolution reads."""


@final
@dataclass(frozen=True, kw_only=True)
class ConvolutionSpec(AbstractControlSpec):
    """`layers` residual convolutions of three tokens and `width` channels, the l-th reaching 2^l tokens to each side.

    Example:
        >>> import numpy as np
        >>> from headcount.models.controls import ConvolutionSpec
        >>> model = ConvolutionSpec(heads=4, width=16).init(0, length=8, dim=3, outputs=1)
        >>> model(np.zeros((8, 3))).shape
        (1,)
    """

    kind: ClassVar[str] = "convolution"

    layers: int = 3

    @property
    def read_dim(self) -> int:
        return self.width * (2 + (self.answered_at == "query"))

    def init(self, seed: int | None, *, length: int, dim: int, outputs: int) -> "Convolution":
        return Convolution(
            # Tokens enter one by one: what their units are can then be put into these weights, also at the ends.
            **draw_ends(self, seed, length=length, dim=dim, outputs=outputs, after=self.width),
            convolutions=tuple(
                draw_linear(seed, "convolution", layer, before=KERNEL * self.width, after=self.width)
                for layer in range(self.layers)
            ),
            spec=self,
        )

    def flops(self, *, length: int, dim: int, outputs: int) -> int:
        ends = self.flops_of_ends(length=length, dim=dim, outputs=outputs, after=self.width)
        return ends + 2 * KERNEL * self.layers * length * self.width * self.width

    def activations(self, *, length: int, dim: int) -> int:
        return length * (dim + (KERNEL + 3) * (self.layers + 1) * self.width) + 2 * self.read_dim


@final
class Convolution(AbstractControl):
    """The weights of one model; a convolution's columns are the token before, the token, and the token after."""

    token_in: Linear
    convolutions: tuple[Linear, ...]
    position_table: Float[AnyArray, "length code"] | None
    readout_in: Linear
    readout_out: Linear
    spec: ConvolutionSpec = eqx.field(static=True)

    def reads(self, tokens: Tokens, absent: Bool[AnyArray, " length"]) -> Float[AnyArray, " read"]:
        there = ~absent[:, None]
        state = jnp.where(there, self.first_layer(tokens), 0)
        for layer, convolution in enumerate(self.convolutions):
            seen = neighbours(jax.nn.relu(state), 2**layer)
            state = jnp.where(there, state + seen @ convolution.weight.T + convolution.bias, 0)
        read = pooled(state, absent, "both")
        return jnp.concatenate([read, state[-1]]) if self.spec.answered_at == "query" else read


def neighbours(state: Float[AnyArray, "length width"], reach: int) -> Float[AnyArray, "length seen"]:
    """Join every token with those `reach` before and after it: a convolution is then one matrix product."""
    length = len(state)
    padded = jnp.pad(state, ((reach, reach), (0, 0)))
    return jnp.concatenate([padded[start : start + length] for start in (0, reach, 2 * reach)], axis=1)
