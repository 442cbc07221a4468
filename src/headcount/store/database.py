"""The SQLite file of a results folder: its tables, how it is opened, and what is said where it is damaged.

It has a rollback journal, which needs file locks and nothing else: no side files remain at rest, so that read-only
folders and copies can be read, and it works on file systems that machines share. (A write-ahead log needs shared
memory, which machines do not have.) Readers and the writer wait for each other for a moment.
"""

import contextlib
import sqlite3
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ..errors import StoreError

SCHEMA_VERSION = 5
FILE_NAME = "results.sqlite"
WAIT_SECONDS = 60
"""Waited for another process that has the file locked."""
CACHE_KIB = 64 << 10
RESTORE = "Restore the folder from a copy, or choose another."
"""Advice for damaged results."""
UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError, struct.error)
"""Errors that reading a damaged row may raise."""

TABLES = {
    "texts": "CREATE TABLE texts (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE)",
    "packs": "CREATE TABLE packs (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
    "cells": """CREATE TABLE cells (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    task INTEGER NOT NULL REFERENCES texts,
    model INTEGER NOT NULL REFERENCES texts,
    train INTEGER NOT NULL REFERENCES texts,
    length INTEGER NOT NULL,
    seed INTEGER NOT NULL,
    parent TEXT NOT NULL,
    removed TEXT NOT NULL,
    probe TEXT NOT NULL,
    outcome TEXT NOT NULL,
    origin INTEGER NOT NULL REFERENCES texts,
    pack INTEGER REFERENCES packs,
    names INTEGER REFERENCES texts,
    metrics BLOB NOT NULL,
    provenance TEXT NOT NULL,
    message TEXT NOT NULL,
    curve TEXT NOT NULL
)""",
    "experiments": """CREATE TABLE experiments (
    id INTEGER PRIMARY KEY,
    identity TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL UNIQUE,
    question TEXT NOT NULL,
    task TEXT NOT NULL,
    axes TEXT NOT NULL,
    settings TEXT NOT NULL,
    study TEXT NOT NULL,
    scale TEXT NOT NULL
)""",
    "places": """CREATE TABLE places (
    experiment INTEGER NOT NULL REFERENCES experiments,
    key TEXT NOT NULL,
    place TEXT NOT NULL,
    PRIMARY KEY (experiment, key)
) WITHOUT ROWID""",
    "runs": """CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    experiment INTEGER NOT NULL REFERENCES experiments,
    command TEXT NOT NULL,
    started TEXT NOT NULL,
    UNIQUE (experiment, command)
)""",
    "attachments": """CREATE TABLE attachments (
    experiment INTEGER NOT NULL REFERENCES experiments,
    name TEXT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (experiment, name)
) WITHOUT ROWID""",
}
"""`texts` are the JSON that many cells share: tasks, models, ways of training, the names of metrics, and of the
provenance all but what differs from cell to cell. `metrics` are numbers of eight bytes. `packs` are files of weights,
`attachments` the named facts of an experiment."""
INDEXES = (
    "CREATE INDEX settled ON cells (key) WHERE outcome != 'failed'",
    "CREATE INDEX counted ON cells (outcome, origin)",
)


def connect(path: Path, *, writing: bool) -> sqlite3.Connection:
    """Open and check the file, and make its tables where `writing` and it is empty; StoreError where it is not ours."""
    _require_regular(path)
    with readable(path, done="written" if writing else "opened"), contextlib.ExitStack() as undone:
        connection = undone.enter_context(contextlib.closing(open_unchecked(path, writing=writing)))
        if _is_empty(connection, path):
            if not writing:
                raise no_results(path.parent)
            _make_tables(connection)
        if writing:
            connection.execute("PRAGMA synchronous = EXTRA")  # the journal's removal is the commit: it has to last
        undone.pop_all()
    return connection


def open_unchecked(path: Path, *, writing: bool = False) -> sqlite3.Connection:
    """A connection to the file, which is made only where `writing`.

    A reader opens it for writing too, where it may: a commit that a killed run left half done is then undone.
    """
    address = f"{path.absolute().as_uri()}?mode={'rwc' if writing else 'rw'}"
    connection = sqlite3.connect(address, timeout=WAIT_SECONDS, uri=True)
    connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    return connection


def holds_tables(path: Path) -> bool:
    """Whether there is a file with anything in it: a run killed at its very start leaves none, or an empty one.

    A file that cannot be read counts as one, so that opening it says the reason.
    """
    if not path.exists():
        return False
    try:
        with contextlib.closing(open_unchecked(path)) as connection:
            return connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] > 0
    except (sqlite3.Error, UnicodeDecodeError):
        return True


def no_results(root: Path) -> StoreError:
    """The error for a folder without results."""
    return StoreError(f"{root} holds no results ({FILE_NAME} is missing); `headcount measure` makes them.")


@contextlib.contextmanager
def readable(path: Path, *, done: str = "read") -> Iterator[None]:
    """Convert errors from damaged files and rows into one sentence, a StoreError; `done` is what cannot be done."""
    try:
        yield
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # the latter: SQLite quotes what is damaged
        if is_damage(error):
            raise damaged(path, reason_of(error)) from error
        busy = _error_code(error) == sqlite3.SQLITE_BUSY
        remedy = " A run writes to it; run the command again." if busy else ""
        raise StoreError(f"{path} cannot be {done}: {reason_of(error)}.{remedy}") from error
    except UNREADABLE as error:
        raise StoreError(f"{path} holds a row that cannot be read: {reason_of(error)}. {RESTORE}") from error


def damaged(path: Path, reason: str) -> StoreError:
    """The error for a file that is not what was written."""
    return StoreError(f"{path} is damaged or not a headcount store ({reason}); it was left as it is. {RESTORE}")


def is_damage(error: Exception) -> bool:
    """Whether an error says that the file is not what was written, rather than that it cannot be read or written now.

    SQLITE_ERROR is a table that is missing.
    """
    damage = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
    return isinstance(error, UnicodeDecodeError) or _error_code(error) in damage


def _error_code(error: Exception) -> int:
    """SQLite's code of an error; 0 where it is Python's."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def reason_of(error: BaseException) -> str:
    """Why something stored cannot be read, on one line."""
    words = " ".join(str(error).split())[:200].rstrip(".")
    return f"{type(error).__name__} {words}" if isinstance(error, LookupError) else words or type(error).__name__


def require_texts(values: Iterable[Any]) -> None:
    """Raise TypeError unless all values are texts."""
    for value in values:
        if type(value) is not str:
            raise TypeError(f"{value!r:.40} is not a text")


def _is_empty(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether the file has no tables yet. Raises where it is of another format, damaged or not ours."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if version == 0 and not tables:
        return True
    if version > 0 and version != SCHEMA_VERSION:
        newer = version > SCHEMA_VERSION
        raise StoreError(
            f"{path} was written by {'a newer' if newer else 'an older'} headcount (format {version}, this one reads "
            f"{SCHEMA_VERSION}); {'upgrade headcount' if newer else 'run the command again in a new folder'}."
        )
    if not TABLES.keys() <= tables:
        raise damaged(path, "it holds no headcount tables")
    (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise damaged(path, " ".join(verdict.split()))
    return False


def _make_tables(connection: sqlite3.Connection) -> None:
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        for statement in (*TABLES.values(), *INDEXES):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _require_regular(path: Path) -> None:
    """Raise `StoreError` where the file or its journal is a pipe, for which SQLite would wait."""
    for each in (path, path.with_name(f"{path.name}-journal")):
        if each.exists() and not each.is_file():
            raise StoreError(f"{each} is not a regular file; remove it, or choose another folder.")
