"""The study of depth in a headline, in grids and in charts."""

from collections.abc import Iterable

import numpy as np

from ...answer import ErrorTable
from ...answer.words import decimal
from ...report.chart import Chart, Level, Series
from ...report.section import Grid
from ..claims.depth import (
    ATTENTION_ONLY,
    CONJECTURE,
    LAWS,
    ROLES,
    SOLVED,
    Limit,
    is_solved,
    level,
    missed,
    nearest_law,
)

PER_HEAD = tuple(law for law in LAWS if law.largest(2, 3) == 3 * law.largest(2, 1))
"""The laws that are a number of layers' own, times the heads: one line for every head count."""


def headline(limited: list[Limit]) -> str:
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
    """The largest D solved by each shape, beside what the laws say."""
    rows = []
    for limit in limited:
        interval = f"{limit.largest} ({limit.low} to {limit.high})" if limit.largest else "none"
        first = min((dim for dim in limit.unsolved if dim > limit.largest), default=None)
        solving = _solving_starts(table, limit) if limit.largest else "-"
        laws = (str(law.largest(limit.layers, limit.heads)) for law in LAWS)
        rows.append((limit.name, interval, "-" if first is None else str(first), solving, *laws))
    columns = ("attention only", "largest D solved (90 %)", "next D unsolved", "starts that solve it")
    return Grid(
        title="largest number of maxima solved", columns=(*columns, *(law.name for law in LAWS)), rows=tuple(rows)
    )


def _solving_starts(table: ErrorTable, limit: Limit) -> str:
    """How many starts solve the largest D, over lengths and draws."""
    place = {"layers": limit.layers, "heads": limit.heads, "inside": ATTENTION_ONLY, "intrinsic_dim": limit.largest}
    return _starts(table.select(**place).errors, limit.largest)


def _starts(errors: np.ndarray, dim: int) -> str:
    return f"{int(np.sum(is_solved(errors, dim)))} of {int(np.isfinite(errors).sum())}"


def error_grid(table: ErrorTable) -> Grid:
    """Best of seeds by length, a geometric mean over draws, a row per shape and D."""
    lengths = table.values("length")
    part = table.ordered("inside", "layers", "heads", "intrinsic_dim", "length", "task_seed", "seed")
    rows = []
    for place in np.ndindex(part.errors.shape[:4]):
        errors = part.errors[place]
        if not np.isfinite(errors).any():
            continue
        inside, layers, heads, dim = (values[i] for values, i in zip(part.axes.values(), place, strict=False))
        cells = [_by_draw(of_length) for of_length in errors]
        name = f"L = {layers}, h = {heads}" + ("" if inside == ATTENTION_ONLY else f", {inside}")
        rows.append((name, str(dim), *cells, _starts(errors, dim)))
    columns = ("", "D", *(f"T = {length}" for length in lengths), "starts that solve it")
    return Grid(title="smallest error over seeds", columns=columns, rows=tuple(rows))


def _by_draw(errors: np.ndarray) -> str:
    """The best of seeds of every draw, in their geometric mean."""
    finished = errors[np.isfinite(errors).any(axis=1)]
    if not len(finished):
        return "-"
    return decimal(float(np.exp(np.mean(np.log(np.maximum(np.nanmin(finished, axis=1), 1e-12))))))


def largest_chart(limited: list[Limit]) -> Chart:
    """Maxima solved per head against layers, a line per head count, the laws dashed."""
    layers = tuple(sorted({limit.layers for limit in limited})) or (1,)
    series = []
    for heads in sorted({limit.heads for limit in limited}):
        own = [limit for limit in limited if limit.heads == heads and limit.largest]  # none solved is no zero
        if not own:
            continue
        series.append(
            Series(
                "1 head" if heads == 1 else f"{heads} heads",
                tuple(limit.layers for limit in own),
                tuple(limit.largest / heads for limit in own),
                place=heads - 1,
                low=tuple(limit.low / heads for limit in own),
                high=tuple(limit.high / heads for limit in own),
            )
        )
    for place, law in zip((6, 4, 5, 3), PER_HEAD, strict=True):  # colours after those of one to three heads
        values = tuple(float(law.largest(count, 1)) for count in layers)
        series.append(Series(f"D = {law.name}", layers, values, place=place, kind="published", thin=True))
    return Chart(
        name="largest",
        title="Maxima solved per head, by layers",
        x_label="layers L",
        y_label="largest D solved / heads h",
        x_ticks=layers,
        log_y=False,
        series=tuple(series),
        caption=(
            "attention only; bands hold the largest D solved in 90 % of resamples; laws dashed: "
            f"{CONJECTURE.name} is conjectured, {ROLES.name} constructed; a point below a law may be a stuck start"
        ),
    )


def error_charts(table: ErrorTable) -> tuple[Chart, ...]:
    """Error against D per head, a chart per number of layers, with ticks at the laws' values."""
    return tuple(
        Chart(
            name=f"error-{layers}",
            title=f"Error against maxima per head, {'1 layer' if layers == 1 else f'{layers} layers'}",
            x_label="maxima per head D / h (ticks at the laws' values)",
            y_label="error in maxima missed (NMSE D / 0.04)",
            x_ticks=tuple(sorted({float(law.largest(layers, 1)) for law in PER_HEAD} | {_farthest(series)})),
            series=series,
            levels=(
                Level("one missed", "what missing one maximum costs, about", 1.0),
                Level("solved", f"at most {SOLVED:g} of that counts as solved", SOLVED),
            ),
            caption="attention only; best of seeds, geometric mean over lengths and draws",
        )
        for layers in table.values("layers")
        if (series := _error_series(table, layers))
    )


def _error_series(table: ErrorTable, layers: int) -> tuple[Series, ...]:
    if ATTENTION_ONLY not in table.values("inside"):
        return ()
    series = []
    for heads in table.values("heads"):
        place = {"layers": layers, "heads": heads, "inside": ATTENTION_ONLY}
        dims = table.values("intrinsic_dim")
        errors = {dim: float(missed(level(table, intrinsic_dim=dim, **place), dim)) for dim in dims}
        known = {dim / heads: error for dim, error in errors.items() if np.isfinite(error)}
        if known:
            name = "1 head" if heads == 1 else f"{heads} heads"
            series.append(Series(name, tuple(known), tuple(known.values()), place=heads - 1))
    return tuple(series)


def _farthest(series: Iterable[Series]) -> float:
    return float(max(max(one.x) for one in series))
