"""What runs on a worker: train the buckets of one Ray task in threads, without a results folder.

A worker process keeps what it has read, prepared and compiled, from task to task.
"""

import contextlib
import functools
import socket
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import jax

from .._cache import keep_compiled_programs
from ..engine.buckets import Bucket
from ..engine.data import PreparedExamples
from ..engine.executors import Threads
from ..engine.hardware import Hardware, hardware
from ..engine.records import versions
from ..engine.trainer import Job, Trained
from ..errors import HeadcountError, InputError, require
from ..events import Event
from ..store.weights import Weights
from ..tasks import AbstractTask

MAX_TASKS = 8
"""Tasks that a worker keeps, with their data: those that were used last."""


class WorkerSetup(NamedTuple):
    """How workers compute: settings of JAX by name, and the versions that this process has."""

    settings: dict[str, Any]
    versions: dict[str, str]


@dataclass
class KnownTask:
    """A task, its data, and the program that its function was found to be at each length."""

    task: AbstractTask
    examples: PreparedExamples = field(default_factory=PreparedExamples)
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


def introduce(setup: WorkerSetup) -> Hardware | InputError:
    """Return the machine of a worker, or why it cannot train what this process plans."""
    try:
        return _prepared(setup)
    except InputError as error:
        return error


def train_buckets(
    setup: WorkerSetup,
    task: Sequence[Any],
    buckets: tuple[Bucket, ...],
    parents: Mapping[str, Weights],
    news: Any,
    watched: bool,
) -> tuple[list[Trained], HeadcountError | None]:
    """Train some buckets of one task, given as a reference in a list, so that Ray does not read it for every call.

    `parents` are the weights that cells start from, by key. The queue `news` gets the events of checkpoints and, where
    `watched`, glimpses of models part-way. Returns what has finished, and an error about the task, with which no other
    bucket can be trained either.
    """
    trained: list[Trained] = []

    def hear(event: Event) -> None:
        if event.kind == "checkpoint":
            _tell(news, event)

    try:
        machine, known = _prepared(setup), _known_task(task[0])
        for bucket in buckets:
            known.require_program(bucket)
        job = Job(
            tasks={bucket.shape.task: known.task for bucket in buckets},
            buckets=buckets,
            programs=0,
            weights_of=parents.__getitem__,
            examples=known.examples,
            watch=(lambda glimpse: _tell(news, glimpse)) if watched else None,
            events=hear,
            stop=threading.Event(),
        )
        for finished in Threads(machine).trained(job):
            trained += finished
    except HeadcountError as error:
        return trained, _from_here(error)
    return trained, None


def _tell(news: Any, what: Any) -> dict[str, Any]:
    with contextlib.suppress(Exception):  # no result depends on it
        news.put(what)
    return {}


def _prepared(setup: WorkerSetup) -> Hardware:
    """The machine of this worker, ready to compute as asked. Raises `InputError` where it has other versions."""
    theirs, ours = setup.versions, versions()
    differing = [name for name in theirs if theirs[name] != ours.get(name)]
    here, there = (", ".join(f"{name} {each.get(name)}" for name in differing) for each in (theirs, ours))
    host = socket.gethostname()
    require(
        not differing,
        f"workers on {host} have {there}, but this process has {here}: install the same on both.",
        what="on",
    )
    for name, value in setup.settings.items():
        jax.config.update(name, value)
    return _machine()


@functools.cache
def _machine() -> Hardware:
    keep_compiled_programs()
    machine = hardware()
    return machine if machine.side_by_side else replace(machine, workers=1)


@functools.lru_cache(MAX_TASKS)
def _known_task(reference: Any) -> KnownTask:
    """The task of a reference, read once in this process."""
    import ray

    return KnownTask(ray.get(reference))


def _from_here(error: HeadcountError) -> HeadcountError:
    """An error about a task, with the host where it arose and what to do about it."""
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
