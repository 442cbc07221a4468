"""One part of a report: the question, the answer, and what it is compared with. Page, terminal and figures read it."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ..analysis import NMSE, Answer, Claim, ErrorTable, Metric, answer, error_table
from ..store import Experiment, Record
from .chart import Chart, HeatMap
from .charts import about_rank, charts_of
from .provenance import Provenance


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A small table of words and numbers; the first column names the row."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A finished picture, as a PNG."""

    name: str
    title: str
    png: bytes
    caption: str


@dataclass(frozen=True, kw_only=True)
class Section:
    """One part of a report; `headline` answers `asks` in one sentence. All but the first four fields are optional.

    `published` is the table beside `table`. `metric` says what the errors are where there is no table. `settings` are
    those of a user's own experiment.
    """

    name: str
    title: str
    asks: str
    headline: str
    claims: tuple[Claim, ...] = ()
    table: ErrorTable | None = None
    answer: Answer | None = None
    published: ErrorTable | None = None
    grids: tuple[Grid, ...] = ()
    charts: tuple[Chart | HeatMap, ...] = ()
    pictures: tuple[Picture, ...] = ()
    notes: tuple[str, ...] = ()
    provenance: Provenance | None = None
    metric: Metric = NMSE
    settings: dict[str, Any] | None = None

    @property
    def about_rank(self) -> bool:
        """Whether the section answers for heads and rank."""
        return self.table is not None and about_rank(self.table)

    @property
    def counts_variance(self) -> bool:
        """Whether errors are shares of the target's variance (NMSE), not of wrong answers."""
        return (self.metric if self.table is None else self.table.metric).baseline is not None

    def as_dict(self) -> dict[str, Any]:
        """The section's content as JSON; a number that is missing is None."""
        claims = [{"statement": c.statement, "verdict": c.verdict.value, "evidence": c.evidence} for c in self.claims]
        content = {"name": self.name, "title": self.title, "headline": self.headline, "claims": claims}
        content |= {"grids": [asdict(grid) for grid in self.grids]} if self.grids else {}
        content |= {"settings": self.settings} if self.settings is not None else {}
        content |= {} if self.answer is None else self.answer.as_dict()
        content |= {} if self.settings is None else {"settings": self.settings}
        return content | ({} if self.table is None else {"cells": _cells(self.table, self.published)})


def _cells(table: ErrorTable, published: ErrorTable | None) -> list[dict[str, Any]]:
    """The statistics over seeds of every cell, with the published number where there is one."""
    cells = []
    for summary in table.summaries():
        cell = asdict(summary)
        cell |= cell.pop("coordinates")
        if published is not None:
            at = {axis: summary.coordinates.get(axis) for axis in published.axes}
            cell["published"], cell["published_std"] = published.at(**at), published.deviation_at(**at)
        cells.append(
            {name: None if isinstance(value, float) and np.isnan(value) else value for name, value in cell.items()}
        )
    return cells


def with_provenance(section: Section, provenance: Provenance) -> Section:
    """The section with where its numbers come from."""
    return replace(section, provenance=provenance)


def headline(subject: str, answer: Answer) -> str:
    """The answer as a sentence about something."""
    separator = " " if answer.needs or answer.limit == "neither" else ": "
    return f"{subject}{separator}{answer.sentence}"


def experiment_section(experiment: Experiment, records: Iterable[Record]) -> Section:
    """The section of a user's own experiment with at least one record."""
    table = error_table(experiment, records)
    found = answer(table)
    return Section(
        name=experiment.name,
        title=experiment.name,
        asks=experiment.question,
        headline=headline(experiment.task, found),
        table=table,
        answer=found,
        charts=charts_of(table, found),
        settings=dict(experiment.settings),
    )
