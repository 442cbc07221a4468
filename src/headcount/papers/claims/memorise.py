"""Judges of memory: how many examples with random labels an attention layer of H heads memorises.

`table` is of the share of training labels that are wrong at the end, over heads, rank (the key width d_h), context,
examples, length (n + 1: the context and the query) and seed. A seed memorises the largest number of examples of which
it has at least 95 % of the labels right, interpolated to the next number tried. The capacity of a shape is the median
of its seeds; the interval holds that in 90 % of resamples. More may be memorised by weights that training misses.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float

from ...answer import ErrorTable
from ...answer.bootstrap import MIN_SEEDS, TAIL, bootstrap
from ...answer.claim import ClaimResult as Claim
from ...answer.claim import Verdict, decided, verdict_of

CONTEXTS = ("shared", "own")
"""One context for all examples, as in the paper's figure, or another one for each."""
WRONG = 0.05
"""Share of wrong labels up to which examples count as memorised."""
LINEAR = 0.15
"""How far from 1 the exponent of the heads may be where growth is called linear."""
SAME = 1.1
"""Times the capacity that is no gain: two equal shapes differ by a few per cent."""


@dataclass(frozen=True, kw_only=True)
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
    missing: str = ""
    most: int = 0
    exact: int = 0

    @property
    def tokens(self) -> int:
        """n, the tokens of the context."""
        return self.length - 1

    @property
    def bound(self) -> int:
        return proved(self.heads, self.rank, self.length)

    @property
    def low(self) -> float:
        return float(np.quantile(self.resampled, TAIL))

    @property
    def high(self) -> float:
        return float(np.quantile(self.resampled, 1 - TAIL))

    def words(self) -> str:
        return self.missing or f"{self.examples:.0f} [{self.low:.0f}, {self.high:.0f}]"


def proved(heads: int, rank: int, length: int) -> int:
    """H (r - 1) + 1 with r = min(n, d_h): examples that some weights memorise, by Theorem 1 of Mahdavi et al."""
    return heads * (min(length - 1, rank) - 1) + 1


def contexts_of(table: ErrorTable) -> list[str]:
    """The kinds of context that are there, in the order of `CONTEXTS`."""
    return [context for context in CONTEXTS if context in table.values("context")]


def capacities(table: ErrorTable) -> list[Capacity]:
    """The capacity of every shape with enough seeds that have two numbers of examples each, by its sizes."""
    sizes = ("length", "rank", "heads", "examples")
    kept = {axis: sorted(table.values(axis)) for axis in sizes} | {"context": contexts_of(table)}
    part = table.select(**kept).ordered("context", *sizes, "seed")
    places = itertools.product(*(part.values(axis) for axis in ("context", "length", "rank", "heads")))
    rows = part.errors.reshape(-1, len(part.values("examples")), len(part.values("seed")))
    counts = np.asarray(part.values("examples"))
    found = [
        _capacity(context, length, rank, heads, counts, row)
        for (context, length, rank, heads), row in zip(places, rows, strict=True)
    ]
    return [each for each in found if each is not None]


def _capacity(
    context: str, length: int, rank: int, heads: int, counts: np.ndarray, errors: Float[np.ndarray, "counts seeds"]
) -> Capacity | None:
    """None where fewer seeds than `MIN_SEEDS` have finished two numbers of examples."""
    finished = np.isfinite(errors)
    tried = [(counts[there], line[there]) for line, there in zip(errors.T, finished.T, strict=True) if there.sum() > 1]
    if len(tried) < MIN_SEEDS:
        return None
    by_seed = np.array([float(memorised(*line)) for line in tried])
    missing = ""
    if np.mean([np.all(line > WRONG) for _, line in tried]) >= 0.5:
        missing = f"fewer than {min(seen[0] for seen, _ in tried)}"
    elif np.mean([line[-1] <= WRONG for _, line in tried]) >= 0.5:
        missing = f"at least {max(seen[-1] for seen, _ in tried)}"
    return Capacity(
        context=context,
        heads=heads,
        rank=rank,
        length=length,
        examples=float(np.median(by_seed)),
        # Shapes draw from other streams: the same resample for all would make their ratios look too sure.
        resampled=bootstrap(by_seed, seed=heads + 1000 * rank + 1_000_000 * length).median,
        missing=missing,
        most=int(counts[finished.any(axis=1)].max()),
        exact=int(counts[np.any(errors == 0, axis=1)].max(initial=0)),
    )


def memorised(counts: np.ndarray, errors: Float[np.ndarray, "*lines counts"]) -> Float[np.ndarray, "*lines"]:
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


def lines(found: Iterable[Capacity], axis: str) -> dict[tuple[Any, ...], list[Capacity]]:
    """Capacities along an axis with two values or more, by the others of context, heads, rank and length."""
    others = [name for name in ("context", "heads", "rank", "length") if name != axis]
    grouped: dict[tuple[Any, ...], list[Capacity]] = {}
    for each in found:
        grouped.setdefault(tuple(getattr(each, name) for name in others), []).append(each)
    ordered = {place: sorted(line, key=lambda each: getattr(each, axis)) for place, line in grouped.items()}
    return {place: line for place, line in ordered.items() if len(line) > 1}


def heads_exponent(line: Sequence[Capacity]) -> tuple[float, float, float] | None:
    """The lower end, the value and the upper end of the exponent of the heads; None with fewer than three shapes.

    By least squares on logarithms, over resamples of the seeds. Shapes without a number are left out.
    """
    known = [each for each in line if not each.missing]
    if len(known) < 3:
        return None
    x = np.log([each.heads for each in known])
    weights = (x - x.mean()) / np.sum((x - x.mean()) ** 2)
    value = float(weights @ np.log([each.examples for each in known]))
    drawn = weights @ np.log([each.resampled for each in known])
    low, high = np.quantile(drawn, [TAIL, 1 - TAIL])
    return min(float(low), value), value, max(float(high), value)


def linear_claim(found: Sequence[Capacity], context: str) -> Claim:
    """The exponent of the heads is 1, or near it."""
    statement = f"At fixed n and d_h the examples memorised grow linearly with the heads ({context} context)."
    several = {place: line for place, line in lines(_of(found, context), "heads").items() if len(line) > 2}
    fits = {place: fit for place, line in several.items() if (fit := heads_exponent(line)) is not None}
    if not fits:
        return Claim(statement, Verdict.UNDECIDED, "three head counts were not measured with both ends in range")
    evidence = "; ".join(
        f"examples ~ H^{value:.2f} [{low:.2f}, {high:.2f}] over {_listed(several[place], 'heads')} heads, "
        f"{_straight(several[place])}"
        for place, (low, value, high) in fits.items()
    )
    near = [low >= 1 - LINEAR and high <= 1 + LINEAR for low, _, high in fits.values()]
    far = [high < 1 - LINEAR or low > 1 + LINEAR for low, _, high in fits.values()]
    return Claim(statement, verdict_of(near, far), evidence)


def _straight(line: Sequence[Capacity]) -> str:
    """The straight line through the capacities, and how far they are from it."""
    known = [each for each in line if not each.missing]
    heads, examples = (np.array([getattr(each, name) for each in known]) for name in ("heads", "examples"))
    # Relative distances: otherwise the largest head count alone would decide the line.
    slope, start = np.polyfit(heads, examples, 1, w=1 / examples)
    off = np.max(np.abs((slope * heads + start) / examples - 1))
    return f"straight line {slope:.1f} H {start:+.1f}, at most {100 * off:.0f} % off"


def proved_claim(found: Sequence[Capacity]) -> Claim:
    """A theorem about some weights; training must find them, so this can fail."""
    statement = "In every shape a seed has all labels right of H (min(n, d_h) - 1) + 1 examples or more, as proved."
    known = [each for each in found if each.most >= each.bound]
    if not known:
        return Claim(statement, Verdict.UNDECIDED, f"so many examples were not tried with {MIN_SEEDS} seeds")
    missed = [f"{_name(each)}: {each.exact} of {each.bound}" for each in known if each.exact < each.bound]
    ratios = [each.exact / each.bound for each in known]
    evidence = (
        f"so in {len(known) - len(missed)} of {len(known)} shapes; all labels are right of up to {min(ratios):.1f} to "
        f"{max(ratios):.1f} times as many"
    )
    return Claim(statement, decided(not missed), evidence + (f"; not {'; '.join(missed)}" if missed else ""))


def context_claim(found: Sequence[Capacity], context: str) -> Claim:
    """More tokens, more examples, at the same number of weights."""
    statement = f"At fixed H and d_h the examples memorised grow with the size n of the {context} context."
    pairs = _steps(_of(found, context), "length", lambda line: line)
    return _growing(statement, pairs, "tokens", "two context sizes")


def below_claim(found: Sequence[Capacity], context: str) -> Claim:
    """The control of `beyond_claim`."""
    statement = f"At fixed H and n the examples memorised grow with d_h up to d_h = n ({context} context)."
    pairs = _steps(_of(found, context), "rank", lambda line: [each for each in line if each.rank <= each.tokens])
    return _growing(statement, pairs, "rank", "two d_h up to n")


def beyond_claim(found: Sequence[Capacity], context: str) -> Claim:
    """A score is a product of n keys and a query: with a shared context, of rank n at most."""
    statement = f"At fixed H and n a d_h beyond n memorises no more examples than d_h = n ({context} context)."
    pairs = []
    for line in lines(_of(found, context), "rank").values():
        full = [each for each in line if each.rank == each.tokens and not each.missing]
        pairs += [(full[0], each) for each in line if full and each.rank > each.tokens and not each.missing]
    if not pairs:
        return Claim(statement, Verdict.UNDECIDED, "d_h = n and a larger one were not both measured")
    gains = [_gain(one, other) for one, other in pairs]
    evidence = _gains_in_words(pairs, gains, "rank")
    return Claim(
        statement, verdict_of([high <= SAME for *_, high in gains], [low > SAME for low, *_ in gains]), evidence
    )


Pair = tuple[Capacity, Capacity]
Gain = tuple[float, float, float]
"""The lower end, the value and the upper end of a ratio of capacities."""


def _of(found: Iterable[Capacity], context: str) -> list[Capacity]:
    return [each for each in found if each.context == context]


def _steps(found: Iterable[Capacity], axis: str, kept: Callable[[list[Capacity]], list[Capacity]]) -> list[Pair]:
    """Neighbours along an axis that both have a number."""
    known = [[each for each in kept(line) if not each.missing] for line in lines(found, axis).values()]
    return [pair for line in known for pair in itertools.pairwise(line)]


def _growing(statement: str, pairs: Sequence[Pair], axis: str, what: str) -> Claim:
    """Every step is a gain; refuted where one is a loss."""
    if not pairs:
        return Claim(statement, Verdict.UNDECIDED, f"{what} were not measured with both ends in range")
    gains = [_gain(one, other) for one, other in pairs]
    evidence = _gains_in_words(pairs, gains, axis)
    return Claim(statement, verdict_of([low > 1 for low, *_ in gains], [high < 1 for *_, high in gains]), evidence)


def _gain(one: Capacity, other: Capacity) -> Gain:
    ratio = other.examples / one.examples
    low, high = np.quantile(other.resampled / one.resampled, [TAIL, 1 - TAIL])
    return min(float(low), ratio), ratio, max(float(high), ratio)


def _gains_in_words(pairs: Sequence[Pair], gains: Sequence[Gain], axis: str) -> str:
    symbol = {"tokens": "n", "rank": "d_h"}[axis]
    return "; ".join(
        f"{symbol} = {getattr(one, axis)} to {getattr(other, axis)}: {one.examples:.0f} to {other.examples:.0f}, "
        f"{value:.2f}-fold [{low:.2f}, {high:.2f}]"
        for (one, other), (low, value, high) in zip(pairs, gains, strict=True)
    )


def _listed(line: Sequence[Capacity], axis: str) -> str:
    return ", ".join(str(getattr(each, axis)) for each in line if not each.missing)


def _name(one: Capacity) -> str:
    return f"{one.context} context, H = {one.heads}, n = {one.tokens}, d_h = {one.rank}"
