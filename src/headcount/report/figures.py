"""Figures of analysis results, made with matplotlib alone and saved by the file's ending (svg, pdf, png)."""

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from .._errors import HeadcountError, InputError
from ..analysis import Answer, ErrorTable

# Okabe and Ito's palette: told apart by every common kind of colour vision.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
FORMATS = (".svg", ".pdf", ".png")


def error_against_heads(table: ErrorTable, answer: Answer, title: str) -> Figure:
    """Least error over seeds against heads, one line a length, a band over all seeds, and the transition marked."""
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    if answer.heads is not None and answer.low is not None and answer.high is not None:
        axes.axvspan(answer.low - 0.5, answer.high + 0.5, color="#999999", alpha=0.18, linewidth=0)
        axes.axvline(answer.heads, color="#555555", linewidth=1, linestyle=(0, (4, 3)))
    for j, length in enumerate(table.lengths):
        colour, marker = COLOURS[j % len(COLOURS)], MARKERS[j % len(MARKERS)]
        errors = table.nmse[:, j]
        lost = np.all(np.isnan(errors), axis=1, keepdims=True)
        kept = np.where(lost, 1.0, errors)  # a head count without a finished seed leaves a gap
        low, high = (np.where(lost[:, 0], np.nan, edge(kept, axis=1)) for edge in (np.nanmin, np.nanmax))
        axes.fill_between(table.heads, low, high, color=colour, alpha=0.15, linewidth=0)
        axes.plot(table.heads, low, color=colour, marker=marker, markersize=5, linewidth=1.6, label=f"{length} tokens")
    axes.set_yscale("log")
    axes.set_xticks(table.heads)
    axes.set_xlabel("attention heads")
    axes.set_ylabel("validation error / variance of target (NMSE)")
    axes.set_title(f"{title}: {answer.sentence}", fontsize=11, loc="left", wrap=True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    caption = f"line: best of {len(table.seeds)} seeds; band: all seeds"
    axes.legend(frameon=False, title=caption, title_fontsize=8, fontsize=9, loc="best")
    return figure


def check_ending(path: Path) -> None:
    if path.suffix not in FORMATS:
        raise InputError(f"a figure ends in {', '.join(FORMATS)}, got {path}.")


def save_figure(figure: Figure, path: Path) -> None:
    """Write the figure; equal figures make equal files."""
    check_ending(path)
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}[path.suffix]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with matplotlib.rc_context({"svg.hashsalt": "headcount"}):
            figure.savefig(path, dpi=160, metadata=metadata)
    except OSError as error:
        raise HeadcountError(f"{path} cannot be written: {error.strerror or error}.") from error
