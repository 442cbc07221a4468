"""The answer: how many heads a task needs, or which of heads and rank it is short of, or that nothing can be said."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from .answer_base import Answer, HeadsAt, Interval, Limit
from .baselines import validation_examples
from .bootstrap import RESAMPLES
from .enough import WITHIN, enough_heads
from .heads_map import answer_by_place, has_heads_map
from .heads_rule import all_diverged, answer_by_heads, usable_draws
from .rank_rule import answer_by_rank
from .table import ErrorTable

__all__ = ["Answer", "HeadsAt", "Interval", "Limit", "answer"]

PAIRED = "paired"
"""The name under which the standard errors of the differences between head counts are stored with an experiment."""
WITHIN_FACT = "within"
"""The name under which `within` is stored with an experiment that was asked with another than the usual one."""
ASKED = ("heads", "rank", "length", "seed")
APART = ("data_seed", "start")
"""Axes along which an answer is not simply the best: other draws of the data, and where training started."""


def answer(
    table: ErrorTable,
    *,
    examples: int | None = None,
    within: float = WITHIN,
    paired: Iterable[Mapping[str, Any]] = (),
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Answer:
    """Say how many heads the task of a table needs; where ranks were varied too, which of the two it is short of.

    Where some head count has several ranks the answer is about heads and rank; where there are several kv_heads or
    head_dims, about heads at each of them; otherwise about heads alone. Every start
    counts like a seed, and every draw of the data is answered for itself. Over any other axis the best counts, and a
    note says so.

    Args:
        table: Errors over named axes.
        examples: Validation examples behind every error. Where they are given, a table without a transition is answered
            by the fewest heads that are enough.
        within: The share of what heads gain over the fewest tried that these may give away.
        paired: The standard errors of the differences between head counts, as stored with an experiment.
        resamples: How often the training seeds are drawn again for the interval.
        seed: Draws the resamples.

    Returns:
        The answer; `needs` is empty and `reason` says why where there is none.
    """
    if table.diverged:
        return all_diverged(table.diverged)
    if has_heads_map(table):
        return answer_by_place(table, partial(answer, resamples=resamples, seed=seed))
    lengthless = not table.has("length")
    table, notes = asked_table(table)
    if has_map(table):
        found = answer_by_rank(table.ordered(*ASKED), resamples=resamples, seed=seed)
    else:
        table = table.reduced("rank")
        found = answer_by_heads(table, resamples=resamples, seed=seed)
        if examples is not None and (draws := usable_draws(table)):
            how = {"examples": examples, "within": within, "paired": paired, "resamples": resamples, "seed": seed}
            found = enough_heads(draws, found, **how)
    return replace(found, notes=(*notes, *found.notes), by_length={} if lengthless else found.by_length)


def answer_of(table: ErrorTable, facts: Mapping[str, Any]) -> Answer:
    """Return the answer of an experiment with these stored facts: of how many validation examples its errors are."""
    examples = validation_examples(facts.get("baselines", ()))
    within, paired = float(facts.get(WITHIN_FACT, WITHIN)), facts.get(PAIRED, ())
    return answer(table, examples=examples, within=within, paired=paired)


def asked_table(table: ErrorTable) -> tuple[ErrorTable, tuple[str, ...]]:
    """Return the table over the axes that an answer reads, the best over all others; and notes that say so."""
    asked = ASKED if has_map(table) else ASKED + APART
    over = [axis for axis, values in table.axes.items() if axis not in asked]
    notes = tuple(
        f"best over {axis} {', '.join(map(str, table.values(axis)))}" for axis in over if len(table.values(axis)) > 1
    )
    for axis in over:
        table = table.reduced(axis)
    return table.with_axes("heads", "length", "seed"), notes


def has_map(table: ErrorTable) -> bool:
    """Whether some head count was tried at several ranks."""
    if not table.has("rank"):
        return False
    table = table.with_axes("heads", "rank")
    finished = np.isfinite(table.errors)
    tried = finished.reshape(*finished.shape[:2], -1).any(axis=2) | (not finished.any())
    return bool((tried.sum(axis=1) > 1).any())
