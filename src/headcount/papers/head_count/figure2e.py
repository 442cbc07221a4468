"""Figure 2e: the weighted reversal score of Table 2's errors."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...answer import ErrorTable, answer, error_table
from ...answer.claim import ClaimResult as Claim
from ...answer.claim import judged
from ...answer.signals import REVERSED, reversal_scores
from ...report.chart import Series
from ...report.charts import reversal_chart
from ...report.section import Section
from ...store import Experiment, Record
from ..base import Scale
from ..claims.heads import reversal_claims
from ..published import one_seed
from . import table2
from .table import HeadCountStudy

if TYPE_CHECKING:
    from ...engine import Sweep

TRANSITION = table2.STUDY.transition


@dataclass(frozen=True, kw_only=True)
class ReversalStudy(HeadCountStudy):
    """Table 2's sweep, read by R(h): how often, and how much, the error falls with length instead of rising."""

    def sweep(self, scale: Scale) -> "Sweep":
        return table2.STUDY.sweep(scale)

    def published_claims(self) -> tuple[Claim, ...]:
        return _rules(one_seed(table2.STUDY.published))

    def section(self, experiment: Experiment, records: Iterable[Record], scale: Scale) -> Section:
        table = error_table(experiment, records).ordered("heads", "length", "seed")
        heads, published = table.values("heads"), table2.STUDY.published
        best, means, theirs = (
            tuple(reversal_scores(errors)) for errors in (table.best, table.mean, published.aligned(table))
        )
        chart = reversal_chart(
            heads,
            (
                Series("best of seeds", heads, best, place=0),
                Series("mean over seeds", heads, means, place=1),
                Series("from the published means", heads, theirs, place=2, kind="published"),
            ),
        )
        return Section(
            name=self.name,
            title=self.title,
            asks=self.asks,
            headline=_headline(table),
            claims=judged(_rules, table, one_seed(published)),
            answer=answer(table),
            charts=(chart,),
            notes=(
                "The paper draws this figure and prints no numbers; the published score is computed from Table 2.",
                "All seeds share one set of examples per length, and from D heads on which length has the smaller "
                "error is mostly that set's draw; a positive score there says no more than that the error stopped "
                "growing.",
                *self.choices(scale),
            ),
        )


def _rules(table: ErrorTable) -> tuple[Claim, ...]:
    return reversal_claims(table, table2.STUDY.published, TRANSITION)


def _headline(table: ErrorTable) -> str:
    scores = reversal_scores(table.best)
    positive = [heads for heads, score in zip(table.values("heads"), scores, strict=True) if score > REVERSED]
    if not np.isfinite(scores).any():
        return "One length has no reversals"
    if not positive:
        return "Errors reverse with length at no head count"
    return f"Errors reverse with length at {' and '.join(map(str, positive))} heads"


STUDY = ReversalStudy(
    name="figure2e",
    title="Figure 2e",
    asks="Where the dependence on length turns round: the weighted reversal score of Table 2's errors.",
    efforts=table2.STUDY.efforts,
    reads=table2.STUDY.name,
)
