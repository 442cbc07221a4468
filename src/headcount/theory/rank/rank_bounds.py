"""The second paper's bounds at one setting: value, claim, source and conditions, with constants where we can prove
them.

Symbols: H heads, r rank, d dim, N length (points), L layers, eps expected squared error.
Source: Amsel et al. (arXiv 2407.16153); the floors (`floors`) are ours.
"""

from dataclasses import dataclass

from ..._errors import require, require_count
from ..bounds import Bound, Condition
from .floors import heads_needed, rank_floor, rank_one_floor, require_rank
from .harmonics import require_dim
from .nearest import expected_error

PAPER = "arXiv 2407.16153"
OURS = f"ours, after Theorem 2, {PAPER}"


@dataclass(frozen=True, kw_only=True)
class RankSetting:
    """Heads of one rank and the number of points, as in the second paper."""

    heads: int
    rank: int
    dim: int
    length: int = 2
    """N, the number of points."""
    layers: int = 1
    eps: float = 1e-2

    def __post_init__(self):
        for name in ("heads", "rank", "layers"):
            require_count(name, getattr(self, name))
        require_dim(self.dim)
        require_rank(self.rank, self.dim)
        require_count("length", self.length, least=2)
        require(0 < self.eps < 1, what="eps", given=self.eps, needed="between 0 and 1")


def all_rank_bounds(setting: RankSetting) -> tuple[Bound, ...]:
    """Every bound of the second paper, and the floors that we can prove, at one setting."""
    return (
        full_rank(setting),
        min_error(setting),
        min_error_of_hard_heads(setting),
        min_heads(setting),
        parameters(setting),
        min_error_at_equal_parameters(setting),
        exponential_order(setting),
        polynomial_order(setting),
        biased_order(setting),
        majority_vote(setting),
        any_length_conjecture(setting),
    )


def full_rank(setting: RankSetting) -> Bound:
    """One head of full rank is exact."""
    return Bound(
        name="full rank: heads enough",
        value=1.0,
        claim=f"one hard head of rank d = {setting.dim} outputs the nearest of any number of points, exactly",
        source=f"the target's construction, {PAPER}",
        conditions=(Condition("rank r = d", setting.rank == setting.dim),),
    )


def min_error(setting: RankSetting) -> Bound:
    """The floor of any heads of this rank."""
    value = rank_floor(setting.heads, setting.rank, setting.dim)
    return Bound(
        name="low rank: minimum error",
        value=value if value > 0 else None,
        claim=f"no {setting.heads} heads of rank {setting.rank} have a smaller expected squared error, hard or soft, "
        "biased or not, for any value and output matrices",
        source=OURS,
        conditions=_low_rank(setting),
        why=""
        if value > 0
        else f"{setting.heads} heads of rank {setting.rank} capture every harmonic of R^{setting.dim}: "
        "the bound is zero",
    )


def min_error_of_hard_heads(setting: RankSetting) -> Bound:
    """The floor of hard heads, for rank one."""
    one = setting.rank == 1
    return Bound(
        name="hard heads of rank one: minimum error",
        value=rank_one_floor(setting.heads, setting.dim) if one else None,
        claim=f"no {setting.heads} hard heads of rank one have a smaller expected squared error, for any value "
        "and output matrices",
        source=OURS,
        conditions=(Condition("hard heads", None), *_low_rank(setting)),
        why="" if one else f"it holds for rank 1, here rank is {setting.rank}",
    )


def min_heads(setting: RankSetting) -> Bound:
    """`heads_needed` for this rank and eps."""
    full = setting.rank == setting.dim
    return Bound(
        name="low rank: heads needed",
        value=None if full else heads_needed(setting.dim, setting.eps, setting.rank),
        claim=f"an expected squared error of eps = {setting.eps:g} takes at least this many heads of rank "
        f"{setting.rank}",
        source=OURS,
        conditions=_low_rank(setting),
        why="one head of full rank is enough" if full else "",
    )


def parameters(setting: RankSetting) -> Bound:
    """Queries and keys of H heads have 2 H r d parameters, those of one head of full rank 2 d^2."""
    return Bound(
        name="parameters: heads of full rank",
        value=setting.heads * setting.rank / setting.dim,
        claim=f"{setting.heads} heads of rank {setting.rank} have the parameters of this many of rank {setting.dim}: "
        "H r / d",
        source=f"by counting; H = d / r is the convention, {PAPER}",
    )


def min_error_at_equal_parameters(setting: RankSetting) -> Bound:
    """The floor of as many heads as have the parameters of one of full rank."""
    heads = setting.dim // setting.rank
    value = rank_floor(heads, setting.rank, setting.dim)
    return Bound(
        name="equal parameters: minimum error",
        value=value if value > 0 else None,
        claim=f"the {heads} heads of rank {setting.rank} that have no more parameters than one of rank {setting.dim}, "
        "which is exact, have at least this error",
        source=OURS,
        conditions=_low_rank(setting),
        why="" if value > 0 else "at full rank there is one head, and it is exact",
    )


def exponential_order(setting: RankSetting) -> Bound:
    """Theorem 2, high accuracy."""
    return _order_only(
        setting,
        name="low rank, high accuracy: heads",
        claim="exp(Omega(d - r)) heads, for any value and output matrices",
        theorem="Theorem 2",
        order=f"exp(Omega(d - r)) heads, d - r = {setting.dim - setting.rank}",
    )


def polynomial_order(setting: RankSetting) -> Bound:
    """Theorem 2, high dimension."""
    return _order_only(
        setting,
        name="low rank, high dimension: heads",
        claim="at least poly(d / r) heads, for any value and output matrices",
        theorem="Theorem 2",
        order=f"poly(d / r) heads, d / r = {setting.dim / setting.rank:.3g}",
    )


def biased_order(setting: RankSetting) -> Bound:
    """Theorem 3."""
    claim = "mixtures of polynomially many biased nearest-neighbour functions separate full from low rank even more"
    return _order_only(setting, name="biased targets: heads", claim=claim, theorem="Theorem 3", order=claim)


def _order_only(setting: RankSetting, *, name: str, claim: str, theorem: str, order: str) -> Bound:
    """A bound of which the paper gives the order of growth and no constant."""
    return Bound(
        name=name,
        value=None,
        claim=claim,
        source=f"{theorem}, {PAPER}",
        conditions=(_below_full(setting),),
        why=f"the paper gives the order only: {order}",
    )


def majority_vote(setting: RankSetting) -> Bound:
    """Two layers of rank-one heads, for two points."""
    return Bound(
        name="two layers: error of the majority vote",
        value=expected_error(setting.heads, setting.dim),
        claim=f"{setting.heads} hard heads of rank one and a second layer of one more have this expected squared "
        "error, about sqrt(d / H) for many heads",
        source=f"majority vote, {PAPER}; the expected error is ours",
        conditions=(
            Condition("two layers or more", setting.layers >= 2),
            _two_points(setting),
        ),
    )


def any_length_conjecture(setting: RankSetting) -> Bound:
    """Depth does not replace rank, for any number of points."""
    return Bound(
        name="depth: any number of points",
        value=None,
        claim="no fixed network of low-rank heads, however deep, finds the nearest of any number of points",
        source=f"conjecture, {PAPER}",
        conditions=(_below_full(setting),),
        kind="conjecture",
        why="unproved: no fixed network of low-rank heads, however deep, finds the nearest of any number of points",
    )


def _low_rank(setting: RankSetting) -> tuple[Condition, ...]:
    return (
        _below_full(setting),
        _two_points(setting),
        Condition("one attention layer, its heads summed", setting.layers == 1),
        Condition("orthogonal points and query uniform on the sphere", None),
    )


def _below_full(setting: RankSetting) -> Condition:
    return Condition("rank r < d", setting.rank < setting.dim)


def _two_points(setting: RankSetting) -> Condition:
    return Condition("N = 2 points", setting.length == 2)
