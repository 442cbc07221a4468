"""The results folder: one SQLite file of experiments and finished cells, and files of their weights.

    DIR/results.sqlite   experiments, places (experiment, cell key, coordinates), runs (commands), cells, the texts
                         that cells share, the packs that have their weights, the named facts of experiments
    DIR/weights/pack-HASH.safetensors   the weights of the cells of one commit, named "KEY/name"
    DIR/lock             held while a run writes
    DIR/live.json        what the last run says of itself (`live.py`); no result depends on it

Promises. A commit is stored whole or not at all, costs the same however many cells are stored, and survives `kill -9`
and power loss (a pack is on disk before the rows that name it, and one that no row names is removed when the folder is
next opened for writing). Nothing is rewritten except a FAILED cell and a fact. One process at a time opens a folder for
writing. A file of another format, damaged, read-only or on a full disk is refused with one sentence and left unchanged.
"""

import contextlib
import datetime
import itertools
import json
import os
import socket
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import filelock

from ..errors import StoreError
from .cell import Outcome, Record
from .database import FILE_NAME, connect, is_damage, no_results, open_unchecked, readable
from .experiment import Experiment
from .live import read_live
from .rows import (
    SELECT_CELLS,
    SELECT_EXPERIMENTS,
    SELECT_PLACES,
    SELECT_TEXTS,
    Rows,
    backend_of,
    experiments_of,
    insert,
    records_of,
)
from .weights import FOLDER, Weights, read_pack, remove_orphans, write_packs

LOCK_NAME = "lock"
LOCK_SECONDS = 0.3
"""Waited for the lock: a process that asks whether it is held has it for a moment (`folders.run_state`)."""
SETTLED = "SELECT key FROM cells WHERE outcome != 'failed'"


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Progress of an experiment, and the commands that asked for it, each with the time it first began.

    `study` is the experiment's, `facts` are the names of its facts.
    """

    experiment: str
    task: str
    cells: int
    done: int
    runs: tuple[tuple[str, str], ...]
    study: str = ""
    facts: tuple[str, ...] = ()

    @property
    def missing(self) -> int:
        return self.cells - self.done


class Store:
    """A results folder. Use `Store.open_for_writing(root)` in a `with`, or `Store.open_for_reading(root)`.

    Example:
        >>> import tempfile
        >>> experiment = Experiment(name="mine", question="How many?", task="any", axes=(), places={})
        >>> with tempfile.TemporaryDirectory() as folder, Store.open_for_writing(folder) as store:
        ...     name = store.begin(experiment).name
        ...     store.put(name, "seconds", 1.5)
        ...     store.get(name, "seconds"), store.get(name, "bytes", 0)
        (1.5, 0)
    """

    def __init__(self, root: Path, connection: sqlite3.Connection, lock: filelock.BaseFileLock | None):
        self.root = root
        self._file = root / FILE_NAME
        self._connection = connection
        self._lock = lock
        self._written: dict[Path, tuple[int, int, int]] = {}
        self._last_pack: Path | None = None

    @classmethod
    def open_for_writing(cls, root: Path | str) -> "Store":
        """Create the folder if it is not there, and hold it until `close`."""
        root = Path(root)
        try:
            root.mkdir(parents=True, exist_ok=True)
            lock = filelock.FileLock(root / LOCK_NAME)
            lock.acquire(timeout=LOCK_SECONDS, poll_interval=LOCK_SECONDS / 6)
        except filelock.Timeout as error:
            raise StoreError(f"{root} is in use by another run; wait for it, or choose another folder.") from error
        except (OSError, NotImplementedError) as error:  # NotImplementedError: a file system without locks
            reason = getattr(error, "strerror", None) or error
            raise StoreError(f"{root} cannot be written: {reason}; choose another folder.") from error
        with contextlib.ExitStack() as undone:
            undone.callback(lock.release)
            _require_this_host(root)
            store = cls(root, connect(root / FILE_NAME, writing=True), lock)
            undone.callback(store._connection.close)
            (packs,) = store._select("SELECT name FROM packs")
            remove_orphans(root, (name for (name,) in packs))
            store._note_files()
            undone.pop_all()
        return store

    @classmethod
    def open_for_reading(cls, root: Path | str) -> "Store":
        """Open a folder that holds results. `StoreError` where there are none."""
        root = Path(root)
        try:
            there = (root / FILE_NAME).is_file()
        except OSError as error:
            raise StoreError(f"{root} cannot be read: {error.strerror or error}; choose another folder.") from error
        if not there:
            raise no_results(root)
        return cls(root, connect(root / FILE_NAME, writing=False), None)

    def close(self) -> None:
        """Let go of the folder; closing it twice is harmless."""
        self._connection.close()
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_) -> None:
        try:
            if kind is None and self._lock is not None and self._lock.is_locked:
                self._require_files()  # report at the end, too, what other programs did to the files
                connect(self._file, writing=False).close()  # anew: this connection may remember pages that were cut off
        finally:
            self.close()

    def begin(self, experiment: Experiment, command: str = "") -> Experiment:
        """Store what is about to be run, so that every reader knows it; cells that were asked for before stay.

        Returns the experiment under the name it has in this folder: a number is added where another one has its name.
        Where the same coordinates are those of another cell already, it is another experiment.
        """
        command = command.encode(errors="replace").decode()
        started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        with self._writing():
            run = self._connection.execute
            identity, stored = self._identity(experiment)
            taken = {name for (name,) in run("SELECT name FROM experiments")}
            name = stored or next(name for name in _numbered(experiment.name) if name not in taken)
            row = (identity, name, experiment.question, experiment.task, json.dumps(experiment.axes))
            row += (json.dumps(experiment.settings, sort_keys=True), experiment.study, experiment.scale)
            run("INSERT OR IGNORE INTO experiments VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)", row)
            (number,) = run("SELECT id FROM experiments WHERE name = ?", (name,)).fetchone()
            self._connection.executemany(
                "INSERT OR IGNORE INTO places VALUES (?, ?, ?)",
                ((number, key, json.dumps(place)) for key, place in experiment.places.items()),
            )
            run("INSERT OR IGNORE INTO runs VALUES (NULL, ?, ?, ?)", (number, command, started))
        return replace(experiment, name=name)

    def _identity(self, experiment: Experiment) -> tuple[str, str]:
        """The identity under which the experiment is stored, or is to be, and its stored name.

        Equal settings may hide models that differ in what follows an axis, such as a width of total_dim / heads.
        """
        for identity in _numbered(experiment.identity):
            rows = self._connection.execute(
                "SELECT e.name, p.place, p.key FROM experiments e LEFT JOIN places p ON p.experiment = e.id "
                "WHERE e.identity = ?",
                (identity,),
            ).fetchall()
            keys: dict[str, set[str]] = {}
            for _, place, key in rows:
                keys.setdefault(place, set()).add(key)
            if all(key in keys.get(json.dumps(place), {key}) for key, place in experiment.places.items()):
                return identity, rows[0][0] if rows else ""
        raise AssertionError("unreachable")

    def commit(self, records: Iterable[Record], weights: dict[str, Weights] | None = None) -> None:
        """Store the records of some buckets and their weights: all of them, or none."""
        self._require_files()
        try:
            packs = write_packs(self.root, weights or {})
        except OSError as error:
            raise StoreError(
                f"weights cannot be written to {self.root}: {error.strerror or error}; earlier results are safe."
            ) from error
        with self._writing():
            insert(self._connection, records, packs)
            self._last_pack = next((self.root / FOLDER / pack for pack in packs.values()), self._last_pack)

    def put(self, experiment: str, name: str, value: Any) -> None:
        """Store a named JSON fact of an experiment that was begun; an earlier one of this name is replaced."""
        with self._writing():
            changed = self._connection.execute(
                "INSERT INTO attachments SELECT id, ?, ? FROM experiments WHERE name = ? "
                "ON CONFLICT (experiment, name) DO UPDATE SET content = excluded.content",
                (name, json.dumps(value, sort_keys=True), experiment),
            ).rowcount
        if changed != 1:
            raise StoreError(f"{self.root} holds no experiment {experiment} to store {name} for.")

    def get(self, experiment: str, name: str, default: Any = None) -> Any:
        """A named fact of an experiment; `default` where there is none."""
        return self.facts(experiment, name).get(name, default)

    def facts(self, experiment: str, *names: str) -> dict[str, Any]:
        """The facts of an experiment by name, all where no `names` are given."""
        chosen = f"AND a.name IN ({', '.join('?' * len(names))})" if names else ""
        (rows,) = self._select(
            "SELECT a.name, a.content FROM attachments a JOIN experiments e ON e.id = a.experiment "
            f"WHERE e.name = ? {chosen} ORDER BY a.name",
            values=(experiment, *names),
        )
        with readable(self._file):
            return {name: json.loads(content) for name, content in rows}

    def settled_keys(self) -> set[str]:
        """Keys of cells that need no more work: finished or diverged."""
        (rows,) = self._select(SETTLED)
        return {key for (key,) in rows}

    def records(self) -> list[Record]:
        """Every record, in an order that depends on their content alone."""
        cells, texts = self._select(SELECT_CELLS, SELECT_TEXTS)
        with readable(self._file):
            return records_of(cells, texts)

    def experiments(self) -> list[Experiment]:
        """Every experiment that was begun in this folder, the oldest first."""
        rows, places = self._select(SELECT_EXPERIMENTS, SELECT_PLACES)
        with readable(self._file):
            return experiments_of(rows, places)

    def progress(self) -> list[Progress]:
        """Return the progress of each experiment, the oldest first; no cell is read for it."""
        experiments, places, done, runs, facts = self._select(
            "SELECT id, name, task, study FROM experiments ORDER BY id",
            "SELECT experiment, count(*) FROM places GROUP BY experiment",
            f"SELECT experiment, count(*) FROM places WHERE key IN ({SETTLED}) GROUP BY experiment",
            "SELECT experiment, command, started FROM runs ORDER BY id",
            "SELECT experiment, name FROM attachments ORDER BY name",
        )
        cells, settled = dict(places), dict(done)
        return [
            Progress(
                experiment=name,
                task=task,
                cells=cells.get(number, 0),
                done=settled.get(number, 0),
                runs=tuple((command, started) for owner, command, started in runs if owner == number),
                study=study,
                facts=tuple(fact for owner, fact in facts if owner == number),
            )
            for number, name, task, study in experiments
        ]

    def outcomes(self) -> dict[str, int]:
        """Count the cells by outcome."""
        (rows,) = self._select("SELECT outcome, count(*) FROM cells GROUP BY outcome")
        return {outcome.value: dict(rows).get(outcome.value, 0) for outcome in Outcome}

    def backends(self) -> dict[str, int]:
        """Count the settled cells by back end."""
        (rows,) = self._select(
            "SELECT t.text, c.models FROM texts t JOIN (SELECT origin, outcome, count(*) AS models FROM cells "
            "GROUP BY outcome, origin) c ON t.id = c.origin WHERE c.outcome != 'failed'"
        )
        counts: Counter[str] = Counter()
        with readable(self._file):
            for origin, models in rows:
                counts[backend_of(json.loads(origin))] += models
        return dict(sorted(counts.items()))

    def weights_path(self, key: str) -> Path:
        """Return the pack with the weights of a cell. Opens another connection: trainers ask from their threads, and
        after the folder was closed."""
        with readable(self._file), contextlib.closing(open_unchecked(self._file)) as connection:
            row = connection.execute(
                "SELECT p.name FROM cells c JOIN packs p ON p.id = c.pack WHERE c.key = ?", (key,)
            ).fetchone()
            if row is None:
                raise StoreError(f"there are no stored weights of cell {key} in {self.root}.")
            return self.root / FOLDER / str(row[0])

    def weights(self, key: str) -> Weights:
        """The trained weights of a cell, in the task's own units. From any thread, and after `close` too."""
        return read_pack(self.weights_path(key), key)

    def _select(self, *queries: str, values: tuple = ()) -> list[Rows]:
        """The rows of some queries, which all see the file in one state. `values` are those of each."""
        with readable(self._file):
            self._connection.execute("BEGIN")
            try:
                return [self._connection.execute(query, values).fetchall() for query in queries]
            finally:
                with contextlib.suppress(sqlite3.Error):  # an error that was raised within says more
                    self._connection.rollback()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """One transaction, into files that are still those of the folder."""
        self._require_files()
        try:
            with self._connection:
                yield
        except (sqlite3.Error, OverflowError) as error:
            if is_damage(error):
                raise self._changed(self._file, f"was changed by another program ({error})") from error
            raise StoreError(f"{self._file} cannot be written: {error}; earlier results are safe.") from error
        self._note_files()

    def _note_files(self) -> None:
        """Remember the files that were written."""
        paths = (self._file, self.root / LOCK_NAME, self._last_pack)
        self._written = {path: self._look(path) for path in paths if path is not None}

    def _require_files(self) -> None:
        """Raise `StoreError` where a file was deleted, replaced or cut: what is stored then could not be found."""
        for path, (device, number, size) in self._written.items():
            now = self._look(path)
            if now[:2] != (device, number) or now[2] < size:
                raise self._changed(path, "was replaced or cut")

    def _look(self, path: Path) -> tuple[int, int, int]:
        """The device, number and size of a file that was written."""
        try:
            status = os.stat(path)
        except OSError as error:
            raise self._changed(path, "was deleted or moved away") from error
        return status.st_dev, status.st_ino, status.st_size

    def _changed(self, path: Path, what: str) -> StoreError:
        return StoreError(
            f"{path} {what} while this run wrote to it; what was trained since is not stored. Put back what was there "
            "and run the same command again, or run it with another folder."
        )


def _numbered(name: str) -> Iterator[str]:
    """Yield a name, and then the name with each number from 2 on."""
    yield name
    yield from (f"{name}-{number}" for number in itertools.count(2))


def _require_this_host(root: Path) -> None:
    """Refuse a folder into which a run on another machine writes: some file systems do not share locks."""
    live = read_live(root)
    if live is not None and live.host != socket.gethostname() and live.state() == "running":
        raise StoreError(
            f"{root} is in use by a run on {live.host} (process {live.pid}); wait for it, or choose another folder."
        )
