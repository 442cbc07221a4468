"""The simulated clusters as one figure: efficiency, and buckets per second, against workers."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, PercentFormatter
from virtual import Simulated

from headcount.report.chart import COLOURS
from headcount.report.render.figure import save_figure
from headcount.report.render.ink import INK, QUIET, RULE


def draw(results: dict[str, list[Simulated]], path: Path) -> None:
    """Draw the simulated runs, by the name of their kind, into a file."""
    figure = Figure(figsize=(10.6, 4.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    for name, ended in results.items():
        colour = COLOURS[0] if name.startswith("CPU") else COLOURS[1]
        style = {"color": colour, "marker": "o" if "packs" in name else "s", "markersize": 4.5, "label": name}
        style |= {"linestyle": "-" if "packs" in name else (0, (4, 2)), "linewidth": 1.8}
        workers = [each.workers for each in ended]
        left.plot(workers, [each.efficiency for each in ended], **style)
        right.plot(workers, [each.buckets_per_second for each in ended], **style)
    left.set_ylim(0, 1.03)
    left.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    right.set_yscale("log")
    for panel, title in (
        (left, "share of the workers' time that trains"),
        (right, "buckets of 8 models committed per second"),
    ):
        _dress(panel, title)
    left.legend(frameon=False, fontsize=8.5, labelcolor=INK, loc="lower left")
    title = "One process commits for all workers: simulated from measured bucket times, commits and calls"
    figure.suptitle(title, fontsize=11, x=0.008, horizontalalignment="left", color=INK)
    save_figure(figure, path)


def _dress(panel: Axes, title: str) -> None:
    panel.set_xscale("log")
    panel.xaxis.set_major_formatter(FuncFormatter(lambda workers, _: f"{workers:,.0f}"))
    panel.set_xlabel("workers", fontsize=9.5, color=INK)
    panel.set_title(title, fontsize=10, loc="left", color=INK)
    panel.grid(color=RULE, linewidth=0.6)
    panel.tick_params(colors=QUIET, labelsize=8.5)
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)
