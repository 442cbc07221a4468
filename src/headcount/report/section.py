"""One part of a report: what was asked, what came out, what it was compared with. Page, terminal, figures read it."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from ..analysis import Answer, ErrorTable, Experiment, answer_from_table, error_table
from ..analysis.comparison import Claim, PublishedTable
from ..store import Outcome, Record
from .chart import Chart, HeatMap
from .charts import error_chart, heat_map


@dataclass(frozen=True, kw_only=True)
class Section:
    """`headline` answers in one sentence. Only `name`, `title`, `asks` and `headline` are always there."""

    name: str
    title: str
    asks: str
    headline: str
    claims: tuple[Claim, ...] = ()
    table: ErrorTable | None = None
    answer: Answer | None = None
    published: PublishedTable | None = None
    charts: tuple[Chart | HeatMap, ...] = ()
    notes: tuple[str, ...] = ()
    account: "Account | None" = None


@dataclass(frozen=True, kw_only=True)
class Account:
    """Where a section's numbers come from: commands, settings, machines, time, and what is not there.

    `settings` are titled rows of names with every value they took. `missing` are asked-for cells without an outcome.
    """

    commands: tuple[str, ...] = ()
    settings: tuple[tuple[str, dict[str, str]], ...] = ()
    devices: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    seconds: float = 0.0
    began: str = ""
    ended: str = ""
    cells: int = 0
    missing: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    messages: tuple[str, ...] = ()


def account(records: Iterable[Record], *, missing: int = 0, sweeps: Iterable[dict[str, Any]] = ()) -> Account:
    """The account of some records, beside which `missing` more were asked for; `sweeps` are what asked for them."""
    sweeps = list(sweeps)
    records = list(records)
    provenance = [record.provenance for record in records]
    finished = sorted(p["finished"] for p in provenance if "finished" in p)
    return Account(
        commands=_distinct(sweep["command"] for sweep in sweeps),
        settings=tuple((title, _values(records, title)) for title in ("task", "model", "train", "sweep")),
        devices=_distinct(p.get("device") for p in provenance),
        versions=_distinct(
            ", ".join(f"{name} {number}" for name, number in p.get("versions", {}).items()) for p in provenance
        ),
        seconds=sum(p.get("seconds", 0.0) for p in provenance),
        began=min((sweep["started"] for sweep in sweeps), default=""),
        ended=finished[-1] if finished else "",
        cells=len(records),
        missing=missing,
        outcomes={outcome.value: sum(r.outcome is outcome for r in records) for outcome in Outcome},
        messages=_distinct(record.message for record in records),
    )


def _values(records: list[Record], title: str) -> dict[str, str]:
    """Every value each setting took over the records, in order: `heads 1 2 3`."""
    taken: dict[str, dict[str, Any]] = {}
    for record in records:
        spec = record.cell.spec()
        part = {"length": spec["length"], "seed": spec["seed"]} if title == "sweep" else spec[title]
        for name, value in part.items():
            if value is not None:
                taken.setdefault(name, {})[json.dumps(value)] = value
    return {
        name: " ".join(
            map(
                str,
                sorted(values.values(), key=lambda v: (isinstance(v, str), str(v) if isinstance(v, str | list) else v)),
            )
        )
        for name, values in taken.items()
    }


def with_account(section: Section, made: Account, scale: str = "") -> Section:
    """The section with where it comes from; `scale` is added to its title."""
    return replace(section, account=made, title=f"{section.title}, {scale}" if scale else section.title)


def headline(subject: str, answer: Answer) -> str:
    """The answer as a sentence about something."""
    return f"{subject} {answer.sentence}" if answer.heads is not None else f"{subject}: {answer.sentence}"


def experiment_section(experiment: Experiment, name: str, told_apart_by: str = "") -> Section:
    """A user's own experiment, of which a cell has finished; `told_apart_by` is what no other in the folder shares."""
    table = error_table(experiment.records)
    answer = answer_from_table(table)
    task = experiment.settings["task"]["task"]
    return Section(
        name=name,
        title=f"{task}, {told_apart_by}" if told_apart_by else task,
        asks="How many attention heads does this task need?",
        headline=headline(task, answer),
        table=table,
        answer=answer,
        charts=(error_chart(table, answer), heat_map(table)),
    )


def _distinct(values: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value))
