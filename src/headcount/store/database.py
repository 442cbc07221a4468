"""The SQLite file of a results folder: its tables, and how it is opened and checked."""

import sqlite3
from pathlib import Path

from .._errors import StoreError

SCHEMA_VERSION = 3
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
CREATE TABLE experiments (
    id INTEGER PRIMARY KEY,
    identity TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL UNIQUE,
    question TEXT NOT NULL,
    task TEXT NOT NULL,
    axes TEXT NOT NULL,
    settings TEXT NOT NULL,
    study TEXT NOT NULL,
    scale TEXT NOT NULL
);
CREATE TABLE places (
    experiment INTEGER NOT NULL REFERENCES experiments,
    key TEXT NOT NULL,
    place TEXT NOT NULL,
    PRIMARY KEY (experiment, key)
) WITHOUT ROWID;
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    experiment INTEGER NOT NULL REFERENCES experiments,
    command TEXT NOT NULL,
    started TEXT NOT NULL,
    UNIQUE (experiment, command)
);
CREATE TABLE attachments (
    experiment INTEGER NOT NULL REFERENCES experiments,
    name TEXT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (experiment, name)
) WITHOUT ROWID;
"""


def connect(path: Path, *, writing: bool) -> sqlite3.Connection:
    """Open and check the file; every way it can be wrong ends in one sentence."""
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
    if 0 < version < SCHEMA_VERSION:
        raise StoreError(
            f"{path} was written by an older headcount (format {version}, this one reads {SCHEMA_VERSION}); "
            "run the command again in a new folder."
        )
    (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise sqlite3.DatabaseError(verdict)
    empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
    if version == 0 and not (empty and writing):
        raise sqlite3.DatabaseError("it holds no headcount tables")
    return empty
