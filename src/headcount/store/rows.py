"""Records as rows of the table of cells, and back: what many cells share is stored, and read, once."""

import itertools
import json
import operator
import sqlite3
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from .._collection import collection_paused
from ..errors import StoreError
from .cell import RESTORE, Content, Outcome, Record, TrainSpec, train_text
from .connections import one_state
from .experiment import Experiment
from .records import Columns, Records

UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError)
"""What reading a row raises that is not what was stored."""
NUMBERS = (int, float)
BYTES_PER_METRIC = 8
KINDS: dict[str, tuple[type, str]] = {"metrics": (bytes, "numbers")}
KINDS |= dict.fromkeys(("id", "task", "model", "train", "length", "seed", "origin", "names"), (int, "a whole number"))
"""The type of a column, and what it is in words; all others are texts."""
OF_SETTINGS = ("task", "model", "train")
"""The settings of an experiment that are read by name."""
OF_ONE_CELL = ("seconds", "finished")
"""What of a provenance differs from cell to cell; the rest, such as versions, is the origin of many."""
OF_THE_CELL = ("key", "task", "model", "train", "length", "seed", "parent", "removed", "probe")
OF_THE_RESULT = ("outcome", "origin", "pack", "names", "metrics", "provenance", "message", "curve")
_INSERT = (
    f"INSERT INTO cells ({', '.join(OF_THE_CELL + OF_THE_RESULT)}) "
    f"VALUES ({', '.join('?' * len(OF_THE_CELL + OF_THE_RESULT))}) ON CONFLICT (key) DO UPDATE SET "
    f"{', '.join(f'{name} = excluded.{name}' for name in OF_THE_RESULT)} WHERE cells.outcome = 'failed'"
)
USUAL = {"parent": "", "removed": "[]", "probe": "", "message": ""}
"""What almost all cells have in some columns: only what differs is read."""
READ = ("id", *(name for name in OF_THE_CELL + OF_THE_RESULT if name != "pack" and name not in USUAL))
_IS_UNUSUAL = " OR ".join(f"{name} IS NOT {usual!r}" for name, usual in USUAL.items())
_SELECT_UNUSUAL = f"SELECT id, {', '.join(USUAL)} FROM cells WHERE {_IS_UNUSUAL}"


def insert(connection: sqlite3.Connection, records: Iterable[Record], packs: Mapping[str, str]) -> None:
    """Insert records within the transaction that is open; a failed cell is replaced, any other is left as it is.

    `packs` names the file that has the weights of a cell, by its key.
    """
    texts, files = Ids(connection, "texts", "text"), Ids(connection, "packs", "name")

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
            *packed(record.metrics, texts),
            json.dumps(own, sort_keys=True),
            record.message,
            json.dumps(record.curve),
        )

    connection.executemany(_INSERT, [row(record) for record in records])


class Ids:
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


def packed(metrics: Mapping[str, float], texts: Ids) -> tuple[int, bytes]:
    """The number of the text that names some metrics, and their values: eight bytes each, as any machine reads them."""
    names = sorted(metrics)
    return texts.of(json.dumps(names)), struct.pack(f"<{len(names)}d", *(metrics[name] for name in names))


def read_records(connection: sqlite3.Connection, file: Path, curve_of: Callable[[str], str] | None = None) -> Records:
    """Every record, in an order that depends on their content alone. Raises StoreError for one that cannot be read.

    Curves are read later, by the keys of their cells, where `curve_of` is given.
    """
    read = tuple(name for name in READ if name != "curve" or curve_of is None)
    try:
        with collection_paused():
            with one_state(connection) as run:
                texts = dict(run("SELECT id, text FROM texts"))
                rows = run(f"SELECT {', '.join(read)}, CASE WHEN {_IS_UNUSUAL} THEN 1 END FROM cells").fetchall()
                *columns, is_unusual = zip(*rows, strict=True) if rows else [()] * (len(read) + 1)
                unusual = run(_SELECT_UNUSUAL).fetchall() if any(is_unusual) else []
            stored = _stored(dict(zip(read, columns, strict=True)), unusual)
            content = _contents(stored, texts)
            content |= {} if curve_of is None else {"curve": curve_of}
            return Records(Columns(**content, file=str(file)))
    except UNREADABLE as error:
        raise StoreError(f"{file} holds a row that cannot be read: {reason_of(error)}. {RESTORE}") from error


def _stored(stored: dict[str, Sequence[Any]], unusual_rows: list[tuple]) -> dict[str, Sequence[Any]]:
    """The columns of all rows. Raises TypeError where a value is not of its column's type."""
    numbers = stored.pop("id")
    unusual = {name: [usual] * len(numbers) for name, usual in USUAL.items()}
    places = {number: place for place, number in enumerate(numbers)} if unusual_rows else {}
    for number, *values in unusual_rows:
        for name, value in zip(USUAL, values, strict=True):
            unusual[name][places[number]] = value
    stored |= unusual
    for name, column in stored.items():
        kind, words = KINDS.get(name, (str, "a text"))
        if not set(map(type, column)) <= {kind}:
            raise TypeError(f"a value of the column {name} is not {words}")
    return stored


def _contents(stored: Mapping[str, Sequence[Any]], texts: dict[int, str]) -> dict[str, Any]:
    """What the columns mean, in the order of their content."""
    contents, trains, origins = _Parsed(texts, Content.parsed), _Parsed(texts, _train), _Parsed(texts, read_origin)
    order = _order(stored, texts, contents, trains).tolist()
    stored = {name: list(map(column.__getitem__, order)) for name, column in stored.items()}
    removals = {text: tuple(json.loads(text)) for text in set(stored["removed"])}
    provenances = {text: _provenance(text) for text in set(stored["provenance"])}
    names = {number: _names(texts[number]) for number in set(stored["names"])}
    outcomes = {outcome.value: outcome for outcome in Outcome}
    meanings = {"task": contents, "model": contents, "train": trains, "origin": origins, "names": names}
    meanings |= {"removed": removals, "outcome": outcomes, "provenance": provenances}
    content: dict[str, Any] = {
        name: list(map(meanings[name].__getitem__, column)) if name in meanings else column
        for name, column in stored.items()
    }
    content["metrics"] = _metrics(stored, names)
    return content


def _order(
    stored: Mapping[str, Sequence[Any]],
    texts: Mapping[int, str],
    contents: Mapping[int, Content],
    trains: Mapping[int, TrainSpec],
) -> Int[np.ndarray, " rows"]:
    """Places by task, length, heads, learning rate, seed and key."""
    tasks = sorted(set(stored["task"]), key=texts.__getitem__)
    ranked = {number: place for place, number in enumerate(tasks)}
    counts = {number: contents[number].get("heads") for number in set(stored["model"])}
    heads = {number: float(count) if isinstance(count, int | float) else 0.0 for number, count in counts.items()}
    rates = {number: float(trains[number].learning_rate) for number in set(stored["train"])}
    columns = np.array(
        [
            stored["seed"],
            list(map(rates.__getitem__, stored["train"])),
            list(map(heads.__getitem__, stored["model"])),
            stored["length"],
            list(map(ranked.__getitem__, stored["task"])),
        ],
        float,
    )
    order = np.lexsort(columns)
    along = columns[:, order]
    if not np.all(along[:, 1:] == along[:, :-1], axis=0).any():
        return order
    return np.lexsort((stored["key"], *columns))  # sorting texts takes longer than all else


def _metrics(
    stored: Mapping[str, Sequence[Any]], names: Mapping[int, Sequence[str]]
) -> dict[str, Float[np.ndarray, " rows"]]:
    """A column per metric, NaN where a row lacks it. Raises ValueError where a row has not a value per name."""
    columns: dict[str, np.ndarray] = {}
    numbers = np.array(stored["names"], int)
    for number, of_some in names.items():
        rows = np.flatnonzero(numbers == number)
        packs = [stored["metrics"][row] for row in rows.tolist()]
        if not set(map(len, packs)) <= {BYTES_PER_METRIC * len(of_some)}:
            raise ValueError(f"the metrics of a cell are not {len(of_some)} numbers")
        values = np.frombuffer(b"".join(packs), "<f8")
        for name, column in zip(of_some, values.reshape(len(rows), len(of_some)).T, strict=True):
            columns.setdefault(name, np.full(len(numbers), np.nan))[rows] = column
    return columns


def _names(text: str) -> tuple[str, ...]:
    """Names of metrics. Raises TypeError where they are not a list of texts."""
    names = json.loads(text)
    if type(names) is not list:
        raise TypeError(f"{text[:40]} is not a list of names")
    require_texts(names)
    return tuple(names)


def read_experiments(rows: list[tuple], placed: list[tuple]) -> list[Experiment]:
    """Experiments from the rows of their table, and from those of their places."""
    places: dict[int, dict[str, tuple]] = {row[0]: {} for row in rows}
    numbers, keys, texts = zip(*placed, strict=True) if placed else ((), (), ())
    require_texts(keys)
    coordinates = json.loads(f"[{','.join(texts)}]")
    if not set(map(type, itertools.chain.from_iterable(coordinates))) <= {*NUMBERS, str}:
        raise TypeError("a coordinate is neither a number nor a word")
    cells = zip(numbers, keys, map(tuple, coordinates), strict=True)
    for number, own in itertools.groupby(cells, key=operator.itemgetter(0)):
        places[number].update(map(operator.itemgetter(1, 2), own))
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
    values = list(values)
    if not set(map(type, values)) <= {str}:
        wrong = next(value for value in values if type(value) is not str)
        raise TypeError(f"{wrong!r:.40} is not a text")


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


def _provenance(text: str) -> dict[str, Any]:
    """What a cell has of its provenance for itself."""
    own = Content.parsed(text)
    _require_types([own], seconds=NUMBERS, finished=(str,))
    return own
