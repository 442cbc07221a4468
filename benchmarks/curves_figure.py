"""The cost curves as one figure: a row per machine, small multiples against tokens, members and heads, and memory."""

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from tables import AXES, PROGRAMS, along, described, megabytes_per_model, three_digits

from headcount.report.chart import COLOURS
from headcount.report.render.figure import save_figure
from headcount.report.render.ink import INK, QUIET, RULE

STYLES = {
    "fused": {"color": COLOURS[0], "marker": "o", "linewidth": 2.2, "zorder": 3},
    "reference": {"color": COLOURS[5], "marker": "s"},
    "expert": {"color": COLOURS[1], "marker": "^"},
    "plain": {"color": COLOURS[4], "marker": "D"},
    "floor": {"color": QUIET, "marker": "", "linestyle": (0, (4, 3)), "linewidth": 1.1},
}
SHORT = {
    "fused": "headcount,\nfused",
    "reference": "headcount,\nreference",
    "expert": "PyTorch, folded,\nbatched, compiled",
    "plain": "PyTorch, plain",
    "floor": "arithmetic floor",
}
LABEL_GAP = 0.115
"""Least distance of two names at the right of a panel, as a share of its height."""


def draw(machines: list[dict], path: Path) -> None:
    """Draw the stored numbers of some machines into a file."""
    figure = Figure(figsize=(12.6, 3.3 * len(machines) + 0.5), layout="constrained")
    rows = figure.subplots(len(machines), len(AXES) + 1, squeeze=False)
    for panels, results in zip(rows, machines, strict=True):
        _draw_machine(list(panels), results)
    title = "A training step of one small model, and its memory (N = 32, batch 256, float32): lower is better"
    figure.suptitle(title, fontsize=11.5, x=0.008, horizontalalignment="left", color=INK)
    save_figure(figure, path)


def _draw_machine(panels: list[Axes], results: dict) -> None:
    centre = results["centre"]
    limits = _limits([row["us"] for row in results["rows"] if "us" in row])
    for panel, axis in zip(panels, AXES, strict=False):
        fixed = ", ".join(f"{AXES[other]} {centre[other]}" for other in AXES if other != axis)
        points = {
            program: [
                (x, rows[program]["us"]) for x, rows in along(results, axis).items() if "us" in rows.get(program, {})
            ]
            for program in PROGRAMS
        }
        _draw_panel(panel, points, f"{AXES[axis]}   ({fixed})", limits)
    _write_values(panels[0])
    panels[0].set_ylabel("µs per model and step", fontsize=9.5, color=INK)
    panels[0].set_title(described(results).split(", python")[0], fontsize=10, loc="left", color=INK)
    sizes = {
        program: [
            (x, size)
            for x, rows in along(results, "length").items()
            if (size := megabytes_per_model(rows.get(program, {"program": program}))) is not None
        ]
        for program in PROGRAMS
        if program != "floor"
    }
    positive = {program: [(x, max(size, 1e-3)) for x, size in line] for program, line in sizes.items()}
    values = [size for line in positive.values() for _, size in line]
    _draw_panel(panels[-1], positive, f"T   (members {centre['members']}, heads {centre['heads']})", _limits(values))
    panels[-1].set_ylabel("MB per model", fontsize=9.5, color=INK)
    _name_lines(panels[-2], limits)


def _draw_panel(
    panel: Axes, points: dict[str, list[tuple[int, float]]], x_label: str, limits: tuple[float, float]
) -> None:
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    panel.set_ylim(*limits)
    ticks = sorted({x for line in points.values() for x, _ in line})
    for program, line in points.items():
        style = {"linewidth": 1.5, "markersize": 4.5, "gid": program, "label": program} | STYLES[program]
        panel.plot(*zip(*line, strict=True) if line else ([], []), **style)
    shown = ticks if len(ticks) <= 5 else ticks[::2]
    panel.set_xticks(shown, [f"{tick:,}" for tick in shown])
    powers = range(round(math.log10(limits[0])), round(math.log10(limits[1])) + 1)
    panel.set_yticks([10.0**power for power in powers], [f"{10.0**power:,.10g}" for power in powers])
    panel.minorticks_off()
    panel.spines[["top", "right", "left"]].set_visible(False)
    panel.spines["bottom"].set_color(QUIET)
    panel.grid(axis="y", color=RULE, linewidth=0.8)
    panel.set_axisbelow(True)
    panel.tick_params(labelsize=9, labelcolor=QUIET, color=QUIET, length=3)
    panel.tick_params(axis="y", length=0)
    panel.set_xlabel(x_label, fontsize=9.5, color=INK)


def _write_values(panel: Axes) -> None:
    """The numbers of the fused back end, under its points."""
    (line,) = (line for line in panel.get_lines() if line.get_label() == "fused")
    for x, y in zip(np.asarray(line.get_xdata()), np.asarray(line.get_ydata()), strict=True):
        panel.annotate(
            three_digits(y),
            xy=(x, y),
            xytext=(0, -6),
            textcoords="offset points",
            fontsize=8,
            color=STYLES["fused"]["color"],
            horizontalalignment="center",
            verticalalignment="top",
        )


def _name_lines(panel: Axes, limits: tuple[float, float]) -> None:
    """Write the name of every line at its right end, names that would meet moved apart."""
    low, high = map(math.log, limits)
    ends = {
        str(line.get_label()): (math.log(np.asarray(line.get_ydata())[-1]) - low) / (high - low)
        for line in panel.get_lines()
        if np.size(line.get_ydata())
    }
    names = sorted(ends, key=lambda name: ends[name])
    for _ in range(100):
        for below, above in pairwise(names):
            missing = max(0.0, LABEL_GAP - (ends[above] - ends[below]))
            ends[below], ends[above] = ends[below] - missing / 2, ends[above] + missing / 2
    for program in names:
        panel.annotate(
            SHORT[program],
            xy=(1.03, ends[program]),
            xycoords="axes fraction",
            fontsize=8.6,
            color=STYLES[program]["color"],
            verticalalignment="center",
            annotation_clip=False,
        )


def _limits(values: list[float]) -> tuple[float, float]:
    """Whole powers of ten around some values."""
    if not values:
        return 1.0, 10.0
    return 10 ** math.floor(math.log10(min(values))), 10 ** math.ceil(math.log10(max(values)) + 1e-9)
