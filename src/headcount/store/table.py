"""The results folder: one SQLite file of experiments and finished cells, and files of their weights.

    DIR/results.sqlite   experiments, places (experiment, cell key, coordinates), runs (commands), cells, the texts
                         that cells share, the packs that have their weights, attachments (what was found beside the
                         cells, by experiment and name)
    DIR/weights/pack-HASH.safetensors   the weights of the cells of one commit, named "KEY/name"
    DIR/weights/KEY.safetensors         those of one cell, from before there were packs
    DIR/lock             held while a run writes
    DIR/live.json        what the last run says of itself (`live.py`); no result depends on it

Promises. A commit is stored whole or not at all, costs the same however many cells are stored, and survives `kill -9`
and power loss (WAL with full sync; a pack is on disk before the rows that name it, and one that no row names is removed
when the folder is next opened for writing). Nothing is rewritten except a FAILED cell and an attachment. One process
at a time opens a folder for writing. A file that is newer or older than this code, damaged, read-only or on a full
disk is refused with one sentence and left unchanged; one of format 3 or 4 is read, and brought to format 5 when it is
opened for writing.
"""

import contextlib
import datetime
import itertools
import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import filelock

from ..errors import StoreError
from .backends import backend_of
from .cell import RESTORE, Outcome, Record
from .connections import lost_log, one_state
from .curves import Curves
from .database import FILE_NAME, connect, is_intact, why_unread
from .experiment import Experiment
from .filesystem import require_this_host
from .open_files import ReadFile, WrittenFiles
from .packs import pack_of, read_pack, remove_orphans, write_packs
from .records import Records
from .rows import UNREADABLE, insert, read_experiments, read_origin, read_records, reason_of, require_texts
from .weights import Weights, read_weights

ASKED_AT_ONCE = 500
"""Keys in one query: SQLite takes at least 999 values."""
LOCK_NAME = "lock"
WRITTEN = (FILE_NAME, f"{FILE_NAME}-wal")
"""What nobody but the run writes to while the folder is open for writing."""
WATCHED = (*WRITTEN, LOCK_NAME, "weights")
"""What stays in the folder while it is open for writing, once it is there."""
LOCK_SECONDS = 0.3
"""Waited for the lock: whoever asks whether it is held has it for a moment (`folders.run_state`)."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far an experiment is, and the commands that asked for it, each with the time it first began.

    `study` is the experiment's, `attached` are the names of what was found beside its cells.
    """

    experiment: str
    task: str
    cells: int
    done: int
    runs: tuple[tuple[str, str], ...]
    study: str = ""
    attached: tuple[str, ...] = ()

    @property
    def missing(self) -> int:
        return self.cells - self.done


class Store:
    """A results folder. Use `Store.open_for_writing(root)` in a `with`, or `Store.open_for_reading(root)`."""

    def __init__(
        self,
        root: Path,
        connection: sqlite3.Connection,
        lock: filelock.BaseFileLock | None,
        files: WrittenFiles | ReadFile,
    ):
        self.root = root
        self._connection = connection
        self._lock = lock
        self._files = files
        self._closed = False
        self._last_key = ""

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
            require_this_host(root)
            connection = connect(root / FILE_NAME, writing=True)
            undone.callback(connection.close)
            remove_orphans(root, connection)
            store = cls(root, connection, lock, WrittenFiles(root, WATCHED, WRITTEN, lambda: store._lost()))
            undone.pop_all()
        return store

    @classmethod
    def open_for_reading(cls, root: Path | str) -> "Store":
        """Open a folder that holds results. `StoreError` where there are none."""
        root = Path(root)
        path = root / FILE_NAME
        try:
            there = path.is_file()
        except OSError as error:
            raise StoreError(f"{root} cannot be read: {error.strerror or error}; choose another folder.") from error
        if not there:
            raise StoreError(f"{root} holds no results ({FILE_NAME} is missing); `headcount measure` makes them.")
        files = ReadFile(path)
        return cls(root, connect(path, writing=False), None, files)

    def close(self) -> None:
        self._closed = True
        self._connection.close()
        if isinstance(self._files, WrittenFiles):
            self._files.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_) -> None:
        try:
            if kind is None and not self._closed:
                self._files.check()
        finally:
            self.close()

    def begin(self, experiment: Experiment, command: str = "") -> Experiment:
        """Store what is about to be run, so that every reader knows it; cells that were asked for before stay.

        Returns the experiment under the name it has in this folder: a number is added where another one has its name.
        Where the same coordinates are those of another cell already, it is another experiment.
        """
        command = command.encode(errors="replace").decode()
        started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        with self._committing():
            run = self._connection.execute
            identity, stored = self._identity(experiment)
            name = stored or self._free_name(experiment.name)
            row = (identity, name, experiment.question, experiment.task, json.dumps(experiment.axes))
            row += (json.dumps(experiment.settings, sort_keys=True), experiment.study, experiment.scale)
            run(
                "INSERT OR IGNORE INTO experiments (identity, name, question, task, axes, settings, study, scale) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                row,
            )
            (number,) = run("SELECT id FROM experiments WHERE name = ?", (name,)).fetchone()
            self._connection.executemany(
                "INSERT OR IGNORE INTO places VALUES (?, ?, ?)",
                ((number, key, json.dumps(place)) for key, place in experiment.places.items()),
            )
            run(
                "INSERT OR IGNORE INTO runs (experiment, command, started) VALUES (?, ?, ?)", (number, command, started)
            )
        return replace(experiment, name=name)

    def _identity(self, experiment: Experiment) -> tuple[str, str]:
        """Under which identity the experiment is stored, or is to be, and its stored name; equal settings may hide
        models that differ in what follows an axis, such as a width of total_dim / heads."""
        for number in itertools.count(1):
            identity = experiment.identity if number == 1 else f"{experiment.identity}-{number}"
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

    def _free_name(self, name: str) -> str:
        taken = {row[0] for row in self._connection.execute("SELECT name FROM experiments")}
        return next(
            free for free in itertools.chain([name], (f"{name}-{n}" for n in itertools.count(2))) if free not in taken
        )

    def commit(self, records: Iterable[Record], weights: dict[str, Weights] | None = None) -> None:
        """Store the records of some buckets and their weights: all of them, or none."""
        self._files.check()
        records, weights = list(records), weights or {}
        settled = self._settled_among(weights)
        try:
            packs = write_packs(self.root, {key: of for key, of in weights.items() if key not in settled})
        except OSError as error:
            raise StoreError(
                f"weights cannot be written to {self.root}: {error.strerror or error}; earlier results are safe."
            ) from error
        with self._committing():
            insert(self._connection, records, packs)
        if records:
            self._last_key = records[-1].cell.key

    def _lost(self) -> bool:
        """Whether files that another program wrote to lack what was committed; merging SQLite's log loses none."""
        return not is_intact(self.root / FILE_NAME, self._last_key) or lost_log(self._connection)

    def _settled_among(self, keys: Iterable[str]) -> set[str]:
        """Those of the keys whose cells need no more work."""
        keys, settled = list(keys), set()
        with _reading(self.root):
            for start in range(0, len(keys), ASKED_AT_ONCE):
                part = keys[start : start + ASKED_AT_ONCE]
                asked = f"SELECT key FROM cells WHERE outcome != 'failed' AND key IN ({', '.join('?' * len(part))})"
                settled.update(key for (key,) in self._connection.execute(asked, part))
        return settled

    def attach(self, experiment: str, name: str, content: Any) -> None:
        """Keep something found beside the cells of an experiment, as JSON; what had this name before is replaced."""
        with self._committing():
            self._connection.execute(
                "INSERT INTO attachments SELECT id, ?, ? FROM experiments WHERE name = ? "
                "ON CONFLICT (experiment, name) DO UPDATE SET content = excluded.content",
                (name, json.dumps(content, sort_keys=True), experiment),
            )

    def attachments(self, experiment: str) -> dict[str, Any]:
        """What was found beside the cells of an experiment, by name."""
        with _reading(self.root):
            rows = self._connection.execute(
                "SELECT a.name, a.content FROM attachments a JOIN experiments e ON e.id = a.experiment "
                "WHERE e.name = ? ORDER BY a.name",
                (experiment,),
            ).fetchall()
            if any(type(name) is not str for name, _ in rows):
                raise TypeError("the name of an attachment is not a text")
            return {name: json.loads(content) for name, content in rows}

    def settled_keys(self) -> set[str]:
        """Keys of cells that need no more work: finished or diverged."""
        with _reading(self.root):
            return {key for (key,) in self._connection.execute("SELECT key FROM cells WHERE outcome != 'failed'")}

    def records(self) -> Records:
        """Every record, in an order that depends on their content alone.

        Whoever only reads the folder reads a curve when it is asked for, also after `close`.
        """
        file = self.root / FILE_NAME
        with _reading(self.root):
            return read_records(self._connection, file, Curves(file).text if self._lock is None else None)

    def experiments(self) -> list[Experiment]:
        """Every experiment that was begun in this folder, the oldest first."""
        with _reading(self.root):
            with one_state(self._connection) as run:
                rows = run(
                    "SELECT id, name, question, task, axes, settings, study, scale FROM experiments ORDER BY id"
                ).fetchall()
                placed = run("SELECT experiment, key, place FROM places").fetchall()
            return read_experiments(rows, placed)

    def progress(self, settled: Mapping[str, int] | None = None) -> list[Progress]:
        """How far each experiment is, the oldest first; no cell is read for it.

        `settled` says how many cells of each experiment need no more work, by its name, where records were read.
        """
        with _reading(self.root):
            with one_state(self._connection) as run:
                rows = run("SELECT id, name, task, study FROM experiments ORDER BY id").fetchall()
                asked = dict(run("SELECT experiment, count(*) FROM places GROUP BY experiment").fetchall())
                if settled is None:
                    counted = run(  # a left join would read the rows themselves, seven times as long
                        "SELECT e.name, count(*) FROM places p JOIN cells c INDEXED BY settled "
                        "ON c.key = p.key AND c.outcome != 'failed' JOIN experiments e ON e.id = p.experiment "
                        "GROUP BY p.experiment"
                    )
                    settled = dict(counted.fetchall())
                runs = run("SELECT experiment, command, started FROM runs ORDER BY id").fetchall()
                attached = run("SELECT experiment, name FROM attachments ORDER BY name").fetchall()
            require_texts(text for _, *texts in rows for text in texts)
            require_texts(text for _, *texts in (*runs, *attached) for text in texts)
            return [
                Progress(
                    experiment=name,
                    task=task,
                    cells=asked.get(number, 0),
                    done=settled.get(name, 0),
                    runs=tuple((command, started) for owner, command, started in runs if owner == number),
                    study=study,
                    attached=tuple(fact for owner, fact in attached if owner == number),
                )
                for number, name, task, study in rows
            ]

    def outcomes(self) -> dict[str, int]:
        """How many cells ended in which way."""
        with _reading(self.root):
            counted = dict(self._connection.execute("SELECT outcome, count(*) FROM cells GROUP BY outcome"))
        return {outcome.value: counted.get(outcome.value, 0) for outcome in Outcome}

    def backends(self) -> dict[str, int]:
        """How many settled cells each back end computed, by its name."""
        with _reading(self.root):
            rows = self._connection.execute(
                "SELECT t.text, c.models FROM texts t JOIN (SELECT origin, outcome, count(*) AS models FROM cells "
                "GROUP BY outcome, origin) c ON t.id = c.origin WHERE c.outcome != 'failed'"
            ).fetchall()
            counts: Counter[str] = Counter()
            for origin, models in rows:
                counts[backend_of(read_origin(origin))] += models
            return dict(sorted(counts.items()))

    def weights_path(self, key: str) -> Path:
        """The file that has the weights of a cell: the pack of its commit, or one of its own in an older folder."""
        pack = pack_of(self.root / FILE_NAME, key)
        return self.root / "weights" / (f"{key}.safetensors" if pack is None else pack)

    def weights(self, key: str) -> Weights:
        """The trained weights of a cell, in the task's own units. From any thread, and after `close` too."""
        path = self.weights_path(key)
        return read_weights(path) if path.stem == key else read_pack(path, key)

    @contextlib.contextmanager
    def _committing(self) -> Iterator[None]:
        self._files.check()
        try:
            with self._connection:
                yield
        except (sqlite3.Error, OverflowError) as error:
            raise StoreError(
                f"{self.root / FILE_NAME} cannot be written: {error}; earlier results are safe."
            ) from error
        finally:
            self._files.note_times()
        self._files.note()


@contextlib.contextmanager
def _reading(root: Path) -> Iterator[None]:
    """Turn what a damaged file, and rows that are not what was stored, lead to into a sentence."""
    try:
        yield
    except StoreError:
        raise
    except sqlite3.Error as error:
        raise why_unread(root / FILE_NAME, error) from error
    except UNREADABLE as error:
        raise StoreError(
            f"{root / FILE_NAME} holds a row that cannot be read: {reason_of(error)}. {RESTORE}"
        ) from error
