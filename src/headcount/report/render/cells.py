"""Draws a heat map: coloured cells with their values, and lines over them."""

import math

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.transforms import TransformedPatchPath

from ...answer.words import decimal
from ..chart import HeatMap, Line
from .ink import FONT, INK, QUIET, RULE, label_axes, literal, page_size
from .ticks import far_enough, log_ticks, tick_text

DARK, LIGHT, DARK_FROM = "#000000", "#ffffff", 0.47
"""Text on a light and on a dark cell, and the share of the scale from which a cell is light."""
COLOURS = matplotlib.colormaps["cividis"]
"""Reads the same in every colour vision."""
MIN_FONT = 4.0
"""Values that would be smaller are not written; a cell's tooltip and the table have them."""
MARGIN = 0.3
"""Share of the distance between two cells' centres that a line over them leaves free at each end."""
VALUE_LETTERS = 7
"""Letters of the longest value, such as 1.0e-05."""


def draw_cells(axes: Axes, chart: HeatMap) -> None:
    """Draw the cells; values are written where there is room for them."""
    rows, columns = chart.values.shape
    width, height = page_size(chart)
    wide, tall = (width - 50) / columns, (height - 46) / rows
    letters = max((len(word) for row in chart.words for word in row), default=VALUE_LETTERS)
    size = min(FONT["value"], 0.23 * wide * VALUE_LETTERS / np.clip(letters, 5, VALUE_LETTERS), 0.7 * tall)
    shares, clip = chart.colour_shares(), TransformedPatchPath(axes.patch)
    for (i, j), value in np.ndenumerate(chart.values):
        known = decimal(float(value)) if math.isfinite(value) else "-"
        _draw_cell(axes, (i, j), chart.words[i][j] if chart.words else known, float(shares[i, j]), size, clip)
    for k, line in enumerate(chart.lines):
        _draw_over_cells(axes, line, k, min(8.5, 0.16 * wide, 0.42 * tall))
    axes.set_xlim(-0.5, columns - 0.5)
    axes.set_ylim(*((rows - 0.5, -0.5) if chart.downward else (-0.5, rows - 0.5)))
    names = [str(column) for column in chart.columns]
    kept = far_enough(np.arange(columns) * wide, [6.2 * len(name) + 6 for name in names])
    axes.set_xticks(kept, [names[j] for j in kept])
    kept = far_enough(np.arange(rows) * tall, [12.0] * rows)
    axes.set_yticks(kept, [str(chart.rows[i]) for i in kept])
    axes.spines[:].set_visible(False)
    label_axes(axes, chart.column_label, chart.row_label)
    axes.tick_params(length=0)


def add_colour_bar(figure: Figure, axes: Axes, chart: HeatMap) -> None:
    """Draw the scale of a map."""
    bar = figure.colorbar(ScalarMappable(LogNorm(*chart.scale), COLOURS), ax=axes, label=chart.scale_label)
    _, _, ticks = log_ticks(*chart.scale)
    bar.minorticks_off()
    bar.set_ticks(ticks, labels=[tick_text(tick, ticks, log=True) for tick in ticks])
    bar.ax.set_ylim(*chart.scale)
    bar.ax.tick_params(labelsize=FONT["tick"], labelcolor=QUIET, color=QUIET, length=3)
    bar.ax.spines[:].set_visible(False)


def colour_of(share: float) -> str:
    """Return the colour at a share of the scale."""
    return to_hex(COLOURS(share))


def ink_on(share: float) -> str:
    """Return black or white, whichever is easier to read on the colour at a share of the scale."""
    return DARK if share > DARK_FROM else LIGHT


def _draw_cell(
    axes: Axes, at: tuple[int, int], words: str, share: float, size: float, clip: TransformedPatchPath
) -> None:
    i, j = at
    known = math.isfinite(share)
    colour = colour_of(share) if known else "none"
    name = f"cell {i} {j}"
    box = Rectangle((j - 0.48, i - 0.48), 0.96, 0.96, facecolor=colour, edgecolor=RULE, linewidth=0.8)
    box.set(gid=name, zorder=1, clip_on=False)
    box.set_clip_path(clip)  # one for all: each would get one of its own, which takes half the time of drawing
    axes.add_artist(box)  # unlike add_patch, without a look at the limits, which are set
    if size < MIN_FONT:
        return
    ink = ink_on(share) if known else INK
    axes.text(j, i, words, ha="center", va="center_baseline", color=ink, fontsize=size, gid=name, zorder=1)


def _draw_over_cells(axes: Axes, line: Line, k: int, size: float) -> None:
    """Draw a line dark on a light edge, which shows on every colour of the map."""
    points = np.array(line.points, float)
    margin = MARGIN * np.diff(points, axis=0)
    starts, ends = points[:-1] + margin, points[1:] - margin
    x, y = np.stack([starts, ends, np.full_like(starts, np.nan)], axis=1).reshape(-1, 2).T
    for colour, width in ((LIGHT, 2.6), (DARK, 0.9)):
        axes.plot(
            x, y, color=colour, linewidth=width, solid_capstyle="round", gid=f"equal {k}", zorder=3, clip_on=False
        )
    middle_x, middle_y = points[:2].mean(axis=0)
    box = {"boxstyle": "round,pad=0.18", "facecolor": LIGHT, "edgecolor": "none"}
    axes.text(
        middle_x,
        middle_y,
        literal(line.label),
        ha="center",
        va="center",
        fontsize=size,
        color=DARK,
        bbox=box,
        gid=f"equal {k}",
        zorder=4,
    )
