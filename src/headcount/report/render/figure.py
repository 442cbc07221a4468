"""The one chart renderer: matplotlib, for files (svg, pdf, png) and for the page (`inline.py` adapts its SVG).

Every artist that the page has to recognise carries a gid: a role, and the indices of what it shows ("line 2",
"cell 0 3").
"""

import io
import warnings
from pathlib import Path
from textwrap import fill
from typing import Any, Literal

import matplotlib
from matplotlib.figure import Figure

from ..chart import Chart, HeatMap
from ..files import check_ending, write_whole
from .cells import add_colour_bar, draw_cells
from .ink import PAGE_SIZE, QUIET, literal, page_size
from .lines import add_legend, draw_lines

CAPTION_WIDTH, TITLE_WIDTH = 110, 78
"""Letters of a caption and of a title that fit in the width of a figure."""


class NotebookFigure(Figure):
    """A figure that a notebook shows as SVG; matplotlib's own is shown only where pyplot was imported."""

    def _repr_svg_(self) -> str:
        return _saved(self, "svg", {"Date": None}).decode()


def draw_figure(chart: Chart | HeatMap, title: str | None = None) -> Figure:
    """Draw a figure for a paper: the chart with title, legend or colour bar, and caption."""
    figure = NotebookFigure(figsize=(7.2, 4.2 + (page_size(chart)[1] - PAGE_SIZE[1]) / 72), layout="constrained")
    axes = figure.add_subplot()
    if isinstance(chart, Chart):
        draw_lines(axes, chart)
        add_legend(figure, axes, chart)
    else:
        draw_cells(axes, chart)
        if not chart.counts:
            add_colour_bar(figure, axes, chart)
    figure.suptitle(literal(fill(title or chart.title, TITLE_WIDTH)), fontsize=11, x=0.01, horizontalalignment="left")
    figure.supxlabel(literal(fill(chart.caption, CAPTION_WIDTH)), fontsize=8, color=QUIET)
    return figure


def draw_bare(chart: Chart | HeatMap) -> Figure:
    """Draw the chart alone, in the page's size; title, legend and caption are the page's."""
    width, height = page_size(chart)
    figure = Figure(figsize=(width / 72, height / 72))
    axes = figure.add_axes((0, 0, 1, 1))
    if isinstance(chart, Chart):
        draw_lines(axes, chart)
    else:
        draw_cells(axes, chart)
    longest = max(len(label.get_text()) for label in axes.get_yticklabels())
    names = [text.get_text() for text in axes.texts if (text.get_gid() or "").startswith("level ")]
    left, top, bottom = 30 + 5.8 * longest, 9, 37
    right = max([9.0, *(21 + 5.4 * len(name) for name in names)])
    axes.set_position((left / width, bottom / height, 1 - (left + right) / width, 1 - (top + bottom) / height))
    axes.xaxis.set_label_coords(0.5, -22 / (height - top - bottom))
    axes.yaxis.set_label_coords(-(left - 14) / (width - left - right), 0.5)
    return figure


def to_svg(figure: Figure) -> str:
    """Return the figure as SVG with text as text; equal figures give equal text."""
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
