"""Checks of our claims about every model of a class: hard heads on an alphabet, bounded slopes, one head."""

import functools
import itertools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int
from scipy.spatial import KDTree

from ...answer.claim import Finding, promise_verdict
from ...keys import named_generator
from ...tasks import Retrieval, alphabet_values, max_plus_min
from ...tasks.presets import ScalarEnds
from ..constructions.adversary import largest_error
from ..floors.alphabet import alphabet_floor, error_of_orders, set_probabilities, set_targets
from ..floors.bounded import BoundedClass, class_floor, one_token_distance, promised_distance, slope_needed
from ..floors.one_head import one_head_answer, one_head_slope
from ..floors.thermometer import ThermometerHead, construct_thermometer

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


def best_with_averaged_ties(values: np.ndarray, heads: int) -> float:
    """The error of heads that score all symbols alike and average them, with the best readout of their outputs."""
    counts = np.array([each for each in itertools.product(range(LENGTH + 1), repeat=SYMBOLS) if sum(each) == LENGTH])
    weights = np.array([math.factorial(LENGTH) / math.prod(map(math.factorial, row)) for row in counts.tolist()])
    weights /= SYMBOLS**LENGTH
    targets = np.where(counts[:, None] > 0, values, -np.inf).max(axis=2).sum(axis=1)
    outputs = counts @ named_generator(0, "values of averaged ties").uniform(-1, 1, (SYMBOLS, heads)) / LENGTH
    _, labels = np.unique(outputs.round(12), axis=0, return_inverse=True)
    means = (np.bincount(labels, weights * targets) / np.bincount(labels, weights))[labels]
    return float(weights @ (targets - means) ** 2 / (weights @ (targets - weights @ targets) ** 2))


def hard_heads(best: Callable[[np.ndarray, int], float] = _best_by_search) -> Finding:
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


def random_head(
    points: int, head_dim: int, steepness: float, generator: np.random.Generator
) -> tuple[Float[np.ndarray, " points"], Float[np.ndarray, "points head_dim"]]:
    """Weights in (0, 1], the largest of which is 1, and values in [-1, 1], of every grid point."""
    weights = np.exp(-steepness * generator.random(points))
    return weights / weights.max(), generator.uniform(-1, 1, (points, head_dim))


def digit_head(
    points: int, head_dim: int, free: int
) -> tuple[Float[np.ndarray, " points"], Float[np.ndarray, "points head_dim"]]:
    """A head that keeps multisets apart: its moments hold the counts of grid points as digits of base free + 1."""
    digit, moment = np.divmod(np.arange(points), head_dim + 1)
    values = np.zeros((points, head_dim))
    values[moment > 0, moment[moment > 0] - 1] = 1.0
    return (free + 1.0) ** -digit, values


def nearest_outputs(
    weights: Float[np.ndarray, " points"], values: Float[np.ndarray, "points head_dim"], free: int
) -> tuple[float, float]:
    """The distance of the nearest outputs of one head for two multisets of `free` grid points; log of their number.

    The head also sees its fixed token, the grid point of weight 1. What two multisets share is
    replaced by the last point, as in the proof. The pair is the one with the nearest moments.

    `weights` of grid points are at most 1, the largest of them 1, and `values` at most 1 in magnitude. All multisets
    are compared: sizes must be small.
    """
    points, head_dim = values.shape
    count = math.comb(free + points - 1, free)
    chosen = np.array(list(itertools.combinations_with_replacement(range(points), free)))
    counts = np.stack([np.sum(chosen == point, axis=1) for point in range(points)], axis=1)
    moments = counts @ np.concatenate([weights[:, None], weights[:, None] * values], axis=1)
    scaled = moments / np.concatenate([[1.0], np.full(head_dim, 2.0)])  # sides of the box are t and 2 V t
    gaps, neighbours = (np.asarray(part) for part in KDTree(scaled).query(scaled, k=2, p=np.inf))
    one = int(np.argmin(gaps[:, 1]))
    # Of two with equal moments either may come first.
    other = next(int(neighbour) for neighbour in neighbours[one] if neighbour != one)
    pair = counts[[one, other]]
    common = pair.min(axis=0)
    pair = pair - common
    pair[:, -1] += common.sum()
    fixed = int(np.argmax(weights))
    outputs = [_output(weights, values, counted, fixed) for counted in pair]
    return float(np.linalg.norm(outputs[0] - outputs[1])), math.log(count)


def _output(weights: np.ndarray, values: np.ndarray, counts: np.ndarray, fixed: int) -> np.ndarray:
    weight = counts * weights
    weight[fixed] += weights[fixed]
    return weight @ values / weight.sum()


SIZES = ((3, 20, 1), (4, 30, 1), (6, 6, 1), (4, 4, 2), (5, 10, 2))
"""Grid points, free tokens and numbers per head, small enough to compare all choices."""


def bounded_heads(*, denominators: bool = True) -> Finding:
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
        promise_verdict(bool(max(shares) <= 1 and floor > 0.01 and needed < steep)),
    )


def one_token_pair(
    setting: BoundedClass, weights: Float[np.ndarray, "s T candidates"], *, heaviest: bool = True
) -> tuple[Int[np.ndarray, " T"], Int[np.ndarray, " T"], int]:
    """Return two sequences of candidates that differ in one token, as in the proof, and the component that tells them.

    Candidate k < D is the minimiser of component k, candidate D + k a point where it is higher by r and that lies in no
    basin. Without `heaviest` the places of the heads' heaviest tokens hold fillers, and the proof fails.
    """
    dims, places, per_head = setting.intrinsic_dim, np.arange(setting.length), setting.heavier_places
    best, top = weights.argmax(axis=2), weights.max(axis=2)
    component = int(np.argmin([np.sum(best == k) for k in range(dims)]))
    taken: list[np.ndarray] = []
    for head, weight in zip(best, top, strict=True):
        order = np.argsort(-weight, kind="stable")
        good = np.flatnonzero(head[order] != component)[: setting.heads * per_head]
        taken.append(order[: good[-1] + 1] if len(good) else order[:0])
    (other, *_) = np.setdiff1d(places, np.concatenate(taken))
    sequence, free = np.full(setting.length, dims + component), places != other
    for head, prefix in zip(best, taken, strict=True):
        own = prefix[free[prefix] & (head[prefix] != component)][:per_head]
        sequence[own] = head[own] if heaviest else sequence[own]
        free[own] = False
    sequence[np.flatnonzero(free)[: dims - 1]] = [k for k in range(dims) if k != component]
    lower = sequence.copy()
    lower[other] = component
    return lower, sequence, component


def random_layer(
    setting: BoundedClass, generator: np.random.Generator
) -> tuple[Float[np.ndarray, "s T candidates"], Float[np.ndarray, "s T candidates n"]]:
    """Weights and values of all candidates, at every place where models see places."""
    seen, candidates = setting.length if setting.positions else 1, 2 * setting.intrinsic_dim
    shape = (setting.heads, seen, candidates)
    steepness = generator.choice([0.1, 1.0, 10.0, 60.0])
    weights = np.exp(steepness * generator.standard_normal(shape))
    weights *= np.exp(generator.choice([0.0, 30.0]) * generator.standard_normal((*shape[:2], 1)))
    values = generator.choice([-1.0, 1.0], (*shape, setting.head_dim))
    every_place = (setting.heads, setting.length, candidates)
    return np.broadcast_to(weights, every_place), np.broadcast_to(values, (*every_place, setting.head_dim))


def layer_output(
    weights: Float[np.ndarray, "s T candidates"],
    values: Float[np.ndarray, "s T candidates n"],
    sequence: Int[np.ndarray, " T"],
) -> Float[np.ndarray, "s n"]:
    """Return the outputs of all heads for one sequence of candidates."""
    places = np.arange(len(sequence))
    shares = weights[:, places, sequence]
    shares = shares / shares.sum(axis=1, keepdims=True)
    return np.einsum("st,stn->sn", shares, values[:, places, sequence])


def one_token(*, heaviest: bool = True, models: int = 5000) -> Finding:
    """The two sequences of the proof against random layers: how far apart outputs are, of what is promised."""
    generator, largest, told = named_generator(0, "layers against one token"), 0.0, True
    for _ in range(models):
        dims = int(generator.integers(2, 6))
        setting = BoundedClass(
            heads=int(generator.integers(1, dims)),
            intrinsic_dim=dims,
            length=int(generator.integers(2 * dims, 80)),
            head_dim=int(generator.integers(1, 6)),
            positions=bool(generator.random() < 0.5),
        )
        weights, values = random_layer(setting, generator)
        lower, upper, component = one_token_pair(setting, weights, heaviest=heaviest)
        told &= np.sum(lower == component) == 1 and component not in upper
        told &= {*range(dims)} <= {*lower.tolist()} and dims + component in upper
        distance = np.linalg.norm(layer_output(weights, values, lower) - layer_output(weights, values, upper))
        largest = max(largest, float(distance) / one_token_distance(setting))
    wide = BoundedClass(heads=1, intrinsic_dim=2, length=2**14, head_dim=64)
    return (
        f"{models:,} random layers of 1 to 4 heads, half with positions: outputs at most {largest:.3f} of the promised "
        f"distance apart, targets by the whole rise; one head, n = 64, D = 2, T = 16,384: within 0.01 needs a slope "
        f"above 10^{slope_needed(wide, 0.01):.2f}",
        promise_verdict(bool(told and largest <= 1)),
    )


WEIGHTS = (3.0, -2.0)


def weighted_ends(length: int) -> Retrieval:
    """3 times one minus the maximum, minus twice the minimum: two components that must not be mistaken."""
    return Retrieval(
        ScalarEnds(), lambda z: WEIGHTS[0] * z[0] + WEIGHTS[1] * z[1], length=length, dim=1, distribution="cube"
    )


def hostile_numbers(length: int, count: int, generator: np.random.Generator) -> Float[np.ndarray, "count length one"]:
    """Sequences of scalars: independent, near one point, of three values, and one alone among equal ones."""
    numbers = generator.random((count, length))
    near = 10.0 ** -generator.uniform(0, 6, (count, 1)) * generator.standard_normal((count, length))
    numbers[1::4] = np.clip(numbers[1::4, :1] + near[1::4], 0, 1)
    numbers[2::4] = np.take_along_axis(
        numbers[2::4], generator.integers(min(3, length), size=numbers[2::4].shape), axis=1
    )
    numbers[3::4, 1:] = numbers[3::4, 1:2]
    return numbers[..., None]


def thermometer_head(answered_within: float = 0.05) -> Finding:
    """Thermometer heads of three widths that are made for an error, 0.05 or another, against an error of 0.05."""
    task, eps, said, kept = weighted_ends(2000), 0.05, [], True
    for head_dim in (4, 20, None):
        head = construct_thermometer(task, answered_within, head_dim=head_dim, outer_slope=sum(map(abs, WEIGHTS)))
        found = _largest_of(head, task)
        # The class of the head: r = 1/2, and the lesser of the two weights is 2.
        width = BoundedClass(heads=1, intrinsic_dim=2, length=task.length, head_dim=head.head_dim, rise=1.0)
        needed = slope_needed(width, eps)
        kept &= found <= eps + 1e-9 and needed <= head.decades
        said.append(f"n = {head.head_dim}: {found:.4f} with a slope of 10^{head.decades:.1f}, 10^{needed:.1f} needed")
    return (
        f"3 z_1 - 2 z_2 of T = {task.length:,} scalars, eps = {eps:g}, largest error found: {'; '.join(said)}",
        promise_verdict(kept),
    )


def _largest_of(head: ThermometerHead, task: Retrieval) -> float:
    """The largest error on hostile sequences, and on those that an ascent finds."""
    numbers = hostile_numbers(task.length, 400, named_generator(0, "sequences against thermometers"))
    with jax.enable_x64(True):
        errors = np.asarray(jax.jit(jax.vmap(lambda x: jnp.abs(head(x) - task.target(x))[0]))(jnp.asarray(numbers)))
    return max(float(errors.max()), largest_error(head, task, starts=8, steps=30)[0])


def steep_head(answered_within: float = 0.007) -> Finding:
    """A head that is made for an error, 0.007 or another, against an error of 0.007."""
    task, eps = max_plus_min(length=128), 0.007
    head = one_head_answer(task, answered_within)
    error, _ = largest_error(head, task, starts=32, steps=100)
    return (
        f"max + min, T = 128, one head of {head.head_dim} numbers: the largest error found is {error:.4f}, slope "
        f"10^{head.decades:.0f}",
        promise_verdict(error <= eps + 1e-9),
    )
