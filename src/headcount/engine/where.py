"""Where models are trained: one word for it, in Python and on the command line."""

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from .._limits import require_size
from ..errors import require, require_count
from ..registry import executor_at
from ..store import FILE_NAME, Store
from ..store.database import holds_tables
from .executors import Executor, Threads
from .hardware import hardware

THREADS = "threads"
KNOWN = (THREADS, "ray", "auto")
NEEDED = (
    "threads (this process), ray (RAY_ADDRESS, or a local cluster), ray://HOST:PORT (a Ray client's server), HOST:PORT "
    "(a Ray head, PORT 1 to 65535) or auto (the Ray cluster of this machine)"
)
_ADDRESS = re.compile(r"(?:ray://)?[^\s:/]+:([0-9]{1,5})")
PORTS = range(1, 2**16)
MAX_WORKERS = 10_000


def check_where(on: str | None, workers: int | None = None) -> None:
    """Raise `InputError` for words that name no place, and for a number of workers without a cluster.

    Nothing is started or imported.
    """
    if on is not None and on not in KNOWN:
        address = _ADDRESS.fullmatch(on)
        require(address is not None and int(address[1]) in PORTS, what="on", given=on, needed=NEEDED)
    if workers is not None:
        require_count("workers", workers)
        require_size("workers", workers, MAX_WORKERS)
        require(
            on not in (None, THREADS),
            f"workers are those of a Ray cluster: give on ray too; got {workers} workers on {THREADS}.",
            what="workers on",
            given=workers,
        )


def starts_cluster(on: str | None) -> bool:
    """Whether a cluster is started on this machine, rather than an existing one used."""
    return on == "ray" and not os.environ.get("RAY_ADDRESS")


@contextlib.contextmanager
def executor_of(
    on: str | Executor | None = None,
    workers: int | None = None,
    backend: str | None = None,
    *,
    folder: Path | None = None,
) -> Iterator[Executor]:
    """Provide the executor that trains, for a `with` block; it is closed at the end.

    Args:
        on: "threads" of this process (also where None), "ray", "ray://host:port", "host:port" of a Ray head, or "auto".
            An executor is taken as it is, and stays open: several blocks share it.
        workers: How many workers of a Ray cluster train at most, of a local one also more than there are cores; where
            None, one per GPU, or one per core of machines without one.
        backend: As `hardware` takes it.
        folder: The results folder that will be written: where it cannot be, no cluster is started.

    Raises:
        InputError: If there is no such place, Ray is not installed, or its cluster does not answer.
        StoreError: If another process writes the folder, or it cannot be written.
    """
    if isinstance(on, Executor):
        yield on
        return
    check_where(on, workers)
    if on is None or on == THREADS:
        executor = Threads(hardware(backend=backend))
    else:
        if folder is not None and holds_tables(folder / FILE_NAME):
            Store.open_for_writing(folder).close()
        executor = executor_at(on, workers=workers, backend=backend)
    with executor:
        yield executor
