"""A process that trains buckets for another one: it gets a bucket, the task and parents' weights, and opens no store.

A plain class; `ray_cluster.py` runs it as an actor. What it has read, prepared and compiled it keeps from bucket to
bucket and from job to job.
"""

import contextlib
import socket
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from .._cache import keep_compiled_programs, keep_programs_in
from ..engine.buckets import Bucket
from ..engine.data import PreparedData, PreparedExamples
from ..engine.hardware import Hardware, hardware
from ..engine.records import versions
from ..engine.trainer import BucketTrainer, Glimpse, StopRequested, Trained
from ..errors import HeadcountError, InputError, require
from ..events import Event
from ..models import AbstractSpec
from ..store import TrainSpec
from ..store.weights import Weights
from ..tasks import AbstractTask

MAX_TASKS = 8
"""Tasks that a worker keeps, with their data: those that were not used for longest are let go."""


@dataclass(frozen=True, kw_only=True)
class Errand:
    """A bucket to be trained, by the number under which this process knows it.

    Args:
        job: Jobs are numbered upwards: one that is stopped, and those before it, train nothing more.
        ticket: The bucket's number within its job.
        bucket: What is to be trained.
        parents: The weights that its cells start from, by key; or why they cannot be read.
        watched: Whether a glimpse of the first model is wanted.
    """

    job: int
    ticket: int
    bucket: Bucket
    parents: Mapping[str, Weights | HeadcountError]
    watched: bool


@dataclass(frozen=True)
class Ready:
    """The program of a bucket is compiled."""

    ticket: int


@dataclass(frozen=True)
class Checkpoint:
    """The models of a bucket have taken some steps."""

    ticket: int
    step: int
    errors: Float[np.ndarray, " cells"]


@dataclass(frozen=True)
class Seen:
    """A model of a bucket part-way through its training."""

    ticket: int
    glimpse: Glimpse


News = Ready | Checkpoint | Seen


@dataclass(frozen=True, kw_only=True)
class Finished:
    """What came of an errand: what was trained, None where it was stopped first, or an error that is about the task.

    `news` is what was not asked for in time.
    """

    ticket: int
    result: Trained | HeadcountError | None
    news: tuple[News, ...]


@dataclass(frozen=True)
class Introduction:
    """What a worker is: its device, its host, the versions of what computes there, and the CPU cores of the host."""

    machine: Hardware
    host: str
    versions: dict[str, str]
    cores: int = 0

    def require_our_versions(self) -> None:
        """Raise `InputError` where a worker computes with other versions than this process has."""
        ours = versions()
        differing = {name: theirs for name, theirs in self.versions.items() if theirs != ours.get(name)}
        theirs = ", ".join(f"{name} {version}" for name, version in differing.items())
        here = ", ".join(f"{name} {ours.get(name)}" for name in differing)
        message = f"workers on {self.host} have {theirs}, but this process has {here}: install the same on both."
        require(not differing, message, what="on")


class Worker:
    """Trains what it is given, in as many threads as call it.

    Args:
        backend: As for `hardware`.
        in_hand: Buckets at once, each in a thread of its own.
        compiled: Where compiled programs are kept: a folder, "" for the user's own cache, None for nowhere.
        settings: Of JAX, by name, besides those that the environment has.
    """

    def __init__(
        self,
        *,
        backend: str | None = None,
        in_hand: int = 1,
        compiled: str | None = None,
        settings: Mapping[str, Any] | None = None,
    ):
        if compiled == "":
            keep_compiled_programs()
        elif compiled is not None:
            keep_programs_in(Path(compiled))
        for name, value in (settings or {}).items():
            jax.config.update(name, value)
        machine = hardware(backend=backend)
        self._machine, self._cores = replace(machine, workers=in_hand), machine.workers
        self._job, self._stopped_job = 0, 0
        self._tasks, self._news, self._lock = _Tasks(), list[News](), threading.Lock()
        self._here = threading.local()  # the errand of a thread
        self._trainer = BucketTrainer(
            self._tasks.by_key,
            self._machine,
            threading.Event(),
            self._hear,
            programs=0,
            weights_of=self._parent,
            examples=self._tasks,
        )

    def introduction(self) -> Introduction:
        """What this worker is."""
        return Introduction(self._machine, socket.gethostname(), versions(), self._cores)

    def train(self, errand: Errand, fetch: Callable[[], AbstractTask]) -> Finished:
        """Train a bucket. `fetch` gives its task, and is called only where it is not known here yet."""
        result: Trained | HeadcountError | None = None
        with contextlib.suppress(StopRequested):
            try:
                with self._on(errand, fetch):
                    result = self._trainer.train(errand.bucket)
            except HeadcountError as error:
                result = _from_here(error)
        with self._lock:
            news = tuple(each for each in self._news if each.ticket == errand.ticket)
            self._news = [each for each in self._news if each.ticket != errand.ticket]
        return Finished(ticket=errand.ticket, result=result, news=news)

    def news(self) -> tuple[News, ...]:
        """What happened since it was last asked for."""
        with self._lock:
            news, self._news = tuple(self._news), []
        return news

    def stop(self, job: int) -> None:
        """Buckets of this job and of those before it end at their next checkpoint, and none is begun."""
        with self._lock:
            self._stopped_job = max(self._stopped_job, job)
            if self._job <= self._stopped_job:
                self._trainer.stop.set()

    @contextlib.contextmanager
    def _on(self, errand: Errand, fetch: Callable[[], AbstractTask]) -> Iterator[None]:
        """An errand in hand in this thread, its task known."""
        with self._lock:
            if errand.job <= self._stopped_job:
                raise StopRequested
            if errand.job > self._job:  # what is left of earlier ones was stopped by whoever sends this
                self._job = errand.job
                self._news.clear()
                self._trainer.stop.clear()
            self._trainer.watch = self._tell_seen if errand.watched else None
        self._here.errand = errand
        with self._tasks.known(errand.bucket, fetch):
            yield

    def _parent(self, key: str) -> Weights:
        weights = self._here.errand.parents[key]
        if isinstance(weights, HeadcountError):
            raise weights
        return weights

    def _tell(self, news: News) -> None:
        with self._lock:
            self._news.append(news)

    def _hear(self, event: Event) -> None:
        if event.kind == "programs":
            self._tell(Ready(self._here.errand.ticket))
        elif event.kind == "checkpoint":
            self._tell(Checkpoint(self._here.errand.ticket, event.done, np.array(event.detail[1])))

    def _tell_seen(self, glimpse: Glimpse) -> dict[str, Any]:
        self._tell(Seen(self._here.errand.ticket, glimpse))
        return {}


def _from_here(error: HeadcountError) -> HeadcountError:
    """An error about a task, with the host where it arose; one about the results folder arose in another process."""
    if not isinstance(error, InputError):
        return error
    cause, hint = error.__cause__, ""
    if isinstance(cause, OSError):
        hint = (
            " Workers have none of your files: load it outside of the function, so that what was loaded is sent along."
        )
    elif isinstance(cause, ImportError):
        hint = (
            " Workers have none of your modules, but get those that are imported when the task is made: import it at "
            "the top of the file, or install it there."
        )
    message = f"a worker on {socket.gethostname()} refuses: {error}{hint}"
    return InputError(message, what=error.what, given=error.given, needed=error.needed)


@dataclass(eq=False)
class _Known:
    """A task, its data, and the program that its function was found to be at each length."""

    task: AbstractTask
    data: PreparedExamples = field(default_factory=PreparedExamples)
    probes: dict[int, str] = field(default_factory=dict)

    def require_program(self, bucket: Bucket) -> None:
        """Raise `InputError` where the task's function is another program here than where cells got their keys."""
        length, wanted = bucket.shape.length, {cell.probe for cell in bucket.cells}
        if length not in self.probes:
            self.probes[length] = self.task.at(length).probe()
        require(
            wanted == {self.probes[length]},
            f"{self.task.name}: there the user-supplied function is another program than in the process that "
            f"planned the training (length {length}). It reads something that differs or has changed since, such "
            "as an environment variable or a file: read that outside of the function, so that its value is sent along, "
            "or make it the same on every machine.",
        )


class _Tasks(PreparedExamples):
    """Tasks by their key, and the data of each; besides those in use, at most `MAX_TASKS`."""

    def __init__(self):
        super().__init__()
        self.by_key: dict[str, AbstractTask] = {}
        self._entries: OrderedDict[str, _Known] = OrderedDict()
        self._users = Counter[str]()
        self._reading = threading.Lock()

    @contextlib.contextmanager
    def known(self, bucket: Bucket, fetch: Callable[[], AbstractTask]) -> Iterator[None]:
        """A bucket's task is known under its key; those that were not used for longest are forgotten.

        One whose function has become another program is fetched again, and so are its data: of what the function read
        when it was first called, nothing is left.
        """
        key, length = bucket.shape.task, bucket.shape.length
        with self._reading:
            known = self._entries.get(key)
            if known is None or known.probes.get(length, bucket.cells[0].probe) != bucket.cells[0].probe:
                known = self._entries[key] = _Known(fetch())
                self.by_key[key] = known.task
            known.require_program(bucket)
            self._entries.move_to_end(key)
            self._users[key] += 1
            for other in [each for each in self._entries if not self._users[each]][:-MAX_TASKS]:
                del self.by_key[other], self._entries[other]
        try:
            yield
        finally:
            self._users[key] -= 1

    def of(self, task: AbstractTask, length: int, spec: AbstractSpec, train: TrainSpec) -> PreparedData:
        data = next(known.data for known in tuple(self._entries.values()) if known.task is task)
        return data.of(task, length, spec, train)
