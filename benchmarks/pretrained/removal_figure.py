"""Loss increase against heads removed, a panel per model: headcount against the published criteria."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from headcount.report.chart import COLOURS
from headcount.report.render.figure import save_figure
from headcount.report.render.ink import INK, QUIET

PALETTE = (INK, *COLOURS[:6], QUIET, "#9a6324")
"""Ours first; the palette's own ink is left out."""
SHAPES = "osD^vPX*d"


def draw(rows: Sequence[Any], shares: Sequence[float], path: Path) -> None:
    """Draw rows of model, criterion, refit and increases into a file; refitted ones solid, plain ones dashed."""
    models = list(dict.fromkeys(row.model for row in rows))
    criteria = list(dict.fromkeys(row.criterion for row in rows))
    figure = Figure(figsize=(4.6 * len(models), 4.6), layout="constrained")
    panels = figure.subplots(1, len(models), squeeze=False)[0]
    for panel, model in zip(panels, models, strict=True):
        for row in rows:
            if row.model != model:
                continue
            place = criteria.index(row.criterion)
            panel.plot(
                [100 * share for share in shares],
                row.increases,
                color=PALETTE[place % len(PALETTE)],
                linewidth=2.4 if place == 0 else 1.2,
                linestyle="-" if row.refit else (0, (3, 2)),
                marker=SHAPES[place % len(SHAPES)] if row.refit else "",
                markersize=4,
                label=row.criterion if row.refit else None,
            )
        panel.set_yscale("log")
        panel.set_title(model, fontsize=10, loc="left", color=INK)
        panel.set_xlabel("heads removed, %", color=INK)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("increase of the held-out loss", color=INK)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    figure.suptitle("Heads removed: refitted (solid) and plain (dashed); lower is better", fontsize=10.5, color=QUIET)
    save_figure(figure, path)
