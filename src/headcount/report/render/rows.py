"""The errors of a section and the evidence for its answer as rows, which page and terminal lay out.

This and `section.py`, `charts.py` are all of the report that knows what tables and answers look like.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...analysis import Answer, ErrorTable, Summary, size_of
from ..charts import axis_name, by_length, by_rank, judged, judged_by, main_axis
from ..section import Section

NAN = float("nan")


@dataclass(frozen=True, kw_only=True)
class ErrorCell:
    """One cell: `best`, `median`, `mean` and `std` over seeds; NaN where nothing finished. `lost` of `models` did not.

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
    """Errors by head count, or along another main `axis`. `detailed`: cells are summaries over seeds, not one error."""

    axis: str
    label: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[ErrorRow, ...]
    judged: str
    detailed: bool
    source: str = ""
    statistic: str = ""


def error_rows(section: Section) -> ErrorRows | None:
    """The errors of a section, beside the published ones where it has them; None for a section without a table."""
    if section.table is None:
        return None
    if section.about_rank:
        return _rank_rows(section.table, section.answer)
    return _length_rows(section.table, section.answer, section.published)


def _length_rows(table: ErrorTable, answer: Answer | None, published: ErrorTable | None) -> ErrorRows:
    axis, table = main_axis(table), by_length(table)
    needed = None if answer is None or axis not in answer.needs else answer.needs[axis].at
    lengths, summaries = table.values("length"), iter(table.summaries())
    rows = tuple(
        ErrorRow(
            value=value, enough=value == needed, cells=tuple(_summary(next(summaries), published) for _ in lengths)
        )
        for value in table.values(axis)
    )
    return ErrorRows(
        axis=axis_name(axis),
        label=table.metric.label,
        title=f"Errors by {axis_name(axis)} and length",
        columns=tuple(f"T = {length}" for length in lengths),
        rows=rows,
        judged="best of seeds (median)",
        detailed=True,
        source="" if published is None else published.source,
        statistic="" if published is None else published.statistic,
    )


def _summary(seeds: Summary, published: ErrorTable | None) -> ErrorCell:
    measured, printed, deviation = seeds.minimum, NAN, NAN
    if published is not None:
        printed, deviation = published.at(**seeds.coordinates), published.deviation_at(**seeds.coordinates)
        measured = seeds.mean if published.statistic == "mean" else seeds.minimum
    return ErrorCell(
        best=seeds.minimum,
        median=seeds.median,
        mean=seeds.mean,
        std=seeds.std,
        lost=seeds.lost,
        models=seeds.seeds + seeds.lost,
        published=printed,
        published_std=deviation,
        ratio=measured / printed,
    )


def _rank_rows(table: ErrorTable, answer: Answer | None) -> ErrorRows:
    table = by_rank(table)
    best, lost = judged(table), np.sum(~np.isfinite(table.errors), axis=(2, 3))
    heads, ranks = table.values("heads"), table.values("rank")

    def cell(i: int, j: int) -> ErrorCell:
        size = heads[i], ranks[j]
        return ErrorCell(
            best=float(best[i, j]),
            lost=int(lost[i, j]),
            models=table.errors[i, j].size,
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


def evidence_rows(section: Section) -> list[tuple[str, str]]:
    """What the answer of a section rests on, by name; empty for a section without one."""
    if section.answer is None:
        return []
    rows = _rank_evidence(section.answer) if section.about_rank else _heads_evidence(section.answer)
    return rows + [("note", note) for note in section.answer.notes]


def _heads_evidence(answer: Answer) -> list[tuple[str, str]]:
    rows = [("drop", f"{_signal(answer.signals.get('drop'))}; {answer.reason}")]
    if len(answer.by_length) > 1:
        rows.append(("slope in length", _signal(answer.signals["slope"])))
        rows.append(("reversal score", _signal(answer.signals["reversal"])))
        rows.append(("each length alone", ", ".join(f"T = {t}: {_signal(h)}" for t, h in answer.by_length.items())))
    if answer.heads is not None:
        rows.append(("seeds", f"{answer.support:.0%} of resamples give {answer.heads}"))
    return rows


def _rank_evidence(answer: Answer) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = [("short of", answer.limit)]
    if answer.fold is not None:
        rows.append(("drop", f"the error falls {answer.fold:.3g}-fold where it is solved"))
    if answer.at is not None:
        heads, rank = answer.at
        rows.append(("smallest solved", f"{size_of(heads, rank)}, heads x rank = {heads * rank}"))
    if len(answer.frontier) > 1:
        rows.append(("frontier", ", ".join(size_of(*size) for size in answer.frontier)))
    if answer.limit != "unknown":
        rows.append(("seeds", f"{answer.support:.0%} of resamples agree"))
    return rows


def _signal(heads: int | None) -> str:
    return "none" if heads is None else f"{heads}"
