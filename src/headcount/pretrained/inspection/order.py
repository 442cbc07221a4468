"""The order in which a stored inspection removes heads. No torch."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import HeadcountError, InputError, require
from ...store import Store
from ..layers.weights import Shaped
from ..plugin import STUDY
from ..removal.refit import heads_left
from .facts import LAST_FACT


def inspected_kept(
    folder: Path, facts: Mapping[str, Any], layers: Sequence[Shaped], *, remove: int, uniform: bool
) -> list[list[int]]:
    """The heads that every layer keeps when `remove` go in all, by the order that an inspection found.

    `uniform`: as many of every layer and key head, by the layers' own orders; otherwise by the whole model's. Raises
    InputError where the inspection has not come so far.
    """
    if not uniform:
        order = facts.get("descent", {}).get("removed", [])
        require(
            len(order) >= remove,
            f"the inspection in {folder} removed {len(order)} heads, fewer than {remove}; leave --inspection out.",
        )
        return heads_left(layers, order[:remove])
    lacking = next((place for place in range(len(layers)) if f"curve/{place}" not in facts), None)
    require(lacking is None, f"the inspection in {folder} has no order of layer {lacking}; run it to its end.")
    return kept_equally(facts, layers, layers[0].heads - remove // len(layers))


def kept_equally(facts: Mapping[str, Any], layers: Sequence[Shaped], keep: int) -> list[list[int]]:
    """The heads that every layer keeps longest by its own order, the same number of them."""
    return [
        kept_by_order(facts[f"curve/{place}"]["order"], layer.heads, layer.key_heads, layer.heads - keep)
        for place, layer in enumerate(layers)
    ]


def kept_by_order(order: Sequence[int], heads: int, key_heads: int, remove: int) -> list[int]:
    """Heads left after the first of the order that leave every key head as many; without shared keys, the first."""
    share = heads // key_heads
    left = dict.fromkeys(range(key_heads), share - remove // key_heads) if share > 1 else {}
    kept = set(range(heads))
    for head in order:
        group = head // share
        within = sum(other // share == group for other in kept)
        if len(kept) > heads - remove and (not left or within > left[group]):
            kept.remove(head)
    return sorted(kept)


def inspections_of(folder: Path) -> list[dict[str, Any]]:
    """The facts of every inspection in a results folder, the oldest first; InputError where there is none."""
    none = f"{folder} holds no inspection of a trained model; headcount inspect MODEL --out {folder} makes one."
    try:
        with Store.open_for_reading(folder) as store:
            names = [each.name for each in store.experiments() if each.study == STUDY]
            inspections = [store.facts(name) for name in names]
    except HeadcountError as error:
        raise InputError(none) from error
    require(bool(inspections), none)
    return inspections


def chosen_inspection(folder: Path, fingerprint: str) -> Mapping[str, Any]:
    """The facts of the newest complete inspection of a model in a folder, or of the newest where none is complete."""
    same = [facts for facts in inspections_of(folder) if facts.get("model", {}).get("fingerprint") == fingerprint]
    if not same:
        raise InputError(
            f"the inspection in {folder} is of another model than this one ({fingerprint}); inspect it first."
        )
    return next((facts for facts in reversed(same) if LAST_FACT in facts), same[-1])
