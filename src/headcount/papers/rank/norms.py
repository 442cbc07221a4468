"""Norms before attention and net, or after each sum as published: which of them train, and which rank do they need?

With norms after each sum every answer is a vector of one length. The cheapest way to remove a point itself from the
answer, which is far from it, is then a vector that all tokens share: added to a sum, it turns all tokens one way, and
the best length of such an answer is 0. Recipes that rise slowly are compared with the published shares.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...answer import ErrorTable
from ...answer.claim import ClaimResult
from ..base import Part, Study, StudyResults
from ..claims.judge import Case, Cases, claims_that, exactly, judge
from ..claims.rank import DROP, count_of_layers
from .figures import (
    OUR_CHOICES,
    RankEffort,
    farthest_point,
    rank_charts,
    rank_efforts,
    rank_grid,
    rank_part,
    with_logarithms,
)

FIRST, AFTER, LONG, SLOW, GENTLE = (
    "norms first",
    "norms after",
    "norms after, warm-up over half",
    "norms after, a tenth of the rate",
    "norms after, warm-up over half, a third of the rate",
)
RECIPES: dict[str, dict[str, Any]] = {
    FIRST: {"norm_first": True},
    AFTER: {"norm_first": False},
    LONG: {"norm_first": False, "warmup": 0.5},
    SLOW: {"norm_first": False, "learning_rate": 0.001},
    GENTLE: {"norm_first": False, "learning_rate": 0.003, "warmup": 0.5},
}
"""Changes to the published training, by the name of the recipe."""


LEARNED = 0.9
"""Errors above this are those of a constant answer, which errs by 1."""


@claims_that("{statement}", "no such model has finished")
def trains_claim(table: ErrorTable, recipe: str, statement: str) -> Cases:
    """Every encoder of full rank learns something, from every seed."""
    errors = _of_full_rank(table, recipe, table.values("layers"))
    if errors.size:
        yield exactly(_by_layers(table, recipe), np.all(errors < LEARNED))


@claims_that(
    "Norms after each sum, warmed up over a twentieth, leave some deep encoders at 1.",
    "no such model of several layers has finished",
)
def collapses_claim(table: ErrorTable) -> Cases:
    """Some encoder of several layers and full rank stays at the error of a constant answer."""
    errors = _of_full_rank(table, AFTER, [layers for layers in table.values("layers") if layers > 1])
    if errors.size:
        yield exactly(_by_layers(table, AFTER), np.any(errors >= LEARNED))


def same_rank_claim(table: ErrorTable) -> ClaimResult:
    """One layer's error, of the best seed, falls from half to full rank with both recipes."""
    statement, ranks = "Where the norms are does not change which rank is needed.", table.values("rank")[-2:]
    lines = {at["recipe"]: line for at, line in table.reduced("seed").lines("rank") if at["layers"] == 1}
    both = {recipe: lines[recipe] for recipe in (FIRST, LONG) if len(ranks) == 2 and recipe in lines}
    drops = {recipe: line[ranks[0]] / line[ranks[1]] for recipe, line in both.items() if line.keys() >= set(ranks)}
    words = "; ".join(f"{recipe}: {drop:.3g}-fold" for recipe, drop in drops.items())
    if len(drops) < 2:
        return judge(statement, [], words or "one layer was not measured at two ranks")
    falls = [drop >= DROP for drop in drops.values()]
    words = f"from rank {ranks[0]} to {ranks[1]} one layer's error falls, {words} (needed from {DROP:.2g}-fold on)"
    # Where it falls with none, it is too roughly trained to tell.
    return judge(statement, [Case(words, all(falls), any(falls) and not all(falls))], "")


def _of_full_rank(table: ErrorTable, recipe: str, layers: Sequence[int]) -> np.ndarray:
    if recipe not in table.values("recipe") or not layers:
        return np.array([])
    errors = table.select(recipe=[recipe], rank=[max(table.values("rank"))], layers=list(layers)).errors
    return errors[np.isfinite(errors)]


def _by_layers(table: ErrorTable, recipe: str) -> str:
    parts = []
    for layers in table.values("layers"):
        errors = np.sort(_of_full_rank(table, recipe, [layers]))
        if errors.size:
            parts.append(f"{count_of_layers(layers)} {', '.join(f'{error:.2g}' for error in errors)}")
    return f"{recipe}, errors at full rank by seed: " + "; ".join(parts)


def _claims(table: ErrorTable) -> tuple[ClaimResult, ...]:
    train = {
        LONG: "Norms after each sum train every encoder if the rate rises over half of the steps.",
        SLOW: "Norms after each sum train every encoder at a tenth of the rate.",
        GENTLE: "Norms after each sum train every encoder with both: a long rise, a third of the rate.",
    }
    return (
        trains_claim(table, FIRST, "Norms first train every encoder."),
        collapses_claim(table),
        *(trains_claim(table, recipe, statement) for recipe, statement in train.items()),
        same_rank_claim(table),
    )


def _swept_parts(effort: RankEffort) -> Iterable[Part]:
    for name, changes in RECIPES.items():
        for dim in effort.dims:
            yield rank_part(replace(effort, **changes), dim, "none", farthest_point, recipe=name)


def recipes_of(norms: str) -> list[str]:
    return [name for name, changes in RECIPES.items() if changes["norm_first"] == (norms == "first")]


def _document_fields(results: StudyResults) -> dict[str, Any]:
    table = with_logarithms(results.table().trimmed())
    claims, best = _claims(table), table.reduced("seed")
    grids = [rank_grid(best, None)]
    if len(table.values("seed")) > 1:  # training that fails does so from some seeds
        grids.append(rank_grid(table.reduced("seed", "worst"), None, "largest error over seeds"))
    return {
        "headline": " ".join(f"{claim.statement.rstrip('.')}: {claim.verdict.value}." for claim in claims[1:3]),
        "claims": claims,
        "grids": tuple(grids),
        "charts": rank_charts(best, None),
    }


STUDY = Study(
    name="rank-norms",
    title="Norms after each sum",
    asks="Do encoders whose norms come after each sum train, with which warm-up, and do they need the same rank?",
    parts=_swept_parts,
    report=_document_fields,
    options=("steps",),
    efforts=rank_efforts(
        smoke={"heads": (1, 2), "multipliers": (1,), "norm_first": False},
        laptop={"seeds": 2, "heads": (1, 2), "multipliers": (1,), "norm_first": False},
        paper={"seeds": 1, "steps": 100_000, "heads": (1, 2), "layers": (1, 3), "multipliers": (1,)},
        layers=(1, 3),
    ),
    notes=(
        "An error of 1 is that of a constant answer. Published are norms after each sum and 100,000 steps, 5,000 of "
        "them warm-up.",
        *OUR_CHOICES,
    ),
)
