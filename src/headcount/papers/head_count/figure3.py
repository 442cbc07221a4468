"""Figure 3: Table 2 seen close to, from D heads on."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...answer import NMSE, ErrorTable, answer, error_table
from ...answer.claim import ClaimResult as Claim
from ...answer.claim import judged
from ...report.chart import Chart, Series
from ...report.section import Section
from ...store import Experiment, Record
from ..base import Scale
from ..claims.heads import apart_claim, growth_claims
from ..published import one_seed
from . import table2
from .table import HeadCountStudy

if TYPE_CHECKING:
    from ...engine import Sweep

TRANSITION = table2.STUDY.transition


@dataclass(frozen=True, kw_only=True)
class ZoomStudy(HeadCountStudy):
    """Table 2's sweep, drawn against length where heads are enough."""

    def sweep(self, scale: Scale) -> "Sweep":
        return table2.STUDY.sweep(scale)

    def published_claims(self) -> tuple[Claim, ...]:
        return _rules(one_seed(table2.STUDY.published))

    def section(self, experiment: Experiment, records: Iterable[Record], scale: Scale) -> Section:
        table = error_table(experiment, records).ordered("heads", "length", "seed")
        enough = table.select(heads=[heads for heads in table.values("heads") if heads >= TRANSITION])
        return Section(
            name=self.name,
            title=self.title,
            asks=self.asks,
            headline=_headline(enough),
            claims=judged(_rules, table, one_seed(table2.STUDY.published)),
            answer=answer(table),
            charts=(_chart(enough),),
            notes=("The paper draws this figure and prints no numbers but Table 2's means.", *self.choices(scale)),
        )


def _rules(table: ErrorTable) -> tuple[Claim, ...]:
    _, flat = growth_claims(table, table2.STUDY.published, TRANSITION)
    return flat, apart_claim(table, TRANSITION)


def _headline(enough: ErrorTable) -> str:
    errors = enough.best
    if not np.isfinite(errors).any():
        return f"No model with {TRANSITION} heads or more has finished"
    smallest, largest = np.nanmin(errors), np.nanmax(errors)
    return f"With {TRANSITION} heads or more the best of seeds lies between {smallest:.1e} and {largest:.1e}"


def _chart(enough: ErrorTable) -> Chart:
    lengths = enough.values("length")
    rows = zip(enough.values("heads"), enough.best, enough.mean, table2.STUDY.published.aligned(enough), strict=True)
    series = []
    for place, (heads, best, mean, theirs) in enumerate(rows):
        name = f"{heads} heads"
        series.append(Series(f"{name}, best of seeds", lengths, tuple(best), place=2 * place))
        series.append(Series(f"{name}, mean over seeds", lengths, tuple(mean), place=2 * place + 1))
        series.append(Series(f"{name}, published mean", lengths, tuple(theirs), place=2 * place + 1, kind="published"))
    return Chart(
        name="zoom",
        title="Error against length where heads are enough",
        x_label="sequence length T (tokens)",
        y_label=NMSE.label,
        x_ticks=lengths,
        log_x=True,
        series=tuple(series),
        caption="mean and best over seeds; published means dashed",
    )


STUDY = ZoomStudy(
    name="figure3",
    title="Figure 3",
    asks="A closer look at Table 2 from D heads on: does the error still grow with length?",
    efforts=table2.STUDY.efforts,
    reads=table2.STUDY.name,
)
