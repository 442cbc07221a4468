"""Charts drawn for paper with matplotlib, saved by the file's ending (svg, pdf, png)."""

import io
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.ticker import NullFormatter, NullLocator

from .._errors import InputError
from .chart import Chart, HeatMap, Line, Series
from .files import write_whole

FORMATS = (".svg", ".pdf", ".png")
CAPTION_WIDTH = 110
"""Letters of a caption that fit under a figure."""
_MARKS = {
    "circle": "o",
    "square": "s",
    "triangle": "^",
    "diamond": "D",
    "wedge": "v",
    "plus": "P",
    "cross": "X",
}
_STYLES: dict[str, dict[str, Any]] = {
    "measured": {"linewidth": 1.6, "markersize": 5},
    "published": {"linewidth": 1.2, "markersize": 5, "linestyle": (0, (4, 3)), "markerfacecolor": "white"},
    "fit": {"linewidth": 1.0, "marker": ""},
}


def draw(chart: Chart | HeatMap, title: str | None = None) -> Figure:
    """One figure of one chart."""
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    if isinstance(chart, Chart):
        _draw_lines(figure, axes, chart)
    else:
        _draw_heat_map(figure, axes, chart)
    figure.suptitle(_words(title or chart.title), fontsize=11, x=0.01, horizontalalignment="left", wrap=True)
    figure.supxlabel(fill(_words(chart.caption), CAPTION_WIDTH), fontsize=8, color="#555555")
    return figure


def _draw_lines(figure: Figure, axes: Axes, chart: Chart) -> None:
    if chart.span is not None:
        axes.axvspan(chart.span.low - 0.5, chart.span.high + 0.5, color="#999999", alpha=0.18, linewidth=0)
        axes.axvline(chart.span.at, color="#555555", linewidth=1, linestyle=(0, (4, 3)))
    for series in chart.series:
        _draw_series(axes, series)
    _add_legend(figure, axes, chart)
    if chart.log_x:
        axes.set_xscale("log", base=2)
    low, high = chart.limits()
    if chart.log_y:
        axes.set_ylim(low / 1.6, high * 1.6)
        axes.set_yscale("log")
    axes.set_xticks(chart.x_ticks, [f"{tick:g}" for tick in chart.x_ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    if chart.log_y and high / low > 10:  # over less than a decade the ticks between say the scale
        axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(chart.x_label)
    axes.set_ylabel(chart.y_label)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)


def _add_legend(figure: Figure, axes: Axes, chart: Chart) -> None:
    """Beside the axes, where it hides nothing; published lines, which repeat the colours, share one entry."""
    handles, names = axes.get_legend_handles_labels()
    measured = {_words(series.name) for series in chart.series if series.kind == "measured"}
    entries = [(handle, name) for handle, name in zip(handles, names, strict=True) if name in measured]
    if any(series.kind == "published" for series in chart.series):
        dashes = Line2D([], [], color="#555555", marker="o", **_STYLES["published"])
        entries.append((dashes, "published"))
    if entries:
        figure.legend(*zip(*entries, strict=True), frameon=False, fontsize=9, loc="outside right upper")


def _draw_series(axes: Axes, series: Series) -> None:
    if series.low is not None and series.high is not None:
        low, high = np.asarray(series.low, float), np.asarray(series.high, float)
        axes.fill_between(series.x, low, high, color=series.colour, alpha=0.15, linewidth=0)
    style: dict[str, Any] = {"marker": _MARKS[series.marker]} | _STYLES[series.kind]
    axes.plot(series.x, series.y, color=series.colour, label=_words(series.name), **style)


def _words(text: str) -> str:
    """Text as it is: a dollar sign in a task's name starts no formula."""
    return text.replace("$", r"\$")


def _draw_heat_map(figure: Figure, axes: Axes, chart: HeatMap) -> None:
    known = chart.values[np.isfinite(chart.values) & (chart.values > 0)]
    norm = LogNorm(known.min(), known.max()) if len(known) and known.min() < known.max() else None
    image = axes.imshow(np.ma.masked_invalid(chart.values), norm=norm, cmap="cividis", origin="lower", aspect="auto")
    axes.set_xticks(range(len(chart.columns)), [str(column) for column in chart.columns])
    axes.set_yticks(range(len(chart.rows)), [str(row) for row in chart.rows])
    axes.set_xlabel(chart.column_label)
    axes.set_ylabel(chart.row_label)
    middle = np.sqrt(known.min() * known.max()) if len(known) else 1.0
    for (i, j), value in np.ndenumerate(chart.values):
        if np.isfinite(value):
            axes.text(j, i, f"{value:.1e}", ha="center", va="center", color="black" if value > middle else "white")
    for line in chart.lines:
        _draw_over_cells(axes, line)
    figure.colorbar(image, ax=axes, label=chart.unit)


def _draw_over_cells(axes: Axes, line: Line) -> None:
    """A line dark on a light edge, which shows on every colour of the map."""
    edge = [withStroke(linewidth=2.6, foreground="white")]
    for (x, y), (u, v) in line.strokes():
        axes.plot([x, u], [y, v], color="#222222", linewidth=0.9, path_effects=edge, scalex=False, scaley=False)
    axes.text(
        *line.label_at, _words(line.label), ha="center", va="center", fontsize=7, color="#222222", path_effects=edge
    )


def check_ending(path: Path) -> None:
    if path.suffix not in FORMATS:
        raise InputError(f"a figure ends in {', '.join(FORMATS)}, got {path}.")


def save_figure(figure: Figure, path: Path) -> None:
    """Write the figure; equal figures make equal files."""
    check_ending(path)
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}[path.suffix]
    drawn = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "headcount"}):
        figure.savefig(drawn, format=path.suffix[1:], dpi=160, metadata=metadata)
    write_whole(path, drawn.getvalue())
