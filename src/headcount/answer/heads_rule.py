"""How many heads: the drop of the error along one axis of head counts, with an interval over seeds and the evidence."""

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from .answer_base import SIGNALS, Answer, Interval, Kind, Unknown
from .bootstrap import MIN_SEEDS, TAIL, bootstrap, interval_of
from .metric import BALANCED_ERROR
from .signals import (
    GROWS_WITH_LENGTH,
    MIN_FOLD,
    NONE,
    NOT_LEARNED,
    NOTHING_LEARNED,
    ON_A_FLOOR,
    SMALL,
    UNSTABLE,
    DropTransition,
    drop_indices,
    drop_transition,
    has_floor,
    length_slopes,
    reversal_scores,
    reversal_transition,
    slope_transition,
    smallest_error,
    unlearned_above,
)
from .table import ErrorTable
from .words import count_of_heads, error_words

MAX_MISSED = 0.05
"""A chance above this of having missed a solution is part of the interval."""
MIN_SLOPE_SEEDS = 3
"""Finished seeds that every head count needs at every length before the slope in length says anything."""
ONE_SEED = "one seed is not evidence; give at least 2"
DIVERGED = "diverged; a smaller learning rate, or data scaled to about 1, may help"
NOT_ON_EVERY_DRAW = "did as well as more on one draw of the data, not on every one"
MUCH = 0.1
"""An error above this where heads are enough is worth a note."""


def answer_by_heads(table: ErrorTable, *, resamples: int, seed: int) -> Answer:
    """Answer from a table of heads x length x seed, perhaps also over starts and draws of the data.

    The first draw answers; the others say how far it can be trusted. A head count with fewer than two finished seeds is
    excluded.
    """
    if not table.has("data_seed"):
        return _on_one_draw(table, resamples, seed)
    draws = [table.select(data_seed=value).trimmed() for value in table.values("data_seed")]
    first, *others = [_on_one_draw(draw, resamples, seed) for draw in draws]
    return _over_draws(first, others, table.values("heads")) if first.needs and others else first


def _over_draws(first: Answer, others: list[Answer], tried: tuple[int, ...]) -> Answer:
    """Widen the interval of the first answer to those of other draws of the data."""
    needs = first.needs["heads"]
    there = [other.heads for other in others if other.heads is not None]
    low, high = min([needs.at, *there]), max([needs.at, *there])
    silent = len(others) - len(there)
    notes = first.notes
    on_a_floor = needs.at == tried[0] or first.fold is None or first.fold < ON_A_FLOOR
    if silent and on_a_floor and (first.error or 0.0) > SMALL:
        return _no_answer(f"{count_of_heads(needs.at)} {NOT_ON_EVERY_DRAW}")
    if silent:  # a draw without an answer: the neighbours cannot be ruled out
        low = max([count for count in tried if count < low], default=low)
        high = min([count for count in tried if count > high], default=high)
        notes = (*notes, f"{silent} of {1 + len(others)} draws of the data show no transition")
    if first.kind == "floor" and there and max(there) > needs.at:
        notes = (*notes, f"another draw of the data gives {count_of_heads(max(there))}")
    unknowns: dict[Unknown, Interval] = {**first.unknowns, "data": Interval(needs.at, low, high)}
    return _with_interval(replace(first, notes=notes), needs.at, unknowns)


def _with_interval(answer: Answer, at: int, unknowns: dict[Unknown, Interval]) -> Answer:
    """Return the answer with the bounds that hold all unknowns."""
    low, high = min(each.low for each in unknowns.values()), max(each.high for each in unknowns.values())
    needs = Interval(at, low, high)
    sentence = answer.sentence if answer.kind == "floor" else f"needs {count_of_heads(at)} [{low}, {high}]"
    return replace(answer, sentence=sentence, needs={"heads": needs}, unknowns=unknowns)


def usable_draws(table: ErrorTable) -> list[ErrorTable]:
    """Return the errors over heads, length and seed on every draw of the data that has some.

    They are those of head counts with enough finished seeds; every start counts like a seed.
    """
    draws = [table.select(data_seed=value).trimmed() for value in table.values("data_seed")] or [table]
    usable = (_usable(draw.merged("start", "seed").ordered("heads", "length", "seed"))[0] for draw in draws)
    return [draw for draw in usable if draw is not None]


def judged_errors(table: ErrorTable) -> ErrorTable | None:
    """Return the smallest errors, by heads and length, that decide the answer; None where there are none.

    They are those of the first draw of the data, of head counts with enough finished seeds.
    """
    if table.has("data_seed"):
        table = table.select(data_seed=table.values("data_seed")[0]).trimmed()
    kept, _ = _usable(table.reduced("rank").merged("start", "seed").ordered("heads", "length", "seed"))
    return None if kept is None else kept.reduced("seed")


def _usable(table: ErrorTable) -> tuple[ErrorTable | None, list[int]]:
    """Return the part of the head counts with enough finished seeds at every length, and the other head counts."""
    usable = np.all(np.sum(np.isfinite(table.errors), axis=2) >= MIN_SEEDS, axis=1)
    tried = table.values("heads")
    left_out = [heads for heads, kept in zip(tried, usable, strict=True) if not kept]
    if not usable.any():
        return None, left_out
    kept = table.select(heads=[heads for heads, keep in zip(tried, usable, strict=True) if keep])
    return replace(kept, errors=np.where(np.isfinite(kept.errors), kept.errors, np.nan)), left_out


def _on_one_draw(table: ErrorTable, resamples: int, seed: int) -> Answer:
    table = table.merged("start", "seed").ordered("heads", "length", "seed")
    if len(table.values("seed")) < MIN_SEEDS:
        return _no_answer(ONE_SEED)
    kept, left_out = _usable(table)
    notes: tuple[str, ...] = ()
    if left_out:
        count = f"{', '.join(map(str, left_out[:-1]))}, " if len(left_out) > 1 else ""
        notes = (f"excluded (fewer than {MIN_SEEDS} finished seeds): {count}{count_of_heads(left_out[-1])}",)
    if kept is None:
        return _no_answer(f"no head count has {MIN_SEEDS} finished seeds", notes)
    return _answer(kept, resamples, seed, notes)


def _answer(table: ErrorTable, resamples: int, seed: int, notes: tuple[str, ...]) -> Answer:
    heads, lengths = table.values("heads"), table.values("length")
    judged, middle = table.reduced("seed"), table.reduced("seed", "median")
    best, median = judged.relative, middle.errors / judged.baseline
    unlearned = unlearned_above(judged.noise / judged.baseline)
    grain = _grain(judged)
    drop = drop_transition(best, median, unlearned, grain)
    if len(heads) > 1 and np.all(best > unlearned):
        drop = replace(drop, reason=nothing_learned(NOT_LEARNED, judged))
    drawn = bootstrap(table.relative, resamples, seed)
    indices = drop_indices(drawn.best, drawn.median, unlearned, grain)
    slopes, reversals = length_slopes(best, lengths), reversal_scores(best)
    rising = np.quantile(length_slopes(drawn.best, lengths), TAIL, axis=0) > 0
    if drop.index == 0 and best[0].max() > SMALL and rising.all():
        drop = DropTransition(None, GROWS_WITH_LENGTH)
    enough_seeds = np.isfinite(table.errors).sum(axis=2).min() >= MIN_SLOPE_SEEDS
    slope = slope_transition(rising) if enough_seeds else None
    kind = _kind(drop, best)
    floor = float(judged.errors.min(axis=0).max()) if has_floor(judged.relative) else None
    estimates = (None if kind == "floor" else drop.index, slope, reversal_transition(reversals))
    agreeing = indices[indices != NONE]
    unstable = drop.index is not None and len(agreeing) < len(indices) / 2
    evidence = {
        "support": float(np.sum(indices == (NONE if drop.index is None else drop.index)) / len(indices)),
        "silent": float(np.mean(indices == NONE)),
        "signals": {name: _at(heads, index) for name, index in zip(SIGNALS, estimates, strict=True)},
        "by_length": {
            length: _at(heads, _drop_at(best[:, [j]], median[:, [j]], unlearned[:, [j]], grain[[j]]))
            for j, length in enumerate(lengths)
        },
        "slopes": _by_heads(heads, slopes),
        "reversals": _by_heads(heads, reversals),
    }
    if drop.index is None or unstable:
        reason = drop.reason
        if drop.index is not None:
            reason = UNSTABLE
            notes = (*notes, f"a drop at {count_of_heads(heads[drop.index])} rests on too few seeds")
        return Answer(sentence=f"no transition found: {reason}", reason=reason, notes=notes, **evidence)
    at = heads[drop.index]
    unknowns: dict[Unknown, Interval] = {"seeds": Interval(at, *interval_of(heads, drop.index, agreeing))}
    if drop.index > 0:
        missed = chance_missed(table.relative, table.values("seed"), drop.index, smallest_error(grain))
        unknowns["search"] = Interval(at, at if missed <= MAX_MISSED else heads[drop.index - 1], at)
        if missed > MAX_MISSED:
            below = count_of_heads(heads[drop.index - 1])
            notes = (*notes, f"starts at {count_of_heads(at)} disagree: {below} may be enough and never found")
    error = float(judged.errors[drop.index].max())
    if error > MUCH:
        notes = (*notes, f"{error:.0%} {table.metric.lost} at every head count")
    found = Answer(
        sentence=_floor_sentence(judged, at) if kind == "floor" else "",
        kind=kind,
        floor=floor,
        limit="heads",
        reason=drop.reason,
        error=error,
        fold=drop.fold,
        notes=notes,
        **evidence,
    )
    return _with_interval(found, at, unknowns)


def _kind(drop: DropTransition, best: Float[np.ndarray, "heads lengths"]) -> Kind:
    """Whether the head count is needed, or only does as well as more: the smallest one tried without a small error, or
    one at which the error hardly falls."""
    if drop.index is None:
        return "none"
    first = drop.index == 0 and bool(best[0].max() > SMALL)
    return "floor" if first or (drop.fold is not None and drop.fold < MIN_FOLD) else "needs"


def _floor_sentence(judged: ErrorTable, at: int) -> str:
    most = judged.values("heads")[-1]
    floor = error_words(judged.metric, judged.errors.min(axis=0))
    wrong = "balanced error" if judged.metric == BALANCED_ERROR else "wrong"
    floor = f"{floor} {wrong}" if judged.metric.baseline is None else floor
    alike = f"{count_of_heads(at)} {'does' if at == 1 else 'do'} as well as {most}"
    return f"{alike}, and none gets below {floor}" if judged.errors.min() > 0 else f"{alike}; differences are chance"


def _drop_at(
    best: Float[np.ndarray, "heads one"],
    median: Float[np.ndarray, "heads one"],
    unlearned: Float[np.ndarray, "heads one"],
    grain: Float[np.ndarray, " one"],
) -> int | None:
    """Return the index of the drop at one length alone; None where heads make no difference there."""
    drop = drop_transition(best, median, unlearned, grain)
    return None if _kind(drop, best) == "floor" else drop.index


def chance_missed(
    errors: Float[np.ndarray, "heads lengths attempts"],
    attempts: tuple[int | str, ...],
    index: int,
    smallest: Float[np.ndarray, "..."] | float,
) -> float:
    """Return the chance that the next smaller head count is enough too and every start there missed it.

    A kind of start that succeeds with probability p at the answer misses m times in a row with (1 - p)^m. Where some
    starts failed at the answer, the smaller head count is taken to be twice as hard. Of several lengths the worst.
    """
    kinds = np.array([str(attempt).partition(" ")[0] if isinstance(attempt, str) else "random" for attempt in attempts])
    chances = []
    for j in range(errors.shape[1]):
        here, below = np.maximum(errors[index - 1 : index + 1, j], np.broadcast_to(smallest, errors.shape[1])[j])[::-1]
        # Between the two best errors, on a log scale: a start on this side of it found what the answer rests on.
        enough = np.sqrt(np.nanmin(here) * np.nanmin(below))
        chance = 1.0
        for kind in set(kinds):
            tried, found = np.isfinite(here[kinds == kind]).sum(), np.sum(here[kinds == kind] <= enough)
            success = found / (tried + 1) if found == tried else found / (2 * (tried + 1))
            chance *= (1 - success) ** np.isfinite(below[kinds == kind]).sum()
        chances.append(chance)
    return float(max(chances))


def _grain(judged: ErrorTable) -> Float[np.ndarray, " lengths"]:
    """Return what one wrong validation example adds to a relative error rate, per length; 0 for other metrics.

    The standard error of a baseline b over n examples is sqrt(b (1 - b) / n), which gives n.
    """
    if judged.metric.baseline is not None:
        return np.zeros(judged.errors.shape[1])
    share, noise = judged.baseline, judged.noise
    with np.errstate(divide="ignore", invalid="ignore"):
        one = noise**2 / (share**2 * (1 - share))
    return np.nanmax(np.where(np.isfinite(one), one, 0.0), axis=0)


def nothing_learned(words: str, judged: ErrorTable) -> str:
    """Add to the words the smallest error, and what a constant answer scores there."""
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


def all_diverged(models: int) -> Answer:
    """Return the answer where no model has an error."""
    return _no_answer(f"{f'all {models} models' if models > 1 else 'the one model'} {DIVERGED}")


def _no_answer(reason: str, notes: tuple[str, ...] = ()) -> Answer:
    silent: dict[str, int | None] = dict.fromkeys(SIGNALS)
    return Answer(sentence=f"no transition found: {reason}", reason=reason, signals=silent, notes=notes)
