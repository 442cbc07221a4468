"""Where the numbers of a report come from: commands, settings, machines, time, and what is missing."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..store import Outcome, Record, Records, backend_of, backend_words


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
    records = Records.of(records)
    outcomes, origins = records.outcomes, records.provenances
    versions = {json.dumps(each["versions"]): each["versions"] for each, _ in origins if "versions" in each}.values()
    return Provenance(
        commands=_distinct(command for command, _ in runs),
        settings=tuple((title, _values(records.settings(title))) for title in ("task", "model", "train", "sweep")),
        devices=_distinct(each.get("device") for each, _ in origins),
        backends=backends_of(records),
        versions=_distinct(", ".join(f"{name} {number}" for name, number in each.items()) for each in versions),
        seconds=sum(count * each.get("seconds", 0.0) for each, count in origins),
        began=min((started for _, started in runs), default=""),
        ended=max((each["finished"] for each, _ in origins if "finished" in each), default=""),
        keys=frozenset(records.keys),
        missing=missing,
        outcomes={outcome.value: outcomes.count(outcome) for outcome in Outcome},
        messages=_distinct(records.messages),
    )


def backends_of(records: Iterable[Record]) -> dict[str, int]:
    """How many models each back end computed, by its name; those that failed are not counted."""
    counts: Counter[str] = Counter()
    for origin, models in Records.of(records).settled().provenances:
        counts[backend_of(origin)] += models
    return dict(sorted(counts.items()))


def _values(parts: Iterable[dict[str, Any]]) -> dict[str, str]:
    """Every value each setting took, in order: `heads 1 2 3`."""
    taken: dict[str, dict[Any, Any]] = {}
    for settings in parts:
        for name, value in settings.items():
            if value is not None:
                # Most values are equal numbers: these need no JSON to be compared.
                same = (type(value), value) if isinstance(value, int | float | str) else json.dumps(value)
                taken.setdefault(name, {})[same] = value
    return {name: " ".join(map(str, sorted(taken[name].values(), key=_order))) for name in sorted(taken)}


def _order(value: Any) -> tuple[bool, float, str]:
    """Numbers by size, anything else after them by its text."""
    number = isinstance(value, int | float)
    return not number, value if number else 0.0, json.dumps(value)


def _distinct(values: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value))
