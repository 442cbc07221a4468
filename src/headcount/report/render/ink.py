"""Colours, sizes and labels that all drawings share."""

import re

from matplotlib.axes import Axes

INK, QUIET, RULE, GROUND = "#1b1f24", "#5a6470", "#dfe3e8", "#ffffff"
"""Text, secondary text, grid lines, and what lies behind a chart."""
PAGE_SIZE = (384, 264)
"""Points of a chart on the page."""
FONT = {"tick": 10.0, "label": 10.2, "value": 10.0, "level": 8.6, "drop": 10.4}


def label_axes(axes: Axes, x_label: str, y_label: str) -> None:
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
