"""The shape of a class-token transformer: frozen, validated at birth, and part of a cell's identity.

Symbols: h heads, n head_dim, r rank, E = n h total_dim, N hidden, L layers.
Source: the model class H(h, n, d, T, M) of Yu et al. (arXiv 2510.06662), section 3.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from .._errors import did_you_mean, require, require_count

Positions = Literal["none", "additive", "concatenated"]
POSITIONS: tuple[Positions, ...] = ("none", "additive", "concatenated")


@dataclass(frozen=True, kw_only=True)
class ClassTokenSpec:
    """heads attention heads of head_dim numbers each, between two feed-forward nets of `hidden` units.

    A head carries `head_dim` numbers of value and compares `rank` numbers of query and key; the two are equal unless
    `rank` is given.
    `positions` says how a token's place enters the encoder: not at all, as a learned vector added to the embedding, or
    as a learned code set beside the token's numbers before the encoder. `beta` multiplies every score before the
    softmax.
    """

    heads: int
    head_dim: int = 8
    hidden: int = 32
    layers: int = 1
    positions: Positions = "none"
    beta: float = 1.0
    rank: int = None  # type: ignore[assignment] - a count once the spec is made

    def __post_init__(self):
        if self.rank is None:
            object.__setattr__(self, "rank", self.head_dim)
        for name in ("heads", "head_dim", "rank", "hidden", "layers"):
            require_count(name, getattr(self, name))
        require(
            self.rank <= self.total_dim,
            f"rank must be at most heads * head_dim = {self.total_dim}, the width that is projected; got {self.rank}.",
        )
        require(
            self.positions in POSITIONS,
            f'positions must be one of {", ".join(POSITIONS)}, got "{self.positions}".'
            f"{did_you_mean(self.positions, POSITIONS)}",
        )
        require(0 < self.beta < float("inf"), f"beta must be positive and finite, got {self.beta!r}.")
        object.__setattr__(self, "beta", float(self.beta))

    @property
    def total_dim(self) -> int:
        return self.heads * self.head_dim

    def with_rank(self, rank: int) -> "ClassTokenSpec":
        return replace(self, rank=rank)

    def as_dict(self) -> dict[str, Any]:
        """What identifies the model, as JSON; a rank equal to head_dim is left out, as before rank had a name."""
        content = asdict(self)
        if self.rank == self.head_dim:
            del content["rank"]
        return content

    @classmethod
    def with_total_dim(cls, total_dim: int, *, heads: int, round_up: bool = False, **others) -> "ClassTokenSpec":
        """The spec whose heads share `total_dim`; `round_up` allows ceil(total_dim / heads) each, as Table 3 does."""
        require_count("heads", heads)
        require(
            total_dim >= heads and (round_up or total_dim % heads == 0),
            f"{heads} heads do not divide total_dim {total_dim}; choose heads that do, or set head_dim instead.",
        )
        return cls(heads=heads, head_dim=-(-total_dim // heads), **others)
