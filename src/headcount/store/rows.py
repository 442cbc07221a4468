"""Records and experiments as rows, and back: what many cells share is stored, and parsed, once."""

import functools
import json
import sqlite3
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .cell import Cell, Content, Outcome, Record, TrainSpec, json_text, train_text
from .database import require_texts
from .experiment import Experiment

Rows = list[tuple]
OF_ONE_CELL = ("seconds", "finished")
"""Entries of a provenance that differ from cell to cell; the rest, such as versions, is the shared origin."""
CELL_COLUMNS = ("key", "task", "model", "train", "length", "seed", "parent", "removed", "probe")
RESULT_COLUMNS = ("outcome", "origin", "pack", "names", "metrics", "provenance", "message", "curve")
INSERT = (
    f"INSERT INTO cells ({', '.join(CELL_COLUMNS + RESULT_COLUMNS)}) "
    f"VALUES ({', '.join('?' * len(CELL_COLUMNS + RESULT_COLUMNS))}) ON CONFLICT (key) DO UPDATE SET "
    f"{', '.join(f'{name} = excluded.{name}' for name in RESULT_COLUMNS)} WHERE cells.outcome = 'failed'"
)
SELECT_TEXTS = "SELECT id, text FROM texts"
SELECT_CELLS = f"SELECT {', '.join(name for name in CELL_COLUMNS + RESULT_COLUMNS if name != 'pack')} FROM cells"
CELL_TYPES = (str, int, int, int, int, int, str, str, str, str, int, int, bytes, str, str, str)
SELECT_EXPERIMENTS = "SELECT id, name, question, task, axes, settings, study, scale FROM experiments ORDER BY id"
SELECT_PLACES = "SELECT experiment, key, place FROM places"


def insert(connection: sqlite3.Connection, records: Iterable[Record], packs: Mapping[str, str]) -> None:
    """Insert records within the transaction that is open; a failed cell is replaced, any other is left as it is.

    `packs` names the file that has the weights of a cell, by its key.
    """
    texts, files = _numbering(connection, "texts", "text"), _numbering(connection, "packs", "name")

    def row(record: Record) -> tuple:
        cell, provenance, names = record.cell, record.provenance, sorted(record.metrics)
        shared = {name: value for name, value in provenance.items() if name not in OF_ONE_CELL}
        own = {name: provenance[name] for name in OF_ONE_CELL if name in provenance}
        return (
            cell.key,
            texts(json_text(cell.task)),
            texts(json_text(cell.model)),
            texts(train_text(cell.train)),
            cell.length,
            cell.seed,
            cell.parent,
            json.dumps(cell.removed),
            cell.probe,
            record.outcome.value,
            texts(json.dumps(shared, sort_keys=True)),
            files(packs[cell.key]) if cell.key in packs else None,
            texts(json.dumps(names)),
            struct.pack(f"<{len(names)}d", *(record.metrics[name] for name in names)),
            json.dumps(own, sort_keys=True),
            record.message,
            json.dumps(record.curve),
        )

    connection.executemany(INSERT, [row(record) for record in records])


def _numbering(connection: sqlite3.Connection, table: str, column: str) -> Callable[[str], int]:
    """The number of a text in a table of distinct ones, which gets those that it lacks."""

    @functools.cache
    def number_of(text: str) -> int:
        connection.execute(f"INSERT OR IGNORE INTO {table} ({column}) VALUES (?)", (text,))
        return connection.execute(f"SELECT id FROM {table} WHERE {column} = ?", (text,)).fetchone()[0]

    return number_of


def records_of(cells: Rows, texts: Rows) -> list[Record]:
    """The records of rows, by task, length, heads, learning rate, seed and key: an order of their content alone.

    Raises one of `UNREADABLE` where a row is not what was stored.
    """
    text_of = dict(texts)
    content = functools.cache(lambda number: Content.parsed(text_of[number]))
    train = functools.cache(lambda number: TrainSpec(**json.loads(text_of[number])))
    origin = functools.cache(lambda number: json.loads(text_of[number]))
    names = functools.cache(lambda number: json.loads(text_of[number]))

    def record(row: tuple) -> Record:
        if tuple(map(type, row)) != CELL_TYPES:
            raise TypeError(f"a column of cell {row[0]!r:.40} is of another type")
        key, *shared, length, seed, parent, removed, probe = row[: len(CELL_COLUMNS)]
        outcome, made_by, named, metrics, provenance, message, curve = row[len(CELL_COLUMNS) :]
        cell = Cell(
            task=content(shared[0]),
            length=length,
            model=content(shared[1]),
            train=train(shared[2]),
            seed=seed,
            parent=parent,
            removed=tuple(json.loads(removed)),
            probe=probe,
        )
        vars(cell)["key"] = key  # the stored one stays valid where the content gets another field with a default
        values = struct.unpack(f"<{len(names(named))}d", metrics)
        return Record(
            cell=cell,
            outcome=Outcome(outcome),
            metrics=dict(zip(names(named), values, strict=True)),
            curve=tuple((step, value) for step, value in json.loads(curve)),
            provenance=origin(made_by) | json.loads(provenance),
            message=message,
        )

    return sorted(map(record, cells), key=_order)


def experiments_of(rows: Rows, places: Rows) -> list[Experiment]:
    """The experiments of the rows of their table, and of those of their places."""
    require_texts(value for row in rows for value in row[1:])
    placed: dict[int, dict[str, tuple]] = {row[0]: {} for row in rows}
    for number, key, place in places:
        placed[number][key] = tuple(json.loads(place))
    return [
        Experiment(
            name=name,
            question=question,
            task=task,
            axes=tuple(json.loads(axes)),
            places=placed[number],
            settings=json.loads(settings),
            study=study,
            scale=scale,
        )
        for number, name, question, task, axes, settings, study, scale in rows
    ]


def _order(record: Record) -> tuple[str, int, float, float, int, str]:
    cell = record.cell
    heads = cell.model.get("heads")
    heads = float(heads) if isinstance(heads, int | float) else 0.0
    return json_text(cell.task), cell.length, heads, cell.train.learning_rate, cell.seed, cell.key


def backend_of(provenance: Mapping[str, Any]) -> str:
    """Return the back end of a model, such as "fused 0.1.0, AVX-512"; plain JAX where the record names none."""
    return provenance.get("backend", "reference")


def backend_words(counts: Mapping[str, int]) -> str:
    """The back ends in words, with the number of models of each where there are several.

    Example:
        >>> backend_words({"fused 0.1.0, AVX-512": 2, "reference": 4})
        'fused 0.1.0, AVX-512 (2 models); reference (4 models)'
    """
    if len(counts) < 2:
        return "".join(counts)
    return "; ".join(f"{name} ({count} {'model' if count == 1 else 'models'})" for name, count in counts.items())
