"""Spherical harmonics of sign(u . y): closed forms and floors on the nearest of two orthogonal points.

Symbols: H heads, r rank, d dim, eps expected squared error. lambda_l are the eigenvalues of the kernel sign(u . y) on
the sphere of R^d, N(d, l) the dimension of the harmonics of degree l, P_l the Gegenbauer polynomial with P_l(1) = 1. By
Funk and Hecke the signs of a head with directions q, k and of the target correlate by the sum over odd l of lambda_l^3
N(d, l) P_l(q . k).

The part of the target that is odd in y is an operator with the singular value lambda_l / sqrt(2) for each of the
N(d, l) harmonics of every odd degree l. Heads are operators of bounded rank, whatever their weights, and by Eckart and
Young such an operator misses all but the largest singular values: H hard heads of rank one have rank H in all
(`rank_one_floor`), and H heads of rank r of any kind at most H C(l + r - 1, r - 1) in degree l (`rank_floor`).

Source: Amsel et al. (arXiv 2407.16153), whose Theorem 2 gives the order of growth; series, limits and floors are ours.
"""

import functools
import math

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln

from ...errors import require
from ..doors import require_below_one, require_rank

DEGREES = 200
"""Terms of the series: lambda_l^3 N(d, l) falls as l^-(2 + d/2). The remainder is largest in the plane, 3.2e-6."""
FLOOR_DEGREES = 2000
"""Odd degrees treated one by one; all above are treated as one, with the ratio of the last."""
MAX_HEADS = 1e300


def sign_eigenvalue(dim: int, degree: int) -> float:
    """lambda_l of the kernel sign(u . y) on the sphere of R^dim; zero for even degrees."""
    if degree % 2 == 0:
        return 0.0
    half = (degree - 1) // 2
    # By Rodrigues' formula the integral of P_l over [0, 1] is a derivative at 0.
    log = gammaln(dim / 2) + gammaln(degree) - gammaln(half + 1) - gammaln(degree - half + (dim - 1) / 2)
    return (-1) ** half * math.exp(log - (degree - 1) * math.log(2) - 0.5 * math.log(math.pi))


def harmonics(dim: int, degree: int) -> float:
    """N(d, l): the number of independent harmonics of that degree."""
    if degree == 0:
        return 1.0
    if dim == 2:
        return 2.0
    log = gammaln(degree + dim - 2) - gammaln(degree + 1) - gammaln(dim - 1)
    return (2 * degree + dim - 2) * math.exp(log)


def sign_correlation(dim: int, cosine: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """E[s_head s_target] of a head whose directions q and k have this cosine."""
    cosine = np.asarray(cosine, float)
    total = np.zeros_like(cosine)
    before, polynomial = np.ones_like(cosine), cosine.copy()
    for degree in range(1, DEGREES):
        if degree % 2 == 1:
            total = total + sign_eigenvalue(dim, degree) ** 3 * harmonics(dim, degree) * polynomial
        # (l + d - 2) P_(l+1) = (2 l + d - 2) t P_l - l P_(l-1)
        following = ((2 * degree + dim - 2) * cosine * polynomial - degree * before) / (degree + dim - 2)
        before, polynomial = polynomial, following
    return np.asarray(total)


def first_degree_error(dim: int) -> float:
    """Return the minimum error of a mixture that represents every harmonic of degree 1 of the target and none above.

    Degree l has the share lambda_l^2 N(d, l) of E[s*^2] = 1, degree 1 thus d lambda_1^2, and the error is half of the
    remaining share: (1 - d lambda_1^2) / 2, which tends to (1 - 2/pi) / 2 = 0.1817. In high dimension curves level off
    there: degree 1 has d harmonics, which a few times d heads represent, the next has about d^3 / 6.
    """
    return (1 - dim * sign_eigenvalue(dim, 1) ** 2) / 2


def plane_correlation(angle: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """Return the published correlation in the plane: 1/2 + sign(pi/2 - a) (1/4 - (a' / pi)^2)."""
    folded = np.pi / 2 - np.abs(np.pi / 2 - angle)
    return np.asarray(0.5 + np.sign(np.pi / 2 - angle) * (0.25 - (folded / np.pi) ** 2))


@functools.lru_cache(maxsize=256)
def _shares(dim: int) -> tuple[Float[np.ndarray, " degrees"], Float[np.ndarray, " degrees"]]:
    """lambda_l^2 N(d, l) and log N(d, l) for the first odd degrees l."""
    degrees = 2.0 * np.arange(FLOOR_DEGREES) + 1
    # |lambda_(l+2)| = |lambda_l| l / (l + d)
    steps = np.log(degrees[:-1] / (degrees[:-1] + dim))
    log_square = 2 * (math.log(sign_eigenvalue(dim, 1)) + np.concatenate([[0.0], np.cumsum(steps)]))
    log_count = np.full(FLOOR_DEGREES, math.log(2))
    if dim > 2:
        log_count = np.log(2 * degrees + dim - 2) + gammaln(degrees + dim - 2) - gammaln(degrees + 1) - gammaln(dim - 1)
    return np.exp(log_square + log_count), log_count


def remaining(captured: Float[np.ndarray, " more"], shares: Float[np.ndarray, " degrees"]) -> float:
    """Half of the share of E[s*^2] = 1 that remains, given the captured fraction of each degree and of all above."""
    whole = np.append(shares, 1 - shares.sum())
    return float(whole @ (1 - np.minimum(captured, 1))) / 2


def rank_one_floor(heads: int | float, dim: int) -> float:
    """Bound from below the expected squared error of any H hard heads of rank one on two orthogonal points.

    The heads capture at most the H largest squares lambda_l^2, lowest degrees first.
    """
    require_rank(heads, 1, dim)
    shares, log_count = _shares(dim)
    counts = np.exp(np.minimum(log_count, math.log(MAX_HEADS)))
    before = np.concatenate([[0.0], np.cumsum(counts)])
    # Above the degrees treated one by one a head captures less than the last square among them.
    above = (1 - shares.sum()) * counts[-1] / shares[-1]
    return remaining(np.maximum(heads - before, 0) / np.append(counts, above), shares)


def rank_floor(heads: int | float, rank: int, dim: int) -> float:
    """Bound from below the expected squared error of any H heads of rank r on two orthogonal points.

    (1/2) sum over odd l of lambda_l^2 max(0, N(d, l) - H C(l + r - 1, r - 1)), whatever the heads compute from Q y. The
    ratio C / N never rises with l, so all higher degrees get the ratio of the last one treated.
    """
    require_rank(heads, rank, dim)
    if rank == dim:
        return 0.0
    return remaining(captured_by(heads, rank, dim), _shares(dim)[0])


def captured_by(heads: int | float, rank: int, dim: int) -> Float[np.ndarray, " more"]:
    """H C(l + r - 1, r - 1) / N(d, l) for the first odd degrees l, and the last of them again for all above."""
    _, log_count = _shares(dim)
    degrees = 2.0 * np.arange(FLOOR_DEGREES) + 1
    log_captured = gammaln(degrees + rank) - gammaln(degrees + 1) - gammaln(rank)
    return heads * np.exp(log_captured - log_count)[[*range(FLOOR_DEGREES), -1]]


def heads_needed(dim: int, eps: float, rank: int = 1, *, hard: bool = False) -> float:
    """Return the smallest H, up to `MAX_HEADS`, whose floor is at most eps: fewer heads of rank r have a larger error.

    `hard` uses the floor of hard heads, which is known for rank 1 only.
    """
    require_below_one(eps=eps)
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
