"""What stock transformers need against headcount's intervals, and recommended encoders against the best of a grid."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headcount.report.chart import COLOURS
from headcount.report.render.ink import FONT, INK, QUIET, RULE

from .page import Outcome

MARKS = {
    "fixed head width, 1 layer": ("o", COLOURS[0], -0.2),
    "fixed width, 1 layer": ("s", COLOURS[1], 0.0),
    "fixed width, 2 layers": ("^", COLOURS[2], 0.2),
    "fixed width, 4 layers": ("D", COLOURS[3], 0.36),
}
FAILED = 0
"""The row of what no head count tried solves."""


def draw_outcome(outcome: Outcome) -> Figure:
    """Return the figure: tasks of known D, and real sets where there are any."""
    panels = 2 if outcome.recommended else 1
    figure = Figure(figsize=(6.6 * panels, 5.2))
    figure.subplots_adjust(left=0.16 / panels, right=0.98, top=0.84, bottom=0.2, wspace=0.42)
    axes = figure.subplots(1, panels, squeeze=False)[0]
    _known(axes[0], outcome)
    if panels == 2:
        _real(axes[1], outcome)
    handles, labels = axes[0].get_legend_handles_labels()
    shown = dict(zip(labels, handles, strict=True))
    figure.legend(shown.values(), shown.keys(), frameon=False, fontsize=9, ncols=5, loc="upper center")
    return figure


def _known(axes: Axes, outcome: Outcome) -> None:
    """Draw headcount's interval of every task as a bar, and what each rule needs as a mark."""
    names = list(dict.fromkeys(row.task.name for row in outcome.known))
    for row in outcome.known:
        place = names.index(row.task.name)
        mark, colour, aside = MARKS[row.rule]
        answer = row.answer
        if answer.low is not None and answer.high is not None:
            bar = {"width": 0.86, "color": RULE, "zorder": 0, "label": "headcount's interval"}
            axes.bar(place, answer.high - answer.low + 0.7, bottom=answer.low - 0.35, **bar)
        at = FAILED if row.need is None else row.need.high
        axes.plot(place + aside, at, mark, color=colour, markersize=5, label=row.rule, linestyle="")
    axes.set_xticks(range(len(names)), names, rotation=60, ha="right", rotation_mode="anchor")
    top = max((row.need.high if row.need else 1 for row in outcome.known), default=1)
    axes.set_ylim(FAILED - 0.5, top + 0.8)
    axes.set_yticks(range(top + 1), ["none", *map(str, range(1, top + 1))])
    axes.set_ylabel("attention heads", fontsize=FONT["label"], color=INK)
    axes.set_title("tasks of known D: heads that stock models need", fontsize=11, color=INK, loc="left")
    _plain(axes)


def _real(axes: Axes, outcome: Outcome) -> None:
    """Draw how far the recommended encoder is behind the best of 24, over what it may be behind."""
    found = {name: each for name, each in outcome.recommended.items() if each is not None}
    names = list(found)[::-1]
    for place, name in enumerate(names):
        each = found[name]
        axes.plot(each.behind, place, "o", color=COLOURS[0] if each.holds else COLOURS[4], markersize=6)
    axes.axvspan(0, 1, color=RULE, zorder=0, linewidth=0)
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("error above the best of 24, over 10 % of it or its margin", fontsize=FONT["label"], color=INK)
    axes.set_title("real sets: the recommended encoder", fontsize=11, color=INK, loc="left")
    _plain(axes)


def _plain(axes: Axes) -> None:
    axes.tick_params(labelsize=8.5, labelcolor=QUIET, color=QUIET, length=3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(QUIET)
