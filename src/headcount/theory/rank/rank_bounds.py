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
from .more_floors import many_points_floor, zonal_floor
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
    terms: int = 3
    """K, the biased nearest neighbours in a target of Theorem 3."""

    def __post_init__(self):
        require_counts(heads=self.heads, layers=self.layers)
        require_rank(self.heads, self.rank, self.dim)
        require_count("length", self.length, least=2)
        require_below_one(eps=self.eps)
        require_terms(self.terms)


def all_rank_bounds(setting: RankSetting) -> tuple[Bound, ...]:
    """Return every bound of the second paper, and the floors that we can prove, at one setting."""
    heads, rank, dim, length = setting.heads, setting.rank, setting.dim, setting.length
    low_rank, two_points = Condition("rank r < d", rank < dim), Condition("N = 2 points", length == 2)
    one_layer = Condition("one attention layer, its heads summed", setting.layers == 1)
    uniform = Condition("orthogonal points and query uniform on the sphere", None)
    for_two = (low_rank, two_points, one_layer, uniform)

    def floor_bound(name: str, error: float, claim: str, silent: str, source: str = OURS, conditions=for_two) -> Bound:
        """Return a floor on the error; vacuous where it is zero, for the reason `silent`."""
        value, why = (error, "") if error > 0 else (None, silent)
        return Bound(name=name, value=value, claim=claim, source=source, conditions=conditions, why=why)

    def growth(name: str, claim: str, theorem: str, order: str) -> Bound:
        """Return a bound of which the paper gives the order of growth, and no constant."""
        source, why = f"{theorem}, {PAPER}", f"the paper gives the order only: {order}"
        return Bound(name=name, value=None, claim=claim, source=source, conditions=(low_rank,), why=why)

    none_better = f"no {heads} heads of rank {rank} have a smaller expected squared error"
    any_weights = "hard or soft, biased or not, for any value and output matrices"
    enough_room = length <= dim
    biased = "mixtures of polynomially many biased nearest-neighbour functions separate full from low rank even more"
    any_length = "no fixed network of low-rank heads, however deep, finds the nearest of any number of points"
    return (
        Bound(
            name="full rank: heads enough",
            value=1.0,
            claim=f"one hard head of rank d = {dim} outputs the nearest of any number of points, exactly",
            source=f"the target's construction, {PAPER}",
            conditions=(Condition("rank r = d", rank == dim),),
        ),
        floor_bound(
            "low rank: minimum error",
            rank_floor(heads, rank, dim),
            f"{none_better}, {any_weights}",
            f"{heads} heads of rank {rank} capture every harmonic of R^{dim}: the bound is zero",
        ),
        Bound(
            name="hard heads of rank one: minimum error",
            value=rank_one_floor(heads, dim) if rank == 1 else None,
            claim=f"no {heads} hard heads of rank one have a smaller expected squared error, for any value and output "
            "matrices",
            source=OURS,
            conditions=(Condition("hard heads", None), *for_two),
            why="" if rank == 1 else f"it holds for rank 1, here rank is {rank}",
        ),
        Bound(
            name="low rank: heads needed",
            value=None if rank == dim else heads_needed(dim, setting.eps, rank),
            claim=f"an expected squared error of eps = {setting.eps:g} takes at least this many heads of rank {rank}",
            source=OURS,
            conditions=for_two,
            why="one head of full rank is enough" if rank == dim else "",
        ),
        # Queries and keys of H heads have 2 H r d parameters, those of one head of full rank 2 d^2.
        Bound(
            name="parameters: heads of full rank",
            value=heads * rank / dim,
            claim=f"{heads} heads of rank {rank} have the parameters of this many of rank {dim}: H r / d",
            source=f"by counting; H = d / r is the convention, {PAPER}",
        ),
        floor_bound(
            "equal parameters: minimum error",
            rank_floor(dim // rank, rank, dim),
            f"the {dim // rank} heads of rank {rank} that have no more parameters than one of rank {dim}, which is "
            "exact, have at least this error",
            "at full rank there is one head, and it is exact",
        ),
        floor_bound(
            "low rank, N points: minimum error",
            many_points_floor(heads, rank, dim, length) if enough_room else 0.0,
            f"{none_better} on the nearest of {length} orthogonal points, {any_weights}",
            "the bound is zero" if enough_room else f"R^{dim} has no {length} orthogonal points",
            conditions=(low_rank, Condition("N <= d points", enough_room), one_layer, uniform),
        ),
        floor_bound(
            "biased targets: minimum error",
            zonal_floor(heads, rank, dim, terms=setting.terms),
            f"on the alternating sum of {setting.terms} biased nearest neighbours, which {setting.terms} biased hard "
            f"heads of rank {dim} compute exactly, {none_better}",
            "the bound is zero",
            source=f"ours, after Theorem 3, {PAPER}",
        ),
        growth(
            "low rank, high accuracy: heads",
            "exp(Omega(d - r)) heads, for any value and output matrices",
            "Theorem 2",
            f"exp(Omega(d - r)) heads, d - r = {dim - rank}",
        ),
        growth(
            "low rank, high dimension: heads",
            "at least poly(d / r) heads, for any value and output matrices",
            "Theorem 2",
            f"poly(d / r) heads, d / r = {dim / rank:.3g}",
        ),
        growth("biased targets: heads", biased, "Theorem 3", biased),
        Bound(
            name="two layers: error of the majority vote",
            value=expected_error(heads, dim),
            claim=f"{heads} hard heads of rank one and a second layer of one more have this expected squared error, "
            "about sqrt(d / H) for many heads",
            source=f"majority vote, {PAPER}; the expected error is ours",
            conditions=(Condition("two layers or more", setting.layers >= 2), two_points),
        ),
        Bound(
            name="depth: any number of points",
            value=None,
            claim=any_length,
            source=f"conjecture, {PAPER}",
            conditions=(low_rank,),
            kind="conjecture",
            why=f"unproved: {any_length}",
        ),
    )
