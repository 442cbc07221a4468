"""Tables 6 and 7 against the number of training queries: what would the published 28,000 give?"""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...answer import ERROR_RATE, ErrorTable, LearningCurve, count_of_heads
from ...answer.metric import FINAL_ERROR, TRAIN_ERROR
from ...report.chart import Chart, Series
from ...report.document import Grid
from ..base import Results, Scale
from ..claims.queries import Place, costs_claim, foretold_claim, learning_curves, would_be_claim
from .base import SMALLEST, LabelledEffort, changes_of, percent
from .passages import (
    DECAY,
    HEADS,
    LENGTHS,
    OUR_CHOICES,
    OUR_TRAINING,
    TRAINED,
    TRAINING,
    TRANSITION,
    VALIDATED,
    VALIDATION,
    PassageStudy,
    training_queries,
)

if TYPE_CHECKING:
    from ...tasks import AbstractTask

METRICS = {"training": (TRAIN_ERROR, TRAINING, 6), "validation": (FINAL_ERROR, VALIDATION, 7)}
"""What is judged, by its name: the metric, the published table, and its number."""


def headline(curves: dict[Place, LearningCurve]) -> str:
    """Of the fewest heads and the shortest lists that were published too."""
    published = [(heads, length) for heads, length in curves if np.isfinite(TRAINING.at(heads=heads, length=length))]
    if not published:
        return "Too few numbers of queries finished for a learning curve"
    heads, length = published[0]
    low, value, high = curves[heads, length].at(TRAINED)
    return (
        f"{TRAINED:,} queries would give {count_of_heads(heads)} {100 * (1 - value):.0f} % [{100 * (1 - high):.0f}, "
        f"{100 * (1 - low):.0f}] of the training queries at T = {length}; published "
        f"{100 * (1 - TRAINING.at(heads=heads, length=length)):.0f} %"
    )


def grid(what: str, table: ErrorTable, curves: dict[Place, LearningCurve]) -> Grid:
    """Accuracies by heads and length, a column per number of queries, then the extrapolated and the published one."""
    metric, published, number = METRICS[what]
    means, rows = table.reduced("seed", "mean"), []
    for heads in table.values("heads"):
        for length in table.values("length"):
            cells = [means.at(queries=queries, heads=heads, length=length) for queries in table.values("queries")]
            curve, printed = curves.get((heads, length)), published.at(heads=heads, length=length)
            would = "-"
            if curve is not None:
                low, value, high = (percent(share, metric) for share in curve.at(TRAINED))
                would = f"{value} [{high}, {low}]"
            ours = (percent(share, metric) for share in cells)
            rows.append((f"{count_of_heads(heads)}, T = {length}", *ours, would, percent(printed, metric)))
    return Grid(
        title=f"{what} accuracy, per cent, by training queries (Table {number})",
        columns=("", *(f"{queries:,}" for queries in table.values("queries")), f"{TRAINED:,} would be", "published"),
        rows=tuple(rows),
    )


def chart(what: str, table: ErrorTable, curves: dict[Place, LearningCurve], length: int) -> Chart:
    """Share of wrong answers against queries, a line per head count, its curve thin, the published share a point."""
    queries, published = table.values("queries"), METRICS[what][1]
    means = table.select(length=length).reduced("seed", "mean")
    ticks = tuple(sorted({*queries, TRAINED}))
    series = []
    for place, heads in enumerate(table.values("heads")):
        errors = [means.at(queries=count, heads=heads) for count in queries]
        series.append(Series(count_of_heads(heads), queries, tuple(np.maximum(errors, SMALLEST)), place=place))
        if (heads, length) in curves:
            low, value, high = zip(*(curves[heads, length].at(count) for count in ticks), strict=True)
            name = f"{count_of_heads(heads)}, fitted"
            series.append(Series(name, ticks, value, place=place, kind="fit", low=low, high=high))
        printed = published.at(heads=heads, length=length)
        if np.isfinite(printed):
            shown = max(printed, SMALLEST)
            series.append(Series(f"{count_of_heads(heads)}, published", (TRAINED,), (shown,), place, "published"))
    return Chart(
        name=f"queries-{what}-{length}",
        title=f"{what.capitalize()} error against training queries, T = {length}",
        x_label="training queries",
        y_label="share of wrong answers",
        x_ticks=ticks,
        series=tuple(series),
        caption="mean over seeds; lines: fitted log-odds, with 90 % intervals; hollow: published",
        log_x=True,
        spread="interval",
    )


def among(effort: LabelledEffort, queries: int) -> dict[int, LabelledEffort]:
    """The training by number of queries, of those that are there; those asked for beyond are all of them.

    `batch` is that of the published number of queries. Fewer have a smaller one, so that all have equally many steps:
    with one batch for all, fewer queries would be fewer steps, and a learning curve one of the steps.
    """
    most = min(queries, effort.train_examples)
    counts = sorted({min(count, most) for count in effort.axes["queries"]})
    # All queries are asked for as elsewhere, so that studies in one folder share these models.
    return {
        count: replace(
            effort,
            batch=max(1, round(effort.batch * count / TRAINED)),
            train_examples=effort.train_examples if count == most else count,
        ).of(count)
        for count in counts
    }


def _trainings(effort: LabelledEffort, task: "AbstractTask") -> Iterable[tuple[dict[str, Any], LabelledEffort]]:
    """The number of queries is an axis of the experiment."""
    for queries, training in among(effort, training_queries(task)).items():
        yield {"queries": queries}, training


def _report(results: Results) -> dict[str, Any]:
    whole = results.scale is not Scale.SMOKE
    tables = {
        what: results.table(metric).ordered("queries", "heads", "length", "seed")
        for what, (metric, _, _) in METRICS.items()
    }
    curves = {what: learning_curves(table) for what, table in tables.items()}
    return {
        "headline": headline(curves["training"]),
        "claims": (
            *(
                would_be_claim(what, curves[what], published, TRAINED, whole=whole)
                for what, (_, published, _) in METRICS.items()
            ),
            costs_claim(curves["training"], TRANSITION),
            *(foretold_claim(what, table) for what, table in tables.items()),
        ),
        "grids": tuple(grid(what, table, curves[what]) for what, table in tables.items()),
        "charts": tuple(
            chart(what, table, curves[what], length)
            for what, table in tables.items()
            for length in table.values("length")
        ),
        "metric": ERROR_RATE,
    }


SHARES = tuple(TRAINED // part for part in (40, 20, 10, 5, 2, 1))
"""700, 1,400, 2,800, 5,600, 14,000 and 28,000. MS MARCO's dev-small has 5,584, which replace the last three."""
STUDY = PassageStudy(
    name="marco-queries",
    title="Tables 6 and 7 by number of training queries",
    asks="MS MARCO: how does accuracy depend on the number of training queries, and what would 28,000 give?",
    trainings=_trainings,
    report=_report,
    notes=(
        f"{OUR_TRAINING} Every number of queries is trained on for equally many epochs and about as many steps: the "
        f"batch grows with the queries, up to {TRAINED:,}. Smaller sets of queries are parts of the larger, and the "
        "same for all seeds: intervals do not cover the draw of the queries. Validation queries are the same "
        "throughout.",
        f"What {TRAINED:,} queries would give is read off a line through the log-odds of wrong answers against the "
        "logarithm of the number of queries. Its 90 % interval covers the scatter of the means around the line, or "
        "of the seeds where that is larger, and the line's own error. It does not cover a curve that bends beyond "
        "what was measured.",
        *OUR_CHOICES,
    ),
    changes=changes_of,
    options=("precision",),
    efforts={
        Scale.SMOKE: LabelledEffort(
            lengths=(8,), heads=(1, 4), seeds=1, steps=125, epochs=4, axes={"queries": (250, 500, 1000)}, batch=896,
            train_examples=1000, validation_examples=200, weight_decay=DECAY,
        ),
        Scale.LAPTOP: LabelledEffort(
            lengths=(8, 16), heads=(1, 2, 4, 8), seeds=2, steps=350, epochs=8, axes={"queries": SHARES[:4]}, batch=640,
            train_examples=TRAINED, validation_examples=VALIDATED, weight_decay=DECAY,
        ),
        Scale.PAPER: LabelledEffort(
            lengths=LENGTHS, heads=HEADS, seeds=5, steps=1312, epochs=30, axes={"queries": SHARES}, batch=640,
            train_examples=TRAINED, validation_examples=VALIDATED, weight_decay=DECAY, precision="bfloat16",
        ),
    },
)  # fmt: skip
