"""Judges of where an encoder's norms are: which recipes train, and whether the rank that is needed changes.

`table` is over rank, layers, recipe, seed and others; a recipe says where the norms are and how the rate rises.
"""

from collections.abc import Sequence

import numpy as np

from ...answer import ErrorTable
from ...answer.claim import ClaimResult as Claim
from ...answer.claim import Verdict, decided
from .rank import DROP

LEARNED = 0.9
"""Errors above this are those of a constant answer, which errs by 1."""


def trains_claim(table: ErrorTable, recipe: str, statement: str) -> Claim:
    """Every encoder of full rank with this recipe learns something, from every seed."""
    errors = _of_full_rank(table, recipe, table.values("layers"))
    if not errors.size:
        return Claim(statement, Verdict.UNDECIDED, "no such model has finished")
    return Claim(statement, decided(bool(np.all(errors < LEARNED))), _evidence(table, recipe))


def collapses_claim(table: ErrorTable, recipe: str, statement: str) -> Claim:
    """Some encoder of several layers and full rank stays at the error of a constant answer with this recipe."""
    deep = [layers for layers in table.values("layers") if layers > 1]
    errors = _of_full_rank(table, recipe, deep)
    if not errors.size:
        return Claim(statement, Verdict.UNDECIDED, "no such model of several layers has finished")
    return Claim(statement, decided(bool(np.any(errors >= LEARNED))), _evidence(table, recipe))


def same_rank_claim(table: ErrorTable, recipes: Sequence[str], statement: str) -> Claim:
    """One layer's error, of the best seed, falls from half to full rank with every recipe."""
    half, full = table.values("rank")[-2:] if len(table.values("rank")) > 1 else (0, 0)
    drops = {}
    for recipe in recipes:
        if recipe in table.values("recipe") and 1 in table.values("layers") and full:
            best = table.select(recipe=[recipe], layers=[1], rank=[half, full]).reduced("seed").reduced("length")
            low, high = best.ordered("rank", *(axis for axis in best.axes if axis != "rank")).errors.reshape(2, -1)[
                :, 0
            ]
            if np.isfinite(low) and np.isfinite(high):
                drops[recipe] = low / high if high > 0 else np.inf
    evidence = "; ".join(f"{recipe}: {drop:.3g}-fold" for recipe, drop in drops.items())
    if len(drops) < len(recipes):
        return Claim(statement, Verdict.UNDECIDED, evidence or "one layer was not measured at two ranks")
    falls = [drop >= DROP for drop in drops.values()]
    evidence = f"from rank {half} to {full} one layer's error falls, {evidence} (needed from {DROP:.2g}-fold on)"
    # Where it falls with none, it is too roughly trained to tell.
    return Claim(statement, decided(all(falls)) if any(falls) else Verdict.UNDECIDED, evidence)


def _smallest(table: ErrorTable) -> float:
    return float(np.min(table.errors, where=np.isfinite(table.errors), initial=np.inf))


def _of_full_rank(table: ErrorTable, recipe: str, layers: Sequence[int]) -> np.ndarray:
    """The errors of every seed of a recipe's models of full rank and some depths."""
    if recipe not in table.values("recipe") or not layers:
        return np.array([])
    errors = table.select(recipe=[recipe], rank=[max(table.values("rank"))], layers=list(layers)).errors
    return errors[np.isfinite(errors)]


def _evidence(table: ErrorTable, recipe: str) -> str:
    parts = []
    for layers in table.values("layers"):
        errors = np.sort(_of_full_rank(table, recipe, [layers]))
        if errors.size:
            named = "1 layer" if layers == 1 else f"{layers} layers"
            parts.append(f"{named} {', '.join(f'{error:.2g}' for error in errors)}")
    return f"{recipe}, errors at full rank by seed: " + "; ".join(parts)
