"""Studies of one table: error by heads and length, the published table beside it, and its claims."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from ..analysis import answer_from_table, error_table
from ..analysis.comparison import (
    PublishedTable,
    count_of_heads,
    drop_claim,
    growth_claims,
    magnitude_claim,
    transition_claim,
)
from ..engine import Sweep, grid
from ..models import ClassTokenSpec
from ..report.charts import error_chart, heat_map
from ..report.section import Section, headline
from ..store import Outcome, Record
from .base import AbstractStudy, Scale, paper_task


@dataclass(frozen=True, kw_only=True)
class TableStudy(AbstractStudy):
    """A table whose error drops at `transition` heads. `model(heads)` makes a row, `subject` names the task."""

    subject: str
    published: PublishedTable
    intrinsic_dim: int
    transition: int
    transition_statement: str
    model: Callable[[int], ClassTokenSpec]
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
        records = list(records)
        table = error_table(records)
        answer = answer_from_table(table)
        return Section(
            name=self.name,
            title=self.title,
            asks=self.asks,
            headline=headline(self.subject, answer),
            claims=(
                transition_claim(table, answer, self.transition, self.transition_statement),
                *growth_claims(table, self.published, self.transition),
                drop_claim(table, self.published, self.transition),
                magnitude_claim(table, self.published),
            ),
            table=table,
            answer=answer,
            published=self.published,
            charts=(error_chart(table, answer, self.published), heat_map(table)),
            notes=(*self.notes, *_training_note(records, self.transition), *self.choices(scale)),
        )


def _training_note(records: list[Record], transition: int) -> tuple[str, ...]:
    """What training left where heads are enough, to tell what optimising and what generalising costs."""
    errors: dict[int, list[float]] = {}
    for record in records:
        if record.outcome is Outcome.FINISHED and record.cell.model.heads >= transition:
            errors.setdefault(record.cell.length, []).append(record.metrics["train_nmse"])
    if not errors:
        return ()
    medians = "; ".join(f"length {length} {np.median(values):.1e}" for length, values in sorted(errors.items()))
    return (
        f"From {count_of_heads(transition)} on, the error over the last twentieth of the training batches, median over "
        f"heads and seeds: {medians}. So far did the optimiser come; a validation error above it is what the model "
        "does on inputs it has not seen.",
    )
