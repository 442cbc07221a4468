"""The errors of an experiment as grids: by length, by rank, or by kv heads and head dim."""

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..answer import Answer, ErrorTable
from ..answer.heads_map import parts_of
from ..answer.words import decimal
from ..store import Experiment, Value
from .charts import (
    DESCENDED,
    RANDOM,
    about_rank,
    axis_name,
    by_length,
    by_rank,
    by_start,
    draws_of,
    judged_by,
    judged_errors,
    main_axis,
)
from .document import Entry, Grid
from .heads_map import place_name, worst_length

NOTHING = dict.fromkeys(("minimum", "median", "mean", "std"), math.nan) | {"seeds": 0, "lost": 0}
"""The row of a place without models."""
BELOW_BEST = {"mean": "\nmean\n  \u00b1\n(paper)\n(  \u00b1)", "minimum": "\n(paper)"}
"""The further lines of an entry on a terminal, by the statistic that was published."""
LINES = ("mean \u00b1 deviation", "published", "ours / published")


def error_grids(
    table: ErrorTable, answer: Answer | None, experiment: Experiment | None = None, published: ErrorTable | None = None
) -> tuple[Grid, ...]:
    """Tabulate the errors, next to the published ones where there are any.

    One grid per draw of the data; the first is shown everywhere, the others on a page.
    """
    if about_rank(table):
        return (_rank_grid(table, answer, experiment),)
    if answer is not None and answer.map:
        return (_places_grid(table, answer),)
    return tuple(
        _length_grid(table, answer, experiment, published, draw) for draw in range(max(1, len(draws_of(table))))
    )


def error_rows(table: ErrorTable | None) -> list[dict[str, Any]]:
    """Return the errors by heads (or another main axis) and length as rows for JSON, with rank where it was varied.

    Every row has its coordinates, `best` and `median` over seeds and starts, and `seeds`, how many finished; None for a
    number that is missing. Of several draws of the data the first. Empty where there is no table.
    """
    if table is None:
        return []
    shown = by_rank(table) if about_rank(table) else by_length(table)
    axes = [axis for axis in shown.axes if axis != "seed"]
    return [
        {axis: row[axis] for axis in axes} | {"best": row["minimum"], "median": row["median"], "seeds": row["seeds"]}
        for row in map(without_nan, shown.rows())
    ]


def cell_rows(
    table: ErrorTable, *, experiment: Experiment | None = None, published: ErrorTable | None = None
) -> list[dict[str, Any]]:
    """Return the statistics over seeds of every cell that was asked for, with the published number if there is one."""
    axes = [axis for axis in table.axes if axis != "seed"]
    asked = None if experiment is None else asked_for(experiment, axes)
    rows = []
    for row in table.rows():
        models = row["seeds"] + row["lost"] if asked is None else asked[tuple(row[axis] for axis in axes)]
        if published is not None:
            at = {axis: row.get(axis) for axis in published.axes}
            row |= {"published": published.at(**at), "published_std": published.deviation_at(**at)}
        if models:
            rows.append(without_nan(row | {"lost": models - row["seeds"]}))
    return rows


def without_nan(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row for JSON, with None for a number that is missing."""
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in row.items()}


def asked_for(
    experiment: Experiment, axes: Iterable[str], counted: Iterable[str] = ("seed",)
) -> Counter[tuple[Value, ...]]:
    """Count the models that an experiment asked for at every place on `axes`, each value of `counted` one of them.

    Models that differ along no other axis than one of which the best counts are one. An axis that the experiment lacks
    has the one value 1, as in a table.
    """
    axes, places = tuple(axes), map(experiment.coordinates, experiment.places)
    models = {tuple(at.get(axis, 1) for axis in (*axes, *counted)) for at in places}
    return Counter(model[: len(axes)] for model in models)


def _length_grid(
    table: ErrorTable, answer: Answer | None, experiment: Experiment | None, published: ErrorTable | None, draw: int
) -> Grid:
    """Tabulate errors by length along the main axis; random starts and descended models have a column each."""
    axis, parts, draws = main_axis(table), by_start(table, draw), draws_of(table)
    needed = None if answer is None or axis not in answer.needs else answer.needs[axis].at
    asked = None if experiment is None else _asked_by_start(experiment, axis, draws[draw] if draws else None)
    kinds = [kind for kind in (RANDOM, DESCENDED) if kind in parts or any(kind == place[2] for place in asked or ())]
    found = {(row[axis], row["length"], kind): row for kind, part in parts.items() for row in part.rows()}
    lengths = by_length(table, draw).values("length")
    tried = {place[0] for place in (asked or found)}
    values = [value for value in table.with_axes(axis).values(axis) if value in tried]
    apart, name = DESCENDED in kinds, axis_name(axis)

    def entry(place: tuple[Value, Value, str]) -> Entry:
        row = found.get(place, NOTHING)
        models = row["seeds"] + row["lost"] if asked is None else asked[place]
        if published is not None and place in found:
            return _next_to_published(row, models, published)
        return _over_seeds(row, models, median=not apart and published is None)

    title, drawn = f"Errors by {name} and length", f", draw {draw + 1} of {len(draws)} of the data"
    caption, words = f"{title}{drawn if len(draws) > 1 else ''}", "best of seeds (median)"
    words = "best of the random starts, and of the descended models" if apart else words
    label, labels = f"{table.metric.label}: {words}", ()
    if published is not None:
        label = f"{table.metric.label}, and in parentheses the published {published.statistic} over seeds"
        caption += f", next to {published.source}: each number there is a {published.statistic} over seeds"
        labels = (Entry("best", BELOW_BEST[published.statistic], LINES, "best"),)
    else:
        caption += ": best of seeds, below it mean \u00b1 deviation"
    columns = [f"T = {length}\n{kind}" if apart else f"T = {length}" for length in lengths for kind in kinds]
    return Grid(
        title=label,
        caption=caption,
        columns=(name, *(("",) if labels else ()), *columns),
        rows=tuple(
            (str(value), *labels, *(entry((value, length, kind)) for length in lengths for kind in kinds))
            for value in values
        ),
        keys=1 + len(labels),
        align=f"r{'l' * len(labels)}{'r' * len(columns)}",
        marked=tuple(place for place, value in enumerate(values) if value == needed),
        errors=True,
        shown="page" if draw else "always",
    )


def _asked_by_start(experiment: Experiment, axis: str, data_seed: Value | None) -> Counter[tuple[Value, Value, str]]:
    """Count the models asked for, by value of an axis, length and kind of start; on one draw of the data, or on all."""
    models: Counter[tuple[Value, Value, str]] = Counter()
    for place, count in asked_for(experiment, (axis, "length", "data_seed", "start")).items():
        value, length, draw, start = place
        if data_seed in (draw, None):
            models[value, length, RANDOM if start in (RANDOM, 1) else DESCENDED] += count
    return models


def _over_seeds(row: dict[str, Any], models: int, *, median: bool) -> Entry:
    """Return the best over seeds, with the median on a terminal, with mean and deviation on a page."""
    best, lost = row["minimum"], models - row["seeds"]
    aside = f" ({decimal(row['median'])})" if median else ""
    missing = f"{lost} missing" if lost else ""
    aside += f" {missing}" if missing and median else f"\n{missing}" if missing else ""
    below = (_with_deviation(row),) if math.isfinite(best) else ()
    return Entry(decimal(best), aside, (*below, *_lost(lost, models)), "best")


def _next_to_published(row: dict[str, Any], models: int, published: ErrorTable) -> Entry:
    """Return our best, mean and deviation over the published numbers, each on a line of its own."""
    at = {axis: row[axis] for axis in published.axes if axis in row}
    printed, deviation = published.at(**at), published.deviation_at(**at)
    of_means = published.statistic == "mean"
    aside = [decimal(row["mean"]), decimal(row["std"])] if of_means else []
    aside += [f"({decimal(value)})" for value in ((printed, deviation) if of_means else (printed,))]
    best = row["minimum"]
    below = () if math.isnan(best) and math.isnan(printed) else (_with_deviation(row),)
    if not math.isnan(printed):
        below += (decimal(printed) if math.isnan(deviation) else f"{decimal(printed)} \u00b1 {decimal(deviation)}",)
        ratio = (row["mean"] if of_means else best) / printed
        below += () if math.isnan(ratio) else (f"\u00d7{ratio:.2g}" if ratio < 100 else f"\u00d7{ratio:.0f}",)
    lines = (*below, *_lost(models - row["seeds"], models))
    return Entry(decimal(best), "".join(f"\n{words}" for words in aside), lines, "best")


def _with_deviation(row: dict[str, Any]) -> str:
    mean, std = row["mean"], row["std"]
    return f"{decimal(mean)} \u00b1 {decimal(std)}" if math.isfinite(std) or not math.isfinite(mean) else decimal(mean)


def _lost(lost: int, models: int) -> tuple[str, ...]:
    return (f"{lost} of {models} models missing",) if lost else ()


def _places_grid(table: ErrorTable, answer: Answer) -> Grid:
    """Tabulate errors by heads, a column per kv_heads and head_dim, solved from the head count that is needed there."""
    parts = {at: worst_length(part) for at, part in parts_of(table).items()}
    needs = {(each.kv_heads, each.head_dim): each.needed for each in answer.map}

    def entry(at: tuple[Any, Any], heads: int) -> Entry:
        need = needs.get(at)
        style = "" if need is None or heads < need else "smallest" if heads == need else "solved"
        return Entry(decimal(parts[at].at(heads=heads)), style=style)

    return _judged_grid(
        table,
        caption="Errors by heads, kv heads and head dim",
        columns=tuple(place_name(*at).replace(", ", "\n") for at in parts),
        rows=tuple((str(heads), *(entry(at, heads) for at in parts)) for heads in table.values("heads")),
    )


def _rank_grid(table: ErrorTable, answer: Answer | None, experiment: Experiment | None) -> Grid:
    """Tabulate errors by heads and rank, solved from the sizes that solve the task."""
    table = by_rank(table)
    best, done = judged_errors(table), np.sum(np.isfinite(table.errors), axis=(2, 3))
    heads, ranks = table.values("heads"), table.values("rank")
    asked = None if experiment is None else asked_for(experiment, ("heads", "rank"), ("length", "seed"))

    def entry(i: int, j: int) -> Entry:
        size = heads[i], ranks[j]
        models = table.errors[i, j].size if asked is None else asked[size]
        lost = models - int(done[i, j])
        solved = answer is not None and bool(answer.frontier) and answer.solves(*size)
        style = "" if answer is None else "smallest" if answer.at == size else "solved" if solved else ""
        # A place without any model may never have been asked for; its dash says enough.
        return Entry(decimal(float(best[i, j])), "", _lost(lost, models) if lost < models else (), style)

    return _judged_grid(
        table,
        caption="Errors by heads and rank",
        columns=tuple(f"rank {rank}" for rank in ranks),
        rows=tuple((str(count), *(entry(i, j) for j in range(len(ranks)))) for i, count in enumerate(heads)),
    )


def _judged_grid(table: ErrorTable, *, caption: str, columns: tuple[str, ...], rows: tuple[Any, ...]) -> Grid:
    """Tabulate errors that are one number each, judged as `judged_by` says."""
    return Grid(
        title=f"{table.metric.label}: {judged_by(table)}",
        caption=f"{caption}: {judged_by(table)}; bold where it is solved",
        columns=("heads", *columns),
        rows=rows,
        align="r" * (1 + len(columns)),
        errors=True,
    )
