"""The one chart renderer: matplotlib, for files (svg, pdf, png) and for the page (`inline.py` adapts its SVG).

Every artist that the page has to recognise carries a gid: a role, and the indices of what it shows ("line 2",
"cell 0 3").
"""

import io
import math
import re
import warnings
from pathlib import Path
from textwrap import fill
from typing import Any, Literal

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from ..chart import Chart, HeatMap, Line, Series
from ..files import write_whole
from . import check_ending
from .ticks import far_enough, linear_ticks, log_ticks, tick_text

INK, QUIET, RULE, GROUND = "#1b1f24", "#5a6470", "#dfe3e8", "#ffffff"
"""Text, secondary text, grid lines, and what lies behind a chart."""
DARK, LIGHT = "#0a0a0a", "#ffffff"
"""Text on a light and on a dark cell."""
PAGE_SIZE = (384, 264)
"""Points of a chart on the page."""
CAPTION_WIDTH = 110
"""Letters of a caption that fit under a figure."""
MIN_FONT = 4.0
"""Values that would be smaller are not written; a cell's tooltip and the table have them."""
FONT = {"tick": 10.0, "label": 10.2, "value": 10.0}
_MARKS = {"circle": "o", "square": "s", "triangle": "^", "diamond": "D", "wedge": "v", "plus": "P", "cross": "X"}
_STYLES: dict[str, dict[str, Any]] = {
    "measured": {"linewidth": 1.6, "markersize": 6, "markeredgecolor": GROUND, "markeredgewidth": 0.6, "zorder": 2.3},
    "descended": {
        "linewidth": 1.6,
        "markersize": 7,
        "linestyle": (0, (1.0, 1.5)),
        "markerfacecolor": GROUND,
        "markeredgewidth": 1.5,
        "zorder": 2.4,
    },
    "published": {
        "linewidth": 1.1,
        "markersize": 5.5,
        "linestyle": (0, (3.6, 2.8)),
        "markerfacecolor": GROUND,
        "markeredgewidth": 1.1,
        "zorder": 2.2,
    },
    "fit": {"linewidth": 1.0, "marker": "", "zorder": 2.1},
}


def draw(chart: Chart | HeatMap, title: str | None = None) -> Figure:
    """A figure for a paper: the chart with title, legend or colour bar, and caption."""
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = figure.add_subplot()
    if isinstance(chart, Chart):
        _draw_lines(axes, chart)
        _add_legend(figure, axes, chart)
    else:
        _draw_cells(axes, chart)
        _add_colour_bar(figure, axes, chart)
    figure.suptitle(literal(title or chart.title), fontsize=11, x=0.01, horizontalalignment="left", wrap=True)
    figure.supxlabel(literal(fill(chart.caption, CAPTION_WIDTH)), fontsize=8, color=QUIET)
    return figure


def draw_bare(chart: Chart | HeatMap) -> Figure:
    """The chart alone, in the page's size; title, legend and caption are the page's."""
    width, height = PAGE_SIZE
    figure = Figure(figsize=(width / 72, height / 72))
    axes = figure.add_axes((0, 0, 1, 1))
    if isinstance(chart, Chart):
        _draw_lines(axes, chart)
    else:
        _draw_cells(axes, chart)
    longest = max(len(label.get_text()) for label in axes.get_yticklabels())
    left, right, top, bottom = 27 + 5.8 * longest, 9, 9, 37
    axes.set_position((left / width, bottom / height, 1 - (left + right) / width, 1 - (top + bottom) / height))
    axes.xaxis.set_label_coords(0.5, -22 / (height - top - bottom))
    axes.yaxis.set_label_coords(-(left - 12) / (width - left - right), 0.5)
    return figure


def to_svg(figure: Figure) -> str:
    """The figure as SVG with text as text; equal figures give equal text."""
    return _saved(figure, "svg", {"Date": None}, fonttype="none", transparent=True).decode()


def save_figure(figure: Figure, path: Path) -> None:
    """Write the figure in the format that the path ends in; equal figures give equal files.

    **Raises** `InputError` for another ending, `HeadcountError` where it cannot be written.
    """
    check_ending(path)
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}[path.suffix]
    write_whole(path, _saved(figure, path.suffix[1:], metadata, dpi=160))


def _saved(
    figure: Figure, form: str, metadata: dict[str, Any], fonttype: Literal["path", "none"] = "path", **options: Any
) -> bytes:
    drawn = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "headcount", "svg.fonttype": fonttype}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")  # a name in any script
        figure.savefig(drawn, format=form, metadata=metadata, **options)
    return drawn.getvalue()


def _draw_lines(axes: Axes, chart: Chart) -> None:
    x_low, x_high = _x_limits(chart)
    y_low, y_high, y_ticks = log_ticks(*chart.limits()) if chart.log_y else linear_ticks(*chart.limits())
    # Before anything is drawn: matplotlib's own limits of nearly equal values would be one number.
    axes.set_xlim(x_low, x_high)
    axes.set_ylim(y_low, y_high)
    if chart.log_x:
        axes.set_xscale("log", base=2)
    if chart.log_y:
        axes.set_yscale("log")
    if chart.span is not None:
        edges = np.clip([chart.span.low - 0.5, chart.span.high + 0.5], x_low, x_high)
        axes.axvspan(*edges, color=QUIET, alpha=0.14, linewidth=0, gid="span", zorder=0.3, clip_on=False)
        axes.axvline(chart.span.at, color=QUIET, linewidth=1, linestyle=(0, (4, 3)), gid="span", zorder=0.4)
    for k, series in enumerate(chart.series):
        _draw_series(axes, chart, series, k)
    axes.minorticks_off()
    places = np.log([x_low, x_high, *chart.x_ticks]) if chart.log_x else np.array([x_low, x_high, *chart.x_ticks])
    shares = (places[2:] - places[0]) / (places[1] - places[0])
    names = [f"{tick:g}" for tick in chart.x_ticks]
    kept = far_enough(shares * (PAGE_SIZE[0] - 60), [6.2 * len(name) + 6 for name in names])
    axes.set_xticks([chart.x_ticks[i] for i in kept], [names[i] for i in kept])
    axes.set_yticks(y_ticks, [tick_text(tick, y_ticks, log=chart.log_y) for tick in y_ticks])
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.grid(axis="y", color=RULE, linewidth=0.8)
    axes.set_axisbelow(True)
    _label(axes, chart.x_label, chart.y_label)
    axes.tick_params(axis="y", length=0)


def _x_limits(chart: Chart) -> tuple[float, float]:
    low, high = min(chart.x_ticks), max(chart.x_ticks)
    if chart.log_x:
        margin = max(1.08, (high / low) ** 0.04)
        return low / margin, high * margin
    margin = max(0.3, 0.04 * (high - low))
    return low - margin, high + margin


def _draw_series(axes: Axes, chart: Chart, series: Series, k: int) -> None:
    if series.low is not None and series.high is not None:
        low, high = chart.drawable(series.low), chart.drawable(series.high)
        shown = np.isfinite(low) & np.isfinite(high)
        # Under every line, whichever series it belongs to.
        axes.fill_between(
            series.x,
            np.where(shown, low, 1),
            np.where(shown, high, 1),
            where=shown.tolist(),
            color=series.colour,
            alpha=0.14,
            linewidth=0,
            gid=f"band {k}",
            zorder=1.5,
            clip_on=False,
        )
        apart = shown & ~np.roll(np.append(shown, False), 1)[:-1] & ~np.append(shown, False)[1:]
        if apart.any():  # a band is drawn between neighbours; a value without one has a bar
            axes.vlines(
                np.asarray(series.x)[apart],
                low[apart],
                high[apart],
                color=series.colour,
                alpha=0.14,
                linewidth=6,
                gid=f"band {k}",
                zorder=1.5,
                clip_on=False,
            )
    style: dict[str, Any] = {"marker": _MARKS[series.marker], "color": series.colour} | _STYLES[series.kind]
    label = literal(series.name)
    axes.plot(series.x, chart.drawable(series.y), label=label, gid=f"line {k}", clip_on=False, **style)


def _add_legend(figure: Figure, axes: Axes, chart: Chart) -> None:
    """Beside the axes, where it hides nothing; descended and published lines, which repeat the colours, share an entry
    each."""
    handles, names = axes.get_legend_handles_labels()
    measured = {literal(series.name) for series in chart.series if series.kind == "measured"}
    entries = [(handle, name) for handle, name in zip(handles, names, strict=True) if name in measured]
    for kind in ("descended", "published"):
        if any(series.kind == kind for series in chart.series):
            entries.append((Line2D([], [], color=QUIET, marker="o", **_STYLES[kind]), kind))
    if entries:
        figure.legend(*zip(*entries, strict=True), frameon=False, fontsize=9, loc="outside right upper")


def _add_colour_bar(figure: Figure, axes: Axes, chart: HeatMap) -> None:
    low, high = chart.limits()
    norm = LogNorm(low, high if high > low else math.nextafter(low, math.inf))
    bar = figure.colorbar(ScalarMappable(norm, "cividis"), ax=axes, label=chart.unit)
    _, _, ticks = log_ticks(low, high)
    bar.minorticks_off()
    bar.set_ticks(ticks, labels=[tick_text(tick, ticks, log=True) for tick in ticks])
    bar.ax.set_ylim(norm.vmin, norm.vmax)
    bar.ax.tick_params(labelsize=FONT["tick"], labelcolor=QUIET, color=QUIET, length=3)
    bar.ax.spines[:].set_visible(False)


def _draw_cells(axes: Axes, chart: HeatMap) -> None:
    """The cells, the first row at the bottom; values are written where there is room for them."""
    rows, columns = chart.values.shape
    wide, tall = (PAGE_SIZE[0] - 50) / columns, (PAGE_SIZE[1] - 46) / rows
    size = min(FONT["value"], 0.23 * wide, 0.7 * tall)
    limits = chart.limits()
    for (i, j), value in np.ndenumerate(chart.values):
        _draw_cell(axes, (i, j), float(value), limits, size)
    for k, line in enumerate(chart.lines):
        _draw_over_cells(axes, line, k, min(8.5, 0.16 * wide, 0.42 * tall))
    axes.set_xlim(-0.5, columns - 0.5)
    axes.set_ylim(-0.5, rows - 0.5)
    names = [str(column) for column in chart.columns]
    kept = far_enough(np.arange(columns) * wide, [6.2 * len(name) + 6 for name in names])
    axes.set_xticks(kept, [names[j] for j in kept])
    kept = far_enough(np.arange(rows) * tall, [12.0] * rows)
    axes.set_yticks(kept, [str(chart.rows[i]) for i in kept])
    axes.spines[:].set_visible(False)
    _label(axes, chart.column_label, chart.row_label)
    axes.tick_params(length=0)


def _draw_cell(axes: Axes, at: tuple[int, int], value: float, limits: tuple[float, float], size: float) -> None:
    (i, j), (low, high) = at, limits
    known, fill_colour, ink = math.isfinite(value), "none", INK
    if known:
        share = math.log(max(value, low) / low) / math.log(high / low) if high > low else 0.5
        # cividis reads the same in every colour vision.
        fill_colour = matplotlib.colormaps["cividis"](share)
        red, green, blue, _ = fill_colour
        ink = DARK if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.45 else LIGHT
    name = f"cell {i} {j}"
    box = Rectangle((j - 0.48, i - 0.48), 0.96, 0.96, facecolor=fill_colour, edgecolor=RULE, linewidth=0.8)
    box.set(gid=name, zorder=1, clip_on=False)
    axes.add_artist(box)  # unlike add_patch, without a look at the limits, which are set
    if size < MIN_FONT:
        return
    words = f"{value:.1e}" if known else "-"
    axes.text(j, i, words, ha="center", va="center_baseline", color=ink, fontsize=size, gid=name, zorder=1)


def _draw_over_cells(axes: Axes, line: Line, k: int, size: float) -> None:
    """A line dark on a light edge, which shows on every colour of the map."""
    strokes = np.array([[*start, *end] for start, end in line.strokes()])
    gaps = np.full(len(strokes), np.nan)
    x, y = (np.stack([strokes[:, c], strokes[:, c + 2], gaps], axis=1).ravel() for c in (0, 1))
    for colour, width in ((LIGHT, 2.6), (DARK, 0.9)):
        axes.plot(
            x, y, color=colour, linewidth=width, solid_capstyle="round", gid=f"equal {k}", zorder=3, clip_on=False
        )
    box = {"boxstyle": "round,pad=0.18", "facecolor": LIGHT, "edgecolor": "none"}
    axes.text(
        *line.label_at,
        literal(line.label),
        ha="center",
        va="center",
        fontsize=size,
        color=DARK,
        bbox=box,
        gid=f"equal {k}",
        zorder=4,
    )


def _label(axes: Axes, x_label: str, y_label: str) -> None:
    """Labels, ticks and the lines of the axes, in their colours and with their roles."""
    axes.set_xlabel(literal(x_label), fontsize=FONT["label"], color=INK, gid="label")
    axes.set_ylabel(literal(y_label), fontsize=FONT["label"], color=INK, gid="label")
    axes.tick_params(labelsize=FONT["tick"], labelcolor=QUIET, color=QUIET, length=3)
    axes.spines["bottom"].set(color=QUIET, gid="axis")
    for tick in (*axes.xaxis.get_major_ticks(), *axes.yaxis.get_major_ticks()):
        tick.tick1line.set_gid("axis")
        tick.label1.set_gid("tick")
        tick.gridline.set(gid="grid", clip_on=False)


def literal(text: str) -> str:
    """Text as it is: a dollar sign in a task's name starts no formula, and what XML cannot hold is replaced."""
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text).replace("$", r"\$")
