"""The shape of a wide encoder: frozen, validated at birth, and part of a cell's identity.

Symbols: d width, r rank, m multiplier, N length. Practice ties r = d / heads; here heads, rank and head_dim are free.
Source: the experiments of Amsel et al. (arXiv 2407.16153): PyTorch's encoder layer with m attention blocks in place of
one, and vectors scaled to one length in place of layer norm, after each sum.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from .._errors import InputError, did_you_mean, require, require_count
from ..tasks import AnsweredAt
from .spec import POSITIONS, Positions

Norm = Literal["unit", "layer", "none"]
AttentionKind = Literal["soft", "hard"]
Activation = Literal["relu", "gelu"]
CHOICES: dict[str, tuple[str, ...]] = {
    "answered_at": ("sequence", "tokens", "query"),
    "norm": ("unit", "layer", "none"),
    "attention": ("soft", "hard"),
    "activation": ("relu", "gelu"),
    "positions": POSITIONS,
}
LATER: dict[str, Any] = {
    "activation": "relu",
    "final_norm": False,
    "query_is_key": False,
    "padded": False,
    "dropout": 0.0,
    "per_head": False,
}
"""Fields that came after results were stored, and what those results had: so written, a spec keeps its old key."""


PER_HEAD = ("width", "hidden")


@dataclass(frozen=True, kw_only=True)
class EncoderSpec:
    """`layers` encoder layers of `width` numbers a token: attention, then a feed-forward net of `hidden` units.

    Each layer averages `multiplier` attention blocks of `heads` heads. A head compares `rank` numbers of query and key
    and carries `head_dim` of value (`rank` of them unless given; `width` makes its value-output map full). `attention`
    is "soft", or "hard": all weight on the largest score. `hidden=0` leaves the feed-forward net out, `residual=False`
    the sums around it and the attention. `norm_first` norms what enters attention and net, and not their sums: deep
    encoders then train in far fewer steps; `final_norm` norms once more before the answer is read, as they usually do.

    `answered_at` is the task's: at every token; at the last one, the query; or for the whole sequence, at a learned
    query, the class token. The query is nobody's key unless `query_is_key`, as in BERT and in vision transformers.
    `padded` takes tokens of zeros for padding, which is nobody's key either. `dropout` is the share of numbers that
    training sets to zero in the embedded tokens and in what attention and net add to them.

    `per_head` says that width and hidden grow with the heads, as in the first paper's experiments on real data: models
    of several head counts are then one family, whose content names both for a single head.
    """

    heads: int
    rank: int
    width: int
    head_dim: int = None  # type: ignore[assignment] - a count once the spec is made
    multiplier: int = 1
    layers: int = 1
    hidden: int = 2048
    norm: Norm = "unit"
    norm_first: bool = False
    bias: bool = True
    residual: bool = True
    positions: Positions = "none"
    attention: AttentionKind = "soft"
    answered_at: AnsweredAt = "tokens"
    activation: Activation = "relu"
    final_norm: bool = False
    query_is_key: bool = False
    padded: bool = False
    dropout: float = 0.0
    per_head: bool = False

    def __post_init__(self):
        if self.head_dim is None:
            object.__setattr__(self, "head_dim", self.rank)
        for name in ("heads", "rank", "width", "head_dim", "multiplier", "layers"):
            require_count(name, getattr(self, name))
        require_count("hidden", self.hidden, least=0)
        for name in ("bias", "residual", "norm_first", "final_norm", "query_is_key", "padded", "per_head"):
            given = getattr(self, name)
            require(isinstance(given, bool), f"{name} must be True or False, got {given!r}.")
        require(
            not self.per_head or (self.width % self.heads == 0 and self.hidden % self.heads == 0),
            f"width and hidden that grow with the heads must be multiples of {self.heads}, got {self.width} and "
            f"{self.hidden}.",
        )
        require(0 <= self.dropout < 1, f"dropout must be a share from 0 to below 1, got {self.dropout!r}.")
        object.__setattr__(self, "dropout", float(self.dropout))
        for name, known in CHOICES.items():
            given = getattr(self, name)
            if given not in known:  # asked first: the nearest known word takes a while to find
                suggestion = did_you_mean(str(given), known)
                raise InputError(f'{name} must be one of {", ".join(known)}, got "{given}".{suggestion}')
        for name in ("rank", "head_dim"):
            require(
                getattr(self, name) <= self.stream_dim,
                f"{name} must be at most the width that is projected, {self.stream_dim}; got {getattr(self, name)}.",
            )

    @property
    def stream_dim(self) -> int:
        """Numbers of a token inside: its own, and as many of a concatenated position code."""
        return 2 * self.width if self.positions == "concatenated" else self.width

    @property
    def total_heads(self) -> int:
        return self.heads * self.multiplier

    @property
    def total_dim(self) -> int:
        """Numbers that one block's heads compare."""
        return self.heads * self.rank

    def embeds(self, dim: int) -> bool:
        """Whether tokens of `dim` numbers are mapped to the width: where they must be, and always where width follows
        heads, or one head count would lack what all others have."""
        return self.per_head or dim != self.width

    def reads(self, outputs: int) -> bool:
        """Whether answers of `outputs` numbers are mapped from the width."""
        return self.per_head or outputs != self.width

    def with_rank(self, rank: int) -> "EncoderSpec":
        """The same with another rank, and with it another head_dim where the two are one number."""
        return replace(self, rank=rank, head_dim=rank if self.head_dim == self.rank else self.head_dim)

    def as_dict(self) -> dict[str, Any]:
        """What identifies the model, as JSON."""
        content = {name: value for name, value in asdict(self).items() if name not in LATER or value != LATER[name]}
        if self.per_head:
            content |= {name: content[name] // self.heads for name in PER_HEAD}
        return {"kind": "encoder"} | content

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "EncoderSpec":
        """The spec whose `as_dict()` this is."""
        fields = {name: value for name, value in content.items() if name != "kind"}
        if fields.get("per_head"):
            fields |= {name: fields[name] * fields["heads"] for name in PER_HEAD}
        return cls(**fields)

    @classmethod
    def with_total_dim(cls, total_dim: int, *, heads: int, **others) -> "EncoderSpec":
        """The usual tie: heads that share `total_dim` numbers, rank = total_dim / heads."""
        require_count("heads", heads)
        require(
            total_dim >= heads and total_dim % heads == 0,
            f"{heads} heads do not divide total_dim {total_dim}; choose heads that do, or set rank instead.",
        )
        return cls(heads=heads, rank=total_dim // heads, **others)
