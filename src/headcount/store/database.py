"""The SQLite file of a results folder: its tables, and how it is opened and checked."""

import contextlib
import sqlite3
from pathlib import Path

from .._limits import max_line_bytes, require_fits
from ..errors import StoreError
from .cell import RESTORE
from .connections import open_for_reading, open_for_writing
from .filesystem import set_journal
from .migration import OLDEST_READ, migrate

SCHEMA_VERSION = 5
FILE_NAME = "results.sqlite"
CHECKED_BYTES = 32 << 20
"""A file of at most this size is checked page by page by whoever reads it, which takes a twentieth of a second; of a
larger one only what is read. Whoever writes checks the whole file."""
CACHE_KIB = 64 << 10

SCHEMA = (
    "CREATE TABLE texts (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE)",
    "CREATE TABLE packs (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
    """CREATE TABLE cells (
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
    "CREATE INDEX settled ON cells (key) WHERE outcome != 'failed'",
    "CREATE INDEX counted ON cells (outcome, origin)",
)
"""The tables of cells. `texts` are the JSON that many cells share: tasks, models, ways of training, the names of
metrics, and of the provenance all but what differs from cell to cell. `metrics` are numbers of eight bytes. `packs` are
files of weights; a cell without one may have a file of its own, from before there were packs."""

EXPERIMENTS = (
    """CREATE TABLE experiments (
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
    """CREATE TABLE places (
    experiment INTEGER NOT NULL REFERENCES experiments,
    key TEXT NOT NULL,
    place TEXT NOT NULL,
    PRIMARY KEY (experiment, key)
) WITHOUT ROWID""",
    """CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    experiment INTEGER NOT NULL REFERENCES experiments,
    command TEXT NOT NULL,
    started TEXT NOT NULL,
    UNIQUE (experiment, command)
)""",
    """CREATE TABLE attachments (
    experiment INTEGER NOT NULL REFERENCES experiments,
    name TEXT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (experiment, name)
) WITHOUT ROWID""",
)
"""The tables of experiments, as they have been since format 3."""


def connect(path: Path, *, writing: bool) -> sqlite3.Connection:
    """Open and check the file; every way it can be wrong ends in one sentence.

    A file of an older format is brought to this one: in place, in one transaction, where it is opened for writing, and
    in memory where it is only read.
    """
    connection = None
    try:
        version = 0
        if not writing or path.exists():
            connection = read_only(path)
            version = _check(path, connection, writing)
        if writing:
            if connection is not None:
                connection.close()
            connection = _limited(open_for_writing(path))
            set_journal(connection, path)
        elif version < SCHEMA_VERSION:
            assert connection is not None
            require_fits(path, path.stat().st_size)
            connection = _in_memory(connection)
        assert connection is not None
        if version < SCHEMA_VERSION:
            _bring_up(path, connection, version)
        return connection
    except BaseException as error:
        if connection is not None:
            connection.close()
        if isinstance(error, sqlite3.OperationalError):
            raise StoreError(f"{path} cannot be {'written' if writing else 'opened'}: {error}.") from error
        if isinstance(error, sqlite3.DatabaseError | UnicodeDecodeError):  # the latter: SQLite quotes what is damaged
            raise StoreError(
                f"{path} is damaged or not a headcount store ({' '.join(str(error).split())}); it was left as it is. "
                "Restore it from a copy, or choose another folder."
            ) from error
        raise


def read_only(path: Path) -> sqlite3.Connection:
    """A connection that cannot change the file, which is not checked."""
    connection = open_for_reading(path)
    connection.execute("PRAGMA cell_size_check = ON")
    connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    return _limited(connection)


def why_unread(path: Path, error: sqlite3.Error) -> StoreError:
    """The error for a file that cannot be read, with what helps; a value that is too large is named in our words."""
    reason, remedy = str(error), RESTORE
    if isinstance(error, sqlite3.DataError):
        reason = (
            f"a value has more than {max_line_bytes() // 2**20} MiB, the limit (ours have kilobytes), which the "
            "environment variable HEADCOUNT_MAX_LINE_MB raises"
        )
    elif getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
        remedy = "A run writes to it; run the command again."
    return StoreError(f"{path} cannot be read: {reason}. {remedy}")


def _limited(connection: sqlite3.Connection) -> sqlite3.Connection:
    """Without values so large that they cannot be ours, which would take the memory of whoever reads them."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(max_line_bytes(), 2**31 - 1))
    return connection


def _require_plain_tables(connection: sqlite3.Connection) -> None:
    """Refuse views and triggers, which are never ours: one that has no end would be read without end."""
    others = "SELECT type, name FROM sqlite_master WHERE type NOT IN ('table', 'index') OR sql LIKE 'CREATE VIRTUAL%'"
    for kind, name in connection.execute(others):
        raise sqlite3.DatabaseError(f"it has a {kind} called {str(name)[:40]}")


def holds_tables(path: Path) -> bool:
    """Whether there is a file with anything in it: a run killed at its very start leaves none, or an empty one.

    A file that cannot be read counts as one, so that whoever opens it is told why.
    """
    if not path.exists():
        return False
    try:
        with contextlib.closing(read_only(path)) as connection:
            return connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] > 0
    except (sqlite3.Error, UnicodeDecodeError):
        return True


def is_intact(path: Path, key: str) -> bool:
    """Whether whoever opens the file now finds an undamaged one with the cell of this key; "" asks for no cell."""
    try:
        with contextlib.closing(read_only(path)) as connection:
            (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            rows = connection.execute("SELECT count(*) FROM cells WHERE key = ?", (key,)).fetchone()
            return verdict == "ok" and (not key or rows == (1,))
    except (sqlite3.Error, UnicodeDecodeError):
        return False


def _in_memory(connection: sqlite3.Connection) -> sqlite3.Connection:
    with contextlib.closing(connection):
        copy = _limited(sqlite3.connect(":memory:"))
        connection.backup(copy)
    return copy


def _bring_up(path: Path, connection: sqlite3.Connection, version: int) -> None:
    """Make the tables of an empty file, or those of an older format into ours: all of it or nothing."""
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        if version == 0:
            for statement in (*SCHEMA, *EXPERIMENTS):
                connection.execute(statement)
        else:
            migrate(path, connection, SCHEMA, version)
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _check(path: Path, connection: sqlite3.Connection, writing: bool) -> int:
    """Refuse a file that is newer, damaged or not ours, before anything could write to it; its format, 0 where empty.

    An empty file is what a run leaves that was killed before it wrote its first table.
    """
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"{path} was written by a newer headcount (format {version}, this one reads {SCHEMA_VERSION}); "
            "upgrade headcount."
        )
    if 0 < version < OLDEST_READ:
        raise StoreError(
            f"{path} was written by an older headcount (format {version}, this one reads {SCHEMA_VERSION}); "
            "run the command again in a new folder."
        )
    (pages,), (page_bytes,) = (connection.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size"))
    if writing or version < SCHEMA_VERSION or pages * page_bytes <= CHECKED_BYTES:
        (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict)
    _require_plain_tables(connection)
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if version == 0 and not (writing and not tables):
        raise sqlite3.DatabaseError("it holds no headcount tables")
    for table in tables:  # its first page
        connection.execute(f'SELECT 1 FROM "{table}" LIMIT 1').fetchone()
    return version
