"""Records as rows of the table of cells, and back: what many cells share is stored, and read, once."""

import json
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .._collection import collection_paused
from .._errors import StoreError
from .cell import RESTORE, Cell, Content, Outcome, Record, TrainSpec, train_text
from .experiment import Experiment

UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError)
"""What reading a row raises that is not what was stored."""
NUMBERS = (int, float)
OF_SETTINGS = ("task", "model", "train")
"""The settings of an experiment that are read by name."""
OF_ONE_CELL = ("seconds", "finished")
"""What of a provenance differs from cell to cell; the rest, such as versions, is the origin of many."""
OF_THE_CELL = ("key", "task", "model", "train", "length", "seed", "parent", "removed", "probe")
OF_THE_RESULT = ("outcome", "origin", "pack", "metrics", "provenance", "message", "curve")
_INSERT = (
    f"INSERT INTO cells ({', '.join(OF_THE_CELL + OF_THE_RESULT)}) "
    f"VALUES ({', '.join('?' * len(OF_THE_CELL + OF_THE_RESULT))}) ON CONFLICT (key) DO UPDATE SET "
    f"{', '.join(f'{name} = excluded.{name}' for name in OF_THE_RESULT)} WHERE cells.outcome = 'failed'"
)
_SELECT = f"SELECT {', '.join(OF_THE_CELL)}, outcome, origin, message, curve, metrics, provenance FROM cells"


def insert(connection: sqlite3.Connection, records: Iterable[Record], packs: Mapping[str, str]) -> None:
    """Insert records within the transaction that is open; a failed cell is replaced, any other is left as it is.

    `packs` names the file that has the weights of a cell, by its key.
    """
    texts, files = _Ids(connection, "texts", "text"), _Ids(connection, "packs", "name")

    def row(record: Record) -> tuple:
        cell, provenance = record.cell, record.provenance
        shared = {name: value for name, value in provenance.items() if name not in OF_ONE_CELL}
        own = {name: provenance[name] for name in OF_ONE_CELL if name in provenance}
        pack = packs.get(cell.key)
        return (
            cell.key,
            texts.of(Content.of(cell.task).text),
            texts.of(Content.of(cell.model).text),
            texts.of(train_text(cell.train)),
            cell.length,
            cell.seed,
            cell.parent,
            json.dumps(cell.removed),
            cell.probe,
            record.outcome.value,
            texts.of(json.dumps(shared, sort_keys=True)),
            None if pack is None else files.of(pack),
            json.dumps(record.metrics, sort_keys=True),
            json.dumps(own, sort_keys=True),
            record.message,
            json.dumps(record.curve),
        )

    connection.executemany(_INSERT, [row(record) for record in records])


class _Ids:
    """The numbers of texts in a table of distinct ones, which gets those it lacks."""

    def __init__(self, connection: sqlite3.Connection, table: str, column: str):
        self._execute, self._table, self._column = connection.execute, table, column
        self._known: dict[str, int] = {}

    def of(self, text: str) -> int:
        if text not in self._known:
            self._execute(f"INSERT OR IGNORE INTO {self._table} ({self._column}) VALUES (?)", (text,))
            found = self._execute(f"SELECT id FROM {self._table} WHERE {self._column} = ?", (text,)).fetchone()
            self._known[text] = found[0]
        return self._known[text]


def read_records(connection: sqlite3.Connection, file: Path) -> list[Record]:
    """Every record, in an order that depends on their content alone. Raises StoreError for one that cannot be read."""
    try:
        with collection_paused():
            rows = connection.execute(_SELECT).fetchall()
            texts = dict(connection.execute("SELECT id, text FROM texts"))
            return _records(rows, texts, file)
    except UNREADABLE as error:
        raise StoreError(f"{file} holds a row that cannot be read: {reason_of(error)}. {RESTORE}") from error


def _records(rows: list[tuple], texts: dict[int, str], file: Path) -> list[Record]:
    contents, trains, origins = _Parsed(texts, Content.parsed), _Parsed(texts, _train), _Parsed(texts, read_origin)
    removals, outcomes = {"[]": ()}, {outcome.value: outcome for outcome in Outcome}
    all_metrics, all_provenance = (_json_objects([row[place] for row in rows]) for place in (-2, -1))
    if not {type(value) for metrics in all_metrics for value in metrics.values()} <= {int, float}:
        raise TypeError("a metric is not a number")
    _require_types(all_provenance, seconds=NUMBERS, finished=(str,))
    path, ordered = str(file), []
    for row, metrics, provenance in zip(rows, all_metrics, all_provenance, strict=True):
        key, task, model, train, length, seed, parent, removed, probe, outcome, origin, message, curve, _, _ = row
        texts_of = key, parent, probe, message, curve
        if not (all(type(text) is str for text in texts_of) and type(length) is type(seed) is int):
            raise TypeError(f"cell {key!r:.40} has a value of the wrong type")
        if removed not in removals:
            removals[removed] = tuple(json.loads(removed))
        # Not by their constructors, which check what was checked when it was stored.
        cell, record = object.__new__(Cell), object.__new__(Record)
        content = {"task": contents[task], "length": length, "model": contents[model], "train": trains[train]}
        cell.__dict__.update(content, seed=seed, parent=parent, removed=removals[removed], probe=probe, key=key)
        own = {**origins[origin], **provenance}
        record.__dict__.update(
            cell=cell,
            outcome=outcomes[outcome],
            metrics=metrics,
            provenance=own,
            message=message,
            _stored_curve=(curve, path),
        )
        heads = contents[model].get("heads", 0)
        ordered.append((texts[task], length, heads, trains[train].learning_rate, seed, key, record))
    ordered.sort(key=_content_order)
    return [entry[-1] for entry in ordered]


def read_experiments(rows: list[tuple], placed: list[tuple]) -> list[Experiment]:
    """Experiments from the rows of their table, and from those of their places."""
    places: dict[int, dict[str, tuple]] = {row[0]: {} for row in rows}
    coordinates = json.loads(f"[{','.join(place for _, _, place in placed)}]")
    if not {type(value) for place in coordinates for value in place} <= {*NUMBERS, str}:
        raise TypeError("a coordinate is neither a number nor a word")
    for (number, key, _), place in zip(placed, coordinates, strict=True):
        places[number][key] = tuple(place)
    require_texts(key for _, key, _ in placed)
    experiments = []
    for number, name, question, task, axes, settings, study, scale in rows:
        parsed, shared = json.loads(axes), json.loads(settings)
        require_texts([name, question, task, study, scale, *parsed])
        if not (type(shared) is dict and all(type(shared.get(part, {})) is dict for part in OF_SETTINGS)):
            raise TypeError(f"the settings of {name} are not JSON objects")
        experiments.append(
            Experiment(
                name=name,
                question=question,
                task=task,
                axes=tuple(parsed),
                places=places[number],
                settings=shared,
                study=study,
                scale=scale,
            )
        )
    return experiments


def read_origin(text: str) -> dict[str, Any]:
    """What cells share of their provenance."""
    origin = Content.parsed(text)
    _require_types([origin], device=(str,), backend=(str,), versions=(dict,), early=(dict,))
    return origin


def require_texts(values: Iterable[Any]) -> None:
    """Raise TypeError unless all values are texts."""
    for value in values:
        if type(value) is not str:
            raise TypeError(f"{value!r:.40} is not a text")


def reason_of(error: BaseException) -> str:
    """Why something stored cannot be read, on one line."""
    words = " ".join(str(error).split())[:200].rstrip(".")
    return f"{type(error).__name__} {words}" if isinstance(error, LookupError) else words or type(error).__name__


def _require_types(objects: Iterable[Mapping[str, Any]], **kinds: tuple[type, ...]) -> None:
    """Raise TypeError where a named value of some object is of none of its kinds."""
    objects = list(objects)
    for name, allowed in kinds.items():
        if not {type(each[name]) for each in objects if name in each} <= {*allowed}:
            raise TypeError(f"{name} has a value of the wrong type")


def _content_order(entry: tuple) -> tuple:
    return entry[:-1]


def _train(text: str) -> TrainSpec:
    return TrainSpec(**json.loads(text))


class _Parsed(dict[int, Any]):
    """The content of shared texts by number, each parsed once."""

    def __init__(self, texts: dict[int, str], parse: Any):
        super().__init__()
        self._texts, self._parse = texts, parse

    def __missing__(self, number: int) -> Any:
        value = self[number] = self._parse(self._texts[number])
        return value


def _json_objects(texts: list[Any]) -> list[dict[str, Any]]:
    """Many JSON objects at once, several times as fast as one by one."""
    objects = json.loads(f"[{','.join(texts)}]")
    if len(objects) != len(texts) or not all(type(each) is dict for each in objects):
        raise TypeError("metrics or provenance is not a JSON object")
    return objects
