"""Several experiments side by side: their answers, their errors, and what they do not share.

Errors of one metric along one axis are in one table. Experiments with another metric or axis have a table of their own:
their numbers are not comparable.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool

from ..answer import ErrorTable
from ..answer.table import joined
from ..answer.words import decimal
from ..errors import require
from .chart import Chart, Series
from .charts import axis_label, axis_name, by_length, main_axis
from .document import Document, DocumentSource, Entry, Grid, NamedFacts, Notes, Text
from .error_grid import without_nan

MIN_SEEDS = 2
"""Finished seeds that a difference needs on both sides."""
NAMES = "experiment"
"""The axis of a joined table that has the experiments."""


def comparison_document(folders: Mapping[str, Sequence[Document]]) -> Document:
    """Compare the documents of several folders by name: errors by kind and length, what is not shared, the answers.

    Each is compared with the first. A document is named as its folder, or as both where the folder has several.
    """
    documents = {
        folder if len(several) == 1 else f"{folder}: {document.name}": document
        for folder, several in folders.items()
        for document in several
    }
    tables = joined_tables(documents)
    notes = tuple(_difference_notes(documents, tables))
    warned = [(f"{name}: {each.warning}", "yellow") for name, each in documents.items() if each.warning]
    legend = f"* all seeds are better, or all worse, than those of {next(iter(documents), '')}"
    answers = tuple((name, source_of(each).answer_sentence or each.headline) for name, each in documents.items())

    def content() -> dict[str, Any]:
        return {
            "experiments": [_verdict(name, document) for name, document in documents.items()],
            "notes": list(notes),
            "tables": [{"metric": table.metric.label, "cells": list(_cells(table))} for table in tables],
        }

    return Document(
        content=content,
        heading=" and ".join(folders),
        blocks=(
            *(Text((words,), role="warning") for words in warned),
            *(_comparison_chart(table) for table in tables if not _values_in_words(table)),
            *(grid for table in tables for grid in _comparison_grids(table)),
            *([Text((legend,), indent=1, role="prose")] if any(differing(table).any() for table in tables) else []),
            Notes(notes, "What they do not share"),
            NamedFacts(answers, "Answers"),
        ),
        figure=lambda: _only_chart(tables),
    )


def joined_tables(documents: Mapping[str, Document]) -> tuple[ErrorTable, ...]:
    """Return the errors of documents: a table per main axis and metric, over that axis, length, seed and experiment."""
    groups: dict[tuple[str, str], dict[str, ErrorTable]] = {}
    for name, document in documents.items():
        if (table := source_of(document).table) is not None:
            groups.setdefault((main_axis(table), table.metric.label), {})[name] = by_length(table)
    return tuple(joined(group, NAMES) for group in groups.values())


def _comparison_grids(table: ErrorTable) -> tuple[Grid, ...]:
    """Tabulate the best of all seeds and starts, a grid per length; those that differ from the first are marked."""
    axis, best, differ = _axis(table), table.best, differing(table)

    def entry(i: int, j: int, k: int) -> Entry:
        return Entry(decimal(best[i, j, k]), *(("*", (), "differs") if differ[i, j, k] else (" ", (), "")))

    return tuple(
        Grid(
            title=f"{table.metric.label}, T = {length}: best of all seeds and starts",
            caption=f"{table.metric.label} at {length} tokens, best of all seeds and starts",
            columns=(axis_name(axis), *table.values(NAMES)),
            rows=tuple(
                (str(value), *(entry(i, j, k) for k in range(best.shape[2])))
                for i, value in enumerate(table.values(axis))
                if _is_place(table, i, j)
            ),
            align="r" * (1 + best.shape[2]),
        )
        for j, length in enumerate(table.values("length"))
    )


def _comparison_chart(table: ErrorTable) -> Chart:
    """Chart the smallest error along the main axis, a line per experiment and length."""
    axis, lengths, best = _axis(table), table.values("length"), table.best
    series = []
    for k, name in enumerate(table.values(NAMES)):
        for j, length in enumerate(lengths):
            if np.isfinite(best[:, j, k]).any():
                label = name if len(lengths) == 1 else f"{name}, {length} tokens"
                series.append(Series(label, table.values(axis), tuple(best[:, j, k].tolist()), place=len(series)))
    return Chart(
        name="comparison",
        title=f"Error against {axis_name(axis)}",
        x_label=axis_label(axis),
        y_label=table.metric.label,
        x_ticks=table.values(axis),
        series=tuple(series),
        caption="line: best of all seeds and starts",
    )


def source_of(document: Document) -> DocumentSource:
    """Return the results behind a document; of one without any, its title."""
    return document.source or DocumentSource(task=document.title)


def differing(table: ErrorTable) -> Bool[np.ndarray, "values lengths names"]:
    """Return where all seeds of an experiment are better, or all worse, than all of the first experiment's."""
    errors = table.ordered(_axis(table), "length", NAMES, "seed").errors
    seeds = np.isfinite(errors).sum(axis=-1)
    low, high = np.fmin.reduce(errors, axis=-1), np.fmax.reduce(errors, axis=-1)
    enough = np.minimum(seeds, seeds[..., :1]) >= MIN_SEEDS
    return enough & ((high < low[..., :1]) | (low > high[..., :1]))


def _only_chart(tables: tuple[ErrorTable, ...]) -> Chart:
    kinds = "; ".join(table.metric.label for table in tables) or "no table at all"
    require(len(tables) == 1, f"one figure shows one kind of errors, these are {len(tables)}: {kinds}.")
    words = _values_in_words(tables[0])
    require(not words, f"words have no places on a line; {_axis(tables[0])} has {', '.join(words)}.")
    return _comparison_chart(tables[0])


def _values_in_words(table: ErrorTable) -> list[str]:
    """Return the values of the main axis that are words."""
    return [value for value in table.values(_axis(table)) if isinstance(value, str)]


def _axis(table: ErrorTable) -> str:
    """Return the main axis of a joined table."""
    return next(iter(table.axes))


def _cells(table: ErrorTable) -> Iterable[dict[str, Any]]:
    axis, names, best, differ = _axis(table), table.values(NAMES), table.best, differing(table)
    for j, length in enumerate(table.values("length")):
        for i, value in enumerate(table.values(axis)):
            if _is_place(table, i, j):
                yield {
                    axis: value,
                    "length": length,
                    "best": without_nan(dict(zip(names, best[i, j].tolist(), strict=True))),
                    "differs": [name for k, name in enumerate(names) if differ[i, j, k]],
                }


def _is_place(table: ErrorTable, i: int, j: int) -> bool:
    """Whether some experiment has an error at a value and a length."""
    return bool(np.isfinite(table.best[i, j]).any())


def _verdict(name: str, document: Document) -> dict[str, Any]:
    source = source_of(document)
    needs = {} if source.answer is None else source.answer.needs
    verdict: dict[str, Any] = {
        "name": name,
        "task": source.task,
        "verdict": source.answer_sentence or document.headline,
    }
    verdict["needs"] = {axis: [need.at, need.low, need.high] for axis, need in needs.items()}
    return verdict | ({} if source.coverage is None else source.coverage.as_dict())


def _difference_notes(documents: Mapping[str, Document], tables: tuple[ErrorTable, ...]) -> Iterable[str]:
    tasks = {name: source_of(each).task for name, each in documents.items()}
    if len(set(tasks.values())) > 1:
        yield f"the tasks differ ({_by_name(tasks)}): these are answers to different questions"
    if len(tables) > 1:
        kinds = {", ".join(each.values(NAMES)): f"{each.metric.label} by {axis_name(_axis(each))}" for each in tables}
        yield f"the errors are not comparable ({_by_name(kinds)}): they are shown apart"
    yield from _differing_settings({name: source_of(each).settings for name, each in documents.items()})


def _differing_settings(settings: Mapping[str, Mapping[str, Any] | None]) -> Iterable[str]:
    """Return settings that not all have in common, one by one; the task's name is said elsewhere."""
    kinds = {name: (each or {}).get("model", {}).get("kind") for name, each in settings.items()}
    if len(set(kinds.values())) > 1:  # each kind has settings that the other does not know
        yield f"the kinds of model differ: {_by_name(kinds)}"
    flat = {
        name: {
            key: value
            for part in each.values()
            if isinstance(part, dict)
            for key, value in part.items()
            if key != "task"
        }
        for name, each in settings.items()
        if each is not None
    }
    keys = dict.fromkeys(key for each in flat.values() for key in each)
    if len(set(kinds.values())) > 1:
        keys = [key for key in keys if key != "kind" and all(key in each for each in flat.values())]
    for key in keys:
        values = {name: each.get(key) for name, each in flat.items()}
        if len({str(value) for value in values.values()}) > 1:
            yield f"{axis_name(key)} differs: {_by_name(values)}"


def _by_name(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}: {'none' if value is None else value}" for name, value in values.items())
