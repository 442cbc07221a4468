"""How a results file is opened, so that no thread of a process takes away the locks of another.

On POSIX a process that closes any descriptor of a file loses all its locks on that file, those of other threads too.
SQLite knows that of its own connections; a file that is opened otherwise while a connection writes it is then unlocked
in mid-commit, and another process rolls that commit back. The file is therefore opened otherwise only while no
connection of this process may hold a lock on it, and never on a disk of this machine.
"""

import contextlib
import os
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from .._files import only_regular
from ..errors import StoreError
from .filesystem import shared_filesystem

WAIT_SECONDS = 10
"""Waited for whoever else has the file locked."""
_USES_WAL = 18
"""The byte of a SQLite file that is 2 where it has a write-ahead log."""
_opening = threading.RLock()
_locking: Counter[str] = Counter()
"""How many connections of this process may hold locks, by file."""


class LockingConnection(sqlite3.Connection):
    """A connection that takes file locks. One that is never closed counts as open to the end of the process."""

    counted = ""

    def close(self) -> None:
        """Close it; other connections may then look into the file."""
        super().close()
        with _opening:
            if self.counted:
                _locking[self.counted] -= 1
                self.counted = ""


def open_for_writing(path: Path) -> sqlite3.Connection:
    """A connection that may change the file, which is made where it is missing."""
    _require_regular(path)
    with _opening:
        return _counted(path, str(path), uri=False)


def open_for_reading(path: Path) -> sqlite3.Connection:
    """A connection that changes nothing but what a killed run left half done."""
    _require_regular(path)
    if _beside(path, "-journal").exists():
        _roll_back(path)
    address = f"{path.absolute().as_uri()}?mode=ro"
    with _opening:
        if is_unwritten(path):  # such a connection takes no locks
            return sqlite3.connect(f"{address}&immutable=1", uri=True)
        return _counted(path, address, uri=True)


def is_unwritten(path: Path) -> bool:
    """Whether nobody writes a file now, so that it can be read without locks.

    A folder that cannot be written has no place for the side files of a write-ahead log, and without a log they hold
    nothing. A file with a rollback journal does not show that it is written.
    """
    if _beside(path, "-wal").exists():
        return False
    if not shared_filesystem(path):
        return True
    with _opening:
        return not _locking[os.path.realpath(path)] and _uses_wal(path)


@contextlib.contextmanager
def one_state(connection: sqlite3.Connection) -> Iterator[Callable[[str], sqlite3.Cursor]]:
    """Queries that all see the file in one state, whatever is committed meanwhile: what executes them.

    On a shared file system nobody commits meanwhile, so that nothing else is to be done within.

    Example:
        >>> with one_state(sqlite3.connect(":memory:")) as run:
        ...     run("SELECT 1").fetchone()
        (1,)
    """
    begins = not connection.in_transaction
    if begins:
        connection.execute("BEGIN")
    try:
        yield connection.execute
    finally:
        if begins:
            with contextlib.suppress(sqlite3.Error):  # which one that was raised within says better
                connection.rollback()


def lost_log(connection: sqlite3.Connection) -> bool:
    """Whether commits were cut off a write-ahead log. Another program may merge the log and empty it, which loses none.

    SQLite keeps in memory which commits are in the log alone; where they are not there, merging them fails.
    """
    try:
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    except sqlite3.Error:
        return True
    return False


def _counted(path: Path, address: str, *, uri: bool) -> LockingConnection:
    """Connect and count it; `_opening` is held."""
    file = os.path.realpath(path)
    connection = sqlite3.connect(address, timeout=WAIT_SECONDS, uri=uri, factory=LockingConnection)
    _locking[file] += 1
    connection.counted = file
    return connection


def _roll_back(path: Path) -> None:
    """Undo what a run that was killed in mid-commit left half done; a commit that goes on is waited for."""
    with contextlib.suppress(sqlite3.Error), contextlib.closing(open_for_writing(path)) as connection:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()


def _uses_wal(path: Path) -> bool:
    """Whether the file has a write-ahead log, by reading it; no connection of this process may hold a lock on it."""
    try:
        with open(path, "rb", opener=only_regular) as file:
            return file.read(_USES_WAL + 1)[_USES_WAL:] == b"\x02"
    except OSError:
        return False


def _require_regular(path: Path) -> None:
    """Raise `StoreError` where the file, or one that SQLite opens with it, is a pipe, which it would wait for."""
    for each in (path, *(_beside(path, ending) for ending in ("-journal", "-wal", "-shm"))):
        if each.exists() and not each.is_file():
            raise StoreError(f"{each} is not a regular file; remove it, or choose another folder.")


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)
