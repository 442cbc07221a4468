"""A GRU over the tokens, its last state read out.

    r = sigmoid(W_r x + U_r h + b),  z = sigmoid(W_z x + U_z h + b),  n = tanh(W_n x + b + r * (U_n h + c))
    h <- (1 - z) * n + z * h

The equations, their order and both biases are those of PyTorch's `nn.GRU`. An absent token leaves the state as it is.
Source: Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder" (arXiv 1406.1078).
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

UNROLLED = 4
"""Tokens per turn of the compiled loop: fewer turns, at a little more to compile."""


@final
@dataclass(frozen=True, kw_only=True)
class RecurrentSpec(AbstractControlSpec):
    """A GRU whose state has `width` numbers. It reads tokens in order, a query last.

    Example:
        >>> import numpy as np
        >>> from headcount.models.controls import RecurrentSpec
        >>> model = RecurrentSpec(heads=4, width=16).init(0, length=8, dim=3, outputs=1)
        >>> model(np.zeros((8, 3))).shape
        (1,)
    """

    kind: ClassVar[str] = "recurrent"

    @property
    def read_dim(self) -> int:
        return self.width

    def init(self, seed: int | None, *, length: int, dim: int, outputs: int) -> "Recurrent":
        return Recurrent(
            **draw_ends(self, seed, length=length, dim=dim, outputs=outputs, after=3 * self.width),
            state_in=draw_linear(seed, "state in", before=self.width, after=3 * self.width),
            spec=self,
        )

    def flops(self, *, length: int, dim: int, outputs: int) -> int:
        ends = self.flops_of_ends(length=length, dim=dim, outputs=outputs, after=3 * self.width)
        return ends + 6 * length * self.width * self.width

    def activations(self, *, length: int, dim: int) -> int:
        return length * (dim + 14 * self.width) + 2 * self.width


@final
class Recurrent(AbstractControl):
    """The weights of one model; the three blocks of rows are r, z and n."""

    token_in: Linear
    state_in: Linear
    position_table: Float[AnyArray, "length code"] | None
    readout_in: Linear
    readout_out: Linear
    spec: RecurrentSpec = eqx.field(static=True)

    def reads(self, tokens: Tokens, absent: Bool[AnyArray, " length"]) -> Float[AnyArray, " read"]:
        def next_state(state, token):
            first, is_absent = token
            reset, update, new = jnp.split(first, 3)
            of_reset, of_update, of_new = jnp.split(self.state_in(state), 3)
            update = jax.nn.sigmoid(update + of_update)
            new = jnp.tanh(new + jax.nn.sigmoid(reset + of_reset) * of_new)
            return jnp.where(is_absent, state, (1 - update) * new + update * state), None

        first = self.first_layer(tokens)
        start = jnp.zeros(self.spec.width, first.dtype)
        return jax.lax.scan(next_state, start, (first, absent), unroll=min(UNROLLED, len(first)))[0]
