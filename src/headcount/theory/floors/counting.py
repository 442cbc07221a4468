"""The other upper bound: one head that counts cells, with a slope of about (1 / eps)^T, less for short sequences.

cells       f_i is rounded to the middle of one of Q = L0 / (2 eps) equal cells of its interval. The rounded minimum
            is the minimum of rounded values, so the answer is within L0 / (2 Q) <= eps.
weights     Bose and Chowla (1962): for a prime p there are p whole numbers a_c below p^T such that the sums of all
            multisets of T of them differ. Of a generator x of the field of p^T elements take x^(a_c) = x + c. Equal
            sums give equal products of the x + c, two monic polynomials in x of degree T; x is no root of one of
            lower degree, so the polynomials and with them the multisets are the same.
head        all scores are equal; value i of a token in S_i is a_c / p^T for the cell c of f_i, else 0. The mean
            tells the cells of all tokens of S_i, and with them the rounded minimum.
slope       two sums differ by 1 or more, two means by 1 / (T p^T), two minima by at most the span of f_i. A
            function of one number on finitely many points extends with its slope, and F0 multiplies it by L0:
            K <= L0 span T p^T, with p the least prime from Q on.
"""

import itertools
import math

from ..doors import require_below_one, require_counts, require_positive

MAX_EXACT = 1e9
"""Cells above are not searched for the least prime: there is one below twice their number."""


def counting_slope(length: int, eps: float, *, outer_slope: float, span: float = 1.0) -> float:
    """log10 of the slope with which one head of D numbers that counts cells answers within `eps`.

    Args:
        length: T.
        eps: The largest error allowed.
        outer_slope: L0, sup |grad F0|_1.
        span: Length of the interval that f_i maps into.

    Example:
        >>> from headcount.theory import counting_slope, one_head_slope
        >>> [round(slope(4, 0.01, outer_slope=2.0)) for slope in (counting_slope, one_head_slope)]
        [9, 58]
    """
    require_counts(length=length)
    require_below_one(eps=eps)
    require_positive(outer_slope=outer_slope, span=span)
    cells = outer_slope * span / (2 * eps)
    prime = least_prime(max(2, math.ceil(cells))) if cells <= MAX_EXACT else 2 * cells
    return math.log10(outer_slope * span * length) + length * math.log10(prime)


def counting_error(length: int, decades: float, *, outer_slope: float, span: float = 1.0) -> float:
    """The error that one head that counts cells promises with a readout of slope 10^decades; infinite for none."""
    largest = 10 ** min(math.log10(MAX_EXACT), (decades - math.log10(outer_slope * span * length)) / length)
    if largest < 2:
        return math.inf
    # Rounding must not give a prime that the slope does not allow.
    numbers = range(math.floor(largest * (1 - 1e-12)), 1, -1)
    prime = next((number for number in numbers if _is_prime(number)), None)
    return math.inf if prime is None else outer_slope * span / (2 * prime)


def sum_weights(prime: int, length: int) -> tuple[int, ...]:
    """`prime` whole numbers below prime^length whose multisets of `length` have different sums; for small sizes.

    Example:
        >>> from headcount.theory.floors.counting import sum_weights
        >>> sum_weights(3, 2)
        (1, 2, 7)
    """
    if length == 1:
        return tuple(range(prime))
    for lowest in itertools.product(range(prime), repeat=length):
        # x^length = sum of lowest[j] x^j; x generates the field where it takes all other elements first.
        powers, element = {}, (1, *[0] * (length - 1))
        for exponent in range(prime**length - 1):
            if element in powers:
                break
            powers[element] = exponent
            top = element[-1]
            shifted = (0, *element[:-1])
            element = tuple((low + top * each) % prime for low, each in zip(shifted, lowest, strict=True))
        if len(powers) == prime**length - 1:
            return tuple(powers[(c, 1, *[0] * (length - 2))] for c in range(prime))
    raise AssertionError("every finite field has a generator")


def least_prime(least: int) -> int:
    """The least prime from `least` on."""
    return next(number for number in itertools.count(least) if _is_prime(number))


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, math.isqrt(number) + 1))
