"""The charts every experiment has: error against heads and the heat map of heads x length, or those of heads x rank."""

import numpy as np

from ..analysis import Answer, Bottleneck, ErrorTable, RankTable
from ..analysis.bottleneck import size_of
from ..analysis.comparison import PublishedTable, count_of_heads
from ..analysis.summary import NMSE
from .chart import Chart, HeatMap, Line, Series, Span

ERROR = NMSE


def error_chart(table: ErrorTable, answer: Answer, published: PublishedTable | None = None) -> Chart:
    """Smallest error over seeds against heads: a line per length, a band over all seeds, the transition marked."""
    reference = None if published is None else published.beside(table)
    series = []
    for j, length in enumerate(table.lengths):
        low, high = (tuple(edge.reduce(table.errors[:, j], axis=1)) for edge in (np.fmin, np.fmax))
        series.append(Series(f"{length} tokens", table.heads, low, place=j, low=low, high=high))
        if reference is not None and np.isfinite(reference[:, j]).any():
            series.append(
                Series(f"{length} tokens, published", table.heads, tuple(reference[:, j]), place=j, kind="published")
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
        y_label=table.unit,
        x_ticks=table.heads,
        series=tuple(series),
        caption=caption,
        span=span,
    )


def reversal_chart(heads: tuple[int, ...], series: tuple[Series, ...]) -> Chart:
    """The weighted reversal score against heads."""
    return Chart(
        name="reversal",
        title="Weighted reversal score",
        x_label="attention heads",
        y_label="R(h), no unit",
        x_ticks=heads,
        log_y=False,
        series=series,
        caption="R(h) = sum over T1 < T2 of max(err(T1) - err(T2), 0) / (max err - min err)",
    )


def short_unit(table: ErrorTable | RankTable) -> str:
    """The unit of errors in one or two words."""
    return "NMSE" if table.unit == NMSE else "error rate"


def heat_map(table: ErrorTable) -> HeatMap:
    """The smallest error over seeds for every head count and length."""
    return HeatMap(
        name="heads-by-length",
        title="Heads by length",
        rows=table.heads,
        columns=table.lengths,
        row_label="attention heads",
        column_label="sequence length T (tokens)",
        values=table.best,
        unit=short_unit(table),
        caption=f"best of {len(table.seeds)} seeds, coloured by its logarithm",
    )


def rank_map(table: RankTable, bottleneck: Bottleneck) -> HeatMap:
    """The judged error of every head count and rank, with lines of equal heads x rank."""
    caption = f"{judged_by(table)}, coloured by its logarithm; lines join models of equal heads x rank"
    if bottleneck.frontier:
        corners = ", ".join(size_of(*size) for size in bottleneck.frontier)
        caption += f"; solved from {corners} on"
    return HeatMap(
        name="heads-by-rank",
        title="Heads by rank",
        rows=table.heads,
        columns=table.ranks,
        row_label="attention heads",
        column_label="rank of a head",
        values=table.worst,
        unit=short_unit(table),
        caption=caption,
        lines=_equal_products(table),
    )


def _equal_products(table: RankTable) -> tuple[Line, ...]:
    """A line for each heads x rank that two or more cells have."""
    places: dict[int, list[tuple[float, float]]] = {}
    for j, rank in enumerate(table.ranks):
        for i, heads in enumerate(table.heads):
            places.setdefault(heads * rank, []).append((float(j), float(i)))
    return tuple(
        Line(f"heads x rank = {product}", f"{product}", tuple(points))
        for product, points in sorted(places.items())
        if len(points) > 1
    )


def rank_chart(table: RankTable, bottleneck: Bottleneck) -> Chart:
    """The judged error against rank, one line per head count, with a band up to the worst seed."""
    highest = np.fmax.reduce(table.errors, axis=(2, 3))
    series = tuple(
        Series(count_of_heads(heads), table.ranks, tuple(line), place=i, low=tuple(line), high=tuple(high))
        for i, (heads, line, high) in enumerate(zip(table.heads, table.worst, highest, strict=True))
    )
    span = None
    if bottleneck.limit in ("rank", "both") and bottleneck.rank is not None:
        assert bottleneck.rank_low is not None
        assert bottleneck.rank_high is not None
        span = Span(bottleneck.sentence, bottleneck.rank, bottleneck.rank_low, bottleneck.rank_high)
    return Chart(
        name="error-against-rank",
        title="Error against rank",
        x_label="rank of a head",
        y_label=table.unit,
        x_ticks=table.ranks,
        series=series,
        caption=f"line: {judged_by(table)}; band: up to the worst seed",
        log_x=True,
        span=span,
    )


def judged_by(table: RankTable) -> str:
    """Which error counts for a cell, in words."""
    worst = f", at the worst of the lengths {', '.join(map(str, table.lengths))}" if len(table.lengths) > 1 else ""
    return f"best of {len(table.seeds)} {'seed' if len(table.seeds) == 1 else 'seeds'}{worst}"
