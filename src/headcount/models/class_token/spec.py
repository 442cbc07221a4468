"""The shape of a class-token transformer, and what it costs.

Symbols: h heads, n head_dim, r rank, E = n h total_dim, N hidden, L layers.
Source: the model class H(h, n, d, T, M) of Yu et al. (arXiv 2510.06662), section 3.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self, final

from ..._choices import Positions
from ..._options import option
from ...backends.advance import ModelSizes
from ...errors import require
from ..attention import ATTENTION_FIELDS, AbstractAttentionSpec, share_of_total_dim
from ..base import Shapes
from ..layers import POSITION_CODE_DIM

if TYPE_CHECKING:
    from .model import ClassTokenTransformer


@final
@dataclass(frozen=True, kw_only=True)
class ClassTokenSpec(AbstractAttentionSpec):
    """heads attention heads of value width head_dim, between two feed-forward nets of `hidden` units.

    A head carries `head_dim` numbers of value and compares `rank` numbers of query and key; the two are equal unless
    `rank` is given. `positions` says how a token's position enters the encoder net: not at all, as a learned vector
    added to the embedding, or as a learned code concatenated to the token before the net. `beta` multiplies every score
    before the softmax.

    `masks_padding` takes tokens that are all NaN for absent: no head reads them. `vocabulary` is the number of token
    ids where a token is one id; the encoder net then looks its first layer up in a learned table. 0: tokens are
    numbers.

    With several layers, `inner_hidden` puts a ReLU net of that many units with a residual after every layer but the
    last, the same for every token and the class token; 0: no nets there. `final_norm` is a layer norm before the
    readout net.

    How heads read, `kv_heads` to `top_k`, is in `AbstractAttentionSpec`. Raises `InputError` for values out of range.

    Example:
        >>> import numpy as np, headcount as hc
        >>> model = hc.ClassTokenSpec(heads=4).init(0, length=8, dim=3, outputs=1)
        >>> model(np.zeros((8, 3))).shape
        (1,)
    """

    kind: ClassVar[str] = "class-token"
    left_out_at_default: ClassVar[tuple[str, ...]] = (
        "masks_padding",
        "vocabulary",
        "inner_hidden",
        "final_norm",
        *ATTENTION_FIELDS,
    )
    may_be_zero: ClassVar[tuple[str, ...]] = ("vocabulary", "inner_hidden")
    output_axes: ClassVar[tuple[str, ...]] = ("stream", "heads", "head_dim")
    answered_at = "sequence"

    heads: int
    head_dim: int = option(8, "Value width of a head (default: 8, an encoder's rank).")
    hidden: int = option(32, "Width of the feed-forward nets (default: 32, encoders 256).")
    layers: int = option(1, "Attention layers (default: 1, images and passages 2).")
    positions: Positions = option("none", "auto (default), none, additive or concatenated.")
    beta: float = option(1.0, "Factor on every attention score (default: 1).")
    rank: int = None  # type: ignore[assignment] - a count once the spec is made
    masks_padding: bool = False
    vocabulary: int = 0
    inner_hidden: int = option(0, "Units of nets between the layers of class-token models (default: 0).")
    final_norm: bool = option(False, "A norm before the answer is read.")

    def __post_init__(self):
        if self.rank is None:
            object.__setattr__(self, "rank", self.head_dim)
        super().__post_init__()
        require(
            self.rank <= self.total_dim,
            f"rank must be at most heads * head_dim = {self.total_dim}, the width that is projected; got {self.rank}.",
            what="rank",
            given=self.rank,
        )
        require(
            self.layers > 1 or not self.inner_hidden,
            what="inner_hidden",
            given=self.inner_hidden,
            needed="0 with one layer: the nets are between layers",
        )
        require(0 < self.beta < float("inf"), what="beta", given=self.beta, needed="positive and finite")
        object.__setattr__(self, "beta", float(self.beta))
        needed = f'1 with attention "{self.attention}", whose weights a factor does not change'
        require(self.reading.features is None or self.beta == 1, what="beta", given=self.beta, needed=needed)

    @classmethod
    def with_total_dim(cls, total_dim: int, *, heads: int, round_up: bool = False, **others) -> Self:
        """Make the spec whose heads share `total_dim`; `round_up` allows ceil(total_dim / heads) each, as Table 3 does.

        Raises `InputError` where heads do not divide total_dim and `round_up` is False.
        """
        head_dim = share_of_total_dim(total_dim, heads=heads, field="head_dim", round_up=round_up)
        return cls(heads=heads, head_dim=head_dim, **others)

    @property
    def total_dim(self) -> int:
        """Value width of all heads together: the embedding width E."""
        return self.heads * self.head_dim

    @property
    def stream_dim(self) -> int:
        """Width of the numbers that are handed from layer to layer."""
        return self.total_dim

    @property
    def position_dim(self) -> int:
        """Numbers of one position in the table; 0 without positions."""
        return {"none": 0, "additive": self.total_dim, "concatenated": POSITION_CODE_DIM}[self.positions]

    def padded(self) -> Self:
        """Round up to the next multiple of four heads where heads are narrow, of fewer where they are wide.

        Padding wastes arithmetic and saves compiling. With heads of 8 numbers and one layer compiling weighs more; wide
        heads and deep models are costly to pad, and under a fixed total_dim no two head counts could share a program.
        """
        alone = self.layers > 1 or self.final_norm  # a norm would see the padding
        multiple = 1 if alone else max(1, min(4, 32 // self.head_dim))
        if self.kv_heads is not None and multiple % self.kv_heads:  # which must still divide the heads
            multiple = self.kv_heads
        return replace(self, heads=-(-self.heads // multiple) * multiple)

    @property
    def removes_heads(self) -> bool:
        """Of one layer: its heads meet only in the readout. Over several layers the embedding carries them all.

        A norm before the readout depends on all of them. Heads that share keys and values can be fewer where all of
        them share one set; other kinds of attention have no predicted values.
        """
        divides = self.kv_heads in (None, 1)
        return self.layers == 1 and not self.final_norm and divides and self.reads_by_softmax

    @property
    def pools(self) -> bool:
        """Of one layer with soft attention to every token: what the class token reads is one pooling."""
        return self.layers == 1 and self.reads_by_softmax and self.window is None and not self.vocabulary

    def step_sizes(self, *, length: int, dim: int, outputs: int) -> ModelSizes | None:
        if not self.pools or self.final_norm:
            return None
        return ModelSizes(
            length=length,
            dim=dim,
            code=self.position_dim,
            hidden=self.hidden,
            heads=self.heads,
            groups=self.groups,
            rank=self.rank,
            head_dim=self.head_dim,
            outputs=outputs,
            positions=self.positions,
            masks=self.masks_padding,
            beta=self.beta,
        )

    def init(self, seed: int | None, *, length: int, dim: int, outputs: int) -> "ClassTokenTransformer":
        from .model import draw_class_token_transformer

        self.require_length(length)
        return draw_class_token_transformer(self, seed, length=length, dim=dim, outputs=outputs)

    def sizes_of(self, shapes: Shapes) -> dict[str, int]:
        code = self.position_dim if self.positions == "concatenated" else 0
        return {
            "length": shapes["position_table"][0] if self.position_dim else self.least_length,
            "dim": 1 if self.vocabulary else shapes["encoder_in.weight"][1] - code,
            "outputs": shapes["readout_out.bias"][0],
        }

    def flops(self, *, length: int, dim: int, outputs: int) -> int:
        """Count those of the folded forward pass. The per-batch work (u_i, W_V,i W2) is left out."""
        heads, total, hidden, compared = self.heads, self.total_dim, self.hidden, self.heads * self.rank
        readout = 2 * hidden * total + 2 * outputs * hidden
        encoder_in = 0 if self.vocabulary else 2 * length * dim * hidden  # a table is looked up
        kernel = self.reading.features is not None  # which needs keys, where scores need one direction per head
        if self.layers == 1:
            scores = length * (hidden * self.groups * self.rank + compared if kernel else hidden * heads)
            attention = 2 * scores + 2 * length * hidden * heads + 2 * total * hidden + 2 * total * total
            if self.positions == "additive":
                attention += 2 * length * total
            return encoder_in + attention + readout
        if self.positions == "concatenated" and not self.vocabulary:
            encoder_in += 2 * length * POSITION_CODE_DIM * hidden
        embedding = encoder_in + 2 * length * hidden * total
        shared = self.groups * (self.rank + self.head_dim)
        self_attention = 2 * length * (total + length) * (compared + total) + 2 * length * total * shared
        asked = (2 if kernel else 4) * compared * total
        scores = length * (total * self.groups * self.rank + compared if kernel else total * heads)
        one_query = 2 * scores + 2 * length * heads * total + asked + 4 * total * total
        inner = 4 * (length + 1) * total * self.inner_hidden * (self.layers - 1)
        first_query = asked  # the first layer's class token is the same for every example
        return embedding + (self.layers - 1) * self_attention + self.layers * one_query - first_query + inner + readout

    def activations(self, *, length: int, dim: int) -> int:
        at_class_token = 4 * self.total_dim
        if self.layers == 1:
            compared = 2 * (self.heads + 2 * self.groups) * self.rank if self.reading.features is not None else 0
            return length * (dim + 4 * self.hidden + 6 * self.heads + compared) + at_class_token
        per_layer = 10 * self.total_dim + 4 * self.heads * length + 3 * self.inner_hidden
        return length * (dim + 4 * self.hidden + (self.layers - 1) * per_layer) + at_class_token
