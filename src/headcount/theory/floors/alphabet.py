"""The least error of any hard heads on an alphabet of q symbols, by enumeration (docs/floors.md).

A hard head without positions, its scores all different, puts the symbols in a total order, and all it tells of a
sequence is which symbol present comes first. The floor is the least error over all s-tuples of orders, with the best
readout. The first s - 1 orders are enumerated, as a multiset since heads have no order. The best last order is exact by
dynamic programming over the set C of symbols it has not ranked yet, since what it tells apart next depends on C alone:

    best(C) = max over p in C of gain(sets A with p in A, A within C) + best(C without p)
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.special import binom, gamma

from ..._limits import require_size, shortened
from ...errors import InputError, require, require_count
from ..bounds import Bound, Condition
from ..doors import require_counts

MAX_WORK = 6e9
"""Additions that an enumeration may take: about a minute of one core."""
STEP = 1500
"""Additions in whose time a step of the dynamic program for one tuple is done."""
MAX_SYMBOLS = 20
"""From here on one head alone is more than `MAX_WORK`, and the orders need not be counted."""
MAX_LENGTH = 100_000
"""Tokens: probabilities are exact fractions of symbols^length."""
BATCH = 4e6
"""Numbers held at once."""
ROUNDING = 1e-12
"""Errors below this share of the variance are rounding, and given as 0."""

LARGEST = 1e300

Order = tuple[int, ...]
"""Symbols, the one with the highest score first."""


@dataclass(frozen=True, kw_only=True)
class AlphabetFloor:
    """`nmse` is the least error of any `heads` hard heads as a share of the target's variance, `orders` attain it."""

    heads: int
    nmse: float
    orders: tuple[Order, ...]


def set_probabilities(symbols: int, length: int) -> Float[np.ndarray, " sets"]:
    """Return the probability that `length` uniform draws contain just a set; bit p of its index is symbol p."""
    # Exact whole numbers: the alternating sum of inclusion and exclusion cancels.
    onto = [
        sum((-1) ** left * math.comb(size, left) * (size - left) ** length for left in range(size + 1))
        for size in range(symbols + 1)
    ]
    shares = np.array([count / symbols**length for count in onto])
    return np.where(np.arange(2**symbols) > 0, shares[_members(symbols).sum(axis=1)], 0.0)


def set_targets(values: Float[np.ndarray, "D symbols"]) -> Float[np.ndarray, " sets"]:
    """Return the sum of maxima of a sequence that contains this set of symbols; 0 for the empty set."""
    members = _members(values.shape[1])
    largest = np.where(members[:, None, :], values, -np.inf).max(axis=2)
    return np.where(members.any(axis=1), np.where(np.isfinite(largest), largest, 0.0).sum(axis=1), 0.0)


def alphabet_floor(values: Float[np.ndarray, "D symbols"], heads: int, length: int) -> AlphabetFloor:
    """Return the least NMSE of any hard heads on the sum of maxima of `values`, for sequences of uniform symbols.

    `values` are a_i(symbol), one row per maximum; a head is a total order of the symbols. Raises `InputError` where a
    size is out of range, or there are too many orders to enumerate.

    Example:
        >>> import numpy as np
        >>> from headcount.theory import alphabet_floor
        >>> ends = np.array([[0.0, 1.0, 2.0], [0.0, -1.0, -2.0]])  # max - min of three numbers
        >>> [round(alphabet_floor(ends, heads, length=4).nmse, 3) for heads in (1, 2)]
        [0.583, 0.0]
    """
    values = np.asarray(values, float)
    require(values.ndim == 2 and bool(np.all(np.isfinite(values))), "values must be finite, one row per maximum.")
    symbols = values.shape[1]
    require_counts(heads=heads, length=length)
    require_size("length", length, MAX_LENGTH)
    check_work(symbols, heads if heads < len(values) else 1)
    weights, targets = set_probabilities(symbols, length), set_targets(values)
    centred = targets - weights @ targets
    variance = float(weights @ centred**2)
    require(variance > 0, "the target is the same for every sequence; a constant needs no heads at all.")
    if heads >= len(values):
        # A head per maximum, in the order of its values, reads it.
        of_values = [tuple(np.argsort(-row, kind="stable").tolist()) for row in values]
        orders = tuple(of_values[min(head, len(values) - 1)] for head in range(heads))
        return AlphabetFloor(heads=heads, nmse=0.0, orders=orders)
    # Of one head nothing is enumerated: the best last order is the answer.
    orders = np.array(list(itertools.permutations(range(symbols)) if heads > 1 else [tuple(range(symbols))]))
    firsts = _first_symbols(orders)
    best, chosen = -1.0, ()
    for batch in _batches(len(orders), heads - 1, symbols):
        gains = _gains(_labels(firsts, batch, symbols), weights, centred, symbols)
        explained = _best_explained(gains)
        place = int(np.argmax(explained[-1]))
        if explained[-1, place] > best:
            best = float(explained[-1, place])
            enumerated = tuple(tuple(orders[i].tolist()) for i in batch[place])
            chosen = (*enumerated, _traced(gains[:, :, place], explained[:, place]))
        if _nmse(best, variance) == 0:
            break  # nothing is less than no error
    return AlphabetFloor(heads=heads, nmse=_nmse(best, variance), orders=chosen)


def hard_bound(floor: AlphabetFloor, intrinsic_dim: int, length: int) -> Bound:
    """Return a floor as a bound with its conditions."""
    symbols = len(floor.orders[0])
    heads = "1 head" if floor.heads == 1 else f"{floor.heads} heads"
    return Bound(
        name=f"hard heads on an alphabet: least NMSE of {heads}",
        value=floor.nmse,
        claim=f"of any {heads} on a sum of {intrinsic_dim} maxima of drawn values over {symbols} symbols, {length} "
        f"tokens; attained by the orders {', '.join('>'.join(map(str, order)) for order in floor.orders)}",
        source="ours: every tuple of orders, with the best readout",
        conditions=(
            Condition("hard heads, scores of symbols all different (averaged ties can be below)", None),
            Condition("one layer, one query, no positions in scores or values", None),
            Condition("independent uniform symbols", None),
        ),
    )


def score_gap_bound(length: int, outputs: int, values: float, slope: float, eps: float) -> Bound:
    """Return the differences of scores from which soft heads answer within `eps` of hard ones of the same order.

    The first symbol has all but a share (T - 1) exp(-gap) of a head's weight, so each of the `outputs` = n s numbers
    moves by at most 2 V times that, and the answer by K times as much.
    """
    return Bound(
        name="soft heads as hard ones: score gap",
        value=max(0.0, math.log(max(1, length - 1) * 2 * values * slope * math.sqrt(outputs) / eps)),
        claim="from this difference of the scores, times beta, of any two symbols on, soft heads answer within eps = "
        f"{eps:g} of hard ones; with smaller ones the floors need not hold",
        source="ours: tail of the softmax",
        conditions=(Condition(f"values at most {values:g}, readout slope at most {slope:g}", None),),
    )


def error_of_orders(values: Float[np.ndarray, "D symbols"], orders: tuple[Order, ...], length: int) -> float:
    """Return the least NMSE of hard heads with these orders, by the best readout."""
    values = np.asarray(values, float)
    symbols = values.shape[1]
    for order in orders:
        require(
            sorted(order) == list(range(symbols)),
            what="orders",
            given=tuple(order),
            needed=f"an order of the {symbols} symbols",
        )
    weights, targets = set_probabilities(symbols, length), set_targets(values)
    centred = targets - weights @ targets
    labels = _labels(_first_symbols(np.array(orders)), np.arange(len(orders))[None], symbols)[0]
    weight, moment = (np.bincount(labels, part) for part in (weights, weights * centred))
    explained = np.sum(moment**2 / np.where(weight > 0, weight, 1.0))
    return _nmse(float(explained), float(weights @ centred**2))


def _nmse(explained: float, variance: float) -> float:
    nmse = max(0.0, 1 - explained / variance)
    return 0.0 if nmse < ROUNDING else nmse


def work(symbols: int, heads: int) -> float:
    """Return the additions of an enumeration, about; infinitely many where they are not worth counting."""
    if symbols >= MAX_SYMBOLS:
        return math.inf
    groups = min(float(symbols) ** (heads - 1), 2.0**symbols)
    return _tuples(symbols, heads) * groups * symbols**2 * 2.0**symbols + STEP * symbols * 2.0**symbols


def check_work(symbols: int, heads: int) -> None:
    """Raises `InputError` where the orders are too many to enumerate, with the largest alphabet that is not."""
    require_count("alphabet", symbols, least=2)
    if work(symbols, heads) <= MAX_WORK:
        return
    fewer = range(2, min(symbols, MAX_SYMBOLS))
    largest = max((q for q in fewer if work(q, heads) <= MAX_WORK), default=0)
    right = f"at most {largest} symbols for {heads} heads" if largest else "fewer heads"
    tuples = _tuples(symbols, heads)
    raise InputError(
        f"an alphabet of {shortened(symbols)} symbols and {shortened(heads)} heads means "
        f"{f'{tuples:.1e}' if tuples < LARGEST else 'more than 1e300'} tuples of orders, too many to enumerate; "
        f"use {right}.",
        what="alphabet",
        given=shortened(symbols),
        needed=right,
    )


def _tuples(symbols: int, heads: int) -> float:
    """Return the multisets of all orders but the last head's, as a float; from 1e300 on they are too many to tell."""
    orders = min(float(gamma(symbols + 1.0)), LARGEST)
    return float(binom(orders + heads - 2, heads - 1))


def _members(symbols: int) -> np.ndarray:
    return (np.arange(2**symbols)[:, None] >> np.arange(symbols) & 1).astype(bool)


def _first_symbols(orders: Int[np.ndarray, "orders symbols"]) -> Int[np.ndarray, "orders sets"]:
    """Return the symbol of every set that comes first; 0 for the empty set, which has no weight."""
    ranks = np.argsort(orders, axis=1)
    members = _members(orders.shape[1])
    chunks = np.array_split(ranks, max(1, ranks.size * len(members) // int(BATCH)))
    return np.concatenate([np.where(members, chunk[:, None], len(members)).argmin(axis=2) for chunk in chunks])


def _batches(orders: int, heads: int, symbols: int) -> Iterator[Int[np.ndarray, "tuples heads"]]:
    """Return all multisets of `heads` orders, as many at a time as fit in memory."""
    size = max(1, int(BATCH / (2**symbols * min(symbols**heads, 2**symbols))))
    every = itertools.combinations_with_replacement(range(orders), heads)
    while batch := list(itertools.islice(every, size)):
        yield np.array(batch, int).reshape(len(batch), heads)


def _labels(
    firsts: Int[np.ndarray, "orders sets"], batch: Int[np.ndarray, "tuples heads"], symbols: int
) -> Int[np.ndarray, "tuples sets"]:
    """Return a number for what the heads of a tuple tell of a set."""
    labels = np.zeros((len(batch), firsts.shape[1]), int)
    for column in batch.T:
        labels = labels * symbols + firsts[column]
    return labels


def _gains(
    labels: Int[np.ndarray, "tuples sets"], weights: np.ndarray, centred: np.ndarray, symbols: int
) -> Float[np.ndarray, "symbols sets tuples"]:
    """For each symbol p and set C, what is explained of the sets A with p in A, A within C."""
    tuples, sets = labels.shape
    rows, columns = np.indices(labels.shape)
    # Sets along the first axis, so that the sums over subsets add whole blocks of memory.
    spread = np.zeros((sets, 2, int(labels.max()) + 1, tuples))
    spread[columns, 0, labels, rows], spread[columns, 1, labels, rows] = weights, weights * centred
    members, gains = _members(symbols), np.zeros((symbols, sets, tuples))
    for p in range(symbols):
        # Sums without a difference: the weights of small sets would drown in rounding.
        sums = np.where(members[:, p, None, None, None], spread, 0.0)
        for bit in range(symbols):
            if bit != p:
                halves = sums.reshape(-1, 2, 2**bit, *spread.shape[1:])
                halves[:, 1] += halves[:, 0]
        weight, moment = sums[:, 0], sums[:, 1]
        gains[p] = np.sum(moment**2 / np.where(weight > 0, weight, 1.0), axis=1)
    return gains


def _best_explained(gains: Float[np.ndarray, "symbols sets tuples"]) -> Float[np.ndarray, "sets tuples"]:
    """best(C) for every set C of symbols not ranked yet; the last entry is that of a whole order."""
    symbols, sets, tuples = gains.shape
    best = np.zeros((sets, tuples))
    for remaining in range(1, sets):
        choices = [p for p in range(symbols) if remaining >> p & 1]
        best[remaining] = np.max([gains[p, remaining] + best[remaining ^ (1 << p)] for p in choices], axis=0)
    return best


def _traced(gains: Float[np.ndarray, "symbols sets"], best: Float[np.ndarray, " sets"]) -> Order:
    """Return the best last order itself, of one tuple."""
    order, remaining = [], len(best) - 1
    while remaining:
        choices = [p for p in range(len(gains)) if remaining >> p & 1]
        order.append(max(choices, key=lambda p: gains[p, remaining] + best[remaining ^ (1 << p)]))
        remaining ^= 1 << order[-1]
    return tuple(order)
