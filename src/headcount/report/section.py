"""One part of a report: the question, the answer, and what it is compared with. Page, terminal and figures read it."""

import operator
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from ..answer import NMSE, Answer, ClaimResult, ErrorTable, Metric, answer, error_table
from ..answer.baselines import Baseline, baselines_of, skipped_baselines, validation_examples
from ..answer.coverage import Coverage
from ..answer.early import early_record
from ..answer.next_steps import NextStep, Situation, next_steps
from ..answer.prose import prose
from ..answer.support import support_words
from ..errors import StoreError
from ..store import Experiment, Record, Value
from ..store.database import RESTORE, UNREADABLE, reason_of, require_texts
from .chart import Chart, HeatMap
from .charts import about_rank, charts_of
from .heads import HeadsRead, heads_read_of
from .heads_map import heads_map_charts, heads_needed_grid
from .provenance import Provenance
from .training import at_longest, curves_chart, fit_chart


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A small table of words and numbers; the first column names the row. `folded`: the page opens it on a click, and
    a terminal leaves it out."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    folded: bool = False

    def as_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {"title": self.title, "columns": self.columns, "rows": self.rows}


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

    `published` is the table beside `table`. `metric` says what the errors are where there is no table. `experiment` is
    a user's own, and `early` its early estimate: `heads` after `step` of `steps` and `seconds`. `prose` is the answer
    in words, `next_steps` what to do after it, `baselines` what models without attention reach; `skipped` says which
    were not computed, and why. `data_notes` say how the user's data were read. `effort` is what was asked for and how
    it ended. `curves` are the validation errors while training, `fit` has training beside validation errors, `heads` is
    what each head of the best model reads, `support` how many tokens the target depends on, beside the answer.
    `trained_model` is what an inspection says of one, as JSON; `evidence` are named rows of words where there is no
    answer, and `warning` says before all else why not to trust it yet. `coverage` is how much of the experiment is
    trained.
    """

    name: str
    title: str
    asks: str
    headline: str
    claims: tuple[ClaimResult, ...] = ()
    table: ErrorTable | None = None
    answer: Answer | None = None
    published: ErrorTable | None = None
    grids: tuple[Grid, ...] = ()
    charts: tuple[Chart | HeatMap, ...] = ()
    pictures: tuple[Picture, ...] = ()
    notes: tuple[str, ...] = ()
    provenance: Provenance | None = None
    metric: Metric = NMSE
    experiment: Experiment | None = None
    early: dict[str, float] | None = None
    prose: tuple[str, ...] = ()
    next_steps: tuple[NextStep, ...] = ()
    baselines: tuple[Baseline, ...] = ()
    skipped: tuple[str, ...] = ()
    data_notes: tuple[str, ...] = ()
    effort: Mapping[str, Any] = field(default_factory=dict)
    curves: Chart | None = None
    fit: Chart | None = None
    heads: HeadsRead | None = None
    support: str = ""
    trained_model: Mapping[str, Any] | None = None
    evidence: tuple[tuple[str, str], ...] = ()
    warning: str = ""
    coverage: Coverage | None = None

    @property
    def settings(self) -> dict[str, Any] | None:
        """What all cells of a user's own experiment share; None of a study."""
        return None if self.experiment is None else dict(self.experiment.settings)

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
        claims = [claim.as_dict() for claim in self.claims]
        content: dict[str, Any] = {"name": self.name, "title": self.title}
        content |= {"warning": self.warning} if self.warning else {}
        content |= {} if self.coverage is None else self.coverage.as_dict()
        content |= {"headline": self.headline, "claims": claims}
        content |= {"grids": [grid.as_dict() for grid in self.grids]} if self.grids else {}
        content |= {} if self.answer is None else self.answer.as_dict()
        if self.experiment is not None:
            content |= {"prose": list(self.prose), "next_steps": [asdict(step) for step in self.next_steps]}
            content |= {"baselines": [asdict(baseline) for baseline in self.baselines]}
            content |= {"data_notes": list(self.data_notes)} if self.data_notes else {}
            content |= {"support_dimension": self.support} if self.support else {}
        if self.trained_model is not None:
            content |= {"prose": list(self.prose), "next_steps": [asdict(step) for step in self.next_steps]}
            content |= {
                "warning": self.warning,
                "notes": list(self.notes),
                "trained_model": self.trained_model,
            }
        content |= {} if self.provenance is None else {"backends": self.provenance.backends}
        content |= {} if self.settings is None else {"settings": self.settings, "early": self.early}
        return content | ({} if self.table is None else {"cells": self._cells()})

    def _cells(self) -> list[dict[str, Any]]:
        """The statistics over seeds of every cell that was asked for, with the published number where there is one."""
        assert self.table is not None
        axes = [axis for axis in self.table.axes if axis != "seed"]
        asked = None if self.experiment is None else asked_for(self.experiment, axes)
        cells = []
        for summary in self.table.summaries():
            cell = asdict(summary)
            cell |= cell.pop("coordinates")
            if asked is not None:
                models = asked[tuple(summary.coordinates.values())]
                if not models:
                    continue
                cell["lost"] = models - summary.seeds
            if self.published is not None:
                at = {axis: summary.coordinates.get(axis) for axis in self.published.axes}
                cell["published"], cell["published_std"] = self.published.at(**at), self.published.deviation_at(**at)
            cells.append(
                {name: None if isinstance(value, float) and np.isnan(value) else value for name, value in cell.items()}
            )
        return cells


def asked_for(
    experiment: Experiment, axes: Iterable[str], counted: Iterable[str] = ("seed",)
) -> Counter[tuple[Value, ...]]:
    """How many models an experiment asked for at every place on `axes`, each value of `counted` one of them.

    Models that differ along no other axis than one of which the best counts are one. An axis that the experiment lacks
    has the one value 1, as in a table.
    """
    axes, counted = tuple(axes), tuple(counted)
    places = experiment.places.values()
    columns = {axis: list(map(operator.itemgetter(i), places)) for i, axis in enumerate(experiment.axes)}
    models = set(zip(*(columns.get(axis, [1] * len(places)) for axis in axes + counted), strict=True))
    return Counter(map(operator.itemgetter(slice(len(axes))), models))


def with_provenance(section: Section, provenance: Provenance) -> Section:
    """The section with where its numbers come from."""
    return replace(section, provenance=provenance)


def with_coverage(section: Section, coverage: Coverage) -> Section:
    """The section with how much of its experiment is trained, and a warning where that is a part."""
    return replace(section, coverage=coverage, warning=section.warning or coverage.warning)


def headline(subject: str, answer: Answer) -> str:
    """The answer as a sentence about something."""
    separator = " " if answer.kind == "needs" or answer.limit == "neither" else ": "
    return f"{subject}{separator}{answer.sentence}"


def experiment_section(
    experiment: Experiment,
    records: Iterable[Record],
    attachments: Mapping[str, Any] = MappingProxyType({}),
    *,
    folder: str = "",
    command: str = "",
    table: ErrorTable | None = None,
    found: Answer | None = None,
) -> Section:
    """The section of a user's own experiment with at least one record.

    Arguments: `attachments` are those of the store; `folder` and the last `command` of the experiment are for the next
    steps, and empty where they are not known; `table` and `found` are its errors and answer, where they are computed
    already. Raises StoreError where an attachment is not what was stored.
    """
    records = experiment.own(records)
    table = error_table(experiment, records) if table is None else table
    found = answer(table) if found is None else found
    try:
        return _section(experiment, records, attachments, folder, command, table, found)
    except UNREADABLE as error:
        _section(experiment, records, {}, folder, command, table, found)  # raises where they are not at fault
        raise StoreError(
            f"what {folder or 'the results folder'} holds beside the models of {experiment.name} "
            f"({', '.join(attachments)}) cannot be read: {reason_of(error)}. {RESTORE}"
        ) from error


def _section(
    experiment: Experiment,
    records: Sequence[Record],
    attachments: Mapping[str, Any],
    folder: str,
    command: str,
    table: ErrorTable,
    found: Answer,
) -> Section:
    stored = attachments.get("baselines", ())
    beside, examples = baselines_of(table, stored), validation_examples(stored)
    effort, longest = attachments.get("effort", {}), at_longest(experiment, records, table)
    situation = Situation(
        experiment=experiment,
        records=records,
        table=table,
        answer=found,
        baselines=beside,
        examples=examples,
        effort=effort,
        folder=folder,
        command=command,
    )
    return Section(
        name=experiment.name,
        title=experiment.name,
        asks=experiment.question,
        headline=headline(experiment.task, found),
        table=table,
        answer=found,
        grids=(Grid(**heads_needed_grid(found)),) if found.map else (),
        charts=heads_map_charts(table, found) if found.map else charts_of(table, found, beside),
        experiment=experiment,
        early=_early(records),
        prose=prose(
            table,
            found,
            beside,
            examples=examples,
            converged=situation.converged,
            overfits=situation.overfitted is not None,
        ),
        next_steps=next_steps(situation),
        baselines=beside,
        skipped=skipped_baselines(table, stored),
        data_notes=_texts(attachments.get("notes", ())),
        effort=effort,
        curves=curves_chart(experiment, longest, table, found),
        fit=fit_chart(experiment, longest, table),
        heads=heads_read_of(attachments.get("heads")),
        support=support_words(attachments.get("support"), found),
    )


def _texts(values: Iterable[Any]) -> tuple[str, ...]:
    """Stored texts. Raises TypeError where one is something else."""
    texts = tuple(values)
    require_texts(texts)
    return texts


def _early(records: Iterable[Record]) -> dict[str, float] | None:
    record = early_record(records)
    return None if record is None else record.provenance["early"] | {"steps": record.cell.train.steps}
