"""Floors beyond two points and one bias: the nearest of N orthonormal points, and biased nearest neighbours.

**N points**, N up to d. On each of the N(d, l) harmonics of degree l the target has one singular value sigma_l, and
W_l = sigma_l^2 N(d, l) is the share of degree l in E|t|^2 = 1. Heads of rank r have at most rank H C(l + r - 1, r - 1)
in degree l (`harmonics`), so the error is at least

    sum over l of W_l max(0, 1 - H C(l + r - 1, r - 1) / N(d, l))

W_0 to W_3 are integrals over one normal number. All higher degrees together have the rest, and are given the ratio
C / N of degree 4: it never rises with l, so this can only lower the floor.

**Biased targets.** One of two orthogonal points is chosen by an odd pattern g(u . y) of +1 and -1 that changes its sign
at K biases. All that `harmonics` says of sign(u . y) holds with lambda_l(g) in place of lambda_l, and the floor is

    1/2 sum over odd l of lambda_l(g)^2 max(0, N(d, l) - H C(l + r - 1, r - 1))

Source: Amsel et al. (arXiv 2407.16153), whose Theorems 2 and 3 give orders of growth; the pattern (`tasks.nearest`) is
our reading of it, and the values are ours. docs/theory.md says what is proved, and what is not.
"""

import functools
import math

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln, ndtr

from ...errors import require, require_count
from ...tasks.nearest import bias_quantiles, require_terms
from ..doors import require_rank
from .harmonics import FLOOR_DEGREES, captured_by, harmonics, remaining

KNOWN = 4
"""Degrees whose shares are computed: 0 to 3."""


def many_points_floor(heads: int | float, rank: int, dim: int, length: int) -> float:
    """Bound from below the expected squared error of any H heads of rank r on the nearest of N orthonormal points.

    A head sees `rank` = r numbers of the query; what it computes from these and all points is free. `length` is N, from
    2 to d. Raises `InputError` for numbers out of range.

    Example:
        >>> [round(many_points_floor(8, 8, 64, length), 3) for length in (2, 4, 16, 64)]
        [0.178, 0.378, 0.693, 0.865]
    """
    require_rank(heads, rank, dim)
    require_count("length", length, least=2)
    require(length <= dim, what="length", given=length, needed=f"at most dim = {dim}, for orthonormal points")
    if rank == dim:
        return 0.0
    shares = degree_shares(length, dim)
    captured = [heads * math.comb(degree + rank - 1, rank - 1) / harmonics(dim, degree) for degree in range(KNOWN + 1)]
    whole = [*shares, max(0.0, 1 - sum(shares))]
    return math.fsum(share * max(0.0, 1 - held) for share, held in zip(whole, captured, strict=True))


@functools.lru_cache(maxsize=256)
def degree_shares(length: int, dim: int) -> tuple[float, float, float, float]:
    """W_0 to W_3: what the degrees 0 to 3 of the query have of E|t|^2 = 1.

    With g normal in R^d and C = {g_1 = max(g_1 .. g_N)}, the part of degree l is that of the traceless part of the
    moment E[1_C g^l]: a function of g / |g| alone is independent of |g|.
    """
    others, outside = length - 1, dim - length
    grid = np.linspace(-12.0, 12.0, 4801)  # of g_1; the trapezoidal rule is exact to rounding here
    density = np.exp(-(grid**2) / 2) / math.sqrt(2 * math.pi)
    below = ndtr(grid)
    weights = density * (grid[1] - grid[0])

    def mean(values: np.ndarray, free: int) -> float:
        """Over g_1, with the `free` coordinates that do not occur in `values` below it."""
        return float(weights @ (values * below ** max(0, free)))

    # E[g_j^p; g_j < t] for p = 1, 2, 3
    first, second, third = -density, below - grid * density, -(grid**2 + 2) * density
    one, other = mean(grid, others), mean(first, others - 1)
    degree_1 = one**2 + others * other**2
    square = np.array([mean(grid**2, others) - 1 / length, mean(second, others - 1) - 1 / length])
    mixed = np.array([mean(grid * first, others - 1), mean(first**2, others - 2)])
    degree_2 = float(square**2 @ [1, others] + mixed**2 @ [2 * others, others * (others - 1)])
    # The third moment by how often the winner 1, others j, k, i and coordinates outside (o) occur in it.
    of_winner = {
        "111": (mean(grid**3, others), 1),
        "11j": (mean(grid**2 * first, others - 1), 3 * others),
        "1jj": (mean(grid * second, others - 1), 3 * others),
        "1jk": (mean(grid * first**2, others - 2), 3 * others * (others - 1)),
        "1oo": (one, 3 * outside),
    }
    of_others = {
        "jjj": (mean(third, others - 1), others),
        "jjk": (mean(second * first, others - 2), 3 * others * (others - 1)),
        "jki": (mean(first**3, others - 3), others * (others - 1) * (others - 2)),
        "joo": (other, 3 * others * outside),
    }
    norm = math.fsum(count * value**2 for value, count in (*of_winner.values(), *of_others.values()))
    # Its trace is E[1_C g |g|^2] = (d + 1) E[1_C g].
    degree_3 = norm - 3 / (dim + 2) * (dim + 1) ** 2 * degree_1
    return (
        1 / length,
        length * dim * degree_1 / _norm_moment(dim, 1) ** 2,
        length * dim * (dim + 2) / 2 * degree_2 / _norm_moment(dim, 2) ** 2,
        max(0.0, length * dim * (dim + 2) * (dim + 4) / 6 * degree_3 / _norm_moment(dim, 3) ** 2),
    )


def _norm_moment(dim: int, power: int) -> float:
    return 2 ** (power / 2) * math.exp(gammaln((dim + power) / 2) - gammaln(dim / 2))


def zonal_floor(heads: int | float, rank: int, dim: int, *, terms: int = 3) -> float:
    """Bound from below the expected squared error of any H heads of rank r on `terms` biased nearest neighbours.

    A head sees `rank` = r numbers of the query; what it computes from these and the points is free. `terms` is K, an
    odd number of biases, as in the task `biased-nearest-neighbour`; 1 is `rank_floor`. Raises `InputError` for numbers
    out of range.

    Example:
        >>> [round(zonal_floor(10_000, 32, 64, terms=terms), 3) for terms in (1, 3, 5, 9)]
        [0.054, 0.17, 0.367, 0.421]
    """
    require_rank(heads, rank, dim)
    require_terms(terms)
    if rank == dim:
        return 0.0
    return remaining(captured_by(heads, rank, dim), pattern_shares(terms, dim))


@functools.lru_cache(maxsize=64)
def pattern_shares(terms: int, dim: int) -> Float[np.ndarray, " degrees"]:
    """lambda_l(g)^2 N(d, l) for the first odd degrees l: what each has of E[g^2] = 1.

    Above a jump at b the integral of P_l under the density of u . y is c (1 - b^2)^((d - 1)/2) Q(b) / (d - 1), with Q
    the polynomial of degree l - 1 in R^(d + 2) and Q(1) = 1: Gegenbauer's equation is a total derivative. The
    recurrence is that of sqrt(N) Q, which neither grows nor vanishes where N is as large as 1e300.
    """
    jumps = bias_quantiles(terms, dim) / math.sqrt(2)
    sides = 2 * (-1.0) ** np.arange(terms)  # g jumps by 2, up and down in turn
    scale = math.exp(gammaln(dim / 2) - gammaln((dim - 1) / 2)) / math.sqrt(math.pi) / (dim - 1)
    before, current = np.zeros(terms), (1 - jumps**2) ** ((dim - 1) / 2)
    shares = np.empty(FLOOR_DEGREES)
    for degree in range(1, 2 * FLOOR_DEGREES):
        if degree % 2 == 1:
            # N(d, l) / N(d + 2, l - 1) = d (d - 1) / (l (l + d - 2))
            ratio = dim * (dim - 1) / (degree * (degree + dim - 2))
            shares[degree // 2] = ratio * (scale * float(sides @ current)) ** 2
        below = degree - 1
        step = math.sqrt(_growth(dim + 2, below))
        following = step * (2 * below + dim) / (below + dim) * jumps * current
        if below:
            following -= step * math.sqrt(_growth(dim + 2, below - 1)) * below / (below + dim) * before
        before, current = current, following
    return shares


def _growth(dim: int, degree: int) -> float:
    """N(d, l + 1) / N(d, l)."""
    return (2 * degree + dim) * (degree + dim - 2) / ((2 * degree + dim - 2) * (degree + 1))
