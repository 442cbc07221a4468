"""Where buckets are trained: `Threads` of this process, or workers of a cluster (`cluster/`); one word for it.

An executor only trains. Its caller owns the store and commits, so that a crash loses only buckets in training.
"""

import contextlib
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

from .._limits import require_size
from ..errors import require, require_count
from ..registry import first_of
from ..store import FILE_NAME, Store
from ..store.database import holds_tables
from .hardware import Hardware, hardware
from .trainer import BucketTrainer, Job, StopRequested, Trained

POLL_SECONDS = 0.25
THREADS = "threads"
KNOWN = (THREADS, "ray", "auto")
NEEDED = (
    "threads (this process), ray (RAY_ADDRESS, or a local cluster), ray://HOST:PORT (a Ray client's server), HOST:PORT "
    "(a Ray head, PORT 1 to 65535) or auto (the Ray cluster of this machine)"
)
_ADDRESS = re.compile(r"(?:ray://)?[^\s:/]+:([0-9]{1,5})")
PORTS = range(1, 2**16)
MAX_WORKERS = 10_000


class Executor(contextlib.AbstractContextManager["Executor"], ABC):
    """Trains the buckets of one job after another. A context manager: what it holds is released at its end."""

    machine: Hardware
    """The device of a worker, and how many workers there are; plans are made for it."""

    @abstractmethod
    def trained(self, job: Job) -> Generator[Sequence[Trained], None, None]:
        """Yield the results of a job's buckets, whole or in parts, in any order: each time those that have finished.

        Once `job.stop` is set no bucket is begun, what was finished by then is still given, and the iterator ends.
        At a KeyboardInterrupt it does the same, then raises it. Closed early, it stops its workers.

        Raises:
            HeadcountError: A worker found something wrong with the task, so with every bucket.
        """

    def close(self) -> None:
        """Let go of all workers."""

    def __exit__(self, *_) -> None:
        self.close()


class Threads(Executor):
    """Threads of this process, as many as the device that was planned for has use for; this machine's where None."""

    def __init__(self, machine: Hardware | None = None):
        self.machine = machine or hardware()

    def trained(self, job: Job) -> Generator[Sequence[Trained], None, None]:
        trainer = BucketTrainer(job, self.machine)
        with ThreadPoolExecutor(self.machine.workers) as pool:
            pending = {pool.submit(trainer.train, bucket) for bucket in job.buckets}
            try:
                while pending and not job.stop.is_set():
                    done, pending = wait(pending, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
                    yield from _results(done)
            except BaseException as error:
                job.stop.set()
                if not isinstance(error, KeyboardInterrupt):
                    raise
                yield from _results(_ended(pending))
                raise
            finally:
                for future in pending:
                    future.cancel()
            yield from _results(_ended(pending))


def _ended(pending: set[Future[Trained]]) -> set[Future[Trained]]:
    """The futures of buckets that were begun, once they have ended."""
    begun = {future for future in pending if not future.cancel()}
    wait(begun)
    return begun


def _results(done: set[Future[Trained]]) -> Iterator[Sequence[Trained]]:
    """Yield the results of finished buckets, if any; one that was stopped part-way has none.

    Raises what one of them has raised, after the others are given.
    """
    errors = {future: future.exception() for future in done}
    if finished := [future.result() for future, error in errors.items() if error is None]:
        yield finished
    for error in errors.values():
        if error is not None and not isinstance(error, StopRequested):
            raise error


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
    *,
    folder: Path | None = None,
) -> Iterator[Executor]:
    """Provide the executor that trains, for a `with` block; it is closed at the end.

    Args:
        on: "threads" of this process (also where None), "ray", "ray://host:port", "host:port" of a Ray head, or "auto".
            An executor is taken as it is, and stays open: several blocks share it.
        workers: How many workers of a Ray cluster train at most, of a local one also more than there are cores; where
            None, one per GPU, or one per core of machines without one.
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
        executor = Threads()
    else:
        if folder is not None and holds_tables(folder / FILE_NAME):
            Store.open_for_writing(folder).close()
        executor = first_of(lambda each: each.executor(on, workers=workers))
        assert executor is not None  # `check_where` knows the places
    with executor:
        yield executor
