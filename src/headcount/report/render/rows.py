"""The errors of a section as rows, which page and terminal lay out.

This, `evidence.py` and `section.py`, `charts.py` are all of the report that knows what tables and answers look like.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...answer import Answer, ErrorTable, Summary
from ...answer.heads_map import parts_of
from ...store import Experiment, Value
from ..charts import DESCENDED, RANDOM, axis_name, by_length, by_rank, by_start, draws_of, judged, judged_by, main_axis
from ..heads_map import place_name, worst_length
from ..section import Section, asked_for

NAN = float("nan")


@dataclass(frozen=True, kw_only=True)
class ErrorCell:
    """One cell: `best`, `median`, `mean` and `std` over seeds; NaN where nothing finished.

    `lost` of the `models` that were asked for did not finish.

    `solved`: the error counts as solved; `smallest`: and no smaller model solves the task.
    """

    best: float
    median: float = NAN
    mean: float = NAN
    std: float = NAN
    lost: int = 0
    models: int = 0
    published: float = NAN
    published_std: float = NAN
    ratio: float = NAN
    solved: bool = False
    smallest: bool = False


@dataclass(frozen=True, kw_only=True)
class ErrorRow:
    """The cells of one value of the main axis; `enough` marks the head count that the task needs."""

    value: Any
    enough: bool
    cells: tuple[ErrorCell, ...]


@dataclass(frozen=True, kw_only=True)
class ErrorRows:
    """Errors by head count, or along another main `axis`. `detailed`: cells are summaries over seeds, not one error.

    `apart`: random starts and descended models have a column each per length, named on two lines.
    """

    axis: str
    label: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[ErrorRow, ...]
    judged: str
    detailed: bool
    apart: bool = False
    source: str = ""
    statistic: str = ""


def error_rows(section: Section) -> ErrorRows | None:
    """The errors of a section, beside the published ones where it has them; None for a section without a table.

    Of several draws of the data, those of the first.
    """
    if section.table is None:
        return None
    if section.about_rank:
        return _rank_rows(section)
    if section.answer is not None and section.answer.map:
        return _map_rows(section.table, section.answer)
    return _length_rows(section, 0)


def other_draws(section: Section) -> list[ErrorRows]:
    """The errors of every further draw of the data."""
    if section.table is None or section.about_rank or (section.answer is not None and section.answer.map):
        return []
    return [_length_rows(section, draw) for draw in range(1, len(draws_of(section.table)))]


def _length_rows(section: Section, draw: int) -> ErrorRows:
    table, published = section.table, section.published
    assert table is not None
    axis, parts, draws = main_axis(table), by_start(table, draw), draws_of(table)
    needed = None if section.answer is None or axis not in section.answer.needs else section.answer.needs[axis].at
    asked = None if section.experiment is None else _asked(section.experiment, axis, draws[draw] if draws else None)
    kinds = [kind for kind in (RANDOM, DESCENDED) if kind in parts or any(kind == place[2] for place in asked or ())]
    summaries = {
        (place[axis], place["length"], kind): summary
        for kind, part in parts.items()
        for summary in part.summaries()
        for place in [summary.coordinates]
    }
    lengths = by_length(table, draw).values("length")
    tried = {place[0] for place in (asked or summaries)}
    rows = tuple(
        ErrorRow(
            value=value,
            enough=value == needed,
            cells=tuple(
                _summary(summaries.get(place), None if asked is None else asked[place], published)
                for length in lengths
                for kind in kinds
                for place in [(value, length, kind)]
            ),
        )
        for value in table.with_axes(axis).values(axis)
        if value in tried
    )
    apart = DESCENDED in kinds
    title = f"Errors by {axis_name(axis)} and length"
    return ErrorRows(
        axis=axis_name(axis),
        label=table.metric.label,
        title=f"{title}, draw {draw + 1} of {len(draws)} of the data" if len(draws) > 1 else title,
        columns=tuple(f"T = {length}\n{kind}" if apart else f"T = {length}" for length in lengths for kind in kinds),
        rows=rows,
        judged="best of the random starts, and of the descended models" if apart else "best of seeds (median)",
        detailed=True,
        apart=apart,
        source="" if published is None else published.source,
        statistic="" if published is None else published.statistic,
    )


def _asked(experiment: Experiment, axis: str, data_seed: Value | None) -> Counter[tuple[Value, Value, str]]:
    """Models asked for, by value of an axis, length and kind of start; on one draw of the data, or on all."""
    models: Counter[tuple[Value, Value, str]] = Counter()
    for place, count in asked_for(experiment, (axis, "length", "data_seed", "start")).items():
        value, length, draw, start = place
        if data_seed in (draw, None):
            models[value, length, RANDOM if start in (RANDOM, 1) else DESCENDED] += count
    return models


def _summary(seeds: Summary | None, asked: int | None, published: ErrorTable | None) -> ErrorCell:
    """The cell of a summary over seeds, of which so many were asked for; None: nothing finished, and all were."""
    if seeds is None:
        return ErrorCell(best=NAN, lost=asked or 0, models=asked or 0)
    models = seeds.seeds + seeds.lost if asked is None else asked
    measured, printed, deviation = seeds.minimum, NAN, NAN
    if published is not None:
        printed, deviation = published.at(**seeds.coordinates), published.deviation_at(**seeds.coordinates)
        measured = seeds.mean if published.statistic == "mean" else seeds.minimum
    return ErrorCell(
        best=seeds.minimum,
        median=seeds.median,
        mean=seeds.mean,
        std=seeds.std,
        lost=models - seeds.seeds,
        models=models,
        published=printed,
        published_std=deviation,
        ratio=measured / printed,
    )


def _map_rows(table: ErrorTable, answer: Answer) -> ErrorRows:
    """Errors by heads, a column per kv_heads and head_dim; from the head count that is needed there they are solved."""
    parts = {at: worst_length(part) for at, part in parts_of(table).items()}
    needs = {(each.kv_heads, each.head_dim): each.needed for each in answer.map}

    def cell(at: tuple[Any, Any], heads: int) -> ErrorCell:
        need = needs.get(at)
        return ErrorCell(
            best=parts[at].at(heads=heads),
            solved=need is not None and heads >= need,
            smallest=need is not None and heads == need,
        )

    return ErrorRows(
        axis="heads",
        label=table.metric.label,
        title="Errors by heads, kv heads and head dim",
        columns=tuple(place_name(*at).replace(", ", "\n") for at in parts),
        rows=tuple(
            ErrorRow(value=heads, enough=False, cells=tuple(cell(at, heads) for at in parts))
            for heads in table.values("heads")
        ),
        judged=judged_by(table),
        detailed=False,
    )


def _rank_rows(section: Section) -> ErrorRows:
    answer, table = section.answer, section.table
    assert table is not None
    table = by_rank(table)
    best, done = judged(table), np.sum(np.isfinite(table.errors), axis=(2, 3))
    heads, ranks = table.values("heads"), table.values("rank")
    experiment = section.experiment
    asked = None if experiment is None else asked_for(experiment, ("heads", "rank"), ("length", "seed"))

    def cell(i: int, j: int) -> ErrorCell:
        size = heads[i], ranks[j]
        models = table.errors[i, j].size if asked is None else asked[size]
        return ErrorCell(
            best=float(best[i, j]),
            lost=models - int(done[i, j]),
            models=models,
            solved=answer is not None and bool(answer.frontier) and answer.solves(*size),
            smallest=answer is not None and answer.at == size,
        )

    return ErrorRows(
        axis="heads",
        label=table.metric.label,
        title="Errors by heads and rank",
        columns=tuple(f"rank {rank}" for rank in ranks),
        rows=tuple(
            ErrorRow(value=count, enough=False, cells=tuple(cell(i, j) for j in range(len(ranks))))
            for i, count in enumerate(heads)
        ),
        judged=judged_by(table),
        detailed=False,
    )
