"""The answer in a few sentences: the errors on both sides of it, what is left, and what models without attention do.

Factors are stated from 1.1 on, and never where an error stays that heads do not lower.
"""

from collections.abc import Sequence

import numpy as np

from .answer import asked_table, has_map
from .answer_base import Answer
from .baselines import CONSTANT, POOLED, Baseline
from .enough import examples_of
from .heads_rule import judged_errors
from .signals import (
    ALIKE,
    GROWS_WITH_LENGTH,
    MIN_FOLD,
    NO_SHARP_DROP,
    NOT_LEARNED,
    NOTHING_LEARNED,
    SOLVED,
    STILL_FALLING,
    unlearned_above,
)
from .table import ErrorTable
from .words import (
    BELOW_EXACT,
    as_sentence,
    count_of_heads,
    error_words,
    factor_words,
    heads_listed,
    listed,
    size_of,
)

SAMPLING = 2.0
"""Standard errors within which two errors cannot be told apart."""
SOLVED_WELL = 1e-3
"""A relative error below this gains nothing worth a sentence from more heads."""
NOT_ALL_NOISE = 0.8
"""A model without attention whose error is below this share of the floor shows that the floor is not all noise."""


def prose(
    table: ErrorTable,
    answer: Answer,
    baselines: Sequence[Baseline] = (),
    *,
    examples: int | None = None,
    converged: bool = True,
    overfits: bool = False,
) -> tuple[str, ...]:
    """Say the answer in one to four sentences.

    `examples` is the number of validation examples, None where it is not known. `converged`: the error that the answer
    rests on no longer falls at the end of training. `overfits`: the training error is far below it.
    """
    if answer.map:
        return tuple(map(as_sentence, _of_map(answer)))
    asked, of_rank = asked_table(table)[0], has_map(table)
    judged = judged_errors(asked)
    if of_rank:
        sentences = _of_rank(asked, answer)
    elif judged is None:
        sentences = [f"there is no answer: {answer.reason}"]
    elif answer.kind == "none":
        sentences = [_no_answer(judged, answer, examples)]
    else:
        sentences = [{"needs": _needs, "floor": _floor, "enough": _enough}[answer.kind](judged, answer)]
    if judged is not None:
        sentences += _without_attention(judged, answer, baselines, examples, converged)
        if answer.kind == "floor" and not of_rank:
            sentences.append(_meaning(judged, baselines, overfits))
    return tuple(map(as_sentence, sentences))


def _of_map(answer: Answer) -> list[str]:
    """Say where most heads are needed, and where fewest; where none of those tried are enough."""
    needing = [each for each in answer.map if each.needed is not None]
    if not needing:
        return [f"there is no answer: {answer.reason}"]
    counts = [each.needed for each in needing if each.needed is not None]
    ends = str(min(counts)) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    far = sum(each.far for each in answer.map)
    without = len(answer.map) - len(needing) - far
    shows = "shows" if len(needing) == 1 else "show"
    words = [f"of {len(answer.map)} combinations, {len(needing)} {shows} a drop that lasts, at {ends} heads"]
    shows = "shows" if without == 1 else "show"
    words += [f"{without} {shows} none: more heads, wider ones, or more steps may"] if without else []
    words += (
        [f"{far} {'stays' if far == 1 else 'stay'} far above the best error at every head count tried"] if far else []
    )
    return words


def _of_rank(table: ErrorTable, answer: Answer) -> list[str]:
    """Say in one or two sentences what a table over heads and rank shows."""
    table = table.ordered("heads", "rank", "length", "seed")
    heads, ranks = table.values("heads"), table.values("rank")
    errors = table.reduced("seed").errors
    there = np.isfinite(errors).all(axis=2)
    worst = np.where(there, errors.max(axis=2, initial=-np.inf, where=np.isfinite(errors)), np.nan)
    name, tried = table.metric.noun, f"{heads_listed(heads)} of rank {listed(ranks)}"
    if not there.any():
        return [f"there is no answer: {answer.reason}"]
    if answer.kind == "none":
        row, column = np.unravel_index(np.nanargmin(worst), worst.shape)
        best = f"{error_words(table.metric, [worst[row, column]])} at best, with {size_of(heads[row], ranks[column])}"
        return [f"of {tried} {name} is {best}", f"there is no answer: {answer.reason}"]
    if answer.kind == "floor":
        spread = error_words(table.metric, worst[there])
        return [f"{name} is {spread} for all of {tried}: neither heads nor rank makes a difference"]
    solved = np.array([[answer.solves(count, rank) for rank in ranks] for count in heads]) & there
    words = f"from {' or '.join(dict.fromkeys(size_of(*answer.frontier[end]) for end in (0, -1)))} on {name} is"
    words = f"{words} {error_words(table.metric, worst[solved])}"
    unsolved = worst[there & ~solved]
    if not unsolved.size:
        return [f"{words}, for all that was tried: {tried}"]
    fold = answer.fold if answer.fold is not None and answer.fold >= MIN_FOLD else None
    times = "" if fold is None else f", {factor_words(fold)} times less than in the next smaller models"
    return [f"{words}{times}", f"the others of {tried} have {error_words(table.metric, unsolved)}"]


def _needs(judged: ErrorTable, answer: Answer) -> str:
    heads = judged.values("heads")
    place = heads.index(answer.heads)
    at, more = heads[place], heads[place + 1 :]
    if place == 0:
        fewer = "" if at == 1 else "; fewer were not tried"
        return f"{_with(judged, 0)}{_lengths(judged)}; {_gain(judged, 0)}{fewer}"
    before = f"{_with(judged, place - 1)}{_lengths(judged)}; with {at} it is"
    if answer.floor is not None:
        does = "does" if len(more) == 1 else "do"
        return f"{before} {_errors(judged, place)}, a floor that {listed(more)} {does} not lower much"
    return f"{before} {factor_words(answer.fold or 1.0)} times less; {_gain(judged, place)}"


def _gain(judged: ErrorTable, place: int) -> str:
    """Return what the head counts after a place add to it."""
    heads, logs = judged.values("heads"), np.mean(np.log10(np.maximum(judged.relative, SOLVED)), axis=1)
    more = heads[place + 1 :]
    best = place + 1 + int(np.argmin(logs[place + 1 :]))
    gain = float(10 ** (logs[place] - logs[best]))
    if gain < MIN_FOLD or judged.relative[place].max() <= SOLVED_WELL:
        return f"{listed(more)} {'adds' if len(more) == 1 else 'add'} nothing"
    return f"the most that more heads gain is a factor of {factor_words(gain)}, with {heads[best]}"


def _floor(judged: ErrorTable, answer: Answer) -> str:
    heads = judged.values("heads")
    place = heads.index(answer.heads)
    others = [*heads[:place], *heads[place + 1 :]]
    errors = error_words(judged.metric, np.delete(judged.errors, place, axis=0).ravel())
    hardly = "no" if place == 0 else "hardly any"
    words = f"{_with(judged, place)}{_lengths(judged)}, and with {listed(others)} it is {errors}"
    return f"{words}: heads make {hardly} difference"


def _enough(judged: ErrorTable, answer: Answer) -> str:
    """Compare the fewest heads that are enough with the fewest and the best of those tried."""
    heads = judged.values("heads")
    place, least = heads.index(answer.heads), int(np.argmin(judged.errors.mean(axis=1)))
    ends = [] if place == 0 else [_with(judged, 0) + _lengths(judged), f"with {heads[place]} {_errors(judged, place)}"]
    words = ", ".join(ends or [_with(judged, 0) + _lengths(judged)])
    if least > place:
        words = f"{words} and with {heads[least]}, the least of all, {_errors(judged, least)}"
    shape = "heads make no difference that shows" if answer.limit == "neither" else "it falls without a sharp drop"
    return f"{words}: {shape}. This is a choice for these models and data, not a statement of what the task needs"


def _meaning(judged: ErrorTable, baselines: Sequence[Baseline], overfits: bool) -> str:
    """Return what an error that no head count lowers may come from."""
    rival = min(baselines, key=lambda each: each.error, default=None)
    few = "too few examples: the training error is far below the validation error"
    if rival is not None and rival.error < NOT_ALL_NOISE * _best(judged):
        also = f"; it may be {few}" if overfits else ""
        return f"what is left is not all noise in y, since {rival.label} gets lower: the limit is not heads{also}"
    limit = "a limit that is not heads, such as the number of layers"
    return f"what is left may be noise in y, or {limit}" + (f", or {few}" if overfits else "")


def _no_answer(judged: ErrorTable, answer: Answer, examples: int | None) -> str:
    heads, reason = judged.values("heads"), answer.reason
    row, column = np.unravel_index(np.argmin(judged.relative), judged.errors.shape)
    least = error_words(judged.metric, [judged.errors[row, column]])
    best = f"{judged.metric.noun} is {least} at best, with {count_of_heads(heads[row])}"
    if reason.startswith(NOT_LEARNED):
        constant = error_words(judged.metric, [judged.baseline[row, column]])
        return f"no head count tried ({listed(heads)}) learns the task: {best}; a constant answer has {constant}"
    if len(heads) > 1 and reason in (STILL_FALLING, NO_SHARP_DROP, GROWS_WITH_LENGTH):
        return _trend(judged, reason, examples)
    return f"there is no answer from the head counts tried ({listed(heads)}), because {reason}; {best}"


def _trend(judged: ErrorTable, reason: str, examples: int | None) -> str:
    """Describe an error that falls without an answer, or seems to."""
    heads = judged.values("heads")
    words = f"{_with(judged, 0)}{_lengths(judged)}, and with {heads[-1]} it is {_errors(judged, -1)}"
    if reason == GROWS_WITH_LENGTH:
        return f"{words}; no head count lowers it, and it grows with length"
    if differ_by_chance(judged, examples):
        return f"{words}: differences within the sampling error of {examples:,} validation examples, which are no trend"
    if reason == STILL_FALLING:
        return f"{words}; it still falls there, at the most heads tried"
    return f"{words}; between them it changes without a sharp drop that lasts"


def _with(judged: ErrorTable, place: int) -> str:
    heads = count_of_heads(judged.values("heads")[place])
    return f"with {heads} {judged.metric.noun} is {_errors(judged, place)}"


def _errors(judged: ErrorTable, place: int) -> str:
    """Return the errors of a head count over lengths."""
    return error_words(judged.metric, judged.errors[place])


def _lengths(judged: ErrorTable) -> str:
    lengths = judged.values("length")
    return f" (lengths {min(lengths)} to {max(lengths)})" if len(lengths) > 1 else ""


def differ_by_chance(judged: ErrorTable, examples: int | None) -> bool:
    """Whether head counts differ by less than the sampling error of the validation examples, at every length."""
    if examples is None:
        return False
    smallest, largest = judged.errors.min(axis=0), judged.errors.max(axis=0)
    return bool(np.all(largest - smallest <= _sampling_error(judged, smallest, examples)))


def _sampling_error(judged: ErrorTable, errors: np.ndarray | float, examples: int) -> np.ndarray:
    """Return twice the standard error over the examples: of a share, or of the mean square of normal residuals.

    A mean over classes, or over tokens of few sequences, is known as well as a share of fewer examples, as many as give
    the standard error of the baseline.
    """
    errors = np.asarray(errors, float)
    if judged.metric.baseline is not None:
        return np.asarray(SAMPLING * np.sqrt(2 * errors**2 / examples))
    fewest = np.min(examples_of(judged.baseline, judged.noise, examples))
    return np.asarray(SAMPLING * np.sqrt(np.maximum(errors * (1 - errors), 0.0) / fewest))


def _without_attention(
    judged: ErrorTable, answer: Answer, baselines: Sequence[Baseline], examples: int | None, converged: bool
) -> list[str]:
    """Return what models without attention reach at the longest length, and whether attention is worth it."""
    others = [each for each in baselines if each.name != CONSTANT]
    if not others:
        return []
    length = max(judged.values("length"))
    where = f" at length {length}" if len(judged.values("length")) > 1 else ""
    words = [f"without attention{where}: {', '.join(_named(judged, each) for each in baselines)}"]
    rival, best = min(others, key=lambda each: each.error), _best(judged)
    if rival.error > unlearned_above(judged.noise / judged.baseline).max() * judged.baseline.max():
        return words
    margin = 0.0 if examples is None else float(_sampling_error(judged, best, examples))
    lower = rival.error < min(best / ALIKE, best - margin)
    if judged.relative.min() > NOTHING_LEARNED or answer.reason.startswith(NOT_LEARNED):
        return words + ([f"{rival.label} does better, so training failed"] if lower else [])
    if not converged or answer.reason in (STILL_FALLING, GROWS_WITH_LENGTH):
        return words + ([f"{rival.label} does better than the best of these models so far"] if lower else [])
    return words + _compared(judged, rival, examples, margin)


def _named(judged: ErrorTable, baseline: Baseline) -> str:
    note = f" ({baseline.note})" if baseline.note else ""
    error = error_words(judged.metric, [baseline.error])
    return f"{baseline.label} {f'exact ({error})' if error == BELOW_EXACT else error}{note}"


def _compared(judged: ErrorTable, rival: Baseline, examples: int | None, margin: float) -> list[str]:
    """Compare the best model without attention: as good within five per cent, or not told apart."""
    best = _best(judged)
    if max(rival.error, best) <= SOLVED_WELL * judged.baseline.max():
        given = (
            ", which is given the largest and the smallest number of every coordinate," if rival.name == POOLED else ""
        )
        return [f"{rival.label}{given} solves it too"]
    if rival.error <= ALIKE * best:
        better = "better than" if rival.error < min(best / ALIKE, best - margin) else "as well as"
        return [f"attention buys nothing here: {rival.label} does {better} the best of these models"]
    if rival.error <= best + margin:
        apart = f"cannot be told apart with {examples:,} validation examples"
        return [f"{rival.label} and the best of these models {apart}"]
    return []


def _best(judged: ErrorTable) -> float:
    """Return the smallest error at the longest length."""
    lengths = judged.values("length")
    return float(judged.errors[:, lengths.index(max(lengths))].min())
