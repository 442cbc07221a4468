"""Studies of one table: error by heads and length, the published table beside it, and its claims."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..analysis import answer_from_table, error_table
from ..analysis.comparison import (
    PublishedTable,
    drop_claim,
    growth_claims,
    magnitude_claim,
    transition_claim,
)
from ..engine import Sweep, grid
from ..models import ModelSpec
from ..report.charts import error_chart, heat_map
from ..report.section import Section, headline
from ..store import Record
from .base import AbstractStudy, Scale, paper_task


@dataclass(frozen=True, kw_only=True)
class TableStudy(AbstractStudy):
    """A table whose error drops at `transition` heads. `model(heads)` makes a row, `subject` names the task."""

    subject: str
    published: PublishedTable
    intrinsic_dim: int
    transition: int
    transition_statement: str
    model: Callable[[int], ModelSpec]
    notes: tuple[str, ...] = ()

    def sweep(self, scale: Scale) -> Sweep:
        effort = self.efforts[scale]
        return grid(
            paper_task(self.intrinsic_dim),
            heads=self.published.heads,
            lengths=effort.lengths,
            seeds=range(effort.seeds),
            model=self.model,
            train=effort.train,
        )

    def section(self, records: Iterable[Record], scale: Scale) -> Section:
        table = error_table(records)
        answer = answer_from_table(table)
        return Section(
            name=self.name,
            title=self.title,
            asks=self.asks,
            headline=headline(self.subject, answer),
            claims=(
                transition_claim(answer, self.transition, self.transition_statement),
                *growth_claims(table, self.published, self.transition),
                drop_claim(table, self.published, self.transition),
                magnitude_claim(table, self.published),
            ),
            table=table,
            answer=answer,
            published=self.published,
            charts=(error_chart(table, answer, self.published), heat_map(table)),
            notes=(*self.notes, *self.choices(scale)),
        )
