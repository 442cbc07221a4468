"""Tables 6 and 7 against the number of training queries: what would the published 28,000 give?"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...answer import ERROR_RATE, error_table
from ...report.section import Section
from ...store import Experiment, Record
from ..base import Scale, said_of
from ..claims.queries import costs_claim, foretold_claim, learning_curves, would_be_claim
from .base import LabelledEffort, changes_of
from .marco_queries_views import METRICS, chart, grid, headline
from .passages import (
    DECAY,
    HEADS,
    LENGTHS,
    OUR_CHOICES,
    OUR_TRAINING,
    TRAINED,
    TRANSITION,
    VALIDATED,
    PassageStudy,
    smaller,
    training_queries,
)

if TYPE_CHECKING:
    from ...store.experiment import Value
    from ...tasks import AbstractTask


@dataclass(frozen=True, kw_only=True)
class QueriesEffort(LabelledEffort):
    """How much is done, and which numbers of queries are tried; `train_examples` stands for all that there are.

    `batch` is that of the published number of queries. Fewer have a smaller one, so that all have as many steps: with
    one batch for all, fewer queries would be fewer steps, and a learning curve one of the steps.
    """

    tried: tuple[int, ...]

    def among(self, queries: int) -> dict[int, LabelledEffort]:
        """The training by number of queries, of so many that are there; those asked for beyond are all of them."""
        most = min(queries, self.train_examples)
        counts = sorted({min(count, most) for count in self.tried})
        # All queries are asked for as elsewhere, so that studies in one folder share these models.
        return {
            count: replace(
                self,
                batch=max(1, round(self.batch * count / TRAINED)),
                train_examples=self.train_examples if count == most else count,
            ).of(count)
            for count in counts
        }


@dataclass(frozen=True, kw_only=True)
class MarcoQueriesStudy(PassageStudy):
    """Candidates as tokens, trained on several numbers of queries; the number is an axis of the experiment."""

    efforts: dict[Scale, QueriesEffort]  # type: ignore[assignment]
    layouts: tuple[str, ...] = ("candidates",)

    def trainings(self, scale: Scale, task: "AbstractTask") -> "list[tuple[dict[str, Value], LabelledEffort]]":
        among = self.efforts[scale].among(training_queries(task))
        return [({"queries": queries}, effort) for queries, effort in among.items()]

    def section(self, experiment: Experiment, records: Iterable[Record], scale: Scale) -> Section:
        records, whole = list(records), scale is not Scale.SMOKE
        tables = {
            what: error_table(experiment, records, metric=metric).ordered("queries", "heads", "length", "seed")
            for what, (metric, _, _) in METRICS.items()
        }
        curves = {what: learning_curves(table) for what, table in tables.items()}
        changes = changes_of(experiment, self.efforts[scale])
        return Section(
            name=self.name,
            title=", ".join([self.title, *changes]),
            asks=self.asks,
            headline=headline(curves["training"]),
            claims=(
                *(
                    would_be_claim(what, curves[what], published, TRAINED, whole=whole)
                    for what, (_, published, _) in METRICS.items()
                ),
                costs_claim(curves["training"], TRANSITION),
                *(foretold_claim(what, table) for what, table in tables.items()),
            ),
            grids=tuple(grid(what, table, curves[what]) for what, table in tables.items()),
            charts=tuple(
                chart(what, table, curves[what], length)
                for what, table in tables.items()
                for length in table.values("length")
            ),
            notes=(*said_of(changes, scale), *self.choices(scale)),
            metric=ERROR_RATE,
        )

    def choices(self, scale: Scale) -> tuple[str, ...]:
        effort = self.efforts[scale]
        ours = (
            f"{OUR_TRAINING} Every number of queries is trained on for {effort.epochs} epochs and about as many steps: "
            f"the batch grows with the queries, to {effort.batch} for {TRAINED:,}. Smaller sets of queries are parts "
            "of the larger, and the same for all seeds: intervals do not cover the draw of the queries. Validation "
            "queries are the same throughout.",
            f"What {TRAINED:,} queries would give is read off a line through the log-odds of wrong answers against the "
            "logarithm of the number of queries. Its 90 % interval covers the scatter of the means around the line, or "
            "of the seeds where that is larger, and the line's own error. It does not cover a curve that bends beyond "
            "what was measured.",
            *OUR_CHOICES,
        )
        return (*smaller(scale, effort), *ours)


SHARES = tuple(TRAINED // part for part in (40, 20, 10, 5, 2, 1))
"""700, 1,400, 2,800, 5,600, 14,000 and 28,000. MS MARCO's dev-small has 5,584, which replace the last three."""
STUDY = MarcoQueriesStudy(
    name="marco-queries",
    title="Tables 6 and 7 by number of training queries",
    asks="MS MARCO: how does accuracy depend on the number of training queries, and what would 28,000 give?",
    efforts={
        Scale.SMOKE: QueriesEffort(
            lengths=(8,), heads=(1, 4), seeds=1, steps=125, epochs=4, tried=(250, 500, 1000), batch=896,
            train_examples=1000, validation_examples=200, weight_decay=DECAY,
        ),
        Scale.LAPTOP: QueriesEffort(
            lengths=(8, 16), heads=(1, 2, 4, 8), seeds=2, steps=350, epochs=8, tried=SHARES[:4], batch=640,
            train_examples=TRAINED, validation_examples=VALIDATED, weight_decay=DECAY,
        ),
        Scale.PAPER: QueriesEffort(
            lengths=LENGTHS, heads=HEADS, seeds=5, steps=1312, epochs=30, tried=SHARES, batch=640,
            train_examples=TRAINED, validation_examples=VALIDATED, weight_decay=DECAY, precision="bfloat16",
        ),
    },
)  # fmt: skip
