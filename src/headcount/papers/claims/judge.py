"""Judge a claim by its cases, and the statistics that cases rest on: intervals over seeds, ratios, slopes, means."""

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, ParamSpec

import numpy as np
from jaxtyping import Float

from ...answer import ErrorTable
from ...answer.bootstrap import MIN_SEEDS, TAIL, bootstrap
from ...answer.claim import ClaimResult, Verdict, verdict_of
from ..fits import Estimate

P = ParamSpec("P")
SMALLEST = 1e-30
"""In place of an error of zero, which has no logarithm."""


class Case(NamedTuple):
    """One measurement that bears on a claim: in words, whether it bears the claim out, and whether it refutes it.

    A case without words is one that was not measured.
    """

    words: str
    holds: bool | np.bool_
    differs: bool | np.bool_


Cases = Iterator[Case | str]
"""Cases; a string before them introduces them in the evidence, one after them is added to it."""


def judge(statement: str, cases: Iterable[Case | str], missing: str, *, whole: bool = True) -> ClaimResult:
    """HOLDS where every case bears the claim out, DIFFERS where one refutes it, UNDECIDED otherwise.

    `missing` is the evidence without cases. Unless the `whole` recipe of the paper was followed it stays undecided.
    """
    cases = list(cases)
    known = [case for case in cases if isinstance(case, Case)]
    if not any(case.words for case in known):
        return ClaimResult(statement, Verdict.UNDECIDED, missing)
    verdict = verdict_of([bool(case.holds) for case in known], [bool(case.differs) for case in known])
    first, last = cases.index(known[0]), len(cases) - cases[::-1].index(known[-1])
    words = "; ".join(case.words for case in known if case.words)
    evidence = "".join([*map(str, cases[:first]), words, *map(str, cases[last:])])
    return ClaimResult(statement, verdict if whole else Verdict.UNDECIDED, evidence)


def claims_that(statement: str, missing: str) -> Callable[[Callable[P, Cases]], Callable[P, ClaimResult]]:
    """Decorate a function that yields cases to make it a judge of a statement.

    `{name}` in the statement and in what is said where something is `missing` is the argument of that name; the
    argument `whole` is that of `judge`.
    """

    def decorate(cases_of: Callable[P, Cases]) -> Callable[P, ClaimResult]:
        signature = inspect.signature(cases_of)

        @functools.wraps(cases_of)
        def judged(*args: P.args, **kwargs: P.kwargs) -> ClaimResult:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            said = (words.format(**bound.arguments) for words in (statement, missing))
            return judge(next(said), cases_of(*args, **kwargs), next(said), whole=bound.arguments.get("whole", True))

        return judged

    return decorate


def exactly(words: str, true: bool | np.bool_) -> Case:
    return Case(words, true, not true)


def above(words: str, estimate: Estimate, limit: float) -> Case:
    """A value is above a limit: so is its interval; refuted where none of that is."""
    return Case(words, estimate.low > limit, estimate.high <= limit)


def at_most(words: str, estimate: Estimate, limit: float) -> Case:
    return Case(words, estimate.high <= limit, estimate.low > limit)


def within(words: str, estimate: Estimate, low: float, high: float) -> Case:
    """A value lies between two others: all of its interval does; refuted where none of it does."""
    return Case(words, low <= estimate.low and estimate.high <= high, estimate.low > high or estimate.high < low)


def interval_of_resamples(value: float, drawn: np.ndarray) -> Estimate:
    low, high = np.quantile(drawn, [TAIL, 1 - TAIL])
    return Estimate(float(low), float(value), float(high))


def widened(estimate: Estimate) -> Estimate:
    low, value, high = estimate
    return Estimate(min(low, value), value, max(high, value))


def estimate_words(estimate: Estimate, form: str, unit: str = "") -> str:
    """Such as "+0.12 [+0.05, +0.20]"."""
    return f"{estimate.value:{form}}{unit} [{estimate.low:{form}}, {estimate.high:{form}}]"


def geometric_mean(values: Iterable[float] | np.ndarray) -> float:
    """The geometric mean; 0 where a value is, NaN of none."""
    logs = np.asarray(list(values), float)
    with np.errstate(divide="ignore"):
        return float(np.exp(np.mean(np.log(logs)))) if len(logs) else np.nan


def log_ratios(above: ErrorTable | None, heads: int, below: ErrorTable | None, other: int) -> Estimate | None:
    """log10 of the error of `heads` in one table over that of `other` heads in another: the mean over shared lengths.

    Of the best of seeds, with the interval over resamples of the seeds. None where no length has enough seeds of both.
    """
    if above is None or below is None or heads not in above.values("heads") or other not in below.values("heads"):
        return None
    rows = [_by_length(above, heads), _by_length(below, other)]
    shared = [length for length in rows[0] if length in rows[1]]
    if not shared:
        return None
    logs, drawn = [], []
    for place, row in enumerate(rows):
        seeds = max(len(row[length]) for length in shared)
        errors = np.full((len(shared), seeds), np.nan)
        for i, length in enumerate(shared):
            errors[i, : len(row[length])] = np.maximum(row[length], SMALLEST)
        logs.append(np.log10(np.nanmin(errors, axis=1)).mean())
        drawn.append(np.log10(bootstrap(errors, seed=place).best).mean(axis=1))
    return interval_of_resamples(logs[0] - logs[1], drawn[0] - drawn[1])


def _by_length(table: ErrorTable, heads: int) -> dict[int, Float[np.ndarray, " seeds"]]:
    """The errors of a head count at every length with enough finished seeds."""
    rows = table.select(heads=heads).ordered("length", "seed").errors
    finished = {length: row[np.isfinite(row)] for length, row in zip(table.values("length"), rows, strict=True)}
    return {length: row for length, row in finished.items() if len(row) >= MIN_SEEDS}


def folds(decades: Estimate) -> str:
    return estimate_words(Estimate(*(10**each for each in decades)), ".3g", "-fold")


def finite_ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """The quotients that are there: neither side lost, nor zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = above / below
    return ratio[np.isfinite(ratio)]


def in_points(shares: Sequence[float] | np.ndarray) -> str:
    return f"from {100 * np.min(shares):+.1f} to {100 * np.max(shares):+.1f} points"
