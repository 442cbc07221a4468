"""Train buckets as Ray tasks: one bucket on a CPU core, or as many as a GPU trains side by side.

Ray decides where a task runs, and runs it again where its worker or node is lost. Only this process writes results.
"""

import contextlib
import itertools
import os
import pickle
import sys
import time
from collections import deque
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import ray
from ray import cloudpickle
from ray.exceptions import (
    GetTimeoutError,
    NodeDiedError,
    ObjectLostError,
    OutOfMemoryError,
    RayError,
    WorkerCrashedError,
)
from ray.util.queue import Queue

from ..engine.buckets import Bucket
from ..engine.executors import POLL_SECONDS, Executor
from ..engine.hardware import Hardware
from ..engine.records import failure, versions
from ..engine.trainer import Glimpse, Job, Trained
from ..errors import HeadcountError, InputError
from ..events import Event
from ..tasks import AbstractTask
from .by_value import sent_by_value
from .connection import ClusterLostError, Connection
from .worker import WorkerSetup, introduce, train_buckets

START_SECONDS = 300.0
"""The first worker is waited for this long."""
LOOK_SECONDS = 5.0
"""How often the size of the cluster is asked for."""
MAX_RETRIES = 10
"""How often Ray trains a bucket again whose worker died."""
DEATHS = (WorkerCrashedError, NodeDiedError, ObjectLostError, OutOfMemoryError)
SENT_SETTINGS = ("jax_enable_x64", "jax_default_matmul_precision")
Group = tuple[Bucket, ...]


class RayExecutor(Executor):
    """See `ray_executor`."""

    def __init__(self, on: str, *, workers: int | None = None):
        self._connection, self._workers = Connection(on), workers
        # Set for this process alone, which does little with a GPU: what it would take, a worker on it has not.
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        settings = {name: getattr(jax.config, name) for name in SENT_SETTINGS}
        self._setup = WorkerSetup(settings, versions())
        self._sent: dict[int, tuple[AbstractTask, Any]] = {}
        try:
            found = ray.cluster_resources()
            self._unit = "GPU" if found.get("GPU") and os.environ.get("JAX_PLATFORMS") != "cpu" else "CPU"
            if not found.get(self._unit):
                raise InputError("the Ray cluster has neither CPUs nor GPUs: add nodes to it.", what="on", given=on)
            self._looked = time.monotonic()
            self._options = {"max_retries": MAX_RETRIES, "max_calls": 0, **self._resources(found)}
            self._news = Queue(actor_options={"num_cpus": 0, "max_restarts": -1})
            self.machine = replace(self._introduced(), machines=self._count(found))
        except BaseException:
            self.close()
            raise

    def trained(self, job: Job) -> Generator[Sequence[Trained], None, None]:
        run = ClusterRun(job, self._groups(job))
        # Ray reports the death of a worker on stdout, which is for results.
        with contextlib.redirect_stdout(sys.stderr):
            try:
                self._submit(run)
                while run.pending and not job.stop.is_set():
                    self._collect(run, POLL_SECONDS)
                    if run.error is None:
                        self._submit(run)  # a worker need not wait until what has finished is committed
                    yield run.take_finished()
                    if run.error is not None:
                        raise run.error
                self._collect(run, 0)
            except KeyboardInterrupt:
                yield run.take_finished()
                raise
            except (ClusterLostError, ConnectionError) as error:  # the latter of a client
                if not job.stop.is_set():
                    raise ClusterLostError from error
            finally:
                for reference in run.pending:
                    with contextlib.suppress(Exception):  # there may be no cluster any more
                        ray.cancel(reference)
        yield run.take_finished()

    def close(self) -> None:
        self._sent.clear()
        self._connection.close()

    def _count(self, found: Mapping[str, float]) -> int:
        """How many Ray tasks train at the same time on a cluster with these resources."""
        most = max(1, int(found.get(self._unit, 0)))
        if self._workers is None:
            return most
        return self._workers if self._unit == "CPU" else min(self._workers, most)

    def _resources(self, found: Mapping[str, float]) -> dict[str, float]:
        """What one Ray task takes: a GPU, or a CPU core; a part of one where more workers than cores are asked for."""
        if self._unit == "GPU":
            return {"num_gpus": 1, "num_cpus": 0}
        return {"num_cpus": min(1.0, max(1e-4, int(1e4 * found["CPU"] / (self._workers or 1)) / 1e4))}

    def _introduced(self) -> Hardware:
        """The machine of the first worker that answers; all are taken to be like it."""
        try:
            machine = ray.get(self._call(introduce, self._setup), timeout=START_SECONDS)
        except GetTimeoutError as error:
            raise HeadcountError(
                f"no worker of the Ray cluster has answered within {START_SECONDS:.0f} s: its CPUs and GPUs may be in "
                "use (`ray status` says so); try again when they are free."
            ) from error
        except RayError as error:
            if "No module named 'headcount" in str(error):
                message = "the nodes of the Ray cluster have no headcount: install there what is installed here."
                raise InputError(message, what="on") from error
            raise worker_failed(error) from error
        if isinstance(machine, InputError):
            raise machine
        return machine

    def _call(self, function: Any, *arguments: Any) -> Any:
        return ray.remote(**self._options)(function).remote(*arguments)

    def _groups(self, job: Job) -> deque[Group]:
        """The buckets of each Ray task, all of one task: as many as a worker trains at once, or its share of them."""
        size = max(1, min(self.machine.workers, len(job.buckets) // self.machine.machines))
        groups: deque[Group] = deque()
        for _, alike in itertools.groupby(job.buckets, key=lambda bucket: bucket.shape.task):
            rest = tuple(alike)
            groups += [rest[start : start + size] for start in range(0, len(rest), size)]
        return groups

    def _submit(self, run: "ClusterRun") -> None:
        """Give Ray as many tasks as train at once; where all workers may train, as many again are on the way."""
        while run.waiting and len(run.pending) < self.machine.machines * (1 if self._workers else 2):
            group, job = run.waiting[0], run.job
            parents = {cell.parent for bucket in group for cell in bucket.cells} - {""}
            weights = {key: job.weights_of(key) for key in parents}
            task = [self._reference(job.tasks[group[0].shape.task])]
            watched = job.watch is not None
            run.pending[self._call(train_buckets, self._setup, task, group, weights, self._news, watched)] = group
            run.waiting.popleft()

    def _reference(self, task: AbstractTask) -> Any:
        """A reference to a task that workers can read, with the user's code it is made of; put there once."""
        if id(task) in self._sent:
            return self._sent[id(task)][1]
        try:
            with sent_by_value(cloudpickle):
                reference = ray.put(task)
        except (TypeError, AttributeError, pickle.PicklingError) as error:
            raise InputError(
                f"the task {task.name} cannot be sent to workers ({_last_line(error)}): its functions may use no open "
                "files, locks or other things of this process. Train it without a cluster, or load such things inside.",
                what="on",
            ) from error
        self._sent[id(task)] = task, reference  # the task too: while it is there, no other has its id
        return reference

    def _collect(self, run: "ClusterRun", seconds: float) -> None:
        """Wait for results for some time, and take them in with the news of workers."""
        if not run.pending:
            return
        ready, _ = ray.wait(list(run.pending), num_returns=1, timeout=seconds)
        if ready:  # and all others that are
            ready, _ = ray.wait(list(run.pending), num_returns=len(run.pending), timeout=0)
        with contextlib.suppress(RayError):  # the queue is being started again
            run.hear(self._news.get_nowait_batch(self._news.qsize()))
        for reference in ready:
            run.take_in(reference)
        if time.monotonic() - self._looked > LOOK_SECONDS and self._connection.head_answers():
            self.machine = replace(self.machine, machines=self._count(ray.cluster_resources()))
            self._looked = time.monotonic()
        run.show(self.machine.machines)


class ClusterRun:
    """A job on the cluster: buckets that wait, those that Ray has, and what has finished and was not taken yet."""

    def __init__(self, job: Job, waiting: deque[Group]):
        self.job, self.waiting = job, waiting
        self.pending: dict[Any, Group] = {}
        self.error: HeadcountError | None = None
        self._finished: list[Trained] = []
        self._done, self._shown = 0, None
        self._steps: dict[str, int] = {}
        self._seen: dict[str, dict[str, Any]] = {}
        self._compiled = set[Any]()
        self._first = {bucket.cells[0].key: bucket for bucket in self.job.buckets}

    def take_finished(self) -> Sequence[Trained]:
        """Return what has finished since this was last called."""
        finished, self._finished = self._finished, []
        return finished

    def take_in(self, reference: Any) -> None:
        """Add what a Ray task has come to."""
        group = self.pending[reference]
        trained, error = [], None
        try:
            trained, error = ray.get(reference)
        except DEATHS:
            message = (
                f"{MAX_RETRIES + 1} workers died while they trained this bucket: out of memory? The same command "
                "trains it again; fewer workers per machine leave more memory to each."
            )
            cells = [cell for bucket in group for cell in bucket.cells]
            trained = [Trained(tuple(failure(cell, message) for cell in cells), {})]
        except RayError as failed:
            error = worker_failed(failed)
        self.error = self.error or error
        self._finished += map(self._with_seen, trained)
        del self.pending[reference]
        self._done += len(group)

    def hear(self, news: Sequence[Event | Glimpse]) -> None:
        """Pass on the news of workers; steps that are taken again after a death count once."""
        for each in news:
            if isinstance(each, Glimpse):
                if self.job.watch is not None and each.cell.key not in self._seen:
                    self._seen[each.cell.key] = self.job.watch(each)
                continue
            cells, _ = each.detail
            before = self._steps.get(cells[0].key, 0)
            bucket = self._first.get(cells[0].key)
            if bucket is None or each.done <= before:
                continue
            self._steps[cells[0].key] = each.done
            self._compiled.add((bucket.shape.program, bucket.shape.length, bucket.slots))
            compiled = len(self._compiled)
            self.job.events(Event("programs", done=compiled, total=max(self.job.programs, compiled)))
            self.job.events(Event("steps", done=(each.done - before) * len(cells)))
            self.job.events(each)

    def show(self, places: int) -> None:
        """Tell how many workers there are, and how many buckets are done."""
        now = Event("workers", done=self._done, total=len(self.job.buckets), detail=places)
        if now != self._shown:
            self._shown = now
            self.job.events(now)

    def _with_seen(self, trained: Trained) -> Trained:
        records = tuple(
            replace(record, provenance=record.provenance | self._seen.pop(record.cell.key, {}))
            for record in trained.records
        )
        return replace(trained, records=records)


def worker_failed(error: RayError) -> HeadcountError:
    """The error for what Ray says of a worker."""
    return HeadcountError(
        f"a worker failed: {_last_line(error)}. What is stored is as it was; the same command continues."
    )


def _last_line(error: BaseException) -> str:
    return str(error).strip().rpartition("\n")[2].rstrip(".") or type(error).__name__
