"""The errors of a section and the evidence for its answer as rows, which page and terminal lay out.

This and `section.py`, `charts.py` are all of the report that knows what tables and answers look like.
"""

from dataclasses import dataclass

import numpy as np

from ...analysis import Answer, Bottleneck, ErrorTable, RankTable, summaries
from ...analysis.bottleneck import size_of
from ...analysis.comparison import PublishedTable
from ..charts import judged_by
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
    """The cells of one head count; `enough` marks the head count that the task needs."""

    heads: int
    enough: bool
    cells: tuple[ErrorCell, ...]


@dataclass(frozen=True, kw_only=True)
class ErrorRows:
    """Errors by head count. `detailed`: cells are summaries over seeds, not one judged error."""

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
    if section.rank_table is not None:
        return _rank_rows(section.rank_table, section.bottleneck)
    if section.table is not None:
        return _length_rows(section.table, section.answer, section.published)
    return None


def _length_rows(table: ErrorTable, answer: Answer | None, published: PublishedTable | None) -> ErrorRows:
    summary = {(row.heads, row.length): row for row in summaries(table)}

    def cell(heads: int, length: int) -> ErrorCell:
        row = summary[heads, length]
        value, deviation = (NAN, NAN) if published is None else published.at(heads, length)
        measured = row.mean if published is not None and published.statistic == "mean" else row.minimum
        return ErrorCell(
            best=row.minimum,
            median=row.median,
            mean=row.mean,
            std=row.std,
            lost=row.lost,
            models=row.seeds + row.lost,
            published=value,
            published_std=deviation,
            ratio=measured / value,
        )

    return ErrorRows(
        label=table.unit,
        title="Errors by heads and length",
        columns=tuple(f"T = {length}" for length in table.lengths),
        rows=tuple(
            ErrorRow(
                heads=heads,
                enough=answer is not None and answer.heads == heads,
                cells=tuple(cell(heads, length) for length in table.lengths),
            )
            for heads in table.heads
        ),
        judged="best of seeds (median)",
        detailed=True,
        source="" if published is None else published.source,
        statistic="" if published is None else published.statistic,
    )


def _rank_rows(table: RankTable, bottleneck: Bottleneck | None) -> ErrorRows:
    lost = np.sum(~np.isfinite(table.errors), axis=(2, 3))

    def cell(i: int, j: int) -> ErrorCell:
        size = table.heads[i], table.ranks[j]
        return ErrorCell(
            best=float(table.worst[i, j]),
            lost=int(lost[i, j]),
            models=table.errors[i, j].size,
            solved=bottleneck is not None and bottleneck.solves(*size),
            smallest=bottleneck is not None and bottleneck.at == size,
        )

    return ErrorRows(
        label=table.unit,
        title="Errors by heads and rank",
        columns=tuple(f"rank {rank}" for rank in table.ranks),
        rows=tuple(
            ErrorRow(heads=heads, enough=False, cells=tuple(cell(i, j) for j in range(len(table.ranks))))
            for i, heads in enumerate(table.heads)
        ),
        judged=judged_by(table),
        detailed=False,
    )


def evidence_rows(section: Section) -> list[tuple[str, str]]:
    """What the answer of a section rests on, by name; empty for a section without one."""
    rows = [] if section.answer is None else _heads_evidence(section.answer)
    return rows + ([] if section.bottleneck is None else _rank_evidence(section.bottleneck))


def _heads_evidence(answer: Answer) -> list[tuple[str, str]]:
    rows = [("drop", f"{_signal(answer.signals['drop'])}; {answer.reason}")]
    if len(answer.by_length) > 1:
        rows.append(("slope in length", _signal(answer.signals["slope"])))
        rows.append(("reversal score", _signal(answer.signals["reversal"])))
        rows.append(("each length alone", ", ".join(f"T = {t}: {_signal(h)}" for t, h in answer.by_length.items())))
    if answer.heads is not None:
        rows.append(("seeds", f"{answer.support:.0%} of resamples give {answer.heads}"))
    return rows + [("note", note) for note in answer.notes]


def _rank_evidence(bottleneck: Bottleneck) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = [("bottleneck", bottleneck.limit)]
    if bottleneck.fold is not None:
        rows.append(("drop", f"the error falls {bottleneck.fold:.3g}-fold where it is solved"))
    if bottleneck.at is not None:
        heads, rank = bottleneck.at
        rows.append(("smallest solved", f"{size_of(heads, rank)}, heads x rank = {heads * rank}"))
    if len(bottleneck.frontier) > 1:
        rows.append(("frontier", ", ".join(size_of(*size) for size in bottleneck.frontier)))
    if bottleneck.limit != "unknown":
        rows.append(("seeds", f"{bottleneck.support:.0%} of resamples agree"))
    return rows + [("note", note) for note in bottleneck.notes]


def _signal(heads: int | None) -> str:
    return "silent" if heads is None else f"{heads}"
