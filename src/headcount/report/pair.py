"""Two sequences that a readout cannot tell apart, as a picture: tokens, attention, equal outputs, different targets."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from .chart import COLOURS

NAMES = ("first sequence", "second sequence")


@dataclass(frozen=True, kw_only=True)
class PairPicture:
    """What is drawn of a pair. `weights` are left out (None) where a model has several layers."""

    title: str
    caption: str
    tokens: Float[np.ndarray, "2 length dim"]
    weights: Float[np.ndarray, "2 length heads"] | None
    outputs: Float[np.ndarray, "2 seen"]
    targets: Float[np.ndarray, "2 outputs"]


def draw_pair(picture: PairPicture) -> Figure:
    """The two sequences side by side, what each head reads of them, and below what comes out."""
    figure = Figure(figsize=(9.5, 6.4), layout="constrained")
    FigureCanvasAgg(figure)
    upper, lower = np.ravel(np.asarray(figure.subfigures(2, 1, height_ratios=[2.4, 1]), object))
    axes = upper.subplots(2 if picture.weights is not None else 1, 2, squeeze=False)
    largest = float(np.abs(picture.tokens).max())
    for side in range(2):
        image = axes[0, side].imshow(
            picture.tokens[side].T, cmap="coolwarm", vmin=-largest, vmax=largest, aspect="auto", interpolation="nearest"
        )
        _label(axes[0, side], "number of the token", NAMES[side])
        if picture.weights is not None:
            shown = axes[1, side].imshow(
                picture.weights[side].T, cmap="cividis", vmin=0, vmax=1, aspect="auto", interpolation="nearest"
            )
            _label(axes[1, side], "head", "attention")
            axes[1, side].set_xlabel("place")
    upper.colorbar(image, ax=axes[0, :], label="value", shrink=0.9)
    if picture.weights is not None:
        upper.colorbar(shown, ax=axes[1, :], label="weight", shrink=0.9)
    below = lower.subplots(1, 2, width_ratios=[3, 1])
    _bars(below[0], picture.outputs, "what the readout sees", "number")
    _bars(below[1], picture.targets, "the targets", "target")
    below[0].legend(frameon=False, fontsize=8, loc="best")
    figure.suptitle(picture.title.replace("$", r"\$"), fontsize=11, x=0.01, horizontalalignment="left", wrap=True)
    figure.supxlabel(picture.caption.replace("$", r"\$"), fontsize=8, color="#555555", wrap=True)
    return figure


def _label(axes: Axes, rows: str, title: str) -> None:
    axes.set_title(title, fontsize=9)
    axes.set_ylabel(rows, fontsize=8)
    axes.tick_params(labelsize=7)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))


def _bars(axes: Axes, values: Float[np.ndarray, "2 numbers"], title: str, label: str) -> None:
    places = np.arange(values.shape[1])
    for side in range(2):
        axes.bar(places + 0.4 * side - 0.2, values[side], width=0.4, color=COLOURS[side], label=NAMES[side])
    axes.set_title(title, fontsize=9)
    axes.set_xlabel(label, fontsize=8)
    axes.set_xticks(places if len(places) < 12 else places[::4])
    axes.tick_params(labelsize=7)
    axes.axhline(0, color="#555555", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
