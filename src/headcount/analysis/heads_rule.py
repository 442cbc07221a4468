"""How many heads: the drop of the error along one axis of head counts, with an interval over seeds and the evidence."""

from dataclasses import replace

import numpy as np

from .answer_base import SIGNALS, Answer, Interval
from .bootstrap import MIN_SEEDS, TAIL, bootstrap, interval_of
from .signals import (
    NONE,
    NOTHING_LEARNED,
    SMALL,
    Drop,
    drop_indices,
    drop_transition,
    length_slopes,
    reversal_scores,
    reversal_transition,
    slope_transition,
    unlearned_above,
)
from .table import ErrorTable
from .words import count_of_heads

MUCH = 0.1
"""An error above this where heads are enough is worth a note."""


def answer_by_heads(table: ErrorTable, *, resamples: int, seed: int) -> Answer:
    """The answer of a table of heads x length x seed; a head count with fewer than two finished seeds is excluded."""
    if len(table.values("seed")) < MIN_SEEDS:
        return _no_answer("one seed is not evidence; give at least 2")
    finite = np.isfinite(table.errors)
    usable = np.all(np.sum(finite, axis=2) >= MIN_SEEDS, axis=1)
    tried = table.values("heads")
    left_out = [heads for heads, kept in zip(tried, usable, strict=True) if not kept]
    notes: tuple[str, ...] = ()
    if left_out:
        count = f"{', '.join(map(str, left_out[:-1]))}, " if len(left_out) > 1 else ""
        notes = (f"excluded (fewer than {MIN_SEEDS} finished seeds): {count}{count_of_heads(left_out[-1])}",)
    if not usable.any():
        return _no_answer(f"no head count has {MIN_SEEDS} finished seeds", notes)
    kept = table.select(heads=[heads for heads, keep in zip(tried, usable, strict=True) if keep])
    kept = replace(kept, errors=np.where(np.isfinite(kept.errors), kept.errors, np.nan))
    return _answer(kept, resamples, seed, notes)


def _answer(table: ErrorTable, resamples: int, seed: int, notes: tuple[str, ...]) -> Answer:
    heads, lengths = table.values("heads"), table.values("length")
    judged, middle = table.reduced("seed"), table.reduced("seed", "median")
    best, median = judged.relative, middle.errors / judged.baseline
    unlearned = unlearned_above(judged.noise / judged.baseline)
    drop = drop_transition(best, median, unlearned)
    if len(heads) > 1 and np.all(best > unlearned):
        drop = replace(drop, reason=nothing_learned("no head count learns the task", judged))
    drawn = bootstrap(table.relative, resamples, seed)
    indices = drop_indices(drawn.best, drawn.median, unlearned)
    slopes, reversals = length_slopes(best, lengths), reversal_scores(best)
    rising = np.quantile(length_slopes(drawn.best, lengths), TAIL, axis=0) > 0
    if drop.index == 0 and best[0].max() > SMALL and rising.all():
        drop = Drop(None, "no head count tried lowers the error, and it grows with length; try more heads")
    estimates = (drop.index, slope_transition(rising), reversal_transition(reversals))
    agreeing = indices[indices != NONE]
    unstable = drop.index is not None and len(agreeing) < len(indices) / 2
    evidence = {
        "support": float(np.sum(indices == (NONE if drop.index is None else drop.index)) / len(indices)),
        "signals": {name: _at(heads, index) for name, index in zip(SIGNALS, estimates, strict=True)},
        "by_length": {
            length: _at(heads, drop_transition(best[:, [j]], median[:, [j]], unlearned[:, [j]]).index)
            for j, length in enumerate(lengths)
        },
        "slopes": _by_heads(heads, slopes),
        "reversals": _by_heads(heads, reversals),
    }
    if drop.index is None or unstable:
        reason = drop.reason
        if drop.index is not None:
            reason = "most resamples of the seeds show none; give more seeds"
            notes = (*notes, f"a drop at {count_of_heads(heads[drop.index])} rests on too few seeds")
        return Answer(sentence=f"no transition found: {reason}", reason=reason, notes=notes, **evidence)
    needs = Interval(heads[drop.index], *interval_of(heads, drop.index, agreeing))
    error = float(judged.errors[drop.index].max())
    if error > MUCH:
        notes = (*notes, f"{error:.0%} {table.metric.lost} at every head count")
    return Answer(
        sentence=f"needs {count_of_heads(needs.at)} [{needs.low}, {needs.high}]",
        needs={"heads": needs},
        limit="heads",
        reason=drop.reason,
        error=error,
        notes=notes,
        **evidence,
    )


def nothing_learned(words: str, judged: ErrorTable) -> str:
    """The words, and the smallest error beside what a constant answer scores there."""
    place = np.unravel_index(np.nanargmin(judged.relative), judged.errors.shape)
    error, baseline = judged.errors[place], judged.baseline[place]
    chance = (
        "; the difference may be chance, with so few validation examples" if error <= NOTHING_LEARNED * baseline else ""
    )
    return f"{words}; the smallest error is {error:.2f}, the best constant answer's is {baseline:.2f}{chance}"


def _at(heads: tuple[int, ...], index: int | None) -> int | None:
    return None if index is None else heads[index]


def _by_heads(heads: tuple[int, ...], values: np.ndarray) -> dict[int, float | None]:
    return {count: None if np.isnan(value) else float(value) for count, value in zip(heads, values, strict=True)}


def _no_answer(reason: str, notes: tuple[str, ...] = ()) -> Answer:
    silent: dict[str, int | None] = dict.fromkeys(SIGNALS)
    return Answer(sentence=f"no transition found: {reason}", reason=reason, signals=silent, notes=notes)
