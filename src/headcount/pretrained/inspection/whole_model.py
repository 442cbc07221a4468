"""Facts of the whole model: heads removed from all layers together, and the heads that other criteria would remove."""

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .effort import PEERS
from .running import Fact

if TYPE_CHECKING:
    from ..removal.descent import Descent
    from .facts import Subject


def descent_facts(subject: "Subject") -> list[Fact]:
    """The descent in stretches, so that a run that is ended loses one of them, and all of them together."""
    ends, work = subject.schedule.stretches, subject.schedule.passes["descent"]
    if not ends:
        return []
    facts = [
        Fact(
            name=f"descent/{end}",
            phase=f"removing heads from the whole model, {before + 1} to {end}",
            work=work * (end - before) / ends[-1],
            measure=lambda values, before=before, end=end: _stretch(subject, values.get(f"descent/{before}"), end),
        )
        for before, end in itertools.pairwise((0, *ends))
    ]
    last = facts[-1].name
    return [*facts, Fact(name="descent", phase="the whole model", work=0.0, measure=lambda values: values[last])]


def _stretch(subject: "Subject", before: Mapping[str, Any] | None, end: int) -> dict[str, Any]:
    """Heads removed up to this number, from where the stretch before it ended."""
    from ..removal.descent import descend

    descent = descend(
        subject.evaluation,
        end,
        points=[count for count in subject.schedule.removed_counts if count <= end],
        statistics=subject.statistics.layers,
        start=None if before is None else _stored(before),
    )
    return {
        "removed": [[int(layer), int(head)] for layer, head in descent.removed],
        "kept": list(map(int, descent.kept)),
        "losses": descent.losses.tolist(),
        "with_refit": True,
        "order": descent.order,
    }


def _stored(fact: Mapping[str, Any]) -> "Descent":
    from ..removal.descent import Descent

    removed = tuple((layer, head) for layer, head in fact["removed"])
    return Descent(removed=removed, kept=tuple(fact["kept"]), losses=np.array(fact["losses"]))


def peer_facts(subject: "Subject") -> list[Fact]:
    """One fact per criterion, and all of them together."""
    if not subject.schedule.peer_counts:
        return []
    facts = [
        Fact(
            name=f"peer/{name}",
            phase=f"the heads that others would remove: {name}",
            work=subject.schedule.passes["peers"] / len(PEERS),
            measure=lambda values, name=name: _peer(subject, name, values),
        )
        for name in PEERS
    ]
    names = [fact.name for fact in facts]

    def together(values: Mapping[str, Any]) -> dict[str, Any]:
        return {label: each for name in names for label, each in values[name].items()}

    return [*facts, Fact(name="peers", phase="other criteria", work=0.0, measure=together)]


def _peer(subject: "Subject", name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Losses with the heads removed that a criterion names, without and with refit; nothing where it has no order."""
    from ..removal.importance import Importance
    from ..removal.peers import losses_along, peer_orders

    layers = [values[f"importance/{layer.index}"] for layer in subject.evaluation.layers]
    importances = [Importance(**{each: np.array(row) for each, row in layer.items()}) for layer in layers]
    order = peer_orders(importances, random_orders=1).get(name)
    if order is None:
        return {}
    counts = subject.schedule.peer_counts
    kept = [subject.schedule.size.heads - count for count in counts]
    return {
        f"{name}, refit" if refit else name: {
            "kept": kept,
            "losses": losses_along(subject.evaluation, order, counts, with_refit=refit).tolist(),
            "refit": refit,
        }
        for refit in (False, True)
    }
