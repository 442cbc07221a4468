"""Norms before attention and net, or after each sum as published: which of them train, and which rank do they need?

With norms after each sum every answer is a vector of one length. The cheapest way to remove a point itself from the
answer, which is far from it, is then a vector that all tokens share: added to a sum, it turns all tokens one way, and
the best length of such an answer is 0. Recipes that rise slowly are compared with the published shares.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ...answer import ErrorTable
from ...answer.claim import ClaimResult
from ..base import Part, Results, Scale, Study
from ..claims.norms import collapses_claim, same_rank_claim, trains_claim
from .figures import (
    OUR_CHOICES,
    RankEffort,
    changes_of,
    farthest_point,
    rank_charts,
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
"""What a recipe changes of the published training, by its name."""


def _claims(table: ErrorTable) -> tuple[ClaimResult, ...]:
    return (
        trains_claim(table, FIRST, "Norms first train every encoder."),
        collapses_claim(
            table, AFTER, "Norms after each sum, warmed up over a twentieth, leave some deep encoders at 1."
        ),
        trains_claim(table, LONG, "Norms after each sum train every encoder if the rate rises over half of the steps."),
        trains_claim(table, SLOW, "Norms after each sum train every encoder at a tenth of the rate."),
        trains_claim(
            table, GENTLE, "Norms after each sum train every encoder with both: a long rise, a third of the rate."
        ),
        same_rank_claim(table, (FIRST, LONG), "Where the norms are does not change which rank is needed."),
    )


def _parts(effort: RankEffort) -> Iterable[Part]:
    for name, changes in RECIPES.items():
        for dim in effort.dims:
            yield rank_part(replace(effort, **changes), dim, "none", farthest_point, recipe=name)


def recipes_of(norms: str) -> list[str]:
    """The recipes with norms "first", or "after" each sum."""
    return [name for name, changes in RECIPES.items() if changes["norm_first"] == (norms == "first")]


def _report(results: Results) -> dict[str, Any]:
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
    parts=_parts,
    report=_report,
    changes=changes_of,
    options=("steps",),
    efforts={
        Scale.SMOKE: RankEffort(
            lengths=(8,), seeds=1, steps=1000, dims=(8,), heads=(1, 2), layers=(1, 3), multipliers=(1,), hidden=64,
            batch=64,
        ),
        Scale.LAPTOP: RankEffort(
            lengths=(16,), seeds=2, steps=3000, dims=(16,), heads=(1, 2), layers=(1, 3), multipliers=(1,), hidden=128,
            batch=64,
        ),
        Scale.PAPER: RankEffort(
            lengths=(16,), seeds=1, steps=100_000, dims=(64,), heads=(1, 2), layers=(1, 3), multipliers=(1,),
        ),
    },
    notes=(
        "An error of 1 is that of a constant answer. Published are norms after each sum and 100,000 steps, 5,000 of "
        "them warm-up.",
        *OUR_CHOICES,
    ),
)  # fmt: skip
