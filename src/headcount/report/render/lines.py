"""Draws the lines of a chart: series with bands or seeds, levels to compare with, and the answer."""

from collections.abc import Sequence
from textwrap import wrap
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ..chart import Chart, Drop, Level, Series
from .ink import FONT, GROUND, INK, PAGE_SIZE, QUIET, RULE, label_axes, literal
from .ticks import far_enough, linear_ticks, log_ticks, tick_text

LINE_HEIGHT = 10.0 / 210
"""Of a level's name, as a share of the axis."""
NAMES_AT = 1.04
"""Where the names of levels begin, in widths of the axes; a hairline leads to each from the end of its line."""
NAME_WIDTH = 18
"""Letters of a line of a level's name."""
ROUNDING = 1e-9
"""Share of the axis by which a value at its end may seem to be outside."""
DROP_PLACES = np.linspace(0.25, 0.85, 13)
"""Where between the two errors of a drop its words may stand."""
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
_THIN = {"linewidth": 0.9, "marker": "", "alpha": 0.8}


def draw_lines(axes: Axes, chart: Chart) -> None:
    """Draw the whole chart, without title, legend and caption."""
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
    _draw_levels(axes, chart)
    for k, series in enumerate(chart.series):
        _draw_series(axes, chart, series, k)
    if chart.drop is not None:
        _draw_drop(axes, chart.drop, chart.levels)
    axes.minorticks_off()
    ticks = chart.drawable_ticks()
    places = np.log([x_low, x_high, *ticks]) if chart.log_x else np.array([x_low, x_high, *ticks])
    shares = (places[2:] - places[0]) / (places[1] - places[0])
    names = [f"{tick:g}" for tick in ticks]
    kept = far_enough(shares * (PAGE_SIZE[0] - 60), [6.2 * len(name) + 6 for name in names])
    axes.set_xticks([ticks[i] for i in kept], [names[i] for i in kept])
    axes.set_yticks(y_ticks, [tick_text(tick, y_ticks, log=chart.log_y) for tick in y_ticks])
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.grid(axis="y", color=RULE, linewidth=0.8)
    axes.set_axisbelow(True)
    label_axes(axes, chart.x_label, chart.y_label)
    axes.tick_params(axis="y", length=0)


def _x_limits(chart: Chart) -> tuple[float, float]:
    low, high = chart.x_limits()
    if chart.log_x:
        margin = max(1.08, (high / low) ** 0.04)
        return low / margin, high * margin
    margin = max(0.3, 0.04 * (high - low))
    return low - margin, high + margin


def _draw_series(axes: Axes, chart: Chart, series: Series, k: int) -> None:
    if series.points:
        x, y = np.array(series.points, float).T
        style = {"markersize": 3.4, "markeredgewidth": 0, "alpha": 0.6, "zorder": 2.0}
        if series.kind == "descended":
            style = {"markersize": 3.6, "markeredgewidth": 0.9, "markerfacecolor": GROUND, "zorder": 2.1}
        axes.plot(
            x,
            chart.drawable(tuple(y)),
            linestyle="",
            marker="o",
            color=series.colour,
            gid=f"seeds {k}",
            clip_on=False,
            **style,
        )
    elif series.low is not None and series.high is not None:
        _draw_band(axes, series, chart.drawable(series.low), chart.drawable(series.high), k)
    style: dict[str, Any] = {"marker": _MARKS[series.marker], "color": series.colour} | _STYLES[series.kind]
    style |= _THIN if series.thin else {}
    label = literal(series.name)
    axes.plot(series.x, chart.heights(series), label=label, gid=f"line {k}", clip_on=False, **style)


def _draw_band(
    axes: Axes, series: Series, low: Float[np.ndarray, " values"], high: Float[np.ndarray, " values"], k: int
) -> None:
    shown = np.isfinite(low) & np.isfinite(high)
    # Under every line, whichever series it belongs to.
    style: dict[str, Any] = {"color": series.colour, "alpha": 0.14, "gid": f"band {k}", "zorder": 1.5, "clip_on": False}
    edges = (np.where(shown, edge, 1) for edge in (low, high))
    axes.fill_between(series.x, *edges, where=shown.tolist(), linewidth=0, **style)
    alone = shown & ~np.roll(np.append(shown, False), 1)[:-1] & ~np.append(shown, False)[1:]
    if alone.any():  # a band is drawn between neighbours; a value without one has a bar
        axes.vlines(np.asarray(series.x)[alone], low[alone], high[alone], linewidth=6, **style)


def _draw_levels(axes: Axes, chart: Chart) -> None:
    """Draw thin lines, each with a hairline to its name at the right of the axes; no line where it is outside."""
    groups = _named_together(axes, chart.levels)
    names = [_name_lines(axes, [chart.levels[k] for k in group]) for group in groups]
    heights = [[_height(axes, chart.levels[k].at) for k in group] for group in groups]
    wanted = [float(np.clip(np.mean(each), 0, 1)) for each in heights]
    places = apart(wanted, [LINE_HEIGHT * len(lines) for lines in names])
    for group, lines, ends, place in zip(groups, names, heights, places, strict=True):
        shared: dict[str, Any] = {"color": QUIET, "gid": f"level {' '.join(map(str, group))}"}
        for k, end in zip(group, ends, strict=True):
            if not _arrow(axes, chart.levels[k]):
                axes.axhline(chart.levels[k].at, linewidth=0.8, linestyle=(0, (5, 2)), zorder=1.2, **shared)
                to_name = ([1, NAMES_AT - 0.005], [end, place])
                axes.plot(*to_name, linewidth=0.5, transform=axes.transAxes, clip_on=False, zorder=1.2, **shared)
        first = place + LINE_HEIGHT * (len(lines) - 1) / 2
        shared |= {"transform": axes.transAxes, "va": "center_baseline", "fontsize": FONT["level"]}
        for i, line in enumerate(lines):
            axes.text(NAMES_AT, first - i * LINE_HEIGHT, literal(line), **shared)


def _named_together(axes: Axes, levels: Sequence[Level]) -> list[list[int]]:
    """Group levels, the lowest first: those of one value share a name if all are on the axis or all outside."""
    groups: list[list[int]] = []
    for k in sorted(range(len(levels)), key=lambda k: levels[k].at):
        here, last = levels[k], levels[groups[-1][-1]] if groups else None
        alike = last is not None and here.value == last.value != "" and _arrow(axes, here) == _arrow(axes, last)
        if alike:
            groups[-1].append(k)
        else:
            groups.append([k])
    return groups


def _name_lines(axes: Axes, levels: Sequence[Level]) -> list[str]:
    """Write `linear 0.43`, `constant, linear 1.0`, `pooled < 1e-9 \u2193`, in lines."""
    name = ", ".join(level.name for level in levels)
    value_and_arrow = filter(None, (levels[0].value, _arrow(axes, levels[0])))
    text = "\xa0".join([name, *(part.replace(" ", "\xa0") for part in value_and_arrow)])
    return wrap(text, NAME_WIDTH, break_long_words=False, break_on_hyphens=False)


def _arrow(axes: Axes, level: Level) -> str:
    """Return the side of the axis on which a level lies outside; empty where it is within."""
    height = _height(axes, level.at)
    return "\u2193" if height < -ROUNDING else "\u2191" if height > 1 + ROUNDING else ""


def apart(wanted: Sequence[float], sizes: Sequence[float]) -> list[float]:
    """Return the middles of texts of these sizes, in order, that do not overlap, nearest to `wanted` (least squares).

    They stay between 0 and 1 as far as there is room; `wanted` ascend.
    """
    offsets = np.concatenate([[0.0], np.cumsum((np.array(sizes[:-1]) + np.array(sizes[1:])) / 2)])
    shifted, all_of_them = np.array(wanted, float) - offsets[: len(wanted)], range(len(wanted))
    means = [  # isotonic regression
        max(min(float(shifted[i : j + 1].mean()) for j in all_of_them[k:]) for i in all_of_them[: k + 1])
        for k in all_of_them
    ]
    room = 1 - float(offsets[len(wanted) - 1]) if wanted else 0.0
    low, high = min(0.0, room), max(0.0, room)
    return [float(np.clip(mean, low, high) + offset) for mean, offset in zip(means, offsets, strict=False)]


def _height(axes: Axes, value: float) -> float:
    """Return where a value lies from the bottom (0) to the top (1) of the axes; outside them below or above."""
    low, high = axes.get_ylim()
    if axes.get_yscale() == "log":
        low, high, value = np.log(low), np.log(high), np.log(max(value, np.finfo(float).tiny))
    return float((value - low) / (high - low))


def _draw_drop(axes: Axes, drop: Drop, levels: tuple[Level, ...]) -> None:
    """Write the words right of the drop, between the two errors; left of it where room is short."""
    left, right = axes.get_xlim()
    share = (drop.at - left) / (right - left)
    low, high = _height(axes, drop.low), _height(axes, drop.high)
    taken = [_height(axes, level.at) for level in levels]
    at_right = share < 0.62
    places = low + (high - low) * DROP_PLACES if at_right else np.array([low])
    free = [min((abs(place - other) for other in taken), default=1.0) for place in places]
    best = max(range(len(places)), key=lambda i: (min(free[i], 0.06), -abs(places[i] - (low + high) / 2)))
    axes.text(
        share + 0.02 if at_right else share - 0.04,
        places[best],
        literal(drop.words),
        transform=axes.transAxes,
        ha="left" if at_right else "right",
        va="center_baseline",
        fontsize=FONT["drop"],
        fontweight="bold",
        color=INK,
        gid="drop",
        zorder=4,
    )


def add_legend(figure: Figure, axes: Axes, chart: Chart) -> None:
    """Put a legend next to the axes, where it hides nothing.

    Descended and published lines, which repeat the colours, share an entry each, and so do thin lines of one name.
    """
    handles, names = axes.get_legend_handles_labels()
    measured = {literal(series.name) for series in chart.series if series.kind == "measured" or series.thin}
    entries = {name: handle for handle, name in zip(handles, names, strict=True) if name in measured}
    for kind in ("descended", "published"):
        if any(series.kind == kind and not series.thin for series in chart.series):
            style = _STYLES[kind] | ({"linestyle": "", "markersize": 4} if kind == "descended" else {})
            entries[kind] = Line2D([], [], color=QUIET, marker="o", **style)
    if entries:
        figure.legend(entries.values(), entries.keys(), frameon=False, fontsize=9, loc="outside right center")
