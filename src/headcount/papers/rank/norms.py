"""Norms before attention and net, or after each sum as published: which of them train, and which rank do they need?

With norms after each sum every answer is a vector of one length. The cheapest way to remove a point itself from the
answer, which is far from it, is then a vector that all tokens share: added to a sum, it turns all tokens one way, and
the best length of such an answer is 0. Recipes that rise slowly are compared with the published shares.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...answer import ErrorTable, error_table
from ...answer.claim import ClaimResult as Claim
from ...report.section import Grid, Section
from ...store import Experiment, Record
from ..base import Scale, said_of
from ..claims.norms import collapses_claim, same_rank_claim, trains_claim
from .base import RankEffort, RankStudy, changes_of, rank_charts, rank_grid, with_logarithms

if TYPE_CHECKING:
    from ...engine import Sweep

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


def _claims(table: ErrorTable) -> tuple[Claim, ...]:
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


@dataclass(frozen=True, kw_only=True)
class NormsStudy(RankStudy):
    """The farthest point with several recipes, each an axis value; nothing is published beside them."""

    def sweep(self, scale: Scale) -> "Sweep":
        from ...engine import joined

        effort = self.efforts[scale]
        return joined(
            self._part(scale, replace(effort, **changes), dim, "none", recipe=name)
            for name, changes in RECIPES.items()
            for dim in effort.dims
        )

    def recipes_of(self, norms: str) -> list[str]:
        """The recipes with norms "first", or "after" each sum."""
        return [name for name, changes in RECIPES.items() if changes["norm_first"] == (norms == "first")]

    def section(self, experiment: Experiment, records: Iterable[Record], scale: Scale) -> Section:
        table = with_logarithms(error_table(experiment, records).trimmed())
        claims, best = self.claims(table), table.reduced("seed")
        changes = changes_of(experiment, self.efforts[scale])
        return Section(
            name=self.name,
            title=", ".join([self.title, *changes]),
            asks=self.asks,
            headline=" ".join(f"{claim.statement.rstrip('.')}: {claim.verdict.value}." for claim in claims[1:3]),
            claims=claims,
            grids=(rank_grid(best, None), *_worst(table)),
            charts=rank_charts(best, None),
            notes=(*self.notes, *said_of(changes, scale), *self.choices(scale)),
        )


def _worst(table: ErrorTable) -> tuple[Grid, ...]:
    """The largest errors, where there are several seeds: training that fails does so from some of them."""
    if len(table.values("seed")) < 2:
        return ()
    return (rank_grid(table.reduced("seed", "worst"), None, "largest error over seeds"),)


STUDY = NormsStudy(
    name="rank-norms",
    title="Norms after each sum",
    asks="Do encoders whose norms come after each sum train, with which warm-up, and do they need the same rank?",
    claims=_claims,
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
    ),
)  # fmt: skip
