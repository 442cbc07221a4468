"""Where the numbers of a report come from: commands, settings, machines, time, and what is missing."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..store import Cell, Outcome, Record, backend_words, count_backends


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """How some records came about.

    `settings` are titled rows of names with every value they took. `missing` counts cells of the sweep without an
    outcome, `backends` the models that each back end computed.
    """

    commands: tuple[str, ...] = ()
    settings: tuple[tuple[str, dict[str, str]], ...] = ()
    devices: tuple[str, ...] = ()
    backends: dict[str, int] = field(default_factory=dict)
    versions: tuple[str, ...] = ()
    seconds: float = 0.0
    began: str = ""
    ended: str = ""
    keys: frozenset[str] = frozenset()
    missing: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    messages: tuple[str, ...] = ()

    @property
    def cells(self) -> int:
        return len(self.keys)

    @property
    def backend(self) -> str:
        """What computed the models, in words; empty where there are none."""
        return backend_words(self.backends)


def provenance(records: Iterable[Record], *, missing: int = 0, runs: Iterable[tuple[str, str]] = ()) -> Provenance:
    """The provenance of some records. `missing` more cells were asked for by the same `runs`, each a
    command and the time it began."""
    runs = list(runs)
    records = list(records)
    origins = [record.provenance for record in records]
    finished = sorted(p["finished"] for p in origins if "finished" in p)
    return Provenance(
        commands=_distinct(command for command, _ in runs),
        settings=tuple((title, _values(records, title)) for title in ("task", "model", "train", "sweep")),
        devices=_distinct(p.get("device") for p in origins),
        backends=backends_of(records),
        versions=_distinct(
            ", ".join(f"{name} {number}" for name, number in p.get("versions", {}).items()) for p in origins
        ),
        seconds=sum(p.get("seconds", 0.0) for p in origins),
        began=min((started for _, started in runs), default=""),
        ended=finished[-1] if finished else "",
        keys=frozenset(record.cell.key for record in records),
        missing=missing,
        outcomes={outcome.value: sum(r.outcome is outcome for r in records) for outcome in Outcome},
        messages=_distinct(record.message for record in records),
    )


def backends_of(records: Iterable[Record]) -> dict[str, int]:
    """How many models each back end computed, by its name; those that failed are not counted."""
    return count_backends((record.provenance, 1) for record in records if record.outcome is not Outcome.FAILED)


def _values(records: list[Record], title: str) -> dict[str, str]:
    """Every value each setting took over the records, in order: `heads 1 2 3`."""
    taken: dict[str, dict[Any, Any]] = {}
    for record in records:
        for name, value in _settings(record.cell, title).items():
            if value is not None:
                # Of tens of thousands of records most values are equal numbers: these need no JSON to be compared.
                same = (type(value), value) if isinstance(value, int | float | str) else json.dumps(value)
                taken.setdefault(name, {})[same] = value
    return {name: " ".join(map(str, sorted(taken[name].values(), key=_order))) for name in sorted(taken)}


def _settings(cell: Cell, title: str) -> dict[str, Any]:
    if title == "sweep":
        return {"length": cell.length, "seed": cell.seed}
    return vars(cell.train) if title == "train" else {"task": cell.task, "model": cell.model}[title]


def _order(value: Any) -> tuple[bool, float, str]:
    """Numbers by size, anything else after them by its text."""
    number = isinstance(value, int | float)
    return not number, value if number else 0.0, json.dumps(value)


def _distinct(values: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value))
