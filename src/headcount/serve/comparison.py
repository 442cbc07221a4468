"""Two results folders side by side: their answers, and the errors that both have."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..report.render.rows import error_rows
from ..report.section import Section


@dataclass(frozen=True)
class Row:
    """The smallest error at one place in both folders; NaN where one has none."""

    place: tuple[str, str]
    first: float
    second: float

    @property
    def ratio(self) -> float:
        return self.second / self.first if self.first > 0 else math.nan


@dataclass(frozen=True)
class Compared:
    """Two experiments that are compared: `rows` along the `axis` and the columns of their tables."""

    first: Section | None
    second: Section | None
    axis: str
    rows: tuple[Row, ...]


def compared(first: Sequence[Section], second: Sequence[Section]) -> list[Compared]:
    """Sections of equal names beside each other; where each folder has one, these two, whatever their names."""
    if len(first) == len(second) == 1:
        return [_side_by_side(first[0], second[0])]
    others = {section.name: section for section in second}
    matched = [_side_by_side(section, others.pop(section.name, None)) for section in first]
    return matched + [_side_by_side(None, section) for section in others.values()]


def _side_by_side(first: Section | None, second: Section | None) -> Compared:
    tables = [error_rows(section) if section is not None else None for section in (first, second)]
    errors = [
        {}
        if table is None
        else {
            (str(row.value), column.replace("\n", ", ")): cell.best
            for row in table.rows
            for column, cell in zip(table.columns, row.cells, strict=True)
        }
        for table in tables
    ]
    places = dict.fromkeys([*errors[0], *errors[1]])
    rows = (Row(place, *(each.get(place, math.nan) for each in errors)) for place in places)
    shown = tuple(row for row in rows if not (math.isnan(row.first) and math.isnan(row.second)))
    axis = next((table.axis for table in tables if table is not None), "")
    return Compared(first, second, axis, shown)
