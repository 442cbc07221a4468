"""Colours, sizes and labels that all drawings share."""

import re

from matplotlib.axes import Axes

from ..chart import Chart, HeatMap

INK, QUIET, RULE, GROUND = "#1b1f24", "#5a6470", "#dfe3e8", "#ffffff"
"""Text, secondary text, grid lines, and what lies behind a chart."""
PAGE_SIZE = (384, 264)
"""Points of a chart on the page."""
ROW, MAX_HEIGHT = 15, 900
"""Points that a row of a heat map needs to be read, and the most that a map with many rows takes."""
FONT = {"tick": 10.0, "label": 10.2, "value": 10.0, "level": 8.6, "drop": 10.4}


def page_size(chart: Chart | HeatMap) -> tuple[int, int]:
    """Return the size of a chart on the page; a heat map of many rows is taller."""
    width, height = PAGE_SIZE
    rows = len(chart.rows) if isinstance(chart, HeatMap) else 0
    return width, min(MAX_HEIGHT, max(height, 46 + ROW * rows))


def label_axes(axes: Axes, x_label: str, y_label: str) -> None:
    """Draw labels, ticks and the lines of the axes, in their colours and with their roles."""
    axes.set_xlabel(literal(x_label), fontsize=FONT["label"], color=INK, gid="label")
    axes.set_ylabel(literal(y_label), fontsize=FONT["label"], color=INK, gid="label")
    axes.tick_params(labelsize=FONT["tick"], labelcolor=QUIET, color=QUIET, length=3)
    axes.spines["bottom"].set(color=QUIET, gid="axis")
    for tick in (*axes.xaxis.get_major_ticks(), *axes.yaxis.get_major_ticks()):
        tick.tick1line.set_gid("axis")
        tick.label1.set_gid("tick")
        tick.gridline.set(gid="grid", clip_on=False)


def literal(text: str) -> str:
    """Escape text: a dollar sign in a task's name starts no formula, and what XML cannot hold is replaced."""
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text).replace("$", r"\$")
