"""The answer: how many heads, with an interval over seeds and the evidence, or that no transition was found."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..store import Record
from .signals import (
    SMALL,
    Drop,
    drop_transition,
    length_slopes,
    reversal_scores,
    reversal_transition,
    slope_transition,
)
from .summary import NMSE, ErrorTable, error_table

RESAMPLES = 400
COVERAGE = 0.9
MIN_SEEDS = 2


@dataclass(frozen=True, kw_only=True)
class Answer:
    """`heads` is the fewest heads that are enough, None when no transition was found.

    `low` and `high` hold it in 90 % of bootstrap resamples of the seeds, and head counts between the tried ones that
    cannot be told apart. `support` is the share of resamples that give `heads` itself. `signals` are the estimates of
    the three signals, `by_length` the drop's estimate at each length alone, None where one is silent. `error` is the
    least error at `heads`.
    """

    heads: int | None
    low: int | None
    high: int | None
    support: float
    reason: str
    error: float | None
    signals: dict[str, int | None]
    by_length: dict[int, int | None]
    slopes: dict[int, float | None]
    reversals: dict[int, float | None]
    notes: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """The verdict in one line."""
        if self.heads is None:
            return f"no transition found: {self.reason}"
        return f"needs {self.heads} {'head' if self.heads == 1 else 'heads'} [{self.low}, {self.high}]"

    def as_dict(self) -> dict[str, Any]:
        return {"verdict": self.sentence} | asdict(self)


def answer(records: Iterable[Record]) -> Answer:
    """The answer of one experiment's records."""
    return answer_from_table(error_table(records))


def answer_from_table(table: ErrorTable, *, resamples: int = RESAMPLES, seed: int = 0) -> Answer:
    """The answer of a table of errors. Never from one seed: a head count without two finished seeds is left out."""
    if len(table.seeds) < MIN_SEEDS:
        return _no_answer("one seed is not evidence; give at least 2", ())
    usable = np.all(np.sum(np.isfinite(table.errors), axis=2) >= MIN_SEEDS, axis=1)
    left_out = [heads for heads, kept in zip(table.heads, usable, strict=True) if not kept]
    notes = [f"left out for want of two finished seeds: {', '.join(map(str, left_out))} heads"] if left_out else []
    heads = tuple(np.array(table.heads)[usable].tolist())
    nmse = table.errors[usable]
    if len(heads) == 0:
        return _no_answer("no head count has two finished seeds", tuple(notes))
    best, median = np.nanmin(nmse, axis=2), np.nanmedian(nmse, axis=2)
    found = drop_transition(best, median)
    resampled = list(bootstrap(nmse, resamples, seed))
    drawn = [drop_transition(*pair).index for pair in resampled]
    slopes, reversals = length_slopes(best, table.lengths), reversal_scores(best)
    spread = np.array([length_slopes(resample, table.lengths) for resample, _ in resampled])
    rising = np.quantile(spread, (1 - COVERAGE) / 2, axis=0) > 0
    if found.index == 0 and best[0].max() > SMALL and rising.all():
        found = Drop(None, "no head count tried lowers the error, and it grows with length; try more heads")
    transitions = {
        "drop": found.index,
        "slope": slope_transition(rising),
        "reversal": reversal_transition(reversals),
    }
    by_length = {
        length: _at(heads, drop_transition(best[:, [j]], median[:, [j]]).index)
        for j, length in enumerate(table.lengths)
    }
    agreeing = [index for index in drawn if index is not None]
    unstable = found.index is not None and len(agreeing) < len(drawn) / 2
    if unstable:
        notes.append(f"a drop at {heads[found.index]} heads rests on too few seeds")  # type: ignore[index]
    settled = found.index is not None and not unstable
    low, high = interval_of(heads, found.index, agreeing) if settled else (None, None)  # type: ignore[arg-type]
    error = float(best[found.index].max()) if settled else None  # type: ignore[index]
    if error is not None and error > 0.1:
        lost = "of the target's variance stays unexplained" if table.unit == NMSE else "of the answers stay wrong"
        notes.append(f"{error:.0%} {lost} at every head count")
    return Answer(
        heads=_at(heads, found.index) if settled else None,
        low=low,
        high=high,
        support=sum(index == found.index for index in drawn) / len(drawn),
        reason="most resamples of the seeds show none; give more seeds" if unstable else found.reason,
        error=error,
        signals={name: _at(heads, index) for name, index in transitions.items()},
        by_length=by_length,
        slopes=_by_heads(heads, slopes),
        reversals=_by_heads(heads, reversals),
        notes=tuple(notes),
    )


def bootstrap(nmse: np.ndarray, resamples: int = RESAMPLES, seed: int = 0) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Least and median error by heads and length when the seeds of every cell are drawn again with replacement."""
    generator = np.random.default_rng(seed)
    own_best = np.nanmin(nmse, axis=2)
    for _ in range(resamples):
        drawn = np.take_along_axis(nmse, generator.integers(0, nmse.shape[2], nmse.shape), axis=2)
        # A cell all of whose draws are lost seeds keeps its own best: a lost seed is not an error of any size.
        drawn = np.where(np.isnan(drawn).all(axis=2, keepdims=True), own_best[..., None], drawn)
        yield np.nanmin(drawn, axis=2), np.nanmedian(drawn, axis=2)


def interval_of(heads: tuple[int, ...], index: int, drawn: list[int]) -> tuple[int, int]:
    """The values that hold what was drawn in 90 % of resamples, and those between the tried ones that may be it too."""
    tail = (1 - COVERAGE) / 2
    first, last = np.quantile(drawn, [tail, 1 - tail], method="inverted_cdf").astype(int)
    first, last = min(first, index), max(last, index)
    # Between the last head count that fails and the first that is enough, those not tried may be enough too.
    return (heads[first - 1] + 1 if first > 0 else 1), heads[last]


def _at(heads: tuple[int, ...], index: int | None) -> int | None:
    return None if index is None else heads[index]


def _by_heads(heads: tuple[int, ...], values: np.ndarray) -> dict[int, float | None]:
    return {count: None if np.isnan(value) else float(value) for count, value in zip(heads, values, strict=True)}


def _no_answer(reason: str, notes: tuple[str, ...]) -> Answer:
    return Answer(
        heads=None,
        low=None,
        high=None,
        support=0.0,
        reason=reason,
        error=None,
        signals={"drop": None, "slope": None, "reversal": None},
        by_length={},
        slopes={},
        reversals={},
        notes=notes,
    )
