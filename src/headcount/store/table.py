"""The results folder: one SQLite file of finished cells, and a weights file for each.

    DIR/results.sqlite   cells(key, spec, outcome, metrics, curve, provenance), sweeps(command, cell keys)
    DIR/weights/KEY.safetensors
    DIR/lock             held while a run writes

Promises. A commit is a whole bucket or nothing, and survives `kill -9` and power loss (WAL with full sync; weights are
on disk before the row that names them). Nothing is ever rewritten but a FAILED cell. A folder is opened for writing by
one process at a time. A file that is newer than this code, damaged, read-only or on a full disk is refused with a
sentence, untouched.
"""

import contextlib
import datetime
import json
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import filelock

from .._errors import StoreError
from .cell import Cell, Outcome, Record, cell_from_spec
from .weights import Weights, read_weights, write_weights

SCHEMA_VERSION = 1
FILE_NAME = "results.sqlite"

_SCHEMA = """
CREATE TABLE cells (
    key TEXT PRIMARY KEY,
    spec TEXT NOT NULL,
    outcome TEXT NOT NULL,
    metrics TEXT NOT NULL,
    curve TEXT NOT NULL,
    provenance TEXT NOT NULL,
    message TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE sweeps (
    id INTEGER PRIMARY KEY,
    command TEXT NOT NULL,
    started TEXT NOT NULL,
    keys TEXT NOT NULL,
    UNIQUE (command, keys)
);
"""


class Store:
    """A results folder. Use `Store.open_for_writing(root)` in a `with`, or `Store.open_for_reading(root)`."""

    def __init__(self, root: Path, connection: sqlite3.Connection, lock: filelock.BaseFileLock | None):
        self.root = root
        self._connection = connection
        self._lock = lock

    @classmethod
    def open_for_writing(cls, root: Path) -> "Store":
        """Create the folder if need be, and hold it until `close`."""
        try:
            root.mkdir(parents=True, exist_ok=True)
            lock = filelock.FileLock(root / "lock")
            lock.acquire(timeout=0)
        except filelock.Timeout as error:
            raise StoreError(f"{root} is in use by another run; wait for it, or choose another folder.") from error
        except OSError as error:
            raise StoreError(f"{root} cannot be written: {error.strerror or error}; choose another folder.") from error
        try:
            connection = _connect(root / FILE_NAME, writing=True)
        except BaseException:
            lock.release()
            raise
        return cls(root, connection, lock)

    @classmethod
    def open_for_reading(cls, root: Path) -> "Store":
        path = root / FILE_NAME
        if not path.is_file():
            raise StoreError(f"{root} holds no results ({FILE_NAME} is missing); `headcount measure` makes them.")
        return cls(root, _connect(path, writing=False), None)

    def close(self) -> None:
        self._connection.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def begin_sweep(self, command: str, cells: Iterable[Cell]) -> None:
        """Remember what was asked for, so that `status` can say what is missing."""
        keys = json.dumps(sorted(cell.key for cell in cells))
        command = command.encode(errors="replace").decode()
        started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        with self._committing():
            self._connection.execute(
                "INSERT OR IGNORE INTO sweeps (command, started, keys) VALUES (?, ?, ?)", (command, started, keys)
            )

    def commit(self, records: Iterable[Record], weights: dict[str, Weights] | None = None) -> None:
        """Store the records of one bucket and their weights: all of them, or none."""
        settled = self.settled_keys()
        try:
            for key, arrays in (weights or {}).items():
                if key not in settled:
                    write_weights(self.weights_path(key), arrays)
        except OSError as error:
            raise StoreError(
                f"weights cannot be written to {self.root}: {error.strerror or error}; earlier results are safe."
            ) from error
        rows = [
            (
                record.cell.key,
                json.dumps(record.cell.spec(), sort_keys=True),
                record.outcome.value,
                json.dumps(record.metrics, sort_keys=True),
                json.dumps(record.curve),
                json.dumps(record.provenance, sort_keys=True),
                record.message,
            )
            for record in records
        ]
        with self._committing():
            self._connection.executemany(
                "INSERT INTO cells VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET "
                "outcome = excluded.outcome, metrics = excluded.metrics, curve = excluded.curve, "
                "provenance = excluded.provenance, message = excluded.message WHERE cells.outcome = 'failed'",
                rows,
            )

    def settled_keys(self) -> set[str]:
        """Keys of cells that need no more work: finished or diverged."""
        with _reading(self.root):
            rows = self._connection.execute("SELECT key FROM cells WHERE outcome != ?", (Outcome.FAILED.value,))
            return {key for (key,) in rows}

    def records(self) -> list[Record]:
        """Every record, in an order that depends on their content alone."""
        with _reading(self.root):
            rows = self._connection.execute(
                "SELECT spec, outcome, metrics, curve, provenance, message FROM cells"
            ).fetchall()
        try:
            records = [
                Record(
                    cell=cell_from_spec(json.loads(spec)),
                    outcome=Outcome(outcome),
                    metrics=json.loads(metrics),
                    curve=tuple((step, value) for step, value in json.loads(curve)),
                    provenance=json.loads(provenance),
                    message=message,
                )
                for spec, outcome, metrics, curve, provenance, message in rows
            ]
        except (ValueError, TypeError, KeyError) as error:
            raise StoreError(f"{self.root / FILE_NAME} holds a row that makes no sense: {error}.") from error
        return sorted(records, key=_content_order)

    def sweeps(self) -> list[dict[str, Any]]:
        """What was asked for, oldest first: the command, when it first began, and the keys of its cells."""
        with _reading(self.root):
            rows = self._connection.execute("SELECT command, started, keys FROM sweeps ORDER BY id").fetchall()
        return [{"command": command, "started": started, "keys": json.loads(keys)} for command, started, keys in rows]

    def weights_path(self, key: str) -> Path:
        return self.root / "weights" / f"{key}.safetensors"

    def weights(self, key: str) -> Weights:
        """The trained weights of a cell, in the task's own units."""
        return read_weights(self.weights_path(key))

    @contextlib.contextmanager
    def _committing(self) -> Iterator[None]:
        try:
            with self._connection:
                yield
        except sqlite3.Error as error:
            raise StoreError(
                f"{self.root / FILE_NAME} cannot be written: {error}; earlier results are safe."
            ) from error


def _content_order(record: Record) -> tuple:
    cell = record.cell
    task = json.dumps(cell.task, sort_keys=True)
    return (task, cell.length, cell.model.heads, cell.train.learning_rate, cell.seed, cell.key)


@contextlib.contextmanager
def _reading(root: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(f"{root / FILE_NAME} cannot be read: {error}.") from error


def _connect(path: Path, *, writing: bool) -> sqlite3.Connection:
    """Open and check the file; every way it can be wrong ends in a sentence."""
    connection = None
    try:
        new = writing and not path.exists()
        if not new:
            connection = _read_only(path)
            new = _check(path, connection, writing)
        if writing:
            if connection is not None:
                connection.close()
            connection = sqlite3.connect(path, timeout=10)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            if new:
                connection.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")
        assert connection is not None
        return connection
    except BaseException as error:
        if connection is not None:
            connection.close()
        if isinstance(error, sqlite3.OperationalError):
            raise StoreError(f"{path} cannot be {'written' if writing else 'opened'}: {error}.") from error
        if isinstance(error, sqlite3.DatabaseError):
            raise StoreError(
                f"{path} is damaged or not a headcount store ({' '.join(str(error).split())}); it was left as it is. "
                "Restore it from a copy, or choose another folder."
            ) from error
        raise


def _read_only(path: Path) -> sqlite3.Connection:
    # A folder that cannot be written has no place for WAL's side files; without a -wal they hold nothing.
    pending = path.with_name(path.name + "-wal").exists()
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro{'' if pending else '&immutable=1'}", uri=True)


def _check(path: Path, connection: sqlite3.Connection, writing: bool) -> bool:
    """Refuse a file that is newer, damaged or not ours, before anything could write to it; say whether it is empty.

    An empty file is what a run leaves that was killed before it wrote its first table.
    """
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"{path} was written by a newer headcount (format {version}, this one reads {SCHEMA_VERSION}); "
            "upgrade headcount."
        )
    (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise sqlite3.DatabaseError(verdict)
    empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
    if version == 0 and not (empty and writing):
        raise sqlite3.DatabaseError("it holds no headcount tables")
    return empty
