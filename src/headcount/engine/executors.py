"""Where buckets are trained: `Threads` of this process, or workers of a cluster (`cluster/`).

An executor only trains. Its caller owns the store and commits, so that a crash loses only buckets in training.
"""

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from .hardware import Hardware, hardware
from .trainer import BucketTrainer, Job, StopRequested, Trained

POLL_SECONDS = 0.25


class Executor(ABC):
    """Trains the buckets of one job after another. A context manager: what it holds is let go at its end."""

    @property
    @abstractmethod
    def machine(self) -> Hardware:
        """The device of a worker, and how many workers there are; plans are made for it."""

    @abstractmethod
    def trained(self, job: Job) -> Generator[Sequence[Trained], None, None]:
        """Yield the results of a job's buckets, whole or in parts, in any order: each time those that have finished.

        Once `job.stop` is set no bucket is begun, what was finished by then is still given, and the iterator ends.
        At a KeyboardInterrupt it does the same, then raises it. Closed early, it stops its workers.

        Raises:
            HeadcountError: A worker found something wrong with the task, so with every bucket.
        """

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """Let go of all workers."""

    def __enter__(self) -> "Executor":
        return self

    def __exit__(self, *_) -> None:
        self.close()


class Threads(Executor):
    """Threads of this process, as many as the device has use for.

    Args:
        machine: What was planned for; where None, what there is.
    """

    def __init__(self, machine: Hardware | None = None):
        self._machine = machine or hardware()

    @property
    def machine(self) -> Hardware:
        return self._machine

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
