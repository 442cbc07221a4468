"""Floors for biased nearest neighbours (Theorem 3 of the second paper), with values.

The target of `tasks.BiasedNearestNeighbour` is one of two orthogonal points, chosen by a pattern g(u . y) of +1 and -1
that changes its sign at K biases, with u = (x_1 - x_2) / sqrt(2). g is odd and u uniform on the sphere, so all that
`harmonics` says of sign(u . y) holds with lambda_l(g) in place of lambda_l: the target's part odd in y is an operator
with the singular value lambda_l(g) / sqrt(2) for each harmonic of odd degree l, and H heads of rank r hold at most
H C(l + r - 1, r - 1) of the N(d, l) of degree l. The least error of any such heads is

    1/2 sum over odd l of lambda_l(g)^2 max(0, N(d, l) - H C(l + r - 1, r - 1))

More biases move g to higher degrees, of which low rank holds less: the floor rises, while K biased heads of full rank
are exact.

Source: Amsel et al. (arXiv 2407.16153), whose Theorem 3 gives an order of growth; the pattern (`tasks.nearest`) is our
reading of it, and the values are ours.
"""

import functools
import math

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln

from ...tasks.nearest import bias_quantiles, require_terms
from ..doors import require_rank
from .harmonics import FLOOR_DEGREES, captured_by, remaining


def zonal_floor(heads: int | float, rank: int, dim: int, *, terms: int = 3) -> float:
    """A lower bound on the expected squared error of any H heads of rank r on `terms` biased nearest neighbours.

    Arguments:
        heads: H; what each computes from its r numbers of the query, and from the points, is free.
        rank: r, the numbers of the query that a head sees.
        dim: d of the points.
        terms: K, an odd number of biases, as in the task `biased-nearest-neighbour`; 1 is `rank_floor`.

    Raises InputError for numbers out of range.

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
