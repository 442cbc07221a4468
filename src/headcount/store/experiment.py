"""An experiment: the cells that answer one question, and where each of them lies on named axes.

It is made by `engine.sweep` when the cells are made, stored when a run begins, and read by every verb that reads a
results folder. Nothing is ever guessed back from the cells themselves.
"""

import hashlib
import json
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import require
from .cell import Record

Value = int | float | str
"""A coordinate: a count, a rate, or a word such as the name of a layout."""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Cells with their coordinates.

    `axes` names the axes in order, such as ("heads", "length", "seed"). `places[key]` has one value per axis for the
    cell of that key. `settings` are what all cells share, as JSON: {"task": .., "model": .., "train": ..}. `study` and
    `scale` are empty for a user's own experiment. `name` is unique within a results folder.
    """

    name: str
    question: str
    task: str
    axes: tuple[str, ...]
    places: Mapping[str, tuple[Value, ...]]
    settings: Mapping[str, Any] = field(default_factory=dict)
    study: str = ""
    scale: str = ""

    def __post_init__(self):
        require(len(set(self.axes)) == len(self.axes), f"axes must have distinct names, got {', '.join(self.axes)}.")
        whole = set(map(len, self.places.values())) <= {len(self.axes)}
        require(whole, f"every cell needs a coordinate for each of the axes {', '.join(self.axes)}.")

    @property
    def identity(self) -> str:
        """Hash of everything but the name and the values tried along the axes: equal for one experiment."""
        content = [self.question, self.task, self.axes, self.settings, self.study, self.scale]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:20]

    def coordinates(self, key: str) -> dict[str, Value]:
        """Axis by axis, where the cell of this key lies."""
        return dict(zip(self.axes, self.places[key], strict=True))

    def values(self, axis: str) -> tuple[Any, ...]:
        """The values tried along an axis: numbers by size, words in the order in which they first come."""
        index = self._index(axis)
        values = list(dict.fromkeys(map(operator.itemgetter(index), self.places.values())))
        return tuple(values if any(isinstance(value, str) for value in values) else sorted(values))

    def _index(self, axis: str) -> int:
        require(axis in self.axes, what="axis", given=axis, needed=f"one of {', '.join(self.axes)}")
        return self.axes.index(axis)

    def own(self, records: Iterable[Record]) -> list[Record]:
        """Keep the records of this experiment's cells, in their order."""
        return [record for record in records if record.cell.key in self.places]

    def part(self, **kept: Iterable[Value]) -> "Experiment":
        """The same experiment with only these values of some axes: `part(heads=[1, 2], layout=["pairs"])`."""
        wanted = [(self._index(axis), set(values)) for axis, values in kept.items()]
        places = self.places
        for index, values in wanted:
            places = {key: place for key, place in places.items() if place[index] in values}
        return replace(self, places=dict(places))
