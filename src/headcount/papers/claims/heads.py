"""Judges of error by heads and length, the published table beside it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ...answer import Answer, ErrorTable, count_of_heads, power_law
from ...answer.bootstrap import MIN_SEEDS, TAIL, bootstrap
from ...answer.claim import ClaimResult as Claim
from ...answer.claim import Verdict, decided, verdict_of
from ...answer.signals import MIN_DROP, REVERSED, length_slopes, reversal_scores

TENFOLD = 1.0
"""Decades within which two errors are of one order of magnitude."""
FLAT_SLOPE = 0.1
"""d log(error) / d log(length) up to which an error does not grow: 32 per cent from 8 to 128 tokens."""


def measured_like(table: ErrorTable, published: ErrorTable) -> ErrorTable:
    """Our errors under the statistic over seeds that was published."""
    return table.reduced("seed", "mean" if published.statistic == "mean" else "best")


def transition_claim(table: ErrorTable, answer: Answer, transition: int, statement: str) -> Claim:
    """The error drops for good at `transition` heads."""
    if table.source:
        return Claim(statement, Verdict.UNDECIDED, f"the rule resamples seeds, and {_printed(table)}")
    if answer.heads is not None:
        return Claim(
            statement, decided(answer.heads == transition), f"published: {transition}; ours: {answer.sentence}"
        )
    errors = table.ordered("heads", "length", "seed").errors
    usable = np.all(np.sum(np.isfinite(errors), axis=2) >= MIN_SEEDS, axis=1)
    measured = [heads for heads, kept in zip(table.values("heads"), usable, strict=True) if kept]
    # Nothing found where it could have been found is an answer; with too little measured it is none.
    both_sides = {transition - 1, transition} <= set(measured) and max(measured) > transition
    return Claim(statement, Verdict.DIFFERS if both_sides else Verdict.UNDECIDED, f"ours: {answer.sentence}")


def same_answer_claim(statement: str, answers: Mapping[str, Answer], names: Mapping[str, str]) -> Claim:
    """Two kinds of models need equally many heads: `names` says them in words.

    They do not where the intervals share no head count, and do where both are the same single one.
    """
    one, other = names
    measured = [f"{names[kind]}, {answers[kind].sentence}" for kind in names if kind in answers]
    evidence = "; ".join(measured) or "no model has finished"
    needs = {kind: answers[kind].needs["heads"] for kind in names if kind in answers and answers[kind].kind == "needs"}
    if len(needs) < len(names):
        return Claim(statement, Verdict.UNDECIDED, evidence)
    if needs[other].low > needs[one].high or needs[one].low > needs[other].high:
        return Claim(statement, Verdict.DIFFERS, evidence)
    certain = needs[one] == needs[other] and needs[one].low == needs[one].high
    return Claim(statement, Verdict.HOLDS if certain else Verdict.UNDECIDED, evidence)


@dataclass(frozen=True)
class Slope:
    """d log(error) / d log(length) of the best of seeds; [low, high] hold it in 90 % of resamples of the seeds.

    The resamples vary the training seeds alone: all of them share the data. NaN with fewer than two lengths.
    """

    slope: float
    low: float
    high: float

    @property
    def grows(self) -> bool:
        return self.low > FLAT_SLOPE

    @property
    def flat(self) -> bool:
        return self.high <= FLAT_SLOPE


def length_growth(table: ErrorTable) -> dict[int, Slope]:
    """The slope by head count, over the lengths it was measured at."""
    slopes = {}
    for heads, errors in zip(table.values("heads"), table.ordered("heads", "length", "seed").errors, strict=True):
        row = np.fmin.reduce(errors, axis=1)
        there = np.isfinite(row)
        lengths = tuple(length for length, kept in zip(table.values("length"), there, strict=True) if kept)
        if len(lengths) < 2:
            slopes[heads] = Slope(np.nan, np.nan, np.nan)
            continue
        drawn = length_slopes(bootstrap(errors[None, there]).best[:, 0], lengths)
        low, high = np.quantile(drawn, [TAIL, 1 - TAIL])
        (slope,) = length_slopes(row[None, there], lengths)
        slopes[heads] = Slope(float(slope), float(low), float(high))
    return slopes


def growth_claims(table: ErrorTable, published: ErrorTable, transition: int) -> tuple[Claim, Claim]:
    """The error grows with length below the transition, and no longer from it on."""
    below = "Below the transition the error grows with length."
    above = "From the transition on the error does not grow with length."
    lengths = table.values("length")
    if len(lengths) < 2:
        missing = "one length says nothing about growth"
        return Claim(below, Verdict.UNDECIDED, missing), Claim(above, Verdict.UNDECIDED, missing)
    slopes = length_growth(table)
    theirs = exponents(table.values("heads"), published.aligned(table), lengths)
    means = exponents(table.values("heads"), table.reduced("seed", "mean").ordered("heads", "length").errors, lengths)

    def row(heads: int) -> str:
        slope = slopes[heads]
        if table.source:
            return f"{count_of_heads(heads)} {slope.slope:+.2f}"
        mean = f", of the means {_signed(means[heads])}" if published.statistic == "mean" else ""
        interval = f"{slope.slope:+.2f} [{slope.low:+.2f}, {slope.high:+.2f}]"
        return f"{count_of_heads(heads)} {interval}{mean} ({_signed(theirs[heads])})"

    def judge(statement: str, chosen: list[int], *, holds: str, differs: str) -> Claim:
        known = [heads for heads in chosen if np.isfinite(slopes[heads].slope)]
        if not known:
            return Claim(statement, Verdict.UNDECIDED, "no such head count was measured at two lengths")
        rows = "; ".join(map(row, known))
        evidence = f"d log(error) / d log(length), best of seeds [90 % of resamples] (published): {rows}"
        if table.source:
            evidence = f"d log(error) / d log(length) against {FLAT_SLOPE:g}, without intervals: {rows}"
        unknown = [count_of_heads(heads) for heads in chosen if heads not in known]
        if unknown:
            evidence += f"; not measured at two lengths: {', '.join(unknown)}"
        bearing = [getattr(slopes[heads], holds) for heads in known] + [False] * len(unknown)
        return Claim(statement, verdict_of(bearing, [getattr(slopes[heads], differs) for heads in known]), evidence)

    few, many = _sides(table, transition)
    return judge(below, few, holds="grows", differs="flat"), judge(above, many, holds="flat", differs="grows")


def drop_claim(table: ErrorTable, published: ErrorTable, transition: int) -> Claim:
    """How far the error falls at the transition, as a factor (the geometric mean over lengths)."""
    statement = f"The error falls sharply from {transition - 1} to {transition} heads."
    measured = measured_like(table, published).ordered("heads", "length").errors
    printed = np.where(np.isfinite(measured), published.aligned(table), np.nan)
    ours, theirs = (drop_factor(table.values("heads"), errors, transition) for errors in (measured, printed))
    if ours is None:
        return Claim(statement, Verdict.UNDECIDED, f"{transition - 1} and {transition} heads were not both measured")
    if table.source:
        return Claim(statement, decided(ours >= 10**MIN_DROP), f"{ours:.3g}-fold at all lengths")
    beside = "" if theirs is None else f"published {theirs:.3g}-fold at these lengths, "
    return Claim(statement, decided(ours >= 10**MIN_DROP), f"{beside}ours {ours:.3g}-fold")


def magnitude_claim(table: ErrorTable, published: ErrorTable | None) -> Claim:
    """Every cell is within a factor of ten of the published one."""
    statistic = published.statistic if published is not None else ""
    what = f"{statistic} over seeds" if statistic else "error"
    statement = f"Every {what} is of the published order of magnitude."
    none = Claim(statement, Verdict.UNDECIDED, "no published cell was measured; --scale paper does")
    if published is None:
        return none
    measured = measured_like(table, published).ordered(*published.axes)
    with np.errstate(divide="ignore", invalid="ignore"):  # an error of zero has no order of magnitude
        decades = np.log10(measured.errors / published.aligned(measured))
    known = np.isfinite(decades)
    if not known.any():
        return none
    near = int(np.sum(np.abs(decades[known]) <= TENFOLD))
    worst = np.unravel_index(np.argmax(np.where(known, np.abs(decades), -1.0)), decades.shape)
    at = {axis: values[place] for (axis, values), place in zip(measured.axes.items(), worst, strict=True)}
    furthest = ", ".join(f"{axis} {value}" for axis, value in at.items() if len(measured.axes[axis]) > 1)
    evidence = (
        f"{near} of {int(known.sum())} cells are within tenfold; the furthest"
        f"{f' ({furthest})' if furthest else ''} is {10 ** abs(decades[worst]):.3g}-fold "
        f"{'above' if decades[worst] > 0 else 'below'}"
    )
    return Claim(statement, decided(near == int(known.sum())), evidence)


def reversal_claims(table: ErrorTable, published: ErrorTable, transition: int) -> tuple[Claim, Claim]:
    """The weighted reversal score is near zero below the transition, and positive from it on."""
    table = table.ordered("heads", "length", "seed")
    ours, means, theirs = (
        dict(zip(table.values("heads"), reversal_scores(errors), strict=True))
        for errors in (table.best, table.mean, published.aligned(table))
    )

    def judge(statement: str, chosen: list[int], *, positive: bool) -> Claim:
        chosen = [heads for heads in chosen if np.isfinite(ours[heads])]
        if not chosen:
            return Claim(statement, Verdict.UNDECIDED, "it takes two lengths at these heads")
        evidence = "R(h) of the best of seeds (of the published means): " + "; ".join(
            f"{count_of_heads(heads)} {ours[heads]:.2f}, of our means {means[heads]:.2f} ({theirs[heads]:.2f})"
            for heads in chosen
        )
        if table.source:
            scores = "; ".join(f"{count_of_heads(heads)} {ours[heads]:.2f}" for heads in chosen)
            evidence = f"R(h) of the {table.statistic}s over seeds: {scores}"
        return Claim(statement, decided(all(bool(ours[heads] > REVERSED) is positive for heads in chosen)), evidence)

    few, many = _sides(table, transition)
    return (
        judge("Below D heads the score is near zero.", few, positive=False),
        judge("From D heads on it is positive.", many, positive=True),
    )


def apart_claim(table: ErrorTable, transition: int) -> Claim:
    """As the published means of h >= D all lie below every published mean of fewer heads; a mean is then the best."""
    statement = "With D heads or more the best of seeds is, at every length, below that of fewer heads at any."
    best = table.reduced("seed")
    few, enough = (best.select(heads=side).errors for side in _sides(table, transition))
    if not (np.isfinite(few).any() and np.isfinite(enough).any()):
        return Claim(statement, Verdict.UNDECIDED, "head counts on both sides of D were not measured")
    largest, smallest = np.nanmax(enough), np.nanmin(few)
    evidence = f"largest from D on {largest:.2e}, smallest below D {smallest:.2e}"
    evidence += f", {table.statistic}s over seeds in place of the best" if table.source else ""
    return Claim(statement, decided(bool(largest < smallest)), evidence)


def _printed(table: ErrorTable) -> str:
    return f"{table.source} prints one number per cell"


def _sides(table: ErrorTable, transition: int) -> tuple[list[int], list[int]]:
    """The head counts below the transition, and those from it on."""
    heads = table.values("heads")
    return [count for count in heads if count < transition], [count for count in heads if count >= transition]


def exponents(
    heads: Iterable[int], errors: Float[np.ndarray, "heads lengths"], lengths: tuple[int, ...]
) -> dict[int, float]:
    """The exponent of length by heads; NaN where no power law can be fitted."""
    fits = {count: power_law(np.asarray(lengths, float), row) for count, row in zip(heads, errors, strict=True)}
    return {count: np.nan if fit is None else fit.exponent for count, fit in fits.items()}


def drop_factor(heads: tuple[int, ...], errors: Float[np.ndarray, "heads lengths"], transition: int) -> float | None:
    """By how much the error falls to `transition` heads, a geometric mean over lengths; None where nothing is there."""
    if transition not in heads or transition - 1 not in heads:
        return None
    ratio = finite_ratio(errors[heads.index(transition - 1)], errors[heads.index(transition)])
    ratio = ratio[ratio > 0]
    return float(np.exp(np.mean(np.log(ratio)))) if len(ratio) else None


def finite_ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """The quotients that are there: neither side lost, nor zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = above / below
    return ratio[np.isfinite(ratio)]


def _signed(value: float) -> str:
    return "none" if np.isnan(value) else f"{value:+.2f}"
