"""What `marco-queries` shows: accuracies by number of queries, and what the published number would give."""

import numpy as np

from ...answer import ErrorTable, LearningCurve, count_of_heads
from ...answer.metric import FINAL_ERROR, TRAIN_ERROR
from ...report.chart import Chart, Series
from ...report.section import Grid
from ..claims.queries import Place
from .base import SMALLEST, percent
from .passages import TRAINED, TRAINING, VALIDATION

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
