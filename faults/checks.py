"""What must hold after every fault, seen from outside: the folder's files, the log of a run, the streams of a process.

Nothing here asks the code under test whether it is right: `Store` only reads, rows and weights are compared with those
of an undisturbed run, SQLite itself says whether its file is whole, and `watched` says what was trained when.
"""

import contextlib
import hashlib
import json
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from headcount.errors import StoreError
from headcount.store import FILE_NAME, Outcome, Record, Store

from .processes import Ended

COUNTED = ("lost", "twice", "not intact", "differs", "traceback", "no sentence", "not completed")
"""What can be wrong: a committed cell that is gone; one that was trained again; a store that is damaged, or has rows
without their weights; a row, a weight or an export that is not that of an undisturbed run; a traceback; a failure
without a sentence, or a success that was none; a sweep that the same command does not complete, or a file left over."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: which of COUNTED, and what was seen."""

    what: str
    detail: str

    def __post_init__(self):
        assert self.what in COUNTED, self.what


Trials = Iterator[list[Problem]]
"""One after another, many without end: of each, what was wrong."""


@dataclass(frozen=True)
class Contents:
    """The settled cells of a folder: the key of each, and a hash of its row (not its provenance) and its weights."""

    cells: dict[str, str]

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(self.cells)


def read(folder: Path) -> tuple[Contents, list[Problem]]:
    """What a folder holds, and whether it is whole. A copy is opened, so that looking changes nothing."""
    if not (folder / FILE_NAME).exists():
        return Contents({}), []
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "copy"
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("*-shm", "lock"))
        try:
            with contextlib.closing(sqlite3.connect(copy / FILE_NAME)) as connection:
                verdicts = [row[0] for row in connection.execute("PRAGMA integrity_check")]
                tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        except sqlite3.Error as error:
            return Contents({}), [Problem("not intact", f"SQLite: {error}")]
        problems = [Problem("not intact", verdict) for verdict in verdicts if verdict != "ok"]
        if not tables:  # killed before the tables were made
            return Contents({}), problems
        try:
            with Store.open_for_reading(copy) as store:
                records = [record for record in store.records() if record.outcome is not Outcome.FAILED]
                hashed, without = _hashed(store, records)
        except StoreError as error:
            return Contents({}), [*problems, Problem("not intact", str(error))]
    return hashed, problems + without


def _hashed(store: Store, records: Iterable[Record]) -> tuple[Contents, list[Problem]]:
    cells, problems = {}, []
    for record in records:
        row = [record.outcome.value, record.metrics, record.curve, record.message]
        digest = hashlib.sha256(json.dumps(row, sort_keys=True).encode())
        if record.outcome is Outcome.FINISHED:
            try:
                for name, array in sorted(store.weights(record.cell.key).items()):
                    digest.update(name.encode() + np.ascontiguousarray(array).tobytes())
            except StoreError as error:
                problems.append(Problem("not intact", f"a row without its weights: {error}"))
        cells[record.cell.key] = digest.hexdigest()
    return Contents(cells), problems


def compare(contents: Contents, reference: Contents) -> list[Problem]:
    """Every cell that is there is that of the undisturbed run."""
    return [
        Problem("differs", f"cell {key} is not that of an undisturbed run")
        for key, digest in contents.cells.items()
        if reference.cells.get(key) != digest
    ]


def lost(before: Iterable[str], contents: Contents) -> list[Problem]:
    """What was committed before is still there."""
    return [Problem("lost", f"cell {key} was committed and is gone") for key in sorted(set(before) - contents.keys)]


@dataclass(frozen=True)
class Events:
    """What `watched` has noted: (process, event, keys), in order."""

    lines: tuple[tuple[int, str, tuple[str, ...]], ...]

    @classmethod
    def of(cls, log: Path) -> "Events":
        lines = log.read_text().splitlines() if log.exists() else []
        return cls(tuple((int(pid), event, tuple(keys)) for pid, event, *keys in map(str.split, lines)))

    def since(self, number: int) -> "Events":
        """Those after the first `number`."""
        return Events(self.lines[number:])

    def keys(self, event: str) -> set[str]:
        return {key for _, each, keys in self.lines if each == event for key in keys}

    def count(self, event: str) -> int:
        return sum(each == event for _, each, _ in self.lines)


def twice(events: Events, settled: Iterable[str]) -> list[Problem]:
    """No cell is trained, or committed, that was settled before these events or during them."""
    settled, problems = set(settled), []
    for _, event, keys in events.lines:
        if event in ("train", "commit"):
            again = settled.intersection(keys)
            problems += [Problem("twice", f"cell {key} was settled and came to '{event}' again") for key in again]
        elif event == "committed":
            settled.update(keys)
    return problems


def quiet(ended: Ended) -> list[Problem]:
    """No traceback."""
    return [Problem("traceback", ended.err[-2000:] or ended.out[-2000:])] if ended.traceback else []


def refused(ended: Ended, *codes: int) -> list[Problem]:
    """It ended with one of these codes (1 where none is given), and said why in a sentence of headcount's."""
    problems = quiet(ended)
    if ended.code not in (codes or (1,)):
        problems.append(Problem("no sentence", f"exit code {ended.code}: {ended.err[-500:]}"))
    elif ended.code != 0 and not ended.sentence and not problems:
        problems.append(Problem("no sentence", f"exit code {ended.code} without a sentence: {ended.err[-500:]}"))
    return problems
