"""Whether the files that a store has open are still those in its folder.

A file that is open outlives its name: without looking, a run would go on into a file that nobody can find any more.
"""

import contextlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

from ..errors import StoreError
from .connections import is_unwritten
from .filesystem import shared_filesystem

Look = tuple[tuple[int, int], int, int]
"""A file's device and number, its size, and when it was last written."""


class WrittenFiles:
    """The files of a folder that a run writes to, as it left them: each with its device, number, size and time.

    `names` are watched from when they are there; into those of them that are `alone` nobody else writes, except that
    another program may merge SQLite's log: `lost` says whether one that changed has lost something. Shared file systems
    may number a file anew and have clocks of their own, so that a number or a time says nothing there; nor does a time
    on Windows, which sets it when a file is closed.
    """

    def __init__(
        self,
        root: Path,
        names: tuple[str, ...],
        alone: tuple[str, ...] = (),
        lost: Callable[[], bool] = lambda: True,
    ):
        self._root, self._names, self._alone, self._lost = root, names, alone, lost
        self._numbered = not shared_filesystem(root)
        self._timed = self._numbered and os.name == "posix"
        self._left: dict[str, Look] = {}
        self._held: dict[str, int] = {}
        self.note()

    def note(self) -> None:
        """Remember the files as the run has just written them; `StoreError` where one was taken away meanwhile."""
        self._check_there()
        for name in self._names:
            if (self._root / name).is_dir() and name not in self._held:
                with contextlib.suppress(OSError):  # a system that opens no folders (Windows) does without
                    self._held[name] = os.open(self._root / name, os.O_RDONLY)
        self._left = {name: look for name in self._names if (look := _look(self._root / name)) is not None}

    def note_times(self) -> None:
        """Remember when the files were written, by a commit that may have failed."""
        for name, (number, size, _) in self._left.items():
            now = _look(self._root / name)
            if now is not None:
                self._left[name] = number, size, now[2]

    def close(self) -> None:
        """Let go of the folders that are held open, so that one which takes the place of another has a new number."""
        while self._held:
            os.close(self._held.popitem()[1])

    def check(self) -> None:
        """Raise `StoreError` where a file is gone, is another one, is shorter than it was left, or was overwritten."""
        self._check_there()
        for name, (_, size, written) in self._left.items():
            now = _look(self._root / name)
            if now is None:
                continue
            alone = name in self._alone
            if now[1] < size and (not alone or self._lost()):
                self._refuse(self._root / name, "was truncated", "Restore the folder from a copy")
            if alone and self._timed and now[2] != written and self._lost():
                self._refuse(self._root / name, "was overwritten by another program", "Restore the folder from a copy")

    def _check_there(self) -> None:
        for name, (number, *_) in self._left.items():
            now = _look(self._root / name)
            if now is None:
                gone = self._root / name if self._root.exists() else self._root
                self._refuse(gone, "was deleted or moved away", "Move it back")
            elif self._numbered and now[0] != number:
                self._refuse(self._root / name, "was replaced", "Put back the file that was there")

    def _refuse(self, path: Path, what: str, remedy: str) -> None:
        raise StoreError(
            f"{path} {what} while this run wrote to it; what was trained since is not stored. {remedy} and run the "
            "same command to go on, or run it with another folder."
        )


class ReadFile:
    """A file that is read as one that nobody writes."""

    def __init__(self, path: Path):
        self._path, self._stamp = path, _stamp(path) if is_unwritten(path) else None

    def note(self) -> None:
        """Whoever reads has written nothing."""

    def note_times(self) -> None:
        """Nor tried to."""

    def check(self) -> None:
        """Raise `StoreError` where it was written after all: parts of two states may have been read."""
        if self._stamp is not None and _stamp(self._path) != self._stamp:
            raise StoreError(f"{self._path} changed while it was read; run the command again.")


def _look(path: Path) -> Look | None:
    if (status := _status(path)) is None:
        return None
    size = 0 if stat.S_ISDIR(status.st_mode) else status.st_size
    return (status.st_dev, status.st_ino), size, status.st_mtime_ns


def _stamp(path: Path) -> tuple[int, int, int] | None:
    if (status := _status(path)) is None:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _status(path: Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None
