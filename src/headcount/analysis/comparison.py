"""Measured beside published: a paper's table, and its claims judged one by one on our errors.

A claim holds, differs, or is undecided (what it speaks of was not measured); its evidence is the numbers it was judged
by, the published ones beside ours.
"""

import enum
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from .answer import Answer, bootstrap
from .signals import LEAST_DROP, length_slopes
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
        return np.array([[self.value(heads, length) for length in table.lengths] for heads in table.heads])

    def value(self, heads: int, length: int) -> float:
        if heads in self.heads and length in self.lengths:
            return float(self.values[self.heads.index(heads), self.lengths.index(length)])
        return float("nan")


def measured_like(table: ErrorTable, published: PublishedTable) -> Float[np.ndarray, "heads lengths"]:
    """Our errors under the statistic that was published."""
    return table.mean if published.statistic == "mean" else table.best


def count_of_heads(heads: int) -> str:
    return f"{heads} {'head' if heads == 1 else 'heads'}"


def decided(true: bool) -> Verdict:
    return Verdict.HOLDS if true else Verdict.DIFFERS


def transition_claim(answer: Answer, transition: int, statement: str) -> Claim:
    """The error drops for good at `transition` heads."""
    if answer.heads is None:
        return Claim(statement, Verdict.UNDECIDED, f"ours: {answer.sentence}")
    return Claim(statement, decided(answer.heads == transition), f"published: {transition}; ours: {answer.sentence}")


def growth_claims(table: ErrorTable, published: PublishedTable, transition: int) -> tuple[Claim, Claim]:
    """The error grows with length below the transition, and no longer from it on."""
    below = "Below the transition the error grows with length."
    above = "From the transition on the error does not grow with length."
    if len(table.lengths) < 2:
        missing = "one length says nothing about growth"
        return Claim(below, Verdict.UNDECIDED, missing), Claim(above, Verdict.UNDECIDED, missing)
    slopes, low, high = slope_intervals(table)
    theirs = length_slopes(published.beside(table), table.lengths)

    def judge(statement: str, chosen: list[int], fine: np.ndarray) -> Claim:
        chosen = [i for i in chosen if np.isfinite(slopes[i])]
        if not chosen:
            return Claim(statement, Verdict.UNDECIDED, "no such head count was measured at two lengths")
        evidence = "d log(error) / d log(length), ours with its 90 % interval (published): " + "; ".join(
            f"{count_of_heads(table.heads[i])} {slopes[i]:+.2f} [{low[i]:+.2f}, {high[i]:+.2f}] ({_signed(theirs[i])})"
            for i in chosen
        )
        return Claim(statement, decided(bool(np.all(fine[chosen]))), evidence)

    places = range(len(table.heads))
    return (
        judge(below, [i for i in places if table.heads[i] < transition], slopes > 0),
        judge(above, [i for i in places if table.heads[i] >= transition], (slopes <= FLAT_SLOPE) | (low <= 0)),
    )


def slope_intervals(table: ErrorTable) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The slope in length of the least error for every head count, and its 90 % bootstrap interval over seeds."""
    usable = np.isfinite(table.best).all(axis=1)
    slopes, low, high = np.full((3, len(table.heads)), np.nan)
    if usable.any():
        drawn = np.array([length_slopes(best, table.lengths) for best, _ in bootstrap(table.nmse[usable])])
        slopes[usable] = length_slopes(table.best[usable], table.lengths)
        low[usable], high[usable] = np.quantile(drawn, [0.05, 0.95], axis=0)
    return slopes, low, high


def drop_claim(table: ErrorTable, published: PublishedTable, transition: int) -> Claim:
    """How far the error falls at the transition, as a factor (the geometric mean over lengths)."""
    statement = f"The error falls sharply from {transition - 1} to {transition} heads."
    measured, printed = measured_like(table, published), published.beside(table)
    ours = drop_factor(table.heads, measured, transition)
    theirs = drop_factor(table.heads, np.where(np.isfinite(measured), printed, np.nan), transition)
    if ours is None:
        return Claim(statement, Verdict.UNDECIDED, f"{transition - 1} and {transition} heads were not both measured")
    said = "" if theirs is None else f"published {theirs:.3g}-fold at these lengths, "
    return Claim(statement, decided(ours >= 10**LEAST_DROP), f"{said}ours {ours:.3g}-fold")


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
