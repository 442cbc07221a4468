"""The second paper's bounds at one setting, with constants where we can prove them.

Symbols: H heads, r rank, d dim, N length (points), L layers, eps expected squared error.
Source: Amsel et al. (arXiv 2407.16153); the floors (`harmonics`) are ours.
"""

from dataclasses import dataclass

from ...errors import require_count
from ...tasks.nearest import require_terms
from ..bounds import Bound, Condition
from ..doors import require_below_one, require_counts, require_rank
from .harmonics import heads_needed, rank_floor, rank_one_floor
from .many_points import many_points_floor
from .nearest import expected_error
from .zonal import zonal_floor

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
    terms: int = 3
    """K, the biased nearest neighbours in a target of Theorem 3."""

    def __post_init__(self):
        require_counts(heads=self.heads, layers=self.layers)
        require_rank(self.heads, self.rank, self.dim)
        require_count("length", self.length, least=2)
        require_below_one(eps=self.eps)
        require_terms(self.terms)


def all_rank_bounds(setting: RankSetting) -> tuple[Bound, ...]:
    """Every bound of the second paper, and the floors that we can prove, at one setting."""
    heads, rank, dim = setting.heads, setting.rank, setting.dim
    low_rank, two_points = Condition("rank r < d", rank < dim), Condition("N = 2 points", setting.length == 2)
    one_layer = Condition("one attention layer, its heads summed", setting.layers == 1)
    uniform = Condition("orthogonal points and query uniform on the sphere", None)
    floors = (low_rank, two_points, one_layer, uniform)
    full = Bound(
        name="full rank: heads enough",
        value=1.0,
        claim=f"one hard head of rank d = {dim} outputs the nearest of any number of points, exactly",
        source=f"the target's construction, {PAPER}",
        conditions=(Condition("rank r = d", rank == dim),),
    )
    error = rank_floor(heads, rank, dim)
    min_error = Bound(
        name="low rank: minimum error",
        value=error if error > 0 else None,
        claim=f"no {heads} heads of rank {rank} have a smaller expected squared error, hard or soft, biased or not, "
        "for any value and output matrices",
        source=OURS,
        conditions=floors,
        why="" if error > 0 else f"{heads} heads of rank {rank} capture every harmonic of R^{dim}: the bound is zero",
    )
    min_error_of_hard_heads = Bound(
        name="hard heads of rank one: minimum error",
        value=rank_one_floor(heads, dim) if rank == 1 else None,
        claim=f"no {heads} hard heads of rank one have a smaller expected squared error, for any value and output "
        "matrices",
        source=OURS,
        conditions=(Condition("hard heads", None), *floors),
        why="" if rank == 1 else f"it holds for rank 1, here rank is {rank}",
    )
    min_heads = Bound(
        name="low rank: heads needed",
        value=None if rank == dim else heads_needed(dim, setting.eps, rank),
        claim=f"an expected squared error of eps = {setting.eps:g} takes at least this many heads of rank {rank}",
        source=OURS,
        conditions=floors,
        why="one head of full rank is enough" if rank == dim else "",
    )
    enough_room = setting.length <= dim
    error = many_points_floor(heads, rank, dim, setting.length) if enough_room else 0.0
    nothing = "the bound is zero" if enough_room else f"R^{dim} has no {setting.length} orthogonal points"
    min_error_of_many_points = Bound(
        name="low rank, N points: minimum error",
        value=error if error > 0 else None,
        claim=f"no {heads} heads of rank {rank} have a smaller expected squared error on the nearest of "
        f"{setting.length} orthogonal points, hard or soft, biased or not, for any value and output matrices",
        source=OURS,
        conditions=(low_rank, Condition("N <= d points", enough_room), one_layer, uniform),
        why="" if error > 0 else nothing,
    )
    error = zonal_floor(heads, rank, dim, terms=setting.terms)
    min_error_of_biased = Bound(
        name="biased targets: minimum error",
        value=error if error > 0 else None,
        claim=f"on the alternating sum of {setting.terms} biased nearest neighbours, which {setting.terms} biased hard "
        f"heads of rank {dim} compute exactly, no {heads} heads of rank {rank} have a smaller expected squared error",
        source=f"ours, after Theorem 3, {PAPER}",
        conditions=floors,
        why="" if error > 0 else "the bound is zero",
    )
    # Queries and keys of H heads have 2 H r d parameters, those of one head of full rank 2 d^2.
    parameters = Bound(
        name="parameters: heads of full rank",
        value=heads * rank / dim,
        claim=f"{heads} heads of rank {rank} have the parameters of this many of rank {dim}: H r / d",
        source=f"by counting; H = d / r is the convention, {PAPER}",
    )
    error = rank_floor(dim // rank, rank, dim)
    min_error_at_equal_parameters = Bound(
        name="equal parameters: minimum error",
        value=error if error > 0 else None,
        claim=f"the {dim // rank} heads of rank {rank} that have no more parameters than one of rank {dim}, which is "
        "exact, have at least this error",
        source=OURS,
        conditions=floors,
        why="" if error > 0 else "at full rank there is one head, and it is exact",
    )
    vote = Bound(
        name="two layers: error of the majority vote",
        value=expected_error(heads, dim),
        claim=f"{heads} hard heads of rank one and a second layer of one more have this expected squared error, about "
        "sqrt(d / H) for many heads",
        source=f"majority vote, {PAPER}; the expected error is ours",
        conditions=(Condition("two layers or more", setting.layers >= 2), two_points),
    )
    biased = "mixtures of polynomially many biased nearest-neighbour functions separate full from low rank even more"
    orders = [  # the paper gives the order of growth and no constant
        Bound(
            name=name,
            value=None,
            claim=claim,
            source=f"{theorem}, {PAPER}",
            conditions=(low_rank,),
            why=f"the paper gives the order only: {order}",
        )
        for name, claim, theorem, order in (
            (
                "low rank, high accuracy: heads",
                "exp(Omega(d - r)) heads, for any value and output matrices",
                "Theorem 2",
                f"exp(Omega(d - r)) heads, d - r = {dim - rank}",
            ),
            (
                "low rank, high dimension: heads",
                "at least poly(d / r) heads, for any value and output matrices",
                "Theorem 2",
                f"poly(d / r) heads, d / r = {dim / rank:.3g}",
            ),
            ("biased targets: heads", biased, "Theorem 3", biased),
        )
    ]
    return (
        full,
        min_error,
        min_error_of_hard_heads,
        min_heads,
        parameters,
        min_error_at_equal_parameters,
        min_error_of_many_points,
        min_error_of_biased,
        *orders,
        vote,
        any_length_conjecture(setting),
    )


def any_length_conjecture(setting: RankSetting) -> Bound:
    """Depth does not replace rank, for any number of points."""
    claim = "no fixed network of low-rank heads, however deep, finds the nearest of any number of points"
    return Bound(
        name="depth: any number of points",
        value=None,
        claim=claim,
        source=f"conjecture, {PAPER}",
        conditions=(Condition("rank r < d", setting.rank < setting.dim),),
        kind="conjecture",
        why=f"unproved: {claim}",
    )
