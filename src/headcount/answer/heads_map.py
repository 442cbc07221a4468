"""How many heads are needed at every kv_heads and head_dim: the rule for heads on each part of a table.

Models whose heads each have their own keys and values lie where kv_heads equals heads. Together they are a column of
their own, the one that shared keys are compared with.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from .answer_base import Answer, HeadsAt
from .table import ErrorTable
from .words import count_of_heads, factor_words, listed

MAP_AXES = ("kv_heads", "head_dim")
FAR_BEHIND = 10.0
"""An error this many times the smallest of the map is of another order: heads are not what is short there."""
FAR_ABOVE = 1e-4
"""As a share of the best constant answer's error: a place with a smaller error is solved, whatever the best one has."""
OWN = "own"
"""In place of a number of kv_heads: every head has its own keys and values."""


def has_heads_map(table: ErrorTable) -> bool:
    """Whether head counts were tried at several kv_heads or head_dims."""
    return table.has("heads") and any(len(table.values(axis)) > 1 for axis in MAP_AXES)


def parts_of(table: ErrorTable) -> dict[tuple[Any, Any], ErrorTable]:
    """Return the part of a table at every (kv_heads, head_dim), less the head counts that were not tried there.

    None stands for an axis that the table does not have. Places of a single head count are left out, unless all are.
    """
    parts: dict[tuple[Any, Any], ErrorTable] = {}
    for head_dim in table.values("head_dim") or (None,):
        row = table if head_dim is None else table.select(head_dim=head_dim)
        for kv_heads in table.values("kv_heads") or (None,):
            parts[kv_heads, head_dim] = row if kv_heads is None else row.select(kv_heads=kv_heads)
        if table.has("kv_heads"):
            parts[OWN, head_dim] = _own(row)
    trimmed = {place: part.trimmed() for place, part in parts.items()}
    tried = {place: part for place, part in trimmed.items() if part.errors.size}
    return {place: part for place, part in tried.items() if len(part.values("heads")) > 1} or tried


def _own(table: ErrorTable) -> ErrorTable:
    """Return the models whose heads each have their own keys and values: as many kv_heads as heads."""
    table = table.ordered("heads", "kv_heads")
    heads, groups = table.values("heads"), table.values("kv_heads")
    own = np.equal.outer(heads, groups).reshape(len(heads), len(groups), *(1,) * (table.errors.ndim - 2))
    return replace(table, errors=np.where(own, table.errors, np.nan), deviation=None).reduced("kv_heads")


def answer_by_place(table: ErrorTable, answer_part: Callable[[ErrorTable], Answer]) -> Answer:
    """Answer from a table of heads x kv_heads x head_dim: what is needed at each, and in one sentence.

    The interval of the answer is that of the place that needs fewest heads, of those that are not far behind the best;
    `map` has all of them.
    """
    parts = parts_of(table)
    answers = {place: answer_part(part) for place, part in parts.items()}
    needing = [found for found in answers.values() if found.kind == "needs" and found.error]
    lowest = min(needing, key=lambda each: each.error or 0.0, default=None)
    places = tuple(_place(at, found, parts[at], lowest) for at, found in answers.items())
    notes = _notes(places, answers)
    enough = [each for each in places if each.needed is not None]
    if not enough:
        reasons = {each.reason for each in answers.values()}
        several = "at no kv_heads and head_dim tried do the head counts show a drop that lasts"
        reason = reasons.pop() if len(reasons) == 1 else several
        return Answer(sentence=f"no transition found: {reason}", reason=reason, map=places, notes=notes)
    fewest = min(enough, key=lambda each: each.needed or 0)
    best = answers[fewest.kv_heads, fewest.head_dim]
    assert fewest.needs is not None
    return Answer(
        sentence=_sentence(places),
        kind="needs",
        needs={"heads": fewest.needs},
        limit="heads",
        support=best.support,
        silent=best.silent,
        error=best.error,
        fold=best.fold,
        map=places,
        notes=notes,
    )


def _place(at: tuple[Any, Any], found: Answer, part: ErrorTable, best: Answer | None) -> HeadsAt:
    """Return what a place needs, and how many times the error of the best place it has.

    It is far where that is at least `FAR_BEHIND`, and the error is above `FAR_ABOVE` and dropped by less.
    """
    behind, far = 1.0, False
    if found.kind == "needs" and found.error and best is not None and best.error:
        behind = found.error / best.error
        above = found.error > FAR_ABOVE * float(np.nanmax(part.baseline))
        far = behind >= FAR_BEHIND and above and (found.fold or 1.0) < (best.fold or 1.0)
    return HeadsAt(
        kv_heads=at[0],
        head_dim=at[1],
        kind=found.kind,
        needs=found.needs.get("heads") if found.kind == "needs" else None,
        error=found.error,
        tried=part.values("heads"),
        sentence=found.sentence,
        behind=behind,
        far=far,
    )


def _notes(places: tuple[HeadsAt, ...], answers: dict[tuple[Any, Any], Answer]) -> tuple[str, ...]:
    """Return the notes of all places, each once, with where it was made unless everywhere."""
    made_at: dict[str, list[HeadsAt]] = {}
    for each in places:
        for note in dict.fromkeys(answers[each.kv_heads, each.head_dim].notes):
            made_at.setdefault(note, []).append(each)
    return tuple(
        note if len(where) == len(places) else f"with {_where(where)}: {note}" for note, where in made_at.items()
    )


def _sentence(places: tuple[HeadsAt, ...]) -> str:
    """Return `needs 4 heads at every kv_heads and head_dim tried`, or which places need how many."""
    by_count: dict[int | None, list[HeadsAt]] = {}
    far = [each for each in places if each.far]
    for each in places:
        if not each.far:
            by_count.setdefault(each.needed, []).append(each)
    if len(by_count) == 1 and not far:
        (count,) = by_count
        assert count is not None
        needs = [each.needs for each in places if each.needs is not None]
        interval = f"[{min(need.low for need in needs)}, {max(need.high for need in needs)}]"
        axes = " and ".join(axis for axis in MAP_AXES if any(getattr(each, axis) is not None for each in places))
        return f"needs {count_of_heads(count)} {interval} at every {axes} tried"
    counts = sorted(count for count in by_count if count is not None)
    words = [f"{count_of_heads(count)} with {_where(by_count[count])}" for count in counts]
    if None in by_count:
        words.append(f"no transition with {_where(by_count[None])}")
    if far:
        ends = dict.fromkeys(factor_words(pick(each.behind for each in far)) for pick in (min, max))
        words.append(f"with {_where(far)} the error stays {' to '.join(ends)} times the best at every head count")
    return f"needs {'; '.join(words)}"


def _where(places: list[HeadsAt]) -> str:
    """Return `kv_heads 1 and head_dim 4 and 8, own keys and head_dim 8`: the head_dims of each kv_heads."""
    dims: dict[Any, list[int]] = {}
    for each in places:
        dims.setdefault(each.kv_heads, []).extend([] if each.head_dim is None else [each.head_dim])
    words = []
    for kv_heads, values in dims.items():
        group = "" if kv_heads is None else "own keys" if kv_heads == OWN else f"kv_heads {kv_heads}"
        width = f"head_dim {listed(values)}" if values else ""
        words.append(" and ".join(filter(None, (group, width))))
    return ", ".join(words)


def need_words(place: HeadsAt) -> str:
    """Return what a map writes at a place: `4`, `4 [3, 4]`, `far`, or that the head counts tried show no transition."""
    if place.needs is None:
        return "floor" if place.kind == "floor" else "none"
    if place.far:
        return "far"
    return str(place.needs.at) if place.needs.low == place.needs.high else str(place.needs)
