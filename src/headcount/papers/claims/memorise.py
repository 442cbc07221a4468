"""Judge memory: how many examples with random labels an attention layer of H heads memorises.

`table` is of the share of training labels that are wrong at the end, over heads, rank (the key width d_h), context,
examples, length (n + 1: the context and the query) and seed. A seed memorises the largest number of examples of which
it has at least 95 % of the labels right, interpolated to the next number tried. The capacity of a shape is the median
of its seeds; the interval holds that in 90 % of resamples. More may be memorised by weights that training misses.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float

from ...answer import ErrorTable
from ...answer.bootstrap import MIN_SEEDS, bootstrap
from ..fits import Estimate
from .judge import (
    Case,
    Cases,
    at_most,
    claims_that,
    estimate_words,
    exactly,
    interval_of_resamples,
    widened,
    within,
)

CONTEXTS = ("shared", "own")
"""One context for all examples, as in the paper's figure, or another one for each."""
WRONG = 0.05
"""Share of wrong labels up to which examples count as memorised."""
LINEAR = 0.15
"""How far from 1 the exponent of the heads may be where growth is called linear."""
SAME = 1.1
"""Times the capacity that is no gain: two equal shapes differ by a few per cent."""


@dataclass(frozen=True)
class Capacity:
    """How many examples models of one shape memorise; `resampled` are its values over resamples of the seeds.

    `missing` says why there is no number: all of the numbers tried were memorised, or none. `most` is the largest
    number tried, `exact` the largest of which one seed has every label right, 0 where there is none.
    """

    context: str
    heads: int
    rank: int
    length: int
    examples: float
    resampled: Float[np.ndarray, " resamples"] = field(repr=False, compare=False)
    missing: str
    most: int
    exact: int

    @property
    def tokens(self) -> int:
        """n, the tokens of the context."""
        return self.length - 1

    @property
    def proved(self) -> int:
        """H (r - 1) + 1 with r = min(n, d_h): examples that some weights memorise, by Theorem 1 of Mahdavi et al."""
        return self.heads * (min(self.tokens, self.rank) - 1) + 1

    @property
    def interval(self) -> Estimate:
        return interval_of_resamples(self.examples, self.resampled)


def contexts_of(table: ErrorTable) -> list[str]:
    return [context for context in CONTEXTS if context in table.values("context")]


def capacities(table: ErrorTable) -> list[Capacity]:
    """The capacity of every shape with enough seeds that have two numbers of examples each, by its sizes."""
    sizes = ("length", "rank", "heads", "examples")
    kept = {axis: sorted(table.values(axis)) for axis in sizes} | {"context": contexts_of(table)}
    part = table.select(**kept).ordered("context", *sizes, "seed")
    counts, found = np.asarray(part.values("examples")), []
    for place in np.ndindex(part.errors.shape[:4]):
        context, length, rank, heads = (values[i] for values, i in zip(part.axes.values(), place, strict=False))
        errors = part.errors[place]
        finished = np.isfinite(errors)
        tried = [(counts[kept], line[kept]) for line, kept in zip(errors.T, finished.T, strict=True) if kept.sum() > 1]
        if len(tried) < MIN_SEEDS:
            continue
        by_seed = np.array([float(memorised_count(*line)) for line in tried])
        # Shapes draw from other streams: the same resample for all would make their ratios look too sure.
        resampled = bootstrap(by_seed, seed=heads + 1000 * rank + 1_000_000 * length).median
        most, exact = counts[finished.any(axis=1)].max(), counts[np.any(errors == 0, axis=1)].max(initial=0)
        sizes, examples = (context, heads, rank, length), float(np.median(by_seed))
        found.append(Capacity(*sizes, examples, resampled, _out_of_range(tried), int(most), int(exact)))
    return found


def _out_of_range(tried: list[tuple[np.ndarray, np.ndarray]]) -> str:
    """Why half of the seeds or more have no number; "" where fewer do."""
    if np.mean([np.all(line > WRONG) for _, line in tried]) >= 0.5:
        return f"fewer than {min(seen[0] for seen, _ in tried)}"
    every = np.mean([line[-1] <= WRONG for _, line in tried]) >= 0.5
    return f"at least {max(seen[-1] for seen, _ in tried)}" if every else ""


def memorised_count(counts: np.ndarray, errors: Float[np.ndarray, "*lines counts"]) -> Float[np.ndarray, "*lines"]:
    """The number of examples up to which errors stay at `WRONG`: the last count that does, and part of the way on.

    The way to the next count is interpolated along the logarithm of the count. Where no count does it is the first,
    where the last does it is the last.
    """
    fitted = errors <= WRONG
    last = np.where(fitted.any(axis=-1), len(counts) - 1 - np.argmax(fitted[..., ::-1], axis=-1), 0)
    after = np.minimum(last + 1, len(counts) - 1)
    here, there = (np.take_along_axis(errors, place[..., None], axis=-1)[..., 0] for place in (last, after))
    share = np.where(there > here, (WRONG - here) / np.where(there > here, there - here, 1.0), 0.0)
    logs = np.log(counts.astype(float))
    return np.asarray(np.exp(logs[last] + np.clip(share, 0.0, 1.0) * (logs[after] - logs[last])))


def capacity_lines(found: Iterable[Capacity], axis: str) -> dict[tuple[Any, ...], list[Capacity]]:
    """Capacities along an axis with two values or more, by the others of context, heads, rank and length."""
    others = [name for name in ("context", "heads", "rank", "length") if name != axis]
    grouped: dict[tuple[Any, ...], list[Capacity]] = {}
    for each in found:
        grouped.setdefault(tuple(getattr(each, name) for name in others), []).append(each)
    ordered = {place: sorted(line, key=lambda each: getattr(each, axis)) for place, line in grouped.items()}
    return {place: line for place, line in ordered.items() if len(line) > 1}


def heads_exponent(line: Sequence[Capacity]) -> Estimate | None:
    """The exponent of the heads with its interval over resamples of the seeds; None with fewer than three shapes.

    By least squares on logarithms. Shapes without a number are left out.
    """
    known = with_number(line)
    if len(known) < 3:
        return None
    x = np.log([each.heads for each in known])
    weights = (x - x.mean()) / np.sum((x - x.mean()) ** 2)
    value = float(weights @ np.log([each.examples for each in known]))
    return widened(interval_of_resamples(value, weights @ np.log([each.resampled for each in known])))


def with_number(line: Iterable[Capacity]) -> list[Capacity]:
    return [each for each in line if not each.missing]


@claims_that(
    "At fixed n and d_h the examples memorised grow linearly with the heads ({context} context).",
    "three head counts were not measured with both ends in range",
)
def linear_claim(found: Sequence[Capacity], context: str) -> Cases:
    for line in capacity_lines(_of_context(found, context), "heads").values():
        exponent = heads_exponent(line)
        if exponent is not None:
            heads = ", ".join(str(each.heads) for each in with_number(line))
            words = f"examples ~ H^{estimate_words(exponent, '.2f')} over {heads} heads, {_straight(line)}"
            yield within(words, exponent, 1 - LINEAR, 1 + LINEAR)


def _straight(line: Sequence[Capacity]) -> str:
    """The straight line through the capacities, and how far they are from it."""
    heads, examples = np.array([(each.heads, each.examples) for each in with_number(line)]).T
    # Relative distances: otherwise the largest head count alone would decide the line.
    slope, start = np.polyfit(heads, examples, 1, w=1 / examples)
    off = np.max(np.abs((slope * heads + start) / examples - 1))
    return f"straight line {slope:.1f} H {start:+.1f}, at most {100 * off:.0f} % off"


@claims_that(
    "In every shape a seed has all labels right of H (min(n, d_h) - 1) + 1 examples or more, as proved.",
    f"this many examples were not tried with {MIN_SEEDS} seeds",
)
def proved_claim(found: Sequence[Capacity]) -> Cases:
    """A theorem about some weights; training must find them, so this can fail."""
    known = [each for each in found if each.most >= each.proved]
    missed = "; ".join(
        f"{each.context} context, H = {each.heads}, n = {each.tokens}, d_h = {each.rank}: {each.exact} of {each.proved}"
        for each in known
        if each.exact < each.proved
    )
    if known:
        reached, ratios = sum(each.exact >= each.proved for each in known), [each.exact / each.proved for each in known]
        words = f"so in {reached} of {len(known)} shapes; all labels are right of up to {min(ratios):.1f} to "
        yield exactly(f"{words}{max(ratios):.1f} times as many{f'; not {missed}' if missed else ''}", not missed)


@claims_that(
    "At fixed H and d_h the examples memorised grow with the size n of the {context} context.",
    "two context sizes were not measured with both ends in range",
)
def context_claim(found: Sequence[Capacity], context: str) -> Cases:
    for line in capacity_lines(_of_context(found, context), "length").values():
        yield from _growing(line, "tokens")


@claims_that(
    "At fixed H and n the examples memorised grow with d_h up to d_h = n ({context} context).",
    "two d_h up to n were not measured with both ends in range",
)
def below_claim(found: Sequence[Capacity], context: str) -> Cases:
    """The control of `beyond_claim`."""
    for line in capacity_lines(_of_context(found, context), "rank").values():
        yield from _growing([each for each in line if each.rank <= each.tokens], "rank")


@claims_that(
    "At fixed H and n a d_h beyond n memorises no more examples than d_h = n ({context} context).",
    "d_h = n and a larger one were not both measured",
)
def beyond_claim(found: Sequence[Capacity], context: str) -> Cases:
    """A score is a product of n keys and a query: with a shared context, of rank n at most."""
    for line in capacity_lines(_of_context(found, context), "rank").values():
        full = [each for each in with_number(line) if each.rank == each.tokens]
        for each in with_number(line):
            if full and each.rank > each.tokens:
                gain = _gain(full[0], each)
                yield at_most(_gain_words(full[0], each, gain, "rank"), gain, SAME)


def _of_context(found: Iterable[Capacity], context: str) -> list[Capacity]:
    return [each for each in found if each.context == context]


def _growing(line: Iterable[Capacity], axis: str) -> Cases:
    """Every step between neighbours that have a number is a gain; refuted where one is a loss."""
    for one, other in itertools.pairwise(with_number(line)):
        gain = _gain(one, other)
        yield Case(_gain_words(one, other, gain, axis), gain.low > 1, gain.high < 1)


def _gain(one: Capacity, other: Capacity) -> Estimate:
    return widened(interval_of_resamples(other.examples / one.examples, other.resampled / one.resampled))


def _gain_words(one: Capacity, other: Capacity, gain: Estimate, axis: str) -> str:
    symbol = {"tokens": "n", "rank": "d_h"}[axis]
    return (
        f"{symbol} = {getattr(one, axis)} to {getattr(other, axis)}: {one.examples:.0f} to {other.examples:.0f}, "
        f"{estimate_words(gain, '.2f', '-fold')}"
    )
