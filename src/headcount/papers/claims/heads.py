"""Judge errors by heads and length, together with the published table."""

import itertools
from collections.abc import Callable, Iterable, Mapping

import numpy as np
from jaxtyping import Float

from ...answer import Answer, ErrorTable, count_of_heads
from ...answer.bootstrap import MIN_SEEDS, bootstrap
from ...answer.claim import ClaimResult, Verdict, decided
from ...answer.signals import MIN_DROP, REVERSED, length_slopes, reversal_scores
from ..fits import Estimate, power_law
from .judge import (
    Case,
    Cases,
    above,
    at_most,
    claims_that,
    estimate_words,
    exactly,
    finite_ratio,
    geometric_mean,
    interval_of_resamples,
    judge,
)

TENFOLD = 1.0
"""Decades within which two errors are of one order of magnitude."""
FLAT_SLOPE = 0.1
"""d log(error) / d log(length) up to which an error does not grow: 32 per cent from 8 to 128 tokens."""


def measured_like(table: ErrorTable, published: ErrorTable) -> ErrorTable:
    """Our errors under the statistic over seeds that was published."""
    return table.reduced("seed", "mean" if published.statistic == "mean" else "best")


def transition_claim(table: ErrorTable, answer: Answer, transition: int, statement: str) -> ClaimResult:
    if table.source:
        return ClaimResult(
            statement, Verdict.UNDECIDED, f"the rule resamples seeds, and {table.source} prints one number per cell"
        )
    if answer.heads is not None:
        return ClaimResult(
            statement, decided(answer.heads == transition), f"published: {transition}; ours: {answer.sentence}"
        )
    errors = table.ordered("heads", "length", "seed").errors
    usable = np.all(np.sum(np.isfinite(errors), axis=2) >= MIN_SEEDS, axis=1)
    measured = [heads for heads, kept in zip(table.values("heads"), usable, strict=True) if kept]
    # Nothing found where it could have been found is an answer; with too little measured it is none.
    both_sides = {transition - 1, transition} <= set(measured) and max(measured) > transition
    return ClaimResult(statement, Verdict.DIFFERS if both_sides else Verdict.UNDECIDED, f"ours: {answer.sentence}")


def same_answer_claim(statement: str, answers: Mapping[str, Answer], *kinds: str) -> ClaimResult:
    """Two kinds of models need equally many heads.

    They do not where the intervals share no head count, and do where both are the same single one.
    """
    known = {kind: answers[kind] for kind in kinds if kind in answers}
    evidence = "; ".join(f"{kind}, {found.sentence}" for kind, found in known.items()) or "no model has finished"
    needs = [found.needs["heads"] for found in known.values() if found.kind == "needs"]
    if len(needs) < len(kinds):
        return judge(statement, [], evidence)
    one, other = needs
    apart = other.low > one.high or one.low > other.high
    return judge(statement, [Case(evidence, one == other and one.low == one.high, apart)], "")


def length_growth(table: ErrorTable) -> dict[int, Estimate]:
    """d log(error) / d log(length) of the best of seeds, by head count, over the lengths it was measured at.

    The interval is over resamples of the training seeds alone: all of them share the data. NaN below two lengths.
    """
    slopes = {}
    for heads, errors in zip(table.values("heads"), table.ordered("heads", "length", "seed").errors, strict=True):
        row = np.fmin.reduce(errors, axis=1)
        there = np.isfinite(row)
        lengths = tuple(itertools.compress(table.values("length"), there))
        slopes[heads] = Estimate(np.nan, np.nan, np.nan)
        if len(lengths) > 1:
            drawn = length_slopes(bootstrap(errors[None, there]).best[:, 0], lengths)
            (slope,) = length_slopes(row[None, there], lengths)
            slopes[heads] = interval_of_resamples(slope, drawn)
    return slopes


def growth_claims(table: ErrorTable, published: ErrorTable, transition: int) -> tuple[ClaimResult, ClaimResult]:
    lengths, tried = table.values("length"), table.values("heads")
    slopes = length_growth(table)
    theirs = exponents(tried, published.aligned(table), lengths)
    means = exponents(tried, table.reduced("seed", "mean").ordered("heads", "length").errors, lengths)
    before = "d log(error) / d log(length), best of seeds [90 % of resamples] (published): "
    if table.source:
        before = f"d log(error) / d log(length) against {FLAT_SLOPE:g}, without intervals: "

    def words(heads: int) -> str:
        if table.source:
            return f"{count_of_heads(heads)} {slopes[heads].value:+.2f}"
        mean = f", of the means {_signed(means[heads])}" if published.statistic == "mean" else ""
        return f"{count_of_heads(heads)} {estimate_words(slopes[heads], '+.2f')}{mean} ({_signed(theirs[heads])})"

    def judge_slopes(statement: str, chosen: list[int], holds: Callable[[str, Estimate, float], Case]) -> ClaimResult:
        known = [heads for heads in chosen if np.isfinite(slopes[heads].value)]
        cases = [holds(words(heads), slopes[heads], FLAT_SLOPE) for heads in known]
        unknown = ", ".join(count_of_heads(heads) for heads in chosen if heads not in known)
        if known and unknown:
            cases.append(Case(f"not measured at two lengths: {unknown}", False, False))
        missing = "no such head count was measured at two lengths"
        return judge(
            statement, [before, *cases], missing if len(lengths) > 1 else "one length says nothing about growth"
        )

    few, many = _sides(table, transition)
    return (
        judge_slopes("Below the transition the error grows with length.", few, above),
        judge_slopes("From the transition on the error does not grow with length.", many, at_most),
    )


def drop_claim(table: ErrorTable, published: ErrorTable, transition: int) -> ClaimResult:
    measured, few = measured_like(table, published).ordered("heads", "length").errors, transition - 1
    printed = np.where(np.isfinite(measured), published.aligned(table), np.nan)
    ours, theirs = (drop_factor(table.values("heads"), errors, transition) for errors in (measured, printed))
    cases = []
    if ours is not None:
        reference = "" if theirs is None else f"published {theirs:.3g}-fold at these lengths, "
        words = f"{ours:.3g}-fold at all lengths" if table.source else f"{reference}ours {ours:.3g}-fold"
        cases.append(exactly(words, ours >= 10**MIN_DROP))
    statement = f"The error falls sharply from {few} to {transition} heads."
    return judge(statement, cases, f"{few} and {transition} heads were not both measured")


def magnitude_claim(table: ErrorTable, published: ErrorTable) -> ClaimResult:
    what = f"{published.statistic} over seeds" if published.statistic else "error"
    statement = f"Every {what} is of the published order of magnitude."
    return judge(statement, _magnitude_cases(table, published), "no published cell was measured; --scale paper does")


def _magnitude_cases(table: ErrorTable, published: ErrorTable) -> Cases:
    measured = measured_like(table, published).ordered(*published.axes)
    with np.errstate(divide="ignore", invalid="ignore"):  # an error of zero has no order of magnitude
        decades = np.log10(measured.errors / published.aligned(measured))
    known = np.isfinite(decades)
    if not known.any():
        return
    near = int(np.sum(np.abs(decades[known]) <= TENFOLD))
    worst = np.unravel_index(np.argmax(np.where(known, np.abs(decades), -1.0)), decades.shape)
    at = {axis: values[place] for (axis, values), place in zip(measured.axes.items(), worst, strict=True)}
    furthest = ", ".join(f"{axis} {value}" for axis, value in at.items() if len(measured.axes[axis]) > 1)
    yield exactly(
        f"{near} of {int(known.sum())} cells are within tenfold; the furthest"
        f"{f' ({furthest})' if furthest else ''} is {10 ** abs(decades[worst]):.3g}-fold "
        f"{'above' if decades[worst] > 0 else 'below'}",
        near == int(known.sum()),
    )


def reversal_claims(table: ErrorTable, published: ErrorTable, transition: int) -> tuple[ClaimResult, ClaimResult]:
    table = table.ordered("heads", "length", "seed")
    ours, means, theirs = (
        dict(zip(table.values("heads"), reversal_scores(errors), strict=True))
        for errors in (table.best, table.mean, published.aligned(table))
    )

    before = "R(h) of the best of seeds (of the published means): "
    if table.source:
        before = f"R(h) of the {table.statistic}s over seeds: "

    def words(heads: int) -> str:
        also = "" if table.source else f", of our means {means[heads]:.2f} ({theirs[heads]:.2f})"
        return f"{count_of_heads(heads)} {ours[heads]:.2f}{also}"

    def judge_scores(statement: str, chosen: list[int], *, positive: bool) -> ClaimResult:
        known = [heads for heads in chosen if np.isfinite(ours[heads])]
        cases = [exactly(words(heads), (ours[heads] > REVERSED) == positive) for heads in known]
        return judge(statement, [before, *cases], "it takes two lengths at these heads")

    few, many = _sides(table, transition)
    return (
        judge_scores("Below D heads the score is near zero.", few, positive=False),
        judge_scores("From D heads on it is positive.", many, positive=True),
    )


@claims_that(
    "With D heads or more the best of seeds is, at every length, below that of fewer heads at any.",
    "head counts on both sides of D were not measured",
)
def apart_claim(table: ErrorTable, transition: int) -> Cases:
    """As the published means of h >= D all lie below every published mean of fewer heads; a mean is then the best."""
    best = table.reduced("seed")
    few, enough = (best.select(heads=side).errors for side in _sides(table, transition))
    if np.isfinite(few).any() and np.isfinite(enough).any():
        largest, smallest = np.nanmax(enough), np.nanmin(few)
        words = f"largest from D on {largest:.2e}, smallest below D {smallest:.2e}"
        words += f", {table.statistic}s over seeds in place of the best" if table.source else ""
        yield exactly(words, largest < smallest)


def _sides(table: ErrorTable, transition: int) -> tuple[list[int], list[int]]:
    heads = table.values("heads")
    return [count for count in heads if count < transition], [count for count in heads if count >= transition]


def exponents(
    heads: Iterable[int], errors: Float[np.ndarray, "heads lengths"], lengths: tuple[int, ...]
) -> dict[int, float]:
    """The exponent of length by heads; NaN where no power law can be fitted."""
    fits = (power_law(np.asarray(lengths, float), row) for row in errors)
    return {count: fit.exponent if fit else np.nan for count, fit in zip(heads, fits, strict=True)}


def drop_factor(heads: tuple[int, ...], errors: Float[np.ndarray, "heads lengths"], transition: int) -> float | None:
    """By how much the error falls to `transition` heads, a geometric mean over lengths; None where nothing is there."""
    if transition not in heads or transition - 1 not in heads:
        return None
    ratio = finite_ratio(errors[heads.index(transition - 1)], errors[heads.index(transition)])
    ratio = ratio[ratio > 0]
    return geometric_mean(ratio) if len(ratio) else None


def _signed(value: float) -> str:
    return "none" if np.isnan(value) else f"{value:+.2f}"
