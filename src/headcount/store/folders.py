"""The results folders below a parent: how far each is, and whether a run holds it."""

import contextlib
import datetime
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .._files import only_regular
from ..errors import HeadcountError
from .database import FILE_NAME
from .live import Live, State, read_live
from .table import LOCK_NAME, Progress, Store

MAX_DEPTH = 4
MAX_VISITED = 5000
"""Folders looked into: a home directory given by mistake ends, too."""
WRITING = ("running", "in use")
"""States in which results may change."""
SKIPPED = ("weights", "collisions", "node_modules", "__pycache__")


@dataclass(frozen=True, kw_only=True)
class FolderStatus:
    """What a results folder holds. `problem` says why it cannot be read; empty where it can.

    `state` is that of `run_state`; `changed` is when its results last changed.
    """

    folder: Path
    experiments: tuple[Progress, ...]
    state: State | None
    changed: datetime.datetime
    problem: str = ""

    @property
    def running(self) -> bool:
        """Whether something writes into the folder now."""
        return self.state in WRITING


def results_below(parent: Path, depth: int = MAX_DEPTH) -> list[Path]:
    """Results folders below a parent, itself included, sorted; links and hidden folders are not entered."""
    visited = (folder for _, folder in zip(range(MAX_VISITED), _below(Path(parent), depth), strict=False))
    return sorted(folder for folder in visited if os.path.isfile(folder / FILE_NAME))  # no error where it is unreadable


def folder_status(folder: Path) -> FolderStatus:
    """How far a results folder is; a folder that cannot be read has a `problem`."""
    experiments, problem = (), ""
    try:
        with Store.open_for_reading(folder) as store:
            experiments = tuple(store.progress())
    except HeadcountError as error:
        problem = str(error)
    return FolderStatus(
        folder=folder,
        experiments=experiments,
        state=run_state(folder, read_live(folder)),
        changed=datetime.datetime.fromtimestamp(_last_change(folder), datetime.UTC),
        problem=problem,
    )


def run_state(folder: Path, live: Live | None) -> State | None:
    """Whether a run goes on in a folder: by `live.json`, then by the lock. None where there is neither.

    Args:
        folder: The results folder.
        live: What `read_live` gave for it.
    """
    state = None if live is None else live.state()
    return "in use" if state not in ("running", "silent") and _is_held(folder) else state


def _is_held(folder: Path) -> bool:
    """Whether a process has the folder open for writing; never where the system has no such locks."""
    try:
        import fcntl

        with open(folder / LOCK_NAME, "rb", opener=only_regular) as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except (ImportError, OSError):
        return False
    return False


def _last_change(folder: Path) -> float:
    """When results were last written: into the file, or into the log beside it."""
    changed = 0.0
    for ending in ("", "-wal"):
        with contextlib.suppress(OSError):  # a run that ends removes its log
            changed = max(changed, os.stat(folder / f"{FILE_NAME}{ending}").st_mtime)
    return changed


def _below(folder: Path, depth: int) -> Iterator[Path]:
    yield folder
    if depth == 0:
        return
    try:
        with os.scandir(folder) as entries:
            inner = [entry.name for entry in entries if _is_entered(entry)]
    except OSError:
        return
    for name in inner:
        yield from _below(folder / name, depth - 1)


def _is_entered(entry: os.DirEntry) -> bool:
    hidden = entry.name.startswith(".") or entry.name in SKIPPED
    return not hidden and entry.is_dir(follow_symlinks=False)
