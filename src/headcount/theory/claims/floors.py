"""Claims of ours about every model of a class: hard heads on an alphabet, bounded slopes, and one steep head."""

import functools
import itertools
import math
from collections.abc import Callable

import numpy as np

from ...answer.claim import Claim, Finding, as_claim, promise_verdict
from ...keys import named_generator
from ...tasks import Retrieval, alphabet_values, max_plus_min
from ..constructions.adversary import largest_error
from ..floors.alphabet import alphabet_floor, error_of_orders, set_probabilities, set_targets
from ..floors.bounded import BoundedClass, class_floor, promised_distance, slope_needed
from ..floors.nearest import digit_head, nearest_outputs, random_head
from ..floors.one_head import OneHead, one_head_answer, one_head_slope

SYMBOLS, DIMS, LENGTH = 5, 3, 8


def _best_by_search(values: np.ndarray, heads: int) -> float:
    """The least error over every tuple of orders, one after the other: the obvious way."""
    weights, targets = set_probabilities(SYMBOLS, LENGTH), set_targets(values)
    targets = targets - weights @ targets
    members = [[p for p in range(SYMBOLS) if chosen >> p & 1] for chosen in range(1, 2**SYMBOLS)]
    orders = list(itertools.permutations(range(SYMBOLS)))
    firsts = np.array([[min(members_of, key=order.index) for members_of in members] for order in orders])
    least = np.inf
    for chosen in itertools.combinations_with_replacement(range(len(orders)), heads):
        labels = functools.reduce(lambda sofar, i: sofar * SYMBOLS + firsts[i], chosen, np.zeros(len(members), int))
        weight, moment = (np.bincount(labels, part[1:]) for part in (weights, weights * targets))
        least = min(least, 1 - np.sum(moment[weight > 0] ** 2 / weight[weight > 0]) / (weights @ targets**2))
    return float(least)


def _best_with_averaged_ties(values: np.ndarray, heads: int) -> float:
    """The error of heads that score all symbols alike and average them, with the best readout of their outputs."""
    counts = np.array([each for each in itertools.product(range(LENGTH + 1), repeat=SYMBOLS) if sum(each) == LENGTH])
    weights = np.array([math.factorial(LENGTH) / math.prod(map(math.factorial, row)) for row in counts.tolist()])
    weights /= SYMBOLS**LENGTH
    targets = np.where(counts[:, None] > 0, values, -np.inf).max(axis=2).sum(axis=1)
    outputs = counts @ named_generator(0, "values of averaged ties").uniform(-1, 1, (SYMBOLS, heads)) / LENGTH
    _, labels = np.unique(outputs.round(12), axis=0, return_inverse=True)
    means = (np.bincount(labels, weights * targets) / np.bincount(labels, weights))[labels]
    return float(weights @ (targets - means) ** 2 / (weights @ (targets - weights @ targets) ** 2))


def _hard_heads(best: Callable[[np.ndarray, int], float]) -> Finding:
    """The enumerated floors against the least error that `best` comes to."""
    values = alphabet_values(DIMS, SYMBOLS)
    floors = [alphabet_floor(values, heads, LENGTH).nmse for heads in (1, 2, 3)]
    least = [best(values, heads) for heads in (1, 2)]
    agree = np.allclose(floors[:2], least, atol=1e-9)
    of_task = tuple(tuple(np.argsort(-row).tolist()) for row in values)
    sorted_by = error_of_orders(values, of_task, LENGTH)
    return (
        f"{SYMBOLS} symbols, D = {DIMS}, T = {LENGTH}: NMSE at least {floors[0]:.3f} with 1 head, {floors[1]:.3f} with "
        f"2, {floors[2]:.2g} with 3; one by one {least[0]:.3f} and {least[1]:.3f}; heads ordered by a_1, a_2, a_3 "
        f"{sorted_by:.2g}",
        promise_verdict(agree and floors[0] > floors[1] > 1e-3 and floors[2] == sorted_by == 0),
    )


@as_claim(
    "on an alphabet no hard heads fewer than D whose scores are all different, without positions, are below an "
    "enumerated error, whatever encoder, values and readout",
    source="ours (a)",
    program="theory.alphabet_floor, theory.error_of_orders",
    control=Claim(
        statement="equal scores, ties averaged", check=functools.partial(_hard_heads, _best_with_averaged_ties)
    ),
)
def hard_heads() -> Finding:
    return _hard_heads(_best_by_search)


SIZES = ((3, 20, 1), (4, 30, 1), (6, 6, 1), (4, 4, 2), (5, 10, 2))
"""Grid points, free tokens and numbers per head, small enough to compare all choices."""


def _nearest_pairs(*, denominators: bool) -> Finding:
    """The nearest pair of many heads against the promised distance; wrong where denominators are no moments."""
    generator, shares = named_generator(0, "heads against the pigeonhole"), []
    for points, free, head_dim in SIZES:
        setting = BoundedClass(heads=1, intrinsic_dim=2, length=free + 2, head_dim=head_dim)
        exponent = 1.0 if denominators else setting.moments / head_dim
        random = [random_head(points, head_dim, steepness, generator) for steepness in (0.0, 1.0, 6.0)]
        for head in (digit_head(points, head_dim, free), *random):
            distance, log_choices = nearest_outputs(*head, free)
            shares.append(distance / promised_distance(setting, free, exponent * log_choices))
    setting = BoundedClass(heads=1, intrinsic_dim=2, length=128, head_dim=2)
    floor, needed = class_floor(setting).value or 0.0, slope_needed(setting, 0.01)
    steep = one_head_slope(128, 0.01, outer_slope=2.0)
    return (
        f"{len(shares)} heads, all choices compared: the nearest two are at most {max(shares):.2f} of the promised "
        f"distance apart; one head, n = 2, D = 2, T = 128, slope 1e3: error at least {floor:.4f}; within 0.01 needs a "
        f"slope above 10^{needed:.1f}, and 10^{steep:.0f} is enough",
        promise_verdict(max(shares) <= 1 and floor > 0.01 and needed < steep),
    )


@as_claim(
    "with values at most V and a readout of slope at most K every model of s < D heads errs by (gap - K distance) / 2",
    source="Theorem 2(2), constants",
    program="theory.class_floor, theory.slope_needed",
    repair="constants are ours; the proof needs no Hessian and no slope of f_i, only that the sets {f_i < z_i* + r} "
    "are disjoint; without positions choices are multisets, and the slope needed then grows with T",
    control=Claim(
        statement="denominators left out of the moments", check=functools.partial(_nearest_pairs, denominators=False)
    ),
)
def bounded_heads() -> Finding:
    return _nearest_pairs(denominators=True)


def _steep_head(make: Callable[[Retrieval], OneHead]) -> Finding:
    task = max_plus_min(length=128)
    head, eps = make(task), 0.007
    error, _ = largest_error(head, task, starts=32, steps=100)
    return (
        f"max + min, T = 128, one head of {head.head_dim} numbers: the largest error found is {error:.4f}, slope "
        f"10^{head.decades:.0f}",
        promise_verdict(error <= eps + 1e-9),
    )


def _gentle(task: Retrieval) -> OneHead:
    """The same head with a readout of slope 10^3."""
    return one_head_answer(task, 0.583)


@as_claim(
    "one head of D numbers answers every D-retrieval with f_i in [0, 1] and F0 of slope L0 within L0 log(T) / (2 b), "
    "with a readout of slope L0 (T / |S_i|) exp(b) / b",
    source="ours (c)",
    program="theory.one_head_answer",
    control=Claim(statement="a readout of slope 10^3", check=functools.partial(_steep_head, _gentle)),
)
def steep_head() -> Finding:
    return _steep_head(lambda task: one_head_answer(task, 0.007))
