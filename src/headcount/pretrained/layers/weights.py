"""The heads of one attention layer as plain arrays: what every change to a trained model is a change of.

    z_h = sum_s softmax_s(scale (Q_h x_t + q_h) . (K_g x_s + k_g)) (V_g x_s + v_g),    g the key head of head h
    y   = sum_h O_h z_h + o

with rotations or norms of queries and keys between, where the architecture has them. Q_h is `query[h]`, K_g `key[g]`,
V_g `value[g]`, O_h `output[:, h]`; q, k, v and o are the biases.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int


@runtime_checkable
class Shaped(Protocol):
    """What has the shape of a layer: `HeadWeights`, `AttentionLayer`, `AttentionShape`."""

    @property
    def heads(self) -> int: ...
    @property
    def key_heads(self) -> int: ...
    @property
    def head_dim(self) -> int: ...


def equal_step(layer: Shaped) -> int:
    """Heads that leave a layer together so that its key heads stay equally read."""
    return 1 if layer.heads == layer.key_heads else layer.key_heads


@dataclass(frozen=True)
class Rotary:
    """Queries and keys are rotated by position in their first `dims` numbers.

    The pairs are (2i, 2i + 1) where interleaved, (i, i + dims/2) otherwise.
    """

    dims: int
    interleaved: bool = False

    @property
    def pairs(self) -> Int[np.ndarray, "pairs 2"]:
        """The dimensions of each pair."""
        half = np.arange(self.dims // 2)
        pairs = (2 * half, 2 * half + 1) if self.interleaved else (half, half + self.dims // 2)
        return np.stack(pairs, axis=1)


@dataclass(frozen=True, eq=False)
class HeadWeights:
    """The projections of one layer, in float64. Query heads of one key head are neighbours. A bias may be None."""

    query: Float[np.ndarray, "heads head_dim width"]
    key: Float[np.ndarray, "key_heads head_dim width"]
    value: Float[np.ndarray, "key_heads value_dim width"]
    output: Float[np.ndarray, "out_width heads value_dim"]
    query_bias: Float[np.ndarray, "heads head_dim"] | None = None
    key_bias: Float[np.ndarray, "key_heads head_dim"] | None = None
    value_bias: Float[np.ndarray, "key_heads value_dim"] | None = None
    output_bias: Float[np.ndarray, " out_width"] | None = None

    @property
    def heads(self) -> int:
        return self.query.shape[0]

    @property
    def key_heads(self) -> int:
        return self.key.shape[0]

    @property
    def head_dim(self) -> int:
        return self.query.shape[1]

    @property
    def value_dim(self) -> int:
        return self.value.shape[1]

    @property
    def width(self) -> int:
        return self.query.shape[2]

    @property
    def parameters(self) -> int:
        """Numbers stored, biases included."""
        return sum(array.size for array in vars(self).values() if array is not None)

    def key_head_of(self, head: int) -> int:
        """The key head that a head reads."""
        return head // (self.heads // self.key_heads)

    def without(self, removed: Iterable[int]) -> "HeadWeights":
        """The same shapes with these heads' part of the output zero: what a model does when they are masked."""
        output = self.output.copy()
        output[:, list(removed)] = 0.0
        return replace(self, output=output)

    def with_output(self, output: np.ndarray, output_bias: np.ndarray | None = None) -> "HeadWeights":
        """Another output projection; the bias stays where none is given."""
        return replace(self, output=output, output_bias=self.output_bias if output_bias is None else output_bias)

    def kept(self, heads: Iterable[int]) -> "HeadWeights":
        """Smaller: only these heads, in this layer's order; key heads that none of them reads are left out.

        Every key head must keep the same number of heads, or none.
        """
        chosen = sorted(set(heads))
        groups = sorted({self.key_head_of(head) for head in chosen})
        smaller = self._with_key_heads(groups)
        bias = None if self.query_bias is None else self.query_bias[chosen]
        return replace(smaller, query=self.query[chosen], query_bias=bias, output=self.output[:, chosen])

    def repeated(self, key_heads: int) -> "HeadWeights":
        """The same function with more key heads, a multiple of these, which are copies of them."""
        return self._with_key_heads(np.repeat(np.arange(self.key_heads), key_heads // self.key_heads).tolist())

    def _with_key_heads(self, places: Sequence[int]) -> "HeadWeights":
        names = ("key", "value", "key_bias", "value_bias")
        arrays = {name: getattr(self, name) for name in names}
        return replace(self, **{name: None if array is None else array[places] for name, array in arrays.items()})


@dataclass(frozen=True, eq=False)
class LayerStatistics:
    """Means over the calibration tokens, in float64.

    z is the concatenation of all heads' outputs, x the layer's input, the target the original model's attention output
    without the output bias; a 1 is appended to z and x, so that the last row and column hold means.

    `gradients` are the derivatives of an example's loss by a factor before each head's output, at 1; `fisher` is the
    mean over tokens of g g^T, g the derivative of its example's loss by the attention output of the token. A loss that
    is a distance to the original's own output is flat there: both are then of `Loss.probes`, whose mean squared changes
    are twice that loss. Both are None where no backward pass was made.
    """

    moments: Float[np.ndarray, "features_and_1 features_and_1"]
    cross: Float[np.ndarray, "out_width features_and_1"]
    inputs: Float[np.ndarray, "width_and_1 width_and_1"]
    tokens: int
    gradients: Float[np.ndarray, "examples heads"] | None = None
    fisher: Float[np.ndarray, "out_width out_width"] | None = None
