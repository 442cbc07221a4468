"""Where the numbers of a report come from: commands, settings, machines, time, and what is missing."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..store import Cell, Outcome, Record, backend_of, backend_words

Part = TypeVar("Part")


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
    cells: int = 0
    missing: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    messages: tuple[str, ...] = ()

    @property
    def backend(self) -> str:
        """What computed the models, in words; empty where there are none."""
        return backend_words(self.backends)

    def lost_words(self, *, missing_too: bool) -> str:
        """Say how many models failed or diverged, and how many are missing if nothing else counts them."""
        lost, missing = [], self.missing if missing_too else 0
        if missing:
            lost.append(f"{missing} of {self.cells + missing} models are not trained yet")
        lost += [f"{self.outcomes[name]} {name}" for name in ("failed", "diverged") if self.outcomes.get(name)]
        if not lost:
            return ""
        again = "; run the same command again to continue" if missing and self.commands else ""
        reason = f" ({self.messages[0]})" if self.messages else ""
        return f"{', '.join(lost)}{again}. The page shows the others.{reason}"


def provenance(records: Iterable[Record], *, missing: int = 0, runs: Iterable[tuple[str, str]] = ()) -> Provenance:
    """Return the provenance of some records. `missing` more cells were asked for by the same `runs`, each a
    command and the time it began."""
    runs, records = list(runs), list(records)
    outcomes = Counter(record.outcome for record in records)
    origins = [record.provenance for record in records]
    versions = _once(each["versions"] for each in origins if "versions" in each)
    return Provenance(
        commands=_distinct(command for command, _ in runs),
        settings=_settings([record.cell for record in records]),
        devices=_distinct(each.get("device") for each in origins),
        backends=backends_of(records),
        versions=_distinct(", ".join(f"{name} {number}" for name, number in each.items()) for each in versions),
        seconds=sum(each.get("seconds", 0.0) for each in origins),
        began=min((started for _, started in runs), default=""),
        ended=max((each["finished"] for each in origins if "finished" in each), default=""),
        cells=len(records),
        missing=missing,
        outcomes={outcome.value: outcomes[outcome] for outcome in Outcome},
        messages=_distinct(record.message for record in records),
    )


def backends_of(records: Iterable[Record]) -> dict[str, int]:
    """Count the models that each back end computed, by its name; those that failed are not counted."""
    return dict(sorted(Counter(backend_of(record.provenance) for record in records if record.settled).items()))


def _settings(cells: list[Cell]) -> tuple[tuple[str, dict[str, str]], ...]:
    """Return every value that each setting of some cells took, by title."""
    sweep = {(cell.length, cell.seed): {"length": cell.length, "seed": cell.seed} for cell in cells}
    parts = {
        "task": _once(cell.task for cell in cells),
        "model": _once(cell.model for cell in cells),
        "train": [vars(train) for train in _once(cell.train for cell in cells)],
        "sweep": sweep.values(),
    }
    return tuple((title, _values_taken(settings)) for title, settings in parts.items())


def _once(parts: Iterable[Part]) -> list[Part]:
    """Return each object once: many records that were read from a folder share one."""
    return list({id(part): part for part in parts}.values())


def _values_taken(parts: Iterable[dict[str, Any]]) -> dict[str, str]:
    """Return every value each setting took, in order: `heads 1 2 3`."""
    taken: dict[str, dict[Any, Any]] = {}
    for settings in parts:
        for name, value in settings.items():
            if value is not None:
                # Most values are equal numbers: these need no JSON to be compared.
                same = (type(value), value) if isinstance(value, int | float | str) else json.dumps(value)
                taken.setdefault(name, {})[same] = value
    return {name: " ".join(map(str, sorted(taken[name].values(), key=_order))) for name in sorted(taken)}


def _order(value: Any) -> tuple[bool, float, str]:
    """Sort numbers by size, anything else after them by its text."""
    number = isinstance(value, int | float)
    return not number, value if number else 0.0, json.dumps(value)


def _distinct(values: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value))
