"""The results folders below a parent: how far each is, and whether a run holds it."""

import datetime
import itertools
import os
from dataclasses import dataclass
from pathlib import Path

from .._files import only_regular
from ..errors import HeadcountError
from .database import FILE_NAME
from .live import Live, State, read_live
from .store import LOCK_NAME, Progress, Store

MAX_DEPTH = 4
MAX_VISITED = 5000
"""Folders looked into: a home directory given by mistake ends, too."""
WRITING = ("running", "in use")
"""States in which results may change."""
SKIPPED = ("weights", "collisions", "node_modules", "__pycache__")


@dataclass(frozen=True, kw_only=True)
class FolderStatus:
    """State of a results folder. `problem` says why it cannot be read; empty where it can.

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


def results_below(parent: Path) -> list[Path]:
    """Results folders below a parent, itself included, sorted; links and hidden folders are not entered."""
    found, parent = [], Path(parent)
    for place, inner, _ in itertools.islice(os.walk(parent), MAX_VISITED):
        folder = Path(place)
        deep = len(folder.relative_to(parent).parts) >= MAX_DEPTH
        inner[:] = [] if deep else [name for name in inner if not name.startswith(".") and name not in SKIPPED]
        if os.path.isfile(folder / FILE_NAME):  # no error where it is unreadable
            found.append(folder)
    return sorted(found)


def folder_status(folder: Path) -> FolderStatus:
    """Read the status of a results folder; one that cannot be read has a `problem`."""
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
        changed=_last_change(folder),
        problem=problem,
    )


def run_state(folder: Path, live: Live | None) -> State | None:
    """Return whether a run writes a folder: by its `live.json`, then by the lock. None where there is neither."""
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


def _last_change(folder: Path) -> datetime.datetime:
    try:
        changed = os.stat(folder / FILE_NAME).st_mtime
    except OSError:
        changed = 0.0
    return datetime.datetime.fromtimestamp(changed, datetime.UTC)
