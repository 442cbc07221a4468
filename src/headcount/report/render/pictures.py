"""Pictures that are no charts: two sequences that a readout cannot tell apart, and images as a model is shown them."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from ..chart import COLOURS

if TYPE_CHECKING:  # a second to import, and only drawing needs it
    from matplotlib.axes import Axes

QUIET = "#555555"
NAMES = ("first sequence", "second sequence")


def save_pair(
    path: Path,
    *,
    title: str,
    caption: str,
    tokens: Float[np.ndarray, "2 length dim"],
    weights: Float[np.ndarray, "2 length heads"] | None,
    outputs: Float[np.ndarray, "2 seen"],
    targets: Float[np.ndarray, "2 outputs"],
) -> None:
    """Draw two sequences side by side, what each head reads of them, and below what comes out, into a file.

    `weights` are None for several layers.
    """
    from matplotlib.figure import Figure

    from .figure import save_figure
    from .ink import literal

    figure = Figure(figsize=(9.5, 6.4), layout="constrained")
    upper, lower = np.ravel(np.asarray(figure.subfigures(2, 1, height_ratios=[2.4, 1]), object))
    axes = upper.subplots(2 if weights is not None else 1, 2, squeeze=False)
    largest = float(np.abs(tokens).max())
    for side in range(2):
        image = axes[0, side].imshow(
            tokens[side].T, cmap="coolwarm", vmin=-largest, vmax=largest, aspect="auto", interpolation="nearest"
        )
        _label(axes[0, side], "number of the token", NAMES[side])
        if weights is not None:
            shown = axes[1, side].imshow(
                weights[side].T, cmap="cividis", vmin=0, vmax=1, aspect="auto", interpolation="nearest"
            )
            _label(axes[1, side], "head", "attention")
            axes[1, side].set_xlabel("place")
    upper.colorbar(image, ax=axes[0, :], label="value", shrink=0.9)
    if weights is not None:
        upper.colorbar(shown, ax=axes[1, :], label="weight", shrink=0.9)
    below = lower.subplots(1, 2, width_ratios=[3, 1])
    _bars(below[0], outputs, "what the readout sees", "number")
    _bars(below[1], targets, "the targets", "target")
    below[0].legend(frameon=False, fontsize=8, loc="best")
    figure.suptitle(literal(title), fontsize=11, x=0.01, horizontalalignment="left", wrap=True)
    figure.supxlabel(literal(caption), fontsize=8, color=QUIET, wrap=True)
    save_figure(figure, path)


def _label(axes: "Axes", rows: str, title: str) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set_title(title, fontsize=9)
    axes.set_ylabel(rows, fontsize=8)
    axes.tick_params(labelsize=7)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))


def _bars(axes: "Axes", values: Float[np.ndarray, "2 numbers"], title: str, label: str) -> None:
    places = np.arange(values.shape[1])
    for side in range(2):
        axes.bar(places + 0.4 * side - 0.2, values[side], width=0.4, color=COLOURS[side], label=NAMES[side])
    axes.set_title(title, fontsize=9)
    axes.set_xlabel(label, fontsize=8)
    axes.set_xticks(places if len(places) < 12 else places[::4])
    axes.tick_params(labelsize=7)
    axes.axhline(0, color=QUIET, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def frames_png(rows: Sequence[Sequence[np.ndarray]], sides: Sequence[int]) -> bytes:
    """Return images as a PNG: a column for each side length, images below one another, drawn at their true sizes."""
    from matplotlib.figure import Figure

    count = max(len(row) for row in rows)
    largest = max(sides)
    figure = Figure(figsize=(1.5 * len(sides), 1.45 * count), layout="constrained", dpi=110)
    axes = figure.subplots(count, len(sides), squeeze=False)
    for column, (side, row) in enumerate(zip(sides, rows, strict=True)):
        axes[0][column].set_title(f"{side} x {side}", fontsize=9)
        for place in range(count):
            panel = axes[place][column]
            panel.set_axis_off()
            panel.set_xlim(-0.5, largest - 0.5)
            panel.set_ylim(largest - 0.5, -0.5)
            if place < len(row):
                panel.imshow(row[place], extent=(-0.5, side - 0.5, side - 0.5, -0.5), interpolation="nearest")
    drawn = io.BytesIO()
    # Without the time it was made, the same images give the same bytes.
    figure.savefig(drawn, format="png", metadata={"Software": None})
    return drawn.getvalue()
