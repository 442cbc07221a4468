"""Answers against the true D: one dot per task; early estimates in a second panel."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from headcount.report.chart import COLOURS
from headcount.report.render.ink import FONT, GROUND, INK, QUIET, RULE

from .page import percent
from .record import TaskResult, summarise

OPEN_COLOUR, HELD_OUT_COLOUR = COLOURS[0], COLOURS[1]
STEP = 0.112
"""Distance of two dots; a D has room for a square of dots of each colour."""
ACROSS = 4
"""Dots of one colour next to each other."""
NONE = 0
"""The row of tasks without an answer; their column is right of the largest D."""
CAPTION = (
    "One dot per task, packed around its place. Shaded: D, or no answer where none exists. Bars: intervals of several "
    "head counts."
)

Verdict = Literal["right", "held", "wrong"]


@dataclass(frozen=True)
class Dot:
    """A task in a panel: its column and row, before packing."""

    column: int
    row: int
    held_out: bool
    verdict: Verdict
    interval: tuple[int, int] | None = None


def draw_results(results: Sequence[TaskResult]) -> Figure:
    """The answered head count against D, and the early estimate against D where there is one."""
    early = any(result.early is not None for result in results)
    figure = Figure(figsize=(12.4 if early else 6.6, 6.8))
    figure.subplots_adjust(left=0.06 if early else 0.1, right=0.99, top=0.87, bottom=0.16, wspace=0.04)
    panels = figure.subplots(1, 2 if early else 1, sharey=True, squeeze=False)[0]
    columns = max([1, *(result.task.intrinsic_dim or 0 for result in results)]) + 1
    rows = max(
        [columns - 1, *(value or 0 for result in results for value in (result.heads, result.high, result.early))]
    )
    summary = summarise(results)
    _panel(panels[0], [_answer(result, columns) for result in results], columns, rows)
    _words(panels[0], "answer", f"{percent(summary.exact.value)} exactly D" if summary.exact.total else "")
    panels[0].set_ylabel("attention heads", fontsize=FONT["label"], color=INK)
    if early:
        _panel(panels[1], [_early(result, columns) for result in results], columns, rows)
        _words(
            panels[1], "early estimate", f"{percent(summary.early_right.value)} D" if summary.early_right.total else ""
        )
    figure.legend(handles=_legend(), frameon=False, fontsize=9, ncols=5, loc="upper center")
    figure.supxlabel(fill(CAPTION, 140 if early else 90), fontsize=8, color=QUIET)
    return figure


def _answer(result: TaskResult, columns: int) -> Dot:
    verdict: Verdict = "right" if result.right else "held" if result.held else "wrong"
    interval = None
    if result.low is not None and result.high is not None and result.low < result.high:
        interval = (result.low, result.high)
    return _dot(result, result.heads, columns, verdict, interval)


def _early(result: TaskResult, columns: int) -> Dot:
    return _dot(result, result.early, columns, "right" if result.early == result.task.intrinsic_dim else "wrong")


def _dot(
    result: TaskResult, heads: int | None, columns: int, verdict: Verdict, interval: tuple[int, int] | None = None
) -> Dot:
    column = columns if result.task.intrinsic_dim is None else result.task.intrinsic_dim
    return Dot(column, NONE if heads is None else heads, result.task.held_out, verdict, interval)


def _panel(axes: Axes, dots: Sequence[Dot], columns: int, rows: int) -> None:
    for column in range(1, columns + 1):
        right = NONE if column == columns else column
        axes.add_patch(Rectangle((column - 0.5, right - 0.5), 1, 1, color=RULE, alpha=0.55, linewidth=0, zorder=0))
    for dot, x, y in _packed(dots):
        colour = HELD_OUT_COLOUR if dot.held_out else OPEN_COLOUR
        if dot.interval is not None:
            axes.plot([x, x], [dot.interval[0] - 0.2, dot.interval[1] + 0.2], color=colour, linewidth=1, alpha=0.7)
        axes.plot(x, y, zorder=3, **_style(colour, dot.verdict))
    axes.set_xticks([column + 0.5 for column in range(1, columns)], minor=True)
    axes.set_yticks([row + 0.5 for row in range(1, rows)], minor=True)
    axes.grid(which="minor", color=RULE, linewidth=0.5)
    axes.set_axisbelow(True)
    axes.axhline(0.5, color=QUIET, linewidth=0.6)
    axes.axvline(columns - 0.5, color=QUIET, linewidth=0.6)
    axes.set_xlim(0.5, columns + 0.5)
    axes.set_ylim(-0.5, rows + 0.5)
    axes.set_xticks(range(1, columns + 1), [*map(str, range(1, columns)), "none"])
    axes.set_yticks(range(rows + 1), ["none", *map(str, range(1, rows + 1))])
    axes.tick_params(labelsize=FONT["tick"], labelcolor=QUIET, length=0, which="both")
    axes.set_aspect("equal")
    axes.spines[:].set_visible(False)


def _packed(dots: Sequence[Dot]) -> Iterator[tuple[Dot, float, float]]:
    """The dots of a place side by side: open families left of its centre, held-out ones right, in rows of a few."""
    places: dict[tuple[int, int, bool], list[Dot]] = defaultdict(list)
    for dot in dots:
        places[dot.column, dot.row, dot.held_out].append(dot)
    for (column, row, held_out), there in places.items():
        lines = (len(there) - 1) // ACROSS + 1
        for place, dot in enumerate(there):
            across, up = place % ACROSS + 0.6, place // ACROSS - (lines - 1) / 2
            yield dot, column + (across if held_out else -across) * STEP, row + up * STEP


def _style(colour: str, verdict: Verdict) -> dict[str, Any]:
    if verdict == "wrong":
        looks = {"marker": "X", "markersize": 5.4, "color": colour, "markeredgecolor": INK, "markeredgewidth": 0.7}
    else:
        inside = colour if verdict == "right" else GROUND
        looks = {
            "marker": "o",
            "markersize": 3.6,
            "markeredgewidth": 0.8,
            "markerfacecolor": inside,
            "markeredgecolor": colour,
        }
    return looks | {"linestyle": ""}


def _legend() -> list[Line2D]:
    entries: dict[str, tuple[str, Verdict]] = {
        "open family": (OPEN_COLOUR, "right"),
        "held-out family": (HELD_OUT_COLOUR, "right"),
        "not D, but its interval holds D": (QUIET, "held"),
        "wrong": (QUIET, "wrong"),
    }
    return [Line2D([], [], label=name, **_style(*looks)) for name, looks in entries.items()]


def _words(axes: Axes, what: str, how_often: str) -> None:
    axes.set_title(what + (f": {how_often}" if how_often else ""), fontsize=11, color=INK, loc="left")
    axes.set_xlabel("true intrinsic dimension D", fontsize=FONT["label"], color=INK)
