"""The records of a results folder by column: what is asked of all of them makes no object per record."""

import functools
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, overload

import numpy as np
from jaxtyping import Float

from .cell import Cell, Content, Outcome, Record, TrainSpec

Value = TypeVar("Value")


@dataclass(frozen=True, kw_only=True)
class Columns:
    """What records hold, a sequence per field, in their order.

    `names` are those of the metrics that a record has; `metrics` has a column per name, NaN where a record lacks it.
    `origin` is what many share of their provenance, `provenance` the rest of it. `curve` is the text that was stored,
    or gives it by a cell's key; `file` is named where one cannot be read. `made` are the records that exist as objects,
    by their place.
    """

    key: Sequence[str]
    task: Sequence[Content]
    model: Sequence[Content]
    train: Sequence[TrainSpec]
    length: Sequence[int]
    seed: Sequence[int]
    parent: Sequence[str]
    removed: Sequence[tuple[int, ...]]
    probe: Sequence[str]
    outcome: Sequence[Outcome]
    names: Sequence[Sequence[str]]
    metrics: Mapping[str, Float[np.ndarray, " records"]]
    origin: Sequence[Mapping[str, Any]]
    provenance: Sequence[Mapping[str, Any]]
    message: Sequence[str]
    curve: Sequence[str] | Callable[[str], str]
    file: str = ""
    made: dict[int, Record] = field(default_factory=dict)

    def record(self, place: int) -> Record:
        """The record at a place, always the same object."""
        if place not in self.made:
            # Not by their constructors, which check what was checked when it was stored.
            cell, record = object.__new__(Cell), object.__new__(Record)
            cell.__dict__.update({name: getattr(self, name)[place] for name in OF_A_CELL})
            record.__dict__.update(
                cell=cell,
                outcome=self.outcome[place],
                metrics={name: float(self.metrics[name][place]) for name in self.names[place]},
                provenance={**self.origin[place], **self.provenance[place]},
                message=self.message[place],
                _stored_curve=(self.curve if callable(self.curve) else self.curve[place], self.file),
            )
            self.made[place] = record
        return self.made[place]


OF_A_CELL = ("key", *(each.name for each in fields(Cell)))


class Records(Sequence[Record]):
    """Records in their order. A column is one value per record; a record is made when it is asked for.

    Example:
        >>> records = Records.of([])
        >>> len(records), records.keys
        (0, [])
    """

    def __init__(self, columns: Columns, places: Sequence[int] | None = None):
        self._columns = columns
        self._places = range(len(columns.key)) if places is None else places
        self._whole = places is None
        self._among: Container[str] | None = None

    @classmethod
    def of(cls, records: Iterable[Record]) -> "Records":
        """Some records by column; themselves where they are so already."""
        if isinstance(records, cls):
            return records
        made = dict(enumerate(records))
        cells = [record.cell for record in made.values()]
        columns: dict[str, Any] = {name: [getattr(cell, name) for cell in cells] for name in OF_A_CELL}
        columns |= {name: [getattr(each, name) for each in made.values()] for name in ("outcome", "message")}
        columns |= {"origin": [each.provenance for each in made.values()], "provenance": [{}] * len(made), "curve": ()}
        metrics = [each.metrics for each in made.values()]
        names = {name for each in metrics for name in each}
        columns["metrics"] = {name: np.array([each.get(name, np.nan) for each in metrics], float) for name in names}
        return cls(Columns(**columns, names=[tuple(each) for each in metrics], made=made))

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> "Records": ...
    def __getitem__(self, index: int | slice) -> "Record | Records":
        if isinstance(index, slice):
            return Records(self._columns, self._places[index])
        return self._columns.record(self._places[index])

    def __iter__(self) -> Iterator[Record]:
        return map(self._columns.record, self._places)

    def __eq__(self, other: object) -> bool:
        """Whether the other has equal records in the same order, as a list, a tuple or by column."""
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self)} records>"

    def among(self, keys: Container[str]) -> "Records":
        """Those of some keys, which are not changed afterwards: asked again for the same, it answers at once."""
        if keys is not self._among:
            column = self._columns.key
            kept = [place for place in self._places if column[place] in keys]
            chosen = self if len(kept) == len(self) else Records(self._columns, kept)
            chosen._among = keys
            return chosen
        return self

    def finished(self) -> "Records":
        """Those that have errors."""
        return self._where(self._columns.outcome, lambda outcome: outcome is Outcome.FINISHED)

    def settled(self) -> "Records":
        """Those that did not fail."""
        return self._where(self._columns.outcome, lambda outcome: outcome is not Outcome.FAILED)

    def of_models(self, holds: Callable[[Content], bool]) -> "Records":
        """Those of models for which something holds."""
        return self._where(self._columns.model, holds)

    def of_origins(self, holds: Callable[[Mapping[str, Any]], bool]) -> "Records":
        """Those for which something holds of what they share with others of their provenance."""
        return self._where(self._columns.origin, holds)

    def _where(self, column: Sequence[Value], holds: Callable[[Value], bool]) -> "Records":
        """Those for whose value something holds, which is asked once per distinct object."""
        values = self._of(column)
        distinct = _by_identity(values)
        kept = {id(value) for value in distinct if holds(value)}
        if len(kept) == len(distinct):
            return self
        return Records(self._columns, [at for at, value in zip(self._places, values, strict=True) if id(value) in kept])

    @property
    def keys(self) -> Sequence[str]:
        return self._of(self._columns.key)

    @property
    def outcomes(self) -> Sequence[Outcome]:
        return self._of(self._columns.outcome)

    @property
    def messages(self) -> Sequence[str]:
        return self._of(self._columns.message)

    def settings(self, title: str) -> list[dict[str, Any]]:
        """What cells have as "task", "model", "train" or "sweep" (length and seed), each distinct one once."""
        if title == "sweep":
            pairs = set(zip(self._of(self._columns.length), self._of(self._columns.seed), strict=True))
            return [{"length": length, "seed": seed} for length, seed in pairs]
        if title == "train":
            return [vars(train) for train in self.trains()]
        contents: Sequence[Content] = _by_identity(self._of(getattr(self._columns, title)))
        return list({content.text: content for content in contents}.values())

    def trains(self, *, random: bool = False) -> list[TrainSpec]:
        """Ways of training, each distinct one once; `random` leaves out cells that start from a parent's weights."""
        trains = self._of(self._columns.train)
        if random:
            parents = self._of(self._columns.parent)
            trains = [train for train, parent in zip(trains, parents, strict=True) if not parent]
        return list(dict.fromkeys(_by_identity(trains)))

    @property
    def origins(self) -> Sequence[Mapping[str, Any]]:
        """What cells share of their provenance, many times one object."""
        return self._of(self._columns.origin)

    @functools.cached_property
    def provenances(self) -> list[tuple[dict[str, Any], int]]:
        """How they came about, each with the number of records it is that of.

        Each distinct one comes once in what was read from a folder; elsewhere equal ones may be several objects.
        """
        pairs = list(zip(self.origins, self._of(self._columns.provenance), strict=True))
        identities = list(zip(map(id, self.origins), map(id, self._of(self._columns.provenance)), strict=True))
        distinct, counts = dict(zip(identities, pairs, strict=True)), Counter(identities)
        return [({**origin, **rest}, counts[identity]) for identity, (origin, rest) in distinct.items()]

    def metric_names(self) -> set[str]:
        """The metrics that some record has."""
        return {name for names in _by_identity(self._of(self._columns.names)) for name in names}

    def metric(self, name: str) -> Float[np.ndarray, " records"]:
        """A metric; NaN where a record lacks it."""
        if name not in self._columns.metrics:
            return np.full(len(self), np.nan)
        column = self._columns.metrics[name]
        return column if self._whole else column[np.asarray(self._places, int)]

    @property
    def errors(self) -> Float[np.ndarray, " records"]:
        """The smallest validation error of each; NaN where there is none."""
        nmse = self.metric("nmse")
        return np.where(np.isnan(nmse), self.metric("error"), nmse) if np.isnan(nmse).any() else nmse

    def best(self) -> Record | None:
        """The record of the smallest error, the first of equal ones; None where no record has one."""
        errors = self.errors
        measured = np.flatnonzero(~np.isnan(errors))  # `nanargmin` takes NaN for infinity
        return self[int(measured[np.argmin(errors[measured])])] if len(measured) else None

    def _of(self, column: Sequence[Value]) -> Sequence[Value]:
        return column if self._whole else [column[place] for place in self._places]


def _by_identity(objects: Iterable[Value]) -> list[Value]:
    """Distinct objects: many cells share one."""
    objects = list(objects)
    return list(dict(zip(map(id, objects), objects, strict=True)).values())
