"""Lower bounds on the error of heads of low rank on the nearest of two points, whatever their weights.

Symbols: H heads, r rank, d dim, eps expected squared error, lambda_l and N(d, l) as in `harmonics`.

The argument. For two orthogonal points the target is their mean plus s* (x_1 - x_2) / 2 with s* = sign(u . y), and its
part odd in y is a kernel K(y, x) with E_x[K(y, x) . K(y', x)] = E_u[sign(u . y) sign(u . y')] / 2: as an operator on
functions of y it has the singular value lambda_l / sqrt(2) for each of the N(d, l) harmonics of every odd degree l. The
sum of H heads is an operator too, and by Eckart and Young an operator of rank R misses at least all but the R largest
singular values.

* Hard heads of rank one choose x_i by sign(q . y) sign(k . u), so their odd part is a sum of H products of a function
  of y and one of the points: rank H in all, for any value and output matrices (`rank_one_floor`).
* Heads of rank r, hard or soft, biased or not, see y through r numbers Q y. The harmonics of degree l that are
  invariant under rotations of the other d - r coordinates have dimension C(l + r - 1, r - 1), so H heads have at most H
  times that rank in degree l, whatever they compute from Q y and the points (`rank_floor`).

Source: ours, after Theorem 2 of Amsel et al. (arXiv 2407.16153), which gives the order of growth.
"""

import functools
import math

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln

from ..._errors import require, require_count
from .harmonics import require_dim, sign_eigenvalue

DEGREES = 2000
"""Odd degrees treated one by one; all above are treated as one, with the ratio of the last."""
MAX_HEADS = 1e300
"""`heads_needed` reports at most this many."""


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


def _remaining(captured: Float[np.ndarray, " more"], shares: Float[np.ndarray, " degrees"]) -> float:
    """Half of the share of E[s*^2] = 1 that remains, given the captured fraction of each degree and of all above."""
    whole = np.append(shares, 1 - shares.sum())
    return float(whole @ (1 - np.minimum(captured, 1))) / 2


def rank_one_floor(heads: int | float, dim: int) -> float:
    """A lower bound on the expected squared error of any H hard heads of rank one on two orthogonal points.

    The heads capture at most the H largest squares lambda_l^2, lowest degrees first.
    """
    require(heads >= 1, f"heads must be at least 1, got {heads!r}.")
    require_dim(dim)
    shares, log_count = _shares(dim)
    counts = np.exp(np.minimum(log_count, math.log(MAX_HEADS)))
    before = np.concatenate([[0.0], np.cumsum(counts)])
    # Above the degrees treated one by one a head captures less than the last square among them.
    above = (1 - shares.sum()) * counts[-1] / shares[-1]
    return _remaining(np.maximum(heads - before, 0) / np.append(counts, above), shares)


def rank_floor(heads: int | float, rank: int, dim: int) -> float:
    """A lower bound on the expected squared error of any H heads of rank r on two orthogonal points.

    (1/2) sum over odd l of lambda_l^2 max(0, N(d, l) - H C(l + r - 1, r - 1)), whatever the heads compute from Q y. The
    ratio C / N never rises with l, so all higher degrees get the ratio of the last one treated.
    """
    require(heads >= 1, f"heads must be at least 1, got {heads!r}.")
    require_dim(dim)
    require_rank(rank, dim)
    if rank == dim:
        return 0.0
    shares, log_count = _shares(dim)
    degrees = 2.0 * np.arange(DEGREES) + 1
    log_captured = gammaln(degrees + rank) - gammaln(degrees + 1) - gammaln(rank)
    return _remaining(heads * np.exp(log_captured - log_count)[[*range(DEGREES), -1]], shares)


def heads_needed(dim: int, eps: float, rank: int = 1, *, hard: bool = False) -> float:
    """The smallest H (at most `MAX_HEADS`) whose floor is at most eps: fewer heads of rank r have a larger error.

    `hard` uses the floor of hard heads, which is known for rank 1 only.
    """
    require(0 < eps < 1, f"eps must lie between 0 and 1, got {eps!r}.")
    require(rank == 1 or not hard, f"the floor of hard heads is known for rank 1 only, got rank {rank}.")

    def enough(heads: float) -> bool:
        return (rank_one_floor(heads, dim) if hard else rank_floor(heads, rank, dim)) <= eps

    low, high = 0.0, 1.0
    while not enough(high):
        low, high = high, 2 * high
        if high > MAX_HEADS:
            return MAX_HEADS
    # Bisect over integers, as long as float64 distinguishes them.
    while high - low > 1:
        middle = math.floor((low + high) / 2)
        if middle in (low, high):
            break
        low, high = (low, middle) if enough(middle) else (middle, high)
    return float(high)


def require_rank(rank: int, dim: int) -> None:
    require_count("rank", rank)
    require(rank <= dim, what="rank", given=rank, needed=f"at most dim = {dim}")
