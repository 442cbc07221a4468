"""The heads of one attention layer as plain arrays: what every change to a trained model is a change of.

    z_h = sum_s softmax_s(scale (Q_h x_t + q_h) . (K_g x_s + k_g)) (V_g x_s + v_g),    g the key head of head h
    y   = sum_h O_h z_h + o

with rotations or norms of queries and keys between, where the architecture has them. Q_h is `query[h]`, K_g `key[g]`,
V_g `value[g]`, O_h `output[:, h]`; q, k, v and o are the biases.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from ...errors import require


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

    def __post_init__(self):
        require(
            self.heads % self.key_heads == 0,
            f"{self.heads} heads cannot share {self.key_heads} key heads equally; the first must be a multiple.",
        )

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
        """The same shapes with these heads' part of the output zero: what a model does when they are masked.

        Raises InputError where a head does not exist.
        """
        output = self.output.copy()
        output[:, self._checked(removed)] = 0.0
        return replace(self, output=output)

    def _checked(self, heads: Iterable[int]) -> list[int]:
        """Each once, in this layer's order."""
        chosen = sorted({int(head) for head in heads})
        for head in chosen:
            require(0 <= head < self.heads, what="head", given=head, needed=f"one of 0 to {self.heads - 1}")
        return chosen

    def with_output(self, output: np.ndarray, output_bias: np.ndarray | None = None) -> "HeadWeights":
        """Another output projection; the bias stays where none is given."""
        return replace(self, output=output, output_bias=self.output_bias if output_bias is None else output_bias)

    def kept(self, heads: Sequence[int]) -> "HeadWeights":
        """Smaller: only these heads, in this layer's order; key heads that none of them reads are left out.

        Raises InputError where the key heads that stay would be read by different numbers of heads, none stays, or a
        head does not exist.
        """
        chosen = self._checked(heads)
        require(len(chosen) > 0, "a layer keeps at least one head, got none.")
        readers = [self.key_head_of(head) for head in chosen]
        groups = sorted(set(readers))
        sizes = [readers.count(group) for group in groups]
        require(
            len(set(sizes)) == 1,
            f"heads {', '.join(map(str, chosen))} leave key heads with {', '.join(map(str, sizes))} heads; "
            "every key head must keep the same number.",
        )
        return HeadWeights(
            query=self.query[chosen],
            key=self.key[groups],
            value=self.value[groups],
            output=self.output[:, chosen],
            query_bias=_rows(self.query_bias, chosen),
            key_bias=_rows(self.key_bias, groups),
            value_bias=_rows(self.value_bias, groups),
            output_bias=self.output_bias,
        )

    def expanded(self) -> "HeadWeights":
        """A key head of its own for every head: the same function, with copies."""
        groups = [self.key_head_of(head) for head in range(self.heads)]
        return replace(
            self,
            key=self.key[groups],
            value=self.value[groups],
            key_bias=_rows(self.key_bias, groups),
            value_bias=_rows(self.value_bias, groups),
        )


def _rows(array: np.ndarray | None, rows: Sequence[int]) -> np.ndarray | None:
    return None if array is None else array[list(rows)]
