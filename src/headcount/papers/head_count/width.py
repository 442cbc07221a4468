"""Figures 1b and 4: error against hidden width N, a power law fitted for every head count and length."""

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

from ...answer import NMSE, ErrorTable, count_of_heads
from ...report.chart import Chart, Series
from ..base import Effort, Part, Results, Scale, Study
from ..claims.width import falls_claim, flatter_claim, longer_is_worse_claim, missing_head_claim, width_fits
from .tables import ALL_LENGTHS, OUR_CHOICES, class_token, paper_task

INTRINSIC_DIM = 4
HEADS = (1, 2, 3, 4)


def _parts(effort: Effort) -> Iterable[Part]:
    axes = effort.over(heads=HEADS, hidden=effort.axes["hidden"])
    yield Part(task=paper_task, model=partial(class_token, head_dim=8), axes=axes)


def _report(results: Results) -> dict[str, Any]:
    table = results.table()
    claims = (falls_claim, longer_is_worse_claim, flatter_claim, missing_head_claim)
    return {
        "headline": _headline(table),
        "claims": tuple(judge(table, INTRINSIC_DIM) for judge in claims),
        "charts": tuple(_chart(table, heads) for heads in table.values("heads")),
        "notes": (
            "The paper draws this figure and prints no numbers; its claims are judged. Which N it used is not "
            f"published; ours: {', '.join(map(str, results.effort.axes['hidden']))}.",
        ),
    }


def _headline(table: ErrorTable) -> str:
    few = [fit.exponent for (heads, _), fit in width_fits(table).items() if heads < INTRINSIC_DIM]
    if not few:
        return "Too few widths are there to fit a power"
    return f"With fewer than D heads the fitted powers of N range from {min(few):+.2f} to {max(few):+.2f}"


def _chart(table: ErrorTable, heads: int) -> Chart:
    """One head count: the smallest error against N for every length, with the fitted lines."""
    best = table.reduced("seed").select(heads=heads).ordered("length", "hidden")
    widths, fits = best.values("hidden"), width_fits(table)
    series = []
    for place, (length, errors) in enumerate(zip(best.values("length"), best.errors, strict=True)):
        fit = fits.get((heads, length))
        name = f"{length} tokens" if fit is None else f"{length} tokens, N^{fit.exponent:+.2f}"
        series.append(Series(name, widths, tuple(errors), place=place))
        if fit is not None:
            line = tuple(fit.at(np.asarray(widths, float)))
            series.append(Series(f"{name} fitted", widths, line, place=place, kind="fit"))
    return Chart(
        name=f"width-{heads}-heads",
        title=count_of_heads(heads),
        x_label="hidden width N (units)",
        y_label=NMSE.label,
        x_ticks=widths,
        log_x=True,
        series=tuple(series),
        caption="points: best of seeds; lines: fitted powers of N",
    )


def _effort(lengths: tuple[int, ...], seeds: int, steps: int, widths: tuple[int, ...]) -> Effort:
    return Effort(lengths=lengths, seeds=seeds, steps=steps, axes={"hidden": widths})


FIGURE1B = Study(
    name="figure1b",
    title="Figure 1b",
    asks="Error against the hidden width N of both nets: how much size buys when heads are too few.",
    parts=_parts,
    report=_report,
    notes=OUR_CHOICES,
    efforts={
        Scale.SMOKE: _effort((8, 32), 2, 2000, (8, 16, 32)),
        Scale.LAPTOP: _effort((8, 32), 3, 6000, (8, 16, 32, 64, 128)),
        Scale.PAPER: _effort((8, 32, 128), 10, 20_000, (8, 16, 32, 64, 128)),
    },
)
FIGURE4 = Study(
    name="figure4",
    title="Figure 4",
    asks="Error against the hidden width N of both nets at every length, a panel per head count.",
    parts=_parts,
    report=_report,
    notes=OUR_CHOICES,
    efforts={
        Scale.SMOKE: _effort((8, 16), 2, 2000, (8, 16, 32)),
        Scale.LAPTOP: _effort((8, 16, 32, 64), 3, 6000, (8, 16, 32, 64)),
        Scale.PAPER: _effort(ALL_LENGTHS, 10, 20_000, (8, 16, 32, 64, 128)),
    },
)
