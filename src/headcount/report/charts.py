"""The charts every experiment has: error against heads, and the heat map of heads x length."""

import numpy as np

from ..analysis import Answer, ErrorTable
from ..analysis.comparison import PublishedTable
from .chart import Chart, HeatMap, Series, Span

ERROR = "validation error (NMSE)"


def error_chart(table: ErrorTable, answer: Answer, published: PublishedTable | None = None) -> Chart:
    """Least error over seeds against heads, one line a length, a band over all seeds, and the transition marked."""
    theirs = None if published is None else published.beside(table)
    series = []
    for j, length in enumerate(table.lengths):
        low, high = (tuple(edge.reduce(table.nmse[:, j], axis=1)) for edge in (np.fmin, np.fmax))
        series.append(Series(f"{length} tokens", table.heads, low, place=j, low=low, high=high))
        if theirs is not None and np.isfinite(theirs[:, j]).any():
            series.append(
                Series(f"{length} tokens, published", table.heads, tuple(theirs[:, j]), place=j, kind="published")
            )
    span = None
    if answer.heads is not None and answer.low is not None and answer.high is not None:
        span = Span(answer.sentence, answer.heads, answer.low, answer.high)
    caption = f"line: best of {len(table.seeds)} seeds; band: all seeds"
    if published is not None:
        caption += f"; dashed: the published {published.statistic}"
    return Chart(
        name="error-against-heads",
        title="Error against heads",
        x_label="attention heads",
        y_label=ERROR,
        x_ticks=table.heads,
        series=tuple(series),
        caption=caption,
        span=span,
    )


def heat_map(table: ErrorTable) -> HeatMap:
    """The least error over seeds for every head count and length."""
    return HeatMap(
        name="heads-by-length",
        title="Heads by length",
        rows=table.heads,
        columns=table.lengths,
        row_label="attention heads",
        column_label="sequence length T (tokens)",
        values=table.best,
        unit="NMSE",
        caption=f"best of {len(table.seeds)} seeds, coloured by its logarithm",
    )
