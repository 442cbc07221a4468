"""Several experiments side by side: their answers, their errors, and what they do not share.

Errors of one metric along one axis are in one table. Experiments with another metric or axis have a table of their own:
their numbers are not comparable.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..answer import ErrorTable
from ..store import Value
from .chart import Chart, Series
from .charts import axis_label, axis_name, by_length, main_axis
from .section import Section

MIN_SEEDS = 2
"""Finished seeds that a difference needs on both sides."""


@dataclass(frozen=True)
class ComparedCell:
    """The errors over seeds at one place of one experiment; NaN where nothing finished.

    `differs`: all seeds are better, or all worse, than all of the first experiment's.
    """

    best: float
    worst: float
    seeds: int
    differs: bool = False


@dataclass(frozen=True)
class ComparedRow:
    """One value of the main axis at one length; a cell per experiment."""

    value: Value
    length: Value
    cells: tuple[ComparedCell, ...]


@dataclass(frozen=True, kw_only=True)
class ComparedErrors:
    """The errors of experiments that share axis and metric; `names` are theirs, in the order of the cells."""

    axis: str
    metric: str
    names: tuple[str, ...]
    rows: tuple[ComparedRow, ...]

    @property
    def lengths(self) -> tuple[Value, ...]:
        return tuple(dict.fromkeys(row.length for row in self.rows))


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Experiments by name, what they do not share (`notes`), and their errors: a table per axis and metric."""

    sections: dict[str, Section]
    notes: tuple[str, ...]
    tables: tuple[ComparedErrors, ...]

    def as_dict(self) -> dict[str, Any]:
        """As JSON; a number that is missing is None."""
        return {
            "experiments": [
                {"name": name, "task": _task(section), "verdict": _verdict(section), "needs": _needs(section)}
                | ({} if section.coverage is None else section.coverage.as_dict())
                for name, section in self.sections.items()
            ],
            "notes": list(self.notes),
            "tables": [
                {
                    "metric": table.metric,
                    "cells": [
                        {
                            table.axis: row.value,
                            "length": row.length,
                            "best": {n: _or_none(cell.best) for n, cell in zip(table.names, row.cells, strict=True)},
                            "differs": [n for n, cell in zip(table.names, row.cells, strict=True) if cell.differs],
                        }
                        for row in table.rows
                    ],
                }
                for table in self.tables
            ],
        }


def named_sections(folders: Mapping[str, Sequence[Section]]) -> dict[str, Section]:
    """The sections of several folders by the names they are compared under: the folder's, and the experiment's beside
    it where a folder has several."""
    return {
        folder if len(sections) == 1 else f"{folder}: {section.name}": section
        for folder, sections in folders.items()
        for section in sections
    }


def compared(sections: Mapping[str, Section]) -> Comparison:
    """Sections beside each other, by the names they are to have; the first is what the others are compared with."""
    groups: dict[tuple[str, str], dict[str, ErrorTable]] = {}
    for name, section in sections.items():
        if section.table is not None:
            key = main_axis(section.table), section.table.metric.label
            groups.setdefault(key, {})[name] = by_length(section.table)
    tables = tuple(_errors(axis, metric, group) for (axis, metric), group in groups.items())
    return Comparison(sections=dict(sections), notes=tuple(_notes(sections, tables)), tables=tables)


def comparison_chart(table: ComparedErrors) -> Chart:
    """The smallest error along the main axis, a line per experiment and length."""
    values: tuple[Any, ...] = tuple(dict.fromkeys(row.value for row in table.rows))
    series = []
    for place, name in enumerate(table.names):
        for length in table.lengths:
            cells = {row.value: row.cells[place] for row in table.rows if row.length == length}
            line = tuple(cells[value].best if value in cells else math.nan for value in values)
            if any(map(math.isfinite, line)):
                label = name if len(table.lengths) == 1 else f"{name}, {length} tokens"
                series.append(Series(label, values, line, place=len(series)))
    return Chart(
        name="comparison",
        title=f"Error against {axis_name(table.axis)}",
        x_label=axis_label(table.axis),
        y_label=table.metric,
        x_ticks=values,
        series=tuple(series),
        caption="line: best of all seeds and starts",
    )


def _errors(axis: str, metric: str, group: dict[str, ErrorTable]) -> ComparedErrors:
    places = sorted(
        {(length, value) for each in group.values() for value in each.values(axis) for length in each.values("length")},
        key=lambda place: tuple((isinstance(part, str), part) for part in place),
    )
    found = {name: _cells(each, axis) for name, each in group.items()}
    first = next(iter(found.values()))
    missing = ComparedCell(math.nan, math.nan, 0)
    rows = []
    for length, value in places:
        reference = first.get((value, length), missing)
        cells = [each.get((value, length), missing) for each in found.values()]
        marked = (ComparedCell(c.best, c.worst, c.seeds, _differ(reference, c)) for c in cells)
        rows.append(ComparedRow(value, length, tuple(marked)))
    return ComparedErrors(axis=axis, metric=metric, names=tuple(group), rows=tuple(rows))


def _cells(table: ErrorTable, axis: str) -> dict[tuple[Value, Value], ComparedCell]:
    cells = {}
    for i, value in enumerate(table.values(axis)):
        for j, length in enumerate(table.values("length")):
            errors = table.errors[i, j][np.isfinite(table.errors[i, j])]
            if len(errors):
                cells[value, length] = ComparedCell(float(errors.min()), float(errors.max()), len(errors))
    return cells


def _differ(first: ComparedCell, other: ComparedCell) -> bool:
    enough = min(first.seeds, other.seeds) >= MIN_SEEDS
    return enough and (other.worst < first.best or other.best > first.worst)


def _notes(sections: Mapping[str, Section], tables: tuple[ComparedErrors, ...]) -> Iterable[str]:
    tasks = {name: _task(section) for name, section in sections.items()}
    if len(set(tasks.values())) > 1:
        yield f"the tasks differ ({_listed(tasks)}): these are answers to different questions"
    if len(tables) > 1:
        kinds = {", ".join(table.names): f"{table.metric} by {axis_name(table.axis)}" for table in tables}
        yield f"the errors are not comparable ({_listed(kinds)}): they are shown apart"
    yield from _differing_settings(sections)


def _differing_settings(sections: Mapping[str, Section]) -> Iterable[str]:
    """Settings that not all have in common, one by one; the task's name is said elsewhere."""
    kinds = {name: (section.settings or {}).get("model", {}).get("kind") for name, section in sections.items()}
    if len(set(kinds.values())) > 1:  # each kind has settings that the other does not know
        yield f"the kinds of model differ: {_listed(kinds)}"
    flat = {
        name: {
            key: value
            for part in section.settings.values()
            if isinstance(part, dict)
            for key, value in part.items()
            if key != "task"
        }
        for name, section in sections.items()
        if section.settings is not None
    }
    keys = dict.fromkeys(key for settings in flat.values() for key in settings)
    if len(set(kinds.values())) > 1:
        keys = [key for key in keys if key != "kind" and all(key in settings for settings in flat.values())]
    for key in keys:
        values = {name: settings.get(key) for name, settings in flat.items()}
        if len({str(value) for value in values.values()}) > 1:
            yield f"{axis_name(key)} differs: {_listed(values)}"


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}: {'none' if value is None else value}" for name, value in values.items())


def _task(section: Section) -> str:
    return section.title if section.experiment is None else section.experiment.task


def _verdict(section: Section) -> str:
    return section.headline if section.answer is None else section.answer.sentence


def _needs(section: Section) -> dict[str, list[int]]:
    needs = {} if section.answer is None else section.answer.needs
    return {axis: [need.at, need.low, need.high] for axis, need in needs.items()}


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
