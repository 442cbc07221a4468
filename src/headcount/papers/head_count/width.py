"""Figures 1b and 4: error against hidden width N, a power law fitted for every head count and length."""

import itertools
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ...answer import ErrorTable, count_of_heads
from ...report.chart import Chart, Series
from ..base import Part, Scale, Study, StudyEffort, StudyResults, effort_over
from ..charts import chart_along
from ..claims.heads import FLAT_SLOPE
from ..claims.judge import Case, Cases, claims_that, exactly, finite_ratio
from ..fits import PowerLaw, power_law
from .tables import ALL_LENGTHS, OUR_CHOICES, class_token, paper_task

INTRINSIC_DIM = 4
HEADS = (1, 2, 3, 4)
ONE_END_MISSING = "the shortest and the longest length were not both measured"


def width_fits(table: ErrorTable) -> dict[tuple[int, int], PowerLaw]:
    best = table.reduced("seed").ordered("heads", "length", "hidden")
    widths = np.asarray(best.values("hidden"), float)
    places = itertools.product(best.values("heads"), best.values("length"))
    rows = best.errors.reshape(-1, len(widths))
    fits = {place: power_law(widths, row) for place, row in zip(places, rows, strict=True)}
    return {place: fit for place, fit in fits.items() if fit is not None}


@claims_that(
    "With fewer than D heads the error falls as a power of N.", "no head count below D was measured at two widths"
)
def falls_claim(table: ErrorTable, enough: int) -> Cases:
    yield "exponents with 90 % intervals: "
    for (heads, length), fit in width_fits(table).items():
        if heads < enough:
            words = f"{count_of_heads(heads)}, length {length} {_power_words(fit)}"
            yield Case(words, fit.high < 0, fit.low > -FLAT_SLOPE)


@claims_that(
    "With fewer than D heads the longest sequences have a larger error than the shortest at the same N.",
    ONE_END_MISSING,
)
def longer_is_worse_claim(table: ErrorTable, enough: int) -> Cases:
    best = table.reduced("seed").ordered("heads", "length", "hidden")
    few = best.select(heads=[heads for heads in best.values("heads") if heads < enough]).errors
    ratio, lengths = finite_ratio(few[:, -1], few[:, 0]), best.values("length")
    worse = int(np.sum(ratio > 1))
    if len(lengths) > 1 and len(ratio):
        grows = f"the error grows in {worse} of {len(ratio)} pairs of heads and N"
        yield exactly(f"from length {lengths[0]} to {lengths[-1]} {grows}", worse == len(ratio))


@claims_that(
    "With fewer than D heads size buys less on longer sequences: the power is nearer to zero.", ONE_END_MISSING
)
def flatter_claim(table: ErrorTable, enough: int) -> Cases:
    """Theorem 2(2): err ~ M^(-1/k) with k growing in T, so the power is nearer to zero for longer sequences."""
    fits, lengths = width_fits(table), list(table.values("length"))
    yield f"exponent at length {lengths[0]} and at {lengths[-1]}, with 90 % intervals: "
    for heads in table.values("heads"):
        short, long = (fits.get((heads, length)) for length in (lengths[0], lengths[-1]))
        if heads < enough and len(lengths) > 1 and short is not None and long is not None:
            words = f"{count_of_heads(heads)} {_power_words(short)}, {_power_words(long)}"
            yield Case(words, long.low > short.high, long.high < short.low)


@claims_that(
    "No size tried makes up for a missing head: D heads do better at every N.",
    "D and D - 1 heads were not both measured",
)
def missing_head_claim(table: ErrorTable, enough: int) -> Cases:
    best = table.reduced("seed")
    if {enough, enough - 1} <= set(table.values("heads")):
        ratio = finite_ratio(best.select(heads=enough - 1).errors, best.select(heads=enough).errors)
        if len(ratio):
            times = f"{ratio.min():.3g} to {ratio.max():.3g} times"
            yield exactly(f"D - 1 heads err {times} as much as D heads at the same N", ratio.min() > 1)


def _power_words(fit: PowerLaw) -> str:
    if not np.isfinite(fit.low):
        return f"{fit.exponent:+.2f} (no interval from two widths)"
    return f"{fit.exponent:+.2f} [{fit.low:+.2f}, {fit.high:+.2f}]"


def _swept_parts(effort: StudyEffort) -> Iterable[Part]:
    axes = effort.over(heads=HEADS, hidden=effort.axes["hidden"])
    yield Part(task=paper_task, model=partial(class_token, head_dim=8), axes=axes)


def _document_fields(results: StudyResults) -> dict[str, Any]:
    table = results.table()
    claims = (falls_claim, longer_is_worse_claim, flatter_claim, missing_head_claim)
    return {
        "headline": _width_headline(table),
        "claims": tuple(judged(table, INTRINSIC_DIM) for judged in claims),
        "charts": tuple(_width_chart(table, heads) for heads in table.values("heads")),
        "notes": (
            "The paper draws this figure and prints no numbers; its claims are judged. Which N it used is not "
            f"published; ours: {', '.join(map(str, results.effort.axes['hidden']))}.",
        ),
    }


def _width_headline(table: ErrorTable) -> str:
    few = [fit.exponent for (heads, _), fit in width_fits(table).items() if heads < INTRINSIC_DIM]
    if not few:
        return "Too few widths are there to fit a power"
    return f"With fewer than D heads the fitted powers of N range from {min(few):+.2f} to {max(few):+.2f}"


def _width_chart(table: ErrorTable, heads: int) -> Chart:
    """One head count: the smallest error against N for every length, with the fitted lines."""
    best = table.reduced("seed").select(heads=heads).ordered("length", "hidden")
    widths, fits = best.values("hidden"), width_fits(table)
    series = []
    for place, (length, errors) in enumerate(zip(best.values("length"), best.errors, strict=True)):
        fit = fits.get((heads, length))
        name = f"{length} tokens" if fit is None else f"{length} tokens, N^{fit.exponent:+.2f}"
        series.append(Series(name, widths, tuple(errors), place=place))
        if fit is not None:
            fitted = tuple(fit.at(np.asarray(widths, float)))
            series.append(Series(f"{name} fitted", widths, fitted, place=place, kind="fit"))
    caption = "points: best of seeds; lines: fitted powers of N"
    return chart_along("hidden", widths, series, f"width-{heads}-heads", count_of_heads(heads), caption)


FIGURE1B = Study(
    name="figure1b",
    title="Figure 1b",
    asks="Error against the hidden width N of both nets: how much size buys when heads are too few.",
    parts=_swept_parts,
    report=_document_fields,
    notes=OUR_CHOICES,
    efforts={
        Scale.SMOKE: effort_over((8, 32), 2, 2000, hidden=(8, 16, 32)),
        Scale.LAPTOP: effort_over((8, 32), 3, 6000, hidden=(8, 16, 32, 64, 128)),
        Scale.PAPER: effort_over((8, 32, 128), 10, 20_000, hidden=(8, 16, 32, 64, 128)),
    },
)
FIGURE4 = replace(
    FIGURE1B,
    name="figure4",
    title="Figure 4",
    asks="Error against the hidden width N of both nets at every length, a panel per head count.",
    efforts={
        Scale.SMOKE: effort_over((8, 16), 2, 2000, hidden=(8, 16, 32)),
        Scale.LAPTOP: effort_over((8, 16, 32, 64), 3, 6000, hidden=(8, 16, 32, 64)),
        Scale.PAPER: effort_over(ALL_LENGTHS, 10, 20_000, hidden=(8, 16, 32, 64, 128)),
    },
)
