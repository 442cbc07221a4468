"""Draw a study's errors along one axis, and put its numbers into grids."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..answer import NMSE
from ..report.chart import Chart, Kind, Series
from ..report.document import Grid

AXIS_LABELS = {
    "heads": "attention heads",
    "length": "sequence length T (tokens)",
    "hidden": "hidden width N (units)",
    "rank": "rank of a head (numbers in a query)",
    "queries": "training queries",
    "epochs": "epochs",
}
WRONG_LABEL = "share of wrong answers"


def chart_along(
    axis: str,
    ticks: Sequence[float],
    series: Iterable[Series],
    name: str,
    title: str,
    caption: str,
    y_label: str = NMSE.label,
    **fields: Any,
) -> Chart:
    """Draw lines along an axis; those of `AXIS_LABELS` but the heads are logarithmic, others are their own label."""
    scale: dict[str, Any] = {"log_x": axis in AXIS_LABELS and axis != "heads"}
    return Chart(
        name=name,
        title=title,
        x_label=AXIS_LABELS.get(axis, axis),
        y_label=y_label,
        x_ticks=tuple(ticks),
        series=tuple(series),
        caption=caption,
        **scale | fields,
    )


def line_of(name: str, points: Mapping[Any, float], place: int, kind: Kind = "measured", **fields: Any) -> Series:
    return Series(name, tuple(points), tuple(points.values()), place=place, kind=kind, **fields)


def grid_of(title: str, columns: Iterable[str], rows: Iterable[Iterable[str]], *, folded: bool = False) -> Grid:
    """Return a grid of words; the first column names the row."""
    return Grid(title=title, columns=tuple(columns), rows=tuple(map(tuple, rows)), folded=folded)
