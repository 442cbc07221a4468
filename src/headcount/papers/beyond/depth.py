"""How many maxima do L layers of h heads learn? Conjecture 1 of Yu et al. (arXiv 2510.06662) says at most h L.

Class-token models whose heads share a width of 36, on sums of D maxima in six dimensions. D is taken near the values of
the laws that it may follow, each and one more, so that every law can be refuted.
"""

import itertools
from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...answer import ErrorTable, count_of_heads
from ...answer.words import decimal
from ...report.chart import Chart, Level, Series
from ...report.document import Grid
from ..base import AbstractSpec, Part, Scale, Study, StudyEffort, StudyResults, effort_over
from ..charts import chart_along, grid_of, line_of
from ..claims.depth import (
    ATTENTION_ONLY,
    CONJECTURE,
    FITS,
    LAWS,
    ONE_MISSED,
    ROLES,
    SOLVED,
    Limit,
    best_level,
    inside_claim,
    is_solved,
    law_claim,
    level_at,
    maxima_missed,
    nearest_law,
    shape_limits,
)
from ..claims.rank import count_of_layers
from ..head_count.tables import class_token

DIM, TOTAL_DIM = 6, 36
INNER_HIDDEN = 32
BOTH_INSIDE = "nets and positions"
INSIDES: dict[str, dict[str, Any]] = {
    ATTENTION_ONLY: {},
    "nets": {"inner_hidden": INNER_HIDDEN},
    "positions": {"positions": "additive"},
    BOTH_INSIDE: {"inner_hidden": INNER_HIDDEN, "positions": "additive"},
}
"""Parts of the models between their attention layers."""


class DepthShape(NamedTuple):
    """Models of one shape and the D that they are tried on, at some lengths and draws of the task."""

    layers: int
    heads: int
    dims: tuple[int, ...]
    lengths: tuple[int, ...] = (8,)
    draws: tuple[int, ...] = (0,)
    inside: str = ATTENTION_ONLY


PER_HEAD = tuple(law for law in LAWS if law.largest(2, 3) == 3 * law.largest(2, 1))
"""The laws that are a number of layers' own, times the heads: one line for every head count."""


def depth_headline(limited: list[Limit]) -> str:
    deep = [limit for limit in limited if limit.layers > 1]
    if not deep:
        return "No model of two or more layers has finished"
    law = nearest_law(deep)
    if law is None:
        return "No model of two or more layers has solved any number of maxima tried"
    beyond = [limit for limit in deep if limit.low > CONJECTURE.largest(limit.layers, limit.heads)]
    return (
        f"More than h L maxima are solved by {len(beyond)} of {len(deep)} shapes of two or more layers; of the laws "
        f"compared, {law.name} lies nearest to the largest D solved"
    )


def largest_grid(table: ErrorTable, limited: list[Limit]) -> Grid:
    rows = []
    for limit in limited:
        interval = f"{limit.largest} ({limit.low} to {limit.high})" if limit.largest else "none"
        first = min((dim for dim in limit.unsolved if dim > limit.largest), default=None)
        solving = "-"
        if limit.largest:
            shape = {"layers": limit.layers, "heads": limit.heads, "inside": ATTENTION_ONLY}
            solving = _starts(table.select(**shape, intrinsic_dim=limit.largest).errors, limit.largest)
        laws = (str(law.largest(limit.layers, limit.heads)) for law in LAWS)
        rows.append((limit.name, interval, "-" if first is None else str(first), solving, *laws))
    columns = ("attention only", "largest D solved (90 %)", "next D unsolved", "starts that solve it")
    return grid_of("largest number of maxima solved", (*columns, *(law.name for law in LAWS)), rows)


def _starts(errors: np.ndarray, dim: int) -> str:
    return f"{int(np.sum(is_solved(errors, dim)))} of {int(np.isfinite(errors).sum())}"


def error_grid(table: ErrorTable) -> Grid:
    lengths = table.values("length")
    part = table.ordered("inside", "layers", "heads", "intrinsic_dim", "length", "task_seed", "seed")
    rows = []
    for place in np.ndindex(part.errors.shape[:4]):
        errors = part.errors[place]
        if not np.isfinite(errors).any():
            continue
        inside, layers, heads, dim = (values[i] for values, i in zip(part.axes.values(), place, strict=False))
        cells = ["-" if np.isnan(error := best_level(of_length)) else decimal(error) for of_length in errors]
        name = f"L = {layers}, h = {heads}" + ("" if inside == ATTENTION_ONLY else f", {inside}")
        rows.append((name, str(dim), *cells, _starts(errors, dim)))
    columns = ("", "D", *(f"T = {length}" for length in lengths), "starts that solve it")
    return grid_of("smallest error over seeds", columns, rows)


def largest_chart(limited: list[Limit]) -> Chart:
    """Maxima solved per head against layers, a line per head count, the laws dashed."""
    layers = tuple(sorted({limit.layers for limit in limited})) or (1,)
    series = []
    for heads in sorted({limit.heads for limit in limited}):
        own = [limit for limit in limited if limit.heads == heads and limit.largest]  # none solved is no zero
        x = tuple(limit.layers for limit in own)
        dims = ([limit.largest for limit in own], [limit.low for limit in own], [limit.high for limit in own])
        y, low, high = (tuple(dim / heads for dim in each) for each in dims)
        series += [Series(count_of_heads(heads), x, y, place=heads - 1, low=low, high=high)] if own else []
    for place, law in zip((6, 4, 5, 3), PER_HEAD, strict=True):  # colours after those of one to three heads
        values = tuple(float(law.largest(count, 1)) for count in layers)
        series.append(Series(f"D = {law.name}", layers, values, place=place, kind="published", thin=True))
    caption = (
        "attention only; bands hold the largest D solved in 90 % of resamples; laws dashed: "
        f"{CONJECTURE.name} is conjectured, {ROLES.name} constructed; a point below a law may be a stuck start"
    )
    title, y_label = "Maxima solved per head, by layers", "largest D solved / heads h"
    return chart_along("layers L", layers, series, "largest", title, caption, y_label, log_y=False)


def error_charts(table: ErrorTable) -> tuple[Chart, ...]:
    caption = "attention only; best of seeds, geometric mean over lengths and draws"
    levels = (
        Level("one missed", "what missing one maximum costs, about", 1.0),
        Level("solved", f"at most {SOLVED:g} of that counts as solved", SOLVED),
    )
    axis, y_label = "maxima per head D / h (ticks at the laws' values)", "error in maxima missed (NMSE D / 0.04)"
    charts = []
    for layers in table.values("layers"):
        series = []
        for heads in table.values("heads") if ATTENTION_ONLY in table.values("inside") else ():
            place = {"layers": layers, "heads": heads, "inside": ATTENTION_ONLY}
            errors = {dim: level_at(table, intrinsic_dim=dim, **place) for dim in table.values("intrinsic_dim")}
            known = {dim / heads: float(maxima_missed(e, dim)) for dim, e in errors.items() if np.isfinite(e)}
            series += [line_of(count_of_heads(heads), known, heads - 1)] if known else []
        if series:
            ticks = {float(law.largest(layers, 1)) for law in PER_HEAD} | {max(max(one.x) for one in series)}
            name, title = f"error-{layers}", f"Error against maxima per head, {count_of_layers(layers)}"
            charts.append(chart_along(axis, sorted(ticks), series, name, title, caption, y_label, levels=levels))
    return tuple(charts)


def _swept_parts(effort: StudyEffort) -> Iterable[Part]:
    from ...tasks import sum_of_maxima

    for shape in effort.axes["shapes"]:
        for dim, draw in itertools.product(shape.dims, shape.draws):
            at = {"intrinsic_dim": dim, "task_seed": draw}
            task = partial(sum_of_maxima, dim=DIM, directions="random", length=shape.lengths[0], **at)
            sizes = {"layers": (shape.layers,), "heads": (shape.heads,), "inside": (shape.inside,)}
            axes = sizes | {"length": shape.lengths, "seed": range(effort.seeds)}
            yield Part(task=task, model=_depth_model, axes=axes, at=at)


def _document_fields(results: StudyResults) -> dict[str, Any]:
    table = results.table()
    limited = shape_limits(table)
    return {
        "headline": depth_headline(limited),
        "claims": (*(law_claim(law, limited) for law in LAWS), inside_claim(table)),
        "grids": (largest_grid(table, limited), error_grid(table)),
        "charts": (largest_chart(limited), *error_charts(table)),
    }


def _depth_model(heads: int, layers: int, inside: str) -> AbstractSpec:
    return class_token(heads, total_dim=TOTAL_DIM, layers=layers, **INSIDES[inside])


def near_laws(layers: int, heads: int) -> tuple[int, ...]:
    """The values of the laws up to h L (L + 1) / 2, each and one more, and that plus 2."""
    most = heads * layers * (layers + 1) // 2 + 2
    values = {law.largest(layers, heads) + more for law in LAWS for more in (0, 1)}
    return tuple(sorted({dim for dim in (*values, most) if 2 <= dim <= most}))


def _paper_shapes() -> tuple[DepthShape, ...]:
    deep = []
    for heads in (1, 2):
        for layers in (2, 3):
            dims = near_laws(layers, heads)
            deep.append(DepthShape(layers, heads, dims, (16,), draws=(0, 1)))
            deep.append(DepthShape(layers, heads, dims))
    deep.append(DepthShape(2, 2, (6, 7, 8, 9), (32,)))
    deep += [DepthShape(2, heads, near_laws(2, heads), (16,)) for heads in (3, 4)]
    for layers, heads in ((3, 3), (3, 4), (4, 1), (4, 2), (4, 3), (4, 4)):
        laws = (heads * (2 * layers - 1), heads * layers * (layers + 1) // 2)
        below = {heads * fewer for fewer in (layers, layers + 1, 2 * layers - 2)}
        dims = tuple(sorted(below | {law + more for law in laws for more in (0, 1)}))
        deep.append(DepthShape(layers, heads, dims, (16,)))
    deep += [DepthShape(2, 1, (3, 4, 6), (16,), inside=inside) for inside in ("nets", "positions", BOTH_INSIDE)]
    deep.append(DepthShape(2, 2, (7, 8), (16,), inside=BOTH_INSIDE))
    deep.append(DepthShape(3, 1, (6, 7, 8), (16,), inside=BOTH_INSIDE))
    shallow = [DepthShape(1, heads, (heads, heads + 1), (8, 16)) for heads in (1, 2, 3, 4)]
    return (*shallow, *deep)


SMOKE_SHAPES = (
    DepthShape(1, 1, (2,)),
    DepthShape(1, 4, (4,)),
    DepthShape(2, 1, (2, 3, 4)),
    DepthShape(2, 1, (4,), inside=BOTH_INSIDE),
)
LAPTOP_SHAPES = (
    DepthShape(1, 1, (1, 2)),
    DepthShape(1, 2, (2, 3)),
    DepthShape(1, 3, (3, 4)),
    DepthShape(2, 1, (2, 3, 4, 5)),
    DepthShape(2, 2, (4, 5, 6, 7, 8)),
    DepthShape(2, 1, (4,), inside=BOTH_INSIDE),
)
NARROWER = ", ".join(f"D = {dim} at L = {layers}, h = {heads}" for (layers, heads), dim in FITS.items())
STUDY = Study(
    name="depth",
    title="The law of depth",
    asks="How many maxima D do L layers of h heads learn: h L, as conjectured, or more?",
    parts=_swept_parts,
    report=_document_fields,
    notes=(
        *(f"{law.name}: {law.origin}." for law in LAWS),
        f"A model that misses one of D maxima leaves an NMSE of about {ONE_MISSED:g} / D. Solved: at most {SOLVED:g} "
        "of that, best of seeds, geometric mean over lengths and draws; intervals are over all three.",
        "Not solved means that no start solved it. Where D is at most h (2 L - 1) a model that solves it is written "
        f"down (theory.roles_of_maxima), so those starts are stuck; of width {TOTAL_DIM} up to {NARROWER}. The same "
        "goes for L = h = 2, D = 8, task_seed 0, from 32 tokens on (theory.construct_by_content). Above, nobody knows.",
        f"Class-token models of width {TOTAL_DIM} shared by the heads, encoder and readout of 32 units, attention "
        f"layers with residuals; nets inside have {INNER_HIDDEN} units, positions are learned and added. Tokens are "
        f"standard normal in {DIM} dimensions, directions are unit vectors well apart.",
    ),
    efforts={
        Scale.SMOKE: effort_over((8,), 2, 1000, shapes=SMOKE_SHAPES),
        Scale.LAPTOP: effort_over((8,), 4, 8000, shapes=LAPTOP_SHAPES),
        Scale.PAPER: effort_over((8, 16, 32), 8, 15_000, shapes=_paper_shapes()),
    },
)
