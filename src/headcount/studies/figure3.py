"""Figure 3: Table 2 seen close to, from D heads on."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..analysis import answer_from_table, error_table
from ..analysis.comparison import Claim, Verdict, decided, growth_claims, measured_like
from ..analysis.summary import ErrorTable
from ..engine import Sweep
from ..report.chart import Chart, Series
from ..report.charts import ERROR
from ..report.section import Section
from ..store import Record
from . import table2
from .base import AbstractStudy, Scale

TRANSITION = table2.STUDY.transition


@dataclass(frozen=True, kw_only=True)
class ZoomStudy(AbstractStudy):
    """Table 2's sweep, drawn against length where heads are enough."""

    def sweep(self, scale: Scale) -> Sweep:
        return table2.STUDY.sweep(scale)

    def section(self, records: Iterable[Record], scale: Scale) -> Section:
        table = error_table(records)
        _, flat = growth_claims(table, table2.STUDY.published, TRANSITION)
        return Section(
            name=self.name,
            title=self.title,
            asks=self.asks,
            headline=_headline(table),
            claims=(flat, _apart_claim(table)),
            answer=answer_from_table(table),
            charts=(_chart(table),),
            notes=("The paper draws this figure and prints no numbers but Table 2's means.", *self.choices(scale)),
        )


def _enough(table: ErrorTable) -> list[int]:
    return [i for i, heads in enumerate(table.heads) if heads >= TRANSITION]


def _headline(table: ErrorTable) -> str:
    errors = table.best[_enough(table)]
    if not np.isfinite(errors).any():
        return f"No model with {TRANSITION} heads or more has finished"
    least, most = np.nanmin(errors), np.nanmax(errors)
    return f"With {TRANSITION} heads or more the best of seeds lies between {least:.1e} and {most:.1e}"


def _apart_claim(table: ErrorTable) -> Claim:
    """As the published means of h >= D all lie below every published mean of fewer heads."""
    statement = "With D heads or more the best of seeds is, at every length, below that of fewer heads at any."
    few = table.best[[i for i in range(len(table.heads)) if i not in _enough(table)]]
    enough = table.best[_enough(table)]
    if not (np.isfinite(few).any() and np.isfinite(enough).any()):
        return Claim(statement, Verdict.UNDECIDED, "head counts on both sides of D were not measured")
    most, least = np.nanmax(enough), np.nanmin(few)
    return Claim(statement, decided(bool(most < least)), f"largest from D on {most:.2e}, smallest below D {least:.2e}")


def _chart(table: ErrorTable) -> Chart:
    published = table2.STUDY.published
    theirs, means = published.beside(table), measured_like(table, published)
    series = []
    for place, i in enumerate(_enough(table)):
        name = f"{table.heads[i]} heads"
        series.append(Series(f"{name}, best of seeds", table.lengths, tuple(table.best[i]), place=2 * place))
        series.append(Series(f"{name}, mean over seeds", table.lengths, tuple(means[i]), place=2 * place + 1))
        series.append(
            Series(f"{name}, published mean", table.lengths, tuple(theirs[i]), place=2 * place + 1, kind="published")
        )
    return Chart(
        name="zoom",
        title="Error against length where heads are enough",
        x_label="sequence length T (tokens)",
        y_label=ERROR,
        x_ticks=table.lengths,
        log_x=True,
        series=tuple(series),
        caption="mean and best over seeds; published means dashed",
    )


STUDY = ZoomStudy(
    name="figure3",
    title="Figure 3",
    asks="A closer look at Table 2 from D heads on: does the error still grow with length?",
    efforts=table2.STUDY.efforts,
)
