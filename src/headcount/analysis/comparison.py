"""Measured beside published: a paper's table, and its claims judged one by one on our errors.

A claim holds, differs, or is undecided (what it speaks of was not measured, or too roughly to tell); its evidence is
the numbers it was judged by, the published ones beside ours. Claims about length are judged on the best of seeds, which
says what the models can do: one seed that training left stuck can carry a mean. Where a mean was published, ours is in
the evidence too.
"""

import enum
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from .answer import COVERAGE, MIN_SEEDS, Answer, bootstrap
from .fits import power_law
from .signals import MIN_DROP, length_slopes
from .summary import ErrorTable

TENFOLD = 1.0
"""Decades within which two errors are of one order of magnitude."""
FLAT_SLOPE = 0.1
"""d log(error) / d log(length) up to which an error does not grow: 32 per cent from 8 to 128 tokens."""


class Verdict(enum.StrEnum):
    HOLDS = "holds"
    DIFFERS = "differs"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper, what became of it here, and the numbers that say so."""

    statement: str
    verdict: Verdict
    evidence: str


@dataclass(frozen=True, kw_only=True)
class PublishedTable:
    """Errors as a paper printed them; NaN where it printed none. `statistic` says what over seeds: mean or minimum."""

    source: str
    statistic: str
    heads: tuple[int, ...]
    lengths: tuple[int, ...]
    values: Float[np.ndarray, "heads lengths"]
    std: Float[np.ndarray, "heads lengths"]

    def beside(self, table: ErrorTable) -> Float[np.ndarray, "table_heads table_lengths"]:
        """The published values at the heads and lengths of `table`, NaN where there are none."""
        return np.array([[self.at(heads, length)[0] for length in table.lengths] for heads in table.heads])

    def at(self, heads: int, length: int) -> tuple[float, float]:
        """Value and standard deviation of one cell, NaN where none was printed."""
        if heads in self.heads and length in self.lengths:
            place = self.heads.index(heads), self.lengths.index(length)
            return float(self.values[place]), float(self.std[place])
        return float("nan"), float("nan")


def measured_like(table: ErrorTable, published: PublishedTable) -> Float[np.ndarray, "heads lengths"]:
    """Our errors under the statistic that was published."""
    return table.mean if published.statistic == "mean" else table.best


def count_of_heads(heads: int) -> str:
    return f"{heads} {'head' if heads == 1 else 'heads'}"


def decided(true: bool) -> Verdict:
    return Verdict.HOLDS if true else Verdict.DIFFERS


def verdict_of(holds: Iterable[bool], differs: Iterable[bool]) -> Verdict:
    """Of a claim about several things: it differs where one of them refutes it, holds where all bear it out."""
    if any(differs):
        return Verdict.DIFFERS
    return Verdict.HOLDS if all(holds) else Verdict.UNDECIDED


def transition_claim(table: ErrorTable, answer: Answer, transition: int, statement: str) -> Claim:
    """The error drops for good at `transition` heads."""
    if answer.heads is not None:
        said = f"published: {transition}; ours: {answer.sentence}"
        return Claim(statement, decided(answer.heads == transition), said)
    usable = np.all(np.sum(np.isfinite(table.errors), axis=2) >= MIN_SEEDS, axis=1)
    measured = [heads for heads, kept in zip(table.heads, usable, strict=True) if kept]
    # Nothing found where it could have been found is an answer; with too little measured it is none.
    both_sides = {transition - 1, transition} <= set(measured) and max(measured) > transition
    return Claim(statement, Verdict.DIFFERS if both_sides else Verdict.UNDECIDED, f"ours: {answer.sentence}")


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


def length_growth(table: ErrorTable) -> list[Slope]:
    """The slope for every head count, over the lengths it was measured at."""
    tail = (1 - COVERAGE) / 2
    found = []
    for row, errors in zip(table.best, table.errors, strict=True):
        there = np.isfinite(row)
        lengths = tuple(length for length, kept in zip(table.lengths, there, strict=True) if kept)
        if len(lengths) < 2:
            found.append(Slope(np.nan, np.nan, np.nan))
            continue
        drawn = np.concatenate([best for best, _ in bootstrap(errors[None, there])])
        low, high = np.quantile(length_slopes(drawn, lengths), [tail, 1 - tail])
        (slope,) = length_slopes(row[None, there], lengths)
        found.append(Slope(float(slope), float(low), float(high)))
    return found


def growth_claims(table: ErrorTable, published: PublishedTable, transition: int) -> tuple[Claim, Claim]:
    """The error grows with length below the transition, and no longer from it on."""
    below = "Below the transition the error grows with length."
    above = "From the transition on the error does not grow with length."
    if len(table.lengths) < 2:
        missing = "one length says nothing about growth"
        return Claim(below, Verdict.UNDECIDED, missing), Claim(above, Verdict.UNDECIDED, missing)
    slopes = length_growth(table)
    theirs, means = (_exponents(errors, table.lengths) for errors in (published.beside(table), table.mean))
    mean_too = published.statistic == "mean"

    grows, flat = [slope.grows for slope in slopes], [slope.flat for slope in slopes]

    def judge(statement: str, chosen: list[int], holds: list[bool], differs: list[bool]) -> Claim:
        known = [i for i in chosen if np.isfinite(slopes[i].slope)]
        if not known:
            return Claim(statement, Verdict.UNDECIDED, "no such head count was measured at two lengths")
        rows = "; ".join(
            f"{count_of_heads(table.heads[i])} {slopes[i].slope:+.2f} [{slopes[i].low:+.2f}, {slopes[i].high:+.2f}]"
            f"{f', of the means {_signed(means[i])}' if mean_too else ''} ({_signed(theirs[i])})"
            for i in known
        )
        evidence = f"d log(error) / d log(length), best of seeds [90 % of resamples] (published): {rows}"
        unknown = [count_of_heads(table.heads[i]) for i in chosen if i not in known]
        if unknown:
            evidence += f"; not measured at two lengths: {', '.join(unknown)}"
        bearing = [holds[i] for i in known] + [False] * len(unknown)
        return Claim(statement, verdict_of(bearing, [differs[i] for i in known]), evidence)

    places = range(len(table.heads))
    return (
        judge(below, [i for i in places if table.heads[i] < transition], grows, flat),
        judge(above, [i for i in places if table.heads[i] >= transition], flat, grows),
    )


def _exponents(errors: Float[np.ndarray, "heads lengths"], lengths: tuple[int, ...]) -> list[float]:
    fits = [power_law(np.asarray(lengths, float), row) for row in errors]
    return [np.nan if fit is None else fit.exponent for fit in fits]


def drop_claim(table: ErrorTable, published: PublishedTable, transition: int) -> Claim:
    """How far the error falls at the transition, as a factor (the geometric mean over lengths)."""
    statement = f"The error falls sharply from {transition - 1} to {transition} heads."
    measured, printed = measured_like(table, published), published.beside(table)
    ours = drop_factor(table.heads, measured, transition)
    theirs = drop_factor(table.heads, np.where(np.isfinite(measured), printed, np.nan), transition)
    if ours is None:
        return Claim(statement, Verdict.UNDECIDED, f"{transition - 1} and {transition} heads were not both measured")
    said = "" if theirs is None else f"published {theirs:.3g}-fold at these lengths, "
    return Claim(statement, decided(ours >= 10**MIN_DROP), f"{said}ours {ours:.3g}-fold")


def drop_factor(heads: tuple[int, ...], errors: Float[np.ndarray, "heads lengths"], transition: int) -> float | None:
    if transition not in heads or transition - 1 not in heads:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = errors[heads.index(transition - 1)] / errors[heads.index(transition)]
    ratio = ratio[np.isfinite(ratio) & (ratio > 0)]
    return float(np.exp(np.mean(np.log(ratio)))) if len(ratio) else None


def magnitude_claim(table: ErrorTable, published: PublishedTable) -> Claim:
    """Every cell is within a factor of ten of the published one."""
    statement = f"Every {published.statistic} over seeds is of the published order of magnitude."
    with np.errstate(divide="ignore"):  # an error of zero has no order of magnitude
        decades = np.log10(measured_like(table, published) / published.beside(table))
    known = np.isfinite(decades)
    if not known.any():
        return Claim(statement, Verdict.UNDECIDED, "no published cell was measured")
    near = int(np.sum(np.abs(decades[known]) <= TENFOLD))
    worst = np.unravel_index(np.argmax(np.where(known, np.abs(decades), -1.0)), decades.shape)
    side = "above" if decades[worst] > 0 else "below"
    furthest = f"{count_of_heads(table.heads[worst[0]])} at length {table.lengths[worst[1]]}"
    evidence = (
        f"{near} of {int(known.sum())} cells are within tenfold; the furthest, {furthest}, is "
        f"{10 ** abs(decades[worst]):.3g}-fold {side}"
    )
    return Claim(statement, decided(near == int(known.sum())), evidence)


def _signed(value: float) -> str:
    return "none" if np.isnan(value) else f"{value:+.2f}"
