"""Facts of the whole model: heads removed from all layers together, and the heads that other criteria would remove."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .running import Fact

if TYPE_CHECKING:
    from .descent import Descent
    from .facts import Subject

PEERS = ("gradient", "fisher", "magnitude", "random")
"""Criteria beside which the descent is drawn."""


def descent_facts(subject: "Subject") -> list[Fact]:
    """The descent in stretches, so that a run that is ended loses one of them, and all of them together."""
    counts, work = subject.schedule.removed_counts, subject.schedule.passes["descent"]
    if not counts:
        return []
    facts, before = [], 0
    for place, count in enumerate(counts):
        facts.append(
            Fact(
                name=f"descent/{count}",
                phase=f"removing heads from the whole model, {before + 1} to {count}",
                work=work * (count - before) / counts[-1],
                measure=lambda values, place=place: _stretch(subject, values, place),
            )
        )
        before = count
    last = f"descent/{counts[-1]}"
    return [*facts, Fact(name="descent", phase="the whole model", work=0.0, measure=lambda values: values[last])]


def _stretch(subject: "Subject", values: Mapping[str, Any], place: int) -> dict[str, Any]:
    """Heads removed up to the next count, from where the stretch before it ended."""
    from .descent import descend

    counts = subject.schedule.removed_counts
    start = None if place == 0 else _stored(values[f"descent/{counts[place - 1]}"])
    descent = descend(
        subject.evaluation,
        counts[place],
        points=counts[: place + 1],
        statistics=subject.statistics.layers,
        start=start,
    )
    return {
        "removed": [[int(layer), int(head)] for layer, head in descent.removed],
        "kept": list(map(int, descent.kept)),
        "losses": descent.losses.tolist(),
        "with_refit": True,
    }


def _stored(fact: Mapping[str, Any]) -> "Descent":
    from .descent import Descent

    removed = tuple((layer, head) for layer, head in fact["removed"])
    return Descent(removed=removed, kept=tuple(fact["kept"]), losses=np.array(fact["losses"]))


def peer_facts(subject: "Subject") -> list[Fact]:
    """One fact per criterion, and all of them together."""
    if not subject.schedule.peer_counts:
        return []
    work = subject.schedule.passes["peers"] / len(PEERS)
    facts = [
        Fact(
            name=f"peer/{name}",
            phase=f"the heads that {name} would remove",
            work=work,
            measure=lambda values, name=name: _peer(subject, name),
        )
        for name in PEERS
    ]
    names = [fact.name for fact in facts]

    def together(values: Mapping[str, Any]) -> dict[str, Any]:
        return {label: each for name in names for label, each in values[name].items()}

    return [*facts, Fact(name="peers", phase="other criteria", work=0.0, measure=together)]


def _peer(subject: "Subject", name: str) -> dict[str, Any]:
    """Losses with the heads removed that a criterion names, without and with refit."""
    from .refit import refitted_in_order, removed_plainly

    evaluation, schedule = subject.evaluation, subject.schedule
    order = order_of(subject, name)
    heads = [layer.heads for layer in evaluation.layers]
    plain, fitted = [], []
    for count in schedule.peer_counts:
        kept = _kept(heads, order[:count])
        evaluation.settle({})
        plain.append(evaluation.losses(removed_plainly(evaluation, kept)).tolist())
        fitted.append(evaluation.losses(refitted_in_order(evaluation, kept)).tolist())
    left = [sum(heads) - count for count in schedule.peer_counts]
    return {
        name: {"kept": left, "losses": plain, "refit": False},
        f"{name}, refit": {"kept": left, "losses": fitted, "refit": True},
    }


def _kept(heads: Sequence[int], removed: Sequence[tuple[int, int]]) -> list[list[int]]:
    gone = set(removed)
    return [[head for head in range(count) if (layer, head) not in gone] for layer, count in enumerate(heads)]


def order_of(subject: "Subject", name: str) -> list[tuple[int, int]]:
    """INTERIM"""
    from .._keys import named_generator

    heads = [(layer.index, head) for layer in subject.evaluation.layers for head in range(layer.heads)]
    return [heads[i] for i in named_generator(subject.seed, name).permutation(len(heads))]
