"""The shape of a wide encoder, and what it costs.

Symbols: d width, r rank, m multiplier, N length. Practice ties r = d / heads; here heads, rank and head_dim are free.
Source: the experiments of Amsel et al. (arXiv 2407.16153): PyTorch's encoder layer with m attention blocks in place of
one, and vectors scaled to one length in place of layer norm, after each sum.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self, final

from ..._choices import PRECISIONS, Activation, AnsweredAt, Norm, Padding, Positions, Precision
from ..._options import option
from ...errors import require
from ..attention import ATTENTION_FIELDS, AbstractAttentionSpec, share_of_total_dim
from ..base import Shapes

if TYPE_CHECKING:
    from .model import Encoder


@final
@dataclass(frozen=True, kw_only=True)
class EncoderSpec(AbstractAttentionSpec):
    """`layers` encoder layers of `width` numbers per token: attention, then a feed-forward net of `hidden` units.

    Each layer averages `multiplier` attention blocks of `heads` heads. A head compares `rank` numbers of query and key
    and carries `head_dim` of value (`rank` of them unless given; `width` makes its value-output map full). `hidden=0`
    leaves the feed-forward net out, `residual=False` the sums around it and the attention. `norm_first` norms what
    enters attention and net, and not their sums: deep encoders then train in far fewer steps; `final_norm` norms once
    more before the answer is read, as they usually do.

    How heads read, `kv_heads` to `top_k`, is in `AbstractAttentionSpec`; `kv_heads` is of each block's heads.

    `answered_at` is the task's: at every token; at the last one, the query; or for the whole sequence, at a learned
    query, the class token. The query is not a key unless `query_is_key`, as in BERT and in vision transformers.
    `masks_padding` takes tokens of zeros for padding, which is not a key either; with `padding="nan"` it takes tokens
    that are all NaN instead. `dropout` is the share of numbers that training sets to zero in the embedded tokens and in
    what attention and net add to them.

    Tokens and answers of another size than `width` are mapped to and from it by learned maps; `always_maps` has both
    maps even where the sizes agree. Where width follows the head count, one count would otherwise lack them. With both
    maps and biases, stored tokens and targets are standardised for training, as the maps can take the units up; not
    where tokens of zeros are padding. With `vocabulary` ids a token is one id, and the map to the width looks it up in
    a learned table. Raises `InputError` for values out of range.

    Example:
        >>> import numpy as np, headcount as hc
        >>> model = hc.EncoderSpec(heads=2, rank=4, width=4, hidden=8).init(0, length=8, dim=4, outputs=4)
        >>> model(np.zeros((8, 4), np.float32)).shape
        (8, 4)
    """

    kind: ClassVar[str] = "encoder"
    may_be_zero: ClassVar[tuple[str, ...]] = ("vocabulary", "hidden")
    output_axes: ClassVar[tuple[str, ...]] = ("heads", "head_dim", "stream")
    in_parts: ClassVar[bool] = True
    left_out_at_default: ClassVar[tuple[str, ...]] = (
        "padding",
        "vocabulary",
        *(name for name in ATTENTION_FIELDS if name != "attention"),  # which is as old as the spec
    )

    heads: int
    rank: int
    width: int
    head_dim: int = None  # type: ignore[assignment] - a count once the spec is made
    multiplier: int = option(1, "Attention blocks that an encoder layer averages (default: 1).")
    layers: int = 1
    hidden: int = 2048
    norm: Norm = "unit"
    norm_first: bool = False
    bias: bool = True
    residual: bool = True
    positions: Positions = "none"
    answered_at: AnsweredAt = "tokens"
    activation: Activation = "relu"
    final_norm: bool = False
    query_is_key: bool = False
    masks_padding: bool = False
    dropout: float = 0.0
    always_maps: bool = False
    padding: Padding = "zeros"
    vocabulary: int = 0

    def __post_init__(self):
        widths = ("rank",) if self.head_dim is None else ("head_dim", "rank")  # first what was given
        if self.head_dim is None:
            object.__setattr__(self, "head_dim", self.rank)
        super().__post_init__()
        require(0 <= self.dropout < 1, f"dropout must be a share from 0 to below 1, got {self.dropout!r}.")
        object.__setattr__(self, "dropout", float(self.dropout))
        for name in widths:
            require(
                getattr(self, name) <= self.stream_dim,
                f"{name} must be at most the width that is projected, {self.stream_dim}; got {getattr(self, name)}.",
                what=name,
                given=getattr(self, name),
            )

    @property
    def standardises(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """With both maps and biases, unless zeros are padding: standardised, they would no longer be zeros.

        Without maps of its own, an encoder lives on the task's sphere.
        """
        masks_zeros = self.masks_padding and not self.masks_nan
        return self.always_maps and self.bias and not masks_zeros

    @property
    def precisions(self) -> tuple[Precision, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Half precision does not hold ids above 256."""
        return ("float32",) if self.vocabulary else PRECISIONS

    @property
    def masks_nan(self) -> bool:
        """Whether tokens that are all NaN are absent; 0 is an id like any other."""
        return self.masks_padding and (self.padding == "nan" or self.vocabulary > 0)

    @property
    def stream_dim(self) -> int:
        """Numbers of a token inside: its own, and as many of a concatenated position code."""
        return 2 * self.width if self.positions == "concatenated" else self.width

    @property
    def total_heads(self) -> int:
        """Heads of all blocks of a layer."""
        return self.heads * self.multiplier

    @property
    def total_groups(self) -> int:
        """Sets of keys and values of all blocks of a layer: one per head unless heads share them."""
        return self.groups * self.multiplier

    @property
    def total_dim(self) -> int:
        """Numbers that one block's heads compare."""
        return self.heads * self.rank

    @property
    def drops(self) -> bool:
        """Whether training drops numbers."""
        return self.dropout > 0

    def embeds(self, dim: int) -> bool:
        """Return whether tokens of `dim` numbers are mapped to the width."""
        return self.always_maps or self.vocabulary > 0 or dim != self.width

    def reads(self, outputs: int) -> bool:
        """Return whether answers of `outputs` numbers are mapped from the width."""
        return self.always_maps or outputs != self.width

    @classmethod
    def with_total_dim(cls, total_dim: int, *, heads: int, **others) -> Self:
        """Return the usual tie: heads that share `total_dim` numbers, rank = total_dim / heads.

        Raises `InputError` where heads do not divide total_dim, or each had more numbers than the width projected.
        """
        rank = share_of_total_dim(total_dim, heads=heads, field="rank")
        most = cls(heads=heads, rank=1, **others).stream_dim
        require(
            total_dim <= heads * most,
            f"total_dim must be at most {heads * most}, the width that is projected times the heads, got {total_dim}; "
            f"at least {-(-total_dim // most)} heads may share that.",
            what="total_dim",
            given=total_dim,
        )
        return cls(heads=heads, rank=rank, **others)

    def with_rank(self, rank: int) -> Self:
        """Return the same with another rank, and with it another head_dim where the two are one number."""
        return replace(self, rank=rank, head_dim=rank if self.head_dim == self.rank else self.head_dim)

    def init(self, seed: int | None, *, length: int, dim: int, outputs: int) -> "Encoder":
        from .model import draw_encoder

        self.require_length(length)
        return draw_encoder(self, seed, length=length, dim=dim, outputs=outputs)

    def sizes_of(self, shapes: Shapes) -> dict[str, int]:
        return {
            "length": shapes.get("position_table", (self.least_length,))[0],
            "dim": 1 if self.vocabulary else shapes.get("embed.weight", (0, self.width))[1],
            "outputs": shapes.get("read.weight", (self.width,))[0],
        }

    def flops(self, *, length: int, dim: int, outputs: int) -> int:
        once = self.answered_at != "tokens"
        places = length + (self.answered_at == "sequence")
        keys = places - 1 if once and not self.query_is_key else places
        per_head = self.rank + self.head_dim

        def layer(queries: int) -> int:
            projections = 2 * self.stream_dim * per_head * (queries * self.total_heads + keys * self.total_groups)
            mixing = 2 * queries * keys * self.total_heads * per_head
            return projections + mixing + 4 * queries * self.stream_dim * self.hidden

        asked = 1 if once else places  # the last layer answers what is read, and no other token
        embedded = 0 if self.vocabulary else length * dim * self.embeds(dim)  # a table is looked up
        maps = embedded + asked * outputs * self.reads(outputs)
        return (self.layers - 1) * layer(places) + layer(asked) + 2 * self.width * maps

    def activations(self, *, length: int, dim: int) -> int:
        per_token = 6 * self.stream_dim + 3 * self.hidden + 3 * self.total_heads * (2 * self.rank + self.head_dim)
        return length * dim + self.layers * length * (per_token + 3 * length * self.total_heads)
