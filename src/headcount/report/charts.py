"""The charts of any table: error against its main axis and by length, or those of heads and rank."""

from collections.abc import Iterable

import numpy as np

from ..answer import Answer, ErrorTable, count_of_heads, size_of
from ..answer.answer import has_map
from ..answer.baselines import CONSTANT, Baseline
from ..answer.words import decimal, error_number, factor_words
from .chart import Chart, Drop, HeatMap, Level, Line, Series, Span

AXIS_LABELS = {
    "heads": "attention heads",
    "rank": "rank of a head",
    "length": "sequence length T (tokens)",
    "hidden": "hidden width N (units)",
}
ACROSS = ("length", "seed")
"""Axes that every table has."""
APART = ("data_seed", "start")
"""Axes along which the best of all says little: draws of the data, and where training starts."""
RANDOM, DESCENDED = "random", "descended"
"""The two kinds of starts that are shown apart; a model trained on without removing heads counts as descended."""
MAX_POINTS = 600
"""Seeds of a chart that are drawn as points; of more, a band is easier to read."""
MIN_FOLD = 1.5
"""A smaller fall of the error is not marked."""


def charts_of(table: ErrorTable, answer: Answer, baselines: Iterable[Baseline] = ()) -> tuple[Chart | HeatMap, ...]:
    """Return the charts of an experiment, the main one first; words along the main axis have no places on a line."""
    if about_rank(table):
        return rank_map(table, answer), rank_chart(table, answer)
    if any(isinstance(value, str) for value in table.values(main_axis(table))):
        return (heat_map(table),)
    main = error_chart(table, answer, baselines=baselines)
    return (main, heat_map(table)) if len(table.values("length")) > 1 else (main,)


def about_rank(table: ErrorTable) -> bool:
    """Whether some of several head counts was tried at several ranks."""
    return table.has("heads") and has_map(table)


def axis_name(axis: str) -> str:
    """Write an axis in words."""
    return axis.replace("_", " ")


def axis_label(axis: str) -> str:
    """Return the name that a chart gives an axis."""
    return AXIS_LABELS.get(axis, axis_name(axis))


def main_axis(table: ErrorTable) -> str:
    """Return the axis that an experiment is about: heads where they vary, else the first that does.

    Draws of the data are one only where nothing else was varied.
    """
    axes = [axis for axis in table.axes if axis not in ACROSS + APART]
    last = [] if table.has("start") else ["data_seed"]
    axes = [axis for axis in (*axes, *last) if len(table.values(axis)) > 1] or axes
    return "heads" if "heads" in axes else (axes or ["model"])[0]


def draws_of(table: ErrorTable) -> tuple[int, ...]:
    """Return the draws of the data, which are shown apart; none where the experiment is about them."""
    return () if main_axis(table) == "data_seed" else table.values("data_seed")


def by_length(table: ErrorTable, draw: int = 0) -> ErrorTable:
    """Return one draw of the data over the main axis, length and seed; over any other axis the best counts."""
    return _over(_of_draw(table, draw), main_axis(table), *ACROSS)


def by_start(table: ErrorTable, draw: int = 0) -> dict[str, ErrorTable]:
    """Return `by_length` for random starts and for descended models; a kind without errors is left out.

    All are random where the table has no such axis.
    """
    starts = table.values("start")
    axis, one_draw = main_axis(table), _of_draw(table, draw)
    parts = {}
    for kind in (RANDOM, DESCENDED):
        members = [start for start in starts if (start == RANDOM) == (kind == RANDOM)]
        part = one_draw.select(start=members).merged("start", "seed") if members else None
        if part is not None and np.isfinite(part.errors).any():
            parts[kind] = _over(part, axis, *ACROSS)
    return parts or {RANDOM: by_length(table, draw)}


def _of_draw(table: ErrorTable, draw: int) -> ErrorTable:
    """Return one draw of the data, at the values of the main axis where it has errors."""
    draws, axis = draws_of(table), main_axis(table)
    if not draws:
        return table
    table = table.select(data_seed=draws[draw])
    if len(draws) == 1 or not table.has(axis):
        return table
    errors = np.moveaxis(table.errors, table.index(axis), 0)
    known = [value for value, row in zip(table.values(axis), errors, strict=True) if np.isfinite(row).any()]
    return table.select(**{axis: known}) if known else table


def by_rank(table: ErrorTable) -> ErrorTable:
    """Return the table over heads, rank, length and seed; over any other axis the best counts."""
    return _over(table, "heads", "rank", *ACROSS)


def _over(table: ErrorTable, *axes: str) -> ErrorTable:
    for other in [axis for axis in table.axes if axis not in axes]:
        table = table.reduced(other)
    return table.with_axes(*axes)


def judged_errors(table: ErrorTable) -> np.ndarray:
    """Return heads by rank: the smallest error over seeds at the worst length, NaN where a length is missing."""
    return by_rank(table).best.max(axis=2)


def error_chart(
    table: ErrorTable,
    answer: Answer,
    published: ErrorTable | None = None,
    baselines: Iterable[Baseline] = (),
) -> Chart:
    """Chart the best error along the main axis: a line per length, a point per seed, the transition marked and named.

    Descended models are points of their own. Baselines are levels.
    """
    axis, parts = main_axis(table), by_start(table)
    whole = by_length(table)
    values, lengths = whole.values(axis), whole.values("length")
    reference = None if published is None else published.aligned(whole)
    few = sum(np.isfinite(part.errors).sum() for part in parts.values()) <= MAX_POINTS
    log_y = not np.any(whole.errors == 0)  # labels without a wrong answer
    series = []
    for j, length in enumerate(lengths):
        errors = {kind: part.errors[:, j] for kind, part in parts.items()}
        every = np.concatenate(list(errors.values()), axis=1)
        low, high = (tuple(edge.reduce(every, axis=1)) for edge in (np.fmin, np.fmax))
        seeds = {kind: _seed_points(values, each) if few else () for kind, each in errors.items()}
        name = f"{length} tokens"
        series.append(Series(name, values, low, place=j, low=low, high=high, points=seeds.get(RANDOM, ())))
        if seeds.get(DESCENDED):
            nothing = (float("nan"),) * len(values)
            series.append(
                Series(f"{name}, descended", values, nothing, place=j, kind="descended", points=seeds[DESCENDED])
            )
        if reference is not None and np.isfinite(reference[:, j]).any():
            line = tuple(reference[:, j])
            series.append(Series(f"{length} tokens, published", values, line, place=j, kind="published"))
    return Chart(
        name=f"error-against-{axis}",
        title=f"Error against {axis_name(axis)}",
        x_label=axis_label(axis),
        y_label=whole.metric.label,
        x_ticks=values,
        series=tuple(series),
        caption=_caption(table, published, "points" if few else "band"),
        log_y=log_y,
        span=_span(answer, axis),
        levels=tuple(_level(each) for each in baselines if each.error > 0 or not log_y),
        drop=_drop(whole, answer, axis) if published is None else None,
    )


def _level(baseline: Baseline) -> Level:
    """Return a baseline as a level; the axis is for the models, and reaches to the constant answer."""
    error = error_number(baseline.error)
    words, value = f"{baseline.label}: {error}", error.replace("below", "<")
    return Level(baseline.name, words, baseline.error, value, anchor=baseline.name == CONSTANT)


def _seed_points(values: tuple[float, ...], errors: np.ndarray) -> tuple[tuple[float, float], ...]:
    return tuple(
        (value, float(error))
        for value, row in zip(values, errors, strict=True)
        for error in np.sort(row[np.isfinite(row)])
    )


def _drop(table: ErrorTable, answer: Answer, axis: str) -> Drop | None:
    """Return the fall of the error from the next smaller head count to the one needed, at the longest length."""
    heads = answer.heads
    if axis != "heads" or answer.kind != "needs" or heads is None or heads not in table.values(axis):
        return None
    errors = table.best[:, table.values("length").index(max(table.values("length")))]
    here = table.values(axis).index(heads)
    before = [error for error in errors[:here] if np.isfinite(error)]
    if not before or not before[-1] > MIN_FOLD * errors[here] > 0:
        return None
    fold = before[-1] / errors[here] if answer.fold is None else answer.fold
    less = f"{factor_words(fold)} times less" if answer.floor is None else f"down to {decimal(errors[here])}"
    return Drop(f"{count_of_heads(heads)}: {less}", heads, float(before[-1]), float(errors[here]))


def _caption(table: ErrorTable, published: ErrorTable | None, seeds: str) -> str:
    """Say what the lines of an error chart are; `seeds` are points or a band."""
    if DESCENDED in by_start(table):
        caption = (
            f"line: best model; {seeds}: all of them, hollow where descended from trained ones with more heads"
            if seeds == "points"
            else "line: best model; band: all of them"
        )
    elif table.has("start"):
        caption = f"line: best of the random starts; {seeds}: all of them"
    else:
        caption = f"line: best of {_seeds(table.values('seed'))}; {seeds}: all seeds"
    if published is not None:
        caption += f"; dashed: the published {published.statistic}"
    return caption + _draw_shown(table)


def _draw_shown(table: ErrorTable) -> str:
    draws = len(draws_of(table))
    return f"; the first of {draws} draws of the data" if draws > 1 else ""


def reversal_chart(heads: tuple[int, ...], series: tuple[Series, ...]) -> Chart:
    """Chart the weighted reversal score against heads."""
    return Chart(
        name="reversal",
        title="Weighted reversal score",
        x_label="attention heads",
        y_label="R(h), no unit",
        x_ticks=heads,
        log_y=False,
        series=series,
        caption="R(h) = sum over T1 < T2 of max(err(T1) - err(T2), 0) / (max err - min err)",
    )


def heat_map(table: ErrorTable) -> HeatMap:
    """Map the smallest error over seeds at every value of the main axis and length."""
    axis, shown = main_axis(table), by_length(table)
    best = "best of all starts" if table.has("start") else f"best of {_seeds(shown.values('seed'))}"
    return HeatMap(
        name=f"{axis}-by-length",
        title=f"{axis_name(axis).capitalize()} by length",
        rows=shown.values(axis),
        columns=shown.values("length"),
        row_label=axis_label(axis),
        column_label=axis_label("length"),
        values=shown.best,
        baseline=shown.reduced("seed").baseline,
        unit=shown.metric.short,
        caption=f"{best}{_draw_shown(table)}",
    )


def rank_map(table: ErrorTable, answer: Answer) -> HeatMap:
    """Map the judged error of every head count and rank, with lines of equal heads x rank."""
    caption = f"{judged_by(table)}; lines join models of equal heads x rank"
    if answer.frontier:
        caption += f"; solved from {', '.join(size_of(*size) for size in answer.frontier)} on"
    return HeatMap(
        name="heads-by-rank",
        title="Heads by rank",
        rows=table.values("heads"),
        columns=table.values("rank"),
        row_label=axis_label("heads"),
        column_label=axis_label("rank"),
        values=judged_errors(table),
        baseline=by_rank(table).reduced("seed").baseline.max(axis=2),
        unit=table.metric.short,
        caption=caption,
        lines=_equal_products(table.values("heads"), table.values("rank")),
    )


def _equal_products(heads: tuple[int, ...], ranks: tuple[int, ...]) -> tuple[Line, ...]:
    """Return a line for each heads x rank that two or more cells have."""
    places: dict[int, list[tuple[float, float]]] = {}
    for j, rank in enumerate(ranks):
        for i, count in enumerate(heads):
            places.setdefault(count * rank, []).append((float(j), float(i)))
    return tuple(
        Line(f"heads x rank = {product}", f"{product}", tuple(points))
        for product, points in sorted(places.items())
        if len(points) > 1
    )


def rank_chart(table: ErrorTable, answer: Answer) -> Chart:
    """Chart the judged error against rank, one line per head count, with a band up to the worst seed."""
    ranks, highest = table.values("rank"), np.fmax.reduce(by_rank(table).errors, axis=(2, 3))
    series = tuple(
        Series(count_of_heads(heads), ranks, tuple(line), place=i, low=tuple(line), high=tuple(high))
        for i, (heads, line, high) in enumerate(zip(table.values("heads"), judged_errors(table), highest, strict=True))
    )
    return Chart(
        name="error-against-rank",
        title="Error against rank",
        x_label=axis_label("rank"),
        y_label=table.metric.label,
        x_ticks=ranks,
        series=series,
        caption=f"line: {judged_by(table)}; band: up to the worst seed",
        log_x=True,
        span=_span(answer, "rank") if answer.limit in ("rank", "both") else None,
    )


def _span(answer: Answer, axis: str) -> Span | None:
    """Return the values along an axis that are needed; None where none are known."""
    need = answer.needs.get(axis)
    return None if need is None else Span(answer.sentence, need.at, need.low, need.high)


def judged_by(table: ErrorTable) -> str:
    """Return which error counts for a cell, in words."""
    lengths = table.values("length")
    worst = f", at the worst of the lengths {', '.join(map(str, lengths))}" if len(lengths) > 1 else ""
    return f"best of {_seeds(table.values('seed'))}{worst}"


def _seeds(seeds: tuple[int, ...]) -> str:
    return f"{len(seeds)} seed{'s' * (len(seeds) != 1)}"
