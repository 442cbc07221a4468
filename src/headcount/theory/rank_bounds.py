"""How well heads of low rank can find the nearest of two points, whatever their weights: lower bounds with constants.

Symbols: H heads, r rank, d dim, N length (points), eps expected squared error, lambda_l and N(d, l) as in `rank_one`.

The argument. For two orthogonal points the target is their mean plus s* (x_1 - x_2) / 2 with s* = sign(u . y), and its
part odd in y is a kernel K(y, x) with E_x[K(y, x) . K(y', x)] = E_u[sign(u . y) sign(u . y')] / 2: as an operator on
functions of y it has the singular value lambda_l / sqrt(2) for each of the N(d, l) harmonics of every odd degree l.
What H heads add up to is an operator too, and by Eckart and Young one of rank R misses at least what the R largest
singular values leave.

* Hard heads of rank one choose x_i by sign(q . y) sign(k . u), so their odd part is a sum of H products of a function
  of y and one of the points: rank H in all, whatever is done to x_i before heads are added (`rank_one_floor`).
* Heads of rank r, hard or soft, biased or not, see y through r numbers Q y. The harmonics of degree l that do not
  change when the other d - r coordinates are turned have dimension C(l + r - 1, r - 1), so H heads have at most H times
  that rank in degree l, whatever they make of Q y and of the points (`rank_floor`).

Source: ours, after Theorem 2 of Amsel et al. (arXiv 2407.16153), which gives the order of what is needed.
"""

import functools
import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln

from .._errors import require, require_count
from .bounds import Bound, Condition
from .nearest import expected_error
from .rank_one import sign_eigenvalue

PAPER = "arXiv 2407.16153"
OURS = f"ours, after Theorem 2, {PAPER}"
DEGREES = 2000
"""Odd degrees that are told apart; those above count as one, with the ratio of the first of them."""
MOST = 1e300
"""Heads needed are told up to this many."""


@functools.lru_cache(maxsize=256)
def _shares(dim: int) -> tuple[Float[np.ndarray, " degrees"], Float[np.ndarray, " degrees"]]:
    """lambda_l^2 N(d, l) and log N(d, l) for the first odd degrees l."""
    degrees = 2.0 * np.arange(DEGREES) + 1
    # |lambda_(l+2)| = |lambda_l| l / (l + d)
    steps = np.log(degrees[:-1] / (degrees[:-1] + dim))
    log_square = 2 * (math.log(sign_eigenvalue(dim, 1)) + np.concatenate([[0.0], np.cumsum(steps)]))
    log_count = np.full(DEGREES, math.log(2))
    if dim > 2:
        log_count = np.log(2 * degrees + dim - 2) + gammaln(degrees + dim - 2) - gammaln(degrees + 1) - gammaln(dim - 1)
    return np.exp(log_square + log_count), log_count


def _left(captured: Float[np.ndarray, " more"], shares: Float[np.ndarray, " degrees"]) -> float:
    """Half of what is left of E[s*^2] = 1 where so much of each degree, and of all above together, is captured."""
    whole = np.append(shares, 1 - shares.sum())
    return float(whole @ (1 - np.minimum(captured, 1))) / 2


def rank_one_floor(heads: int | float, dim: int) -> float:
    """No H hard heads of rank one have a smaller expected error on two orthogonal points, however they are mixed.

    The heads hold at most the H largest squares lambda_l^2, lowest degrees first.
    """
    _require_heads(heads)
    _require_dim(dim)
    shares, log_count = _shares(dim)
    counts = np.exp(np.minimum(log_count, math.log(MOST)))
    before = np.concatenate([[0.0], np.cumsum(counts)])
    # Above the degrees told apart a head holds less than the last square among them.
    above = (1 - shares.sum()) * counts[-1] / shares[-1]
    return _left(np.maximum(heads - before, 0) / np.append(counts, above), shares)


def rank_floor(heads: int | float, rank: int, dim: int) -> float:
    """No H heads of rank r have a smaller expected error on two orthogonal points, whatever they compute from Q y.

    (1/2) sum over odd l of lambda_l^2 max(0, N(d, l) - H C(l + r - 1, r - 1)). The ratio C / N never rises with l, so
    degrees above those told apart count with the first ratio among them.
    """
    _require_heads(heads)
    _require_dim(dim)
    _require_rank(rank, dim)
    if rank == dim:
        return 0.0
    shares, log_count = _shares(dim)
    return _left(heads * np.exp(_log_seen(rank) - log_count)[[*range(DEGREES), -1]], shares)


@functools.lru_cache(maxsize=256)
def _log_seen(rank: int) -> Float[np.ndarray, " degrees"]:
    """log C(l + r - 1, r - 1) for the first odd degrees."""
    degrees = 2.0 * np.arange(DEGREES) + 1
    return gammaln(degrees + rank) - gammaln(degrees + 1) - gammaln(rank)


def heads_needed(dim: int, eps: float, rank: int = 1, *, hard: bool = False) -> float:
    """The least H whose floor is no more than eps: fewer heads of that rank cannot err less. `hard` needs rank 1.

    Told up to 1e300.
    """
    require(0 < eps < 1, f"eps must lie between 0 and 1, got {eps!r}.")
    require(rank == 1 or not hard, f"the floor of hard heads is known for rank 1 only, got rank {rank}.")

    def enough(heads: float) -> bool:
        return (rank_one_floor(heads, dim) if hard else rank_floor(heads, rank, dim)) <= eps

    low, high = 0.0, 1.0
    while not enough(high):
        low, high = high, 2 * high
        if high > MOST:
            return MOST
    # Whole numbers as long as float64 tells them apart.
    while high - low > 1:
        middle = math.floor((low + high) / 2)
        if middle in (low, high):
            break
        low, high = (low, middle) if enough(middle) else (middle, high)
    return float(high)


@dataclass(frozen=True, kw_only=True)
class RankSetting:
    """A layer of heads of one rank and the points it is asked for, as the second paper sees them."""

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
        _require_dim(self.dim)
        _require_rank(self.rank, self.dim)
        require_count("length", self.length, least=2)
        require(0 < self.eps < 1, f"eps must lie between 0 and 1, got {self.eps!r}.")


def all_rank_bounds(setting: RankSetting) -> tuple[Bound, ...]:
    """What the second paper says of a setting, and the constants that we can prove."""
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
    return Bound(
        name="full rank: heads enough",
        value=1.0,
        claim=f"one hard head of rank d = {setting.dim} answers with the nearest of any number of points, exactly",
        source=f"the target's construction, {PAPER}",
        conditions=(Condition("rank r = d", setting.rank == setting.dim),),
    )


def min_error(setting: RankSetting) -> Bound:
    value = rank_floor(setting.heads, setting.rank, setting.dim)
    return Bound(
        name="low rank: least error",
        value=value if value > 0 else None,
        claim=f"no {setting.heads} heads of rank {setting.rank} have a smaller expected squared error, hard or soft, "
        "biased or not, whatever their values and outputs",
        source=OURS,
        conditions=_low_rank(setting),
        why=""
        if value > 0
        else f"{setting.heads} heads of rank {setting.rank} see every harmonic of {setting.dim} "
        "numbers: the argument leaves no error",
    )


def min_error_of_hard_heads(setting: RankSetting) -> Bound:
    one = setting.rank == 1
    return Bound(
        name="hard heads of rank one: least error",
        value=rank_one_floor(setting.heads, setting.dim) if one else None,
        claim=f"no {setting.heads} hard heads of rank one have a smaller expected squared error, whatever their values "
        "and outputs",
        source=OURS,
        conditions=(Condition("hard heads", None), *_low_rank(setting)),
        why="" if one else f"it is about rank 1, here it is {setting.rank}",
    )


def min_heads(setting: RankSetting) -> Bound:
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
    """Queries and keys of H heads hold 2 H r d numbers, those of one head of full rank 2 d^2."""
    return Bound(
        name="parameters: heads of full rank",
        value=setting.heads * setting.rank / setting.dim,
        claim=f"{setting.heads} heads of rank {setting.rank} have the parameters of this many of rank {setting.dim}: "
        "H r / d",
        source=f"by counting; H = d / r is the convention, {PAPER}",
    )


def min_error_at_equal_parameters(setting: RankSetting) -> Bound:
    heads = setting.dim // setting.rank
    value = rank_floor(heads, setting.rank, setting.dim)
    return Bound(
        name="equal parameters: least error",
        value=value if value > 0 else None,
        claim=f"the {heads} heads of rank {setting.rank} that cost no more than one of rank {setting.dim}, which is "
        "exact, have at least this error",
        source=OURS,
        conditions=_low_rank(setting),
        why="" if value > 0 else "at full rank there is one head, and it is exact",
    )


def exponential_order(setting: RankSetting) -> Bound:
    return Bound(
        name="low rank, high accuracy: heads",
        value=None,
        claim="exp(Omega(d - r)) heads, whatever the value and output matrices",
        source=f"Theorem 2, {PAPER}",
        conditions=(_below_full(setting),),
        why=f"the paper gives the order only: exp(Omega(d - r)) heads, d - r = {setting.dim - setting.rank}",
    )


def polynomial_order(setting: RankSetting) -> Bound:
    return Bound(
        name="low rank, high dimension: heads",
        value=None,
        claim="at least poly(d / r) heads, whatever the value and output matrices",
        source=f"Theorem 2, {PAPER}",
        conditions=(_below_full(setting),),
        why=f"the paper gives the order only: poly(d / r) heads, d / r = {setting.dim / setting.rank:.3g}",
    )


def biased_order(setting: RankSetting) -> Bound:
    return Bound(
        name="biased targets: heads",
        value=None,
        claim="mixtures of polynomially many biased nearest-neighbour functions separate full from low rank even more",
        source=f"Theorem 3, {PAPER}",
        conditions=(_below_full(setting),),
        why="the paper gives the order only: a mixture of polynomially many biased nearest-neighbour functions "
        "separates full from low rank even more",
    )


def majority_vote(setting: RankSetting) -> Bound:
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
    return Bound(
        name="depth: any number of points",
        value=None,
        claim="no fixed network of low-rank heads, however deep, answers for any number of points",
        source=f"conjecture, {PAPER}",
        conditions=(_below_full(setting),),
        kind="conjecture",
        why="nobody has proved it: no fixed network of low-rank heads, however deep, answers for any number of points",
    )


def _low_rank(setting: RankSetting) -> tuple[Condition, ...]:
    return (
        _below_full(setting),
        _two_points(setting),
        Condition("one attention layer, its heads added up", setting.layers == 1),
        Condition("orthogonal points and query uniform on the sphere", None),
    )


def _below_full(setting: RankSetting) -> Condition:
    return Condition("rank r < d", setting.rank < setting.dim)


def _two_points(setting: RankSetting) -> Condition:
    return Condition("N = 2 points", setting.length == 2)


def _require_dim(dim: int) -> None:
    require_count("dim", dim)
    require(dim >= 2, f"orthogonal points need dim of at least 2, got {dim}.")


def _require_rank(rank: int, dim: int) -> None:
    require_count("rank", rank)
    require(rank <= dim, f"rank is at most dim = {dim}, got {rank}.")


def _require_heads(heads: int | float) -> None:
    require(heads >= 1, f"heads must be at least 1, got {heads!r}.")
