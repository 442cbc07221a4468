"""Train a sweep: buckets over worker threads, every finished bucket committed at once, nothing trained twice."""

import contextlib
import datetime
import functools
import itertools
import math
import operator
import platform
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import jax
import numpy as np

from .._errors import HeadcountError
from .._version import __version__
from ..store import Cell, Outcome, Record, Store
from ..store.weights import Weights
from ..tasks import AnyTask, graded_by
from .data import Examples, Kept, Units, examples
from .grading import ERROR
from .hardware import Hardware
from .plan import Plan, plan_sweep, sizes_of
from .sweep import Bucket, Shape, Sweep
from .train import program

POLL_SECONDS = 0.25
CHECKPOINTS = 20
"""Points of a validation curve; between two of them a run can be stopped."""


class StopRequested(Exception):  # noqa: N818 - a signal, not an error
    """The run was asked to stop; what had finished is in the store."""


@dataclass(frozen=True)
class Trained:
    """What a worker hands to the thread that owns the store."""

    records: tuple[Record, ...]
    weights: dict[str, Weights]


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """How a run ended: cells found in the store, cells trained now, and how those came out."""

    already_done: int
    outcomes: dict[Outcome, int]
    seconds: float

    @property
    def failed(self) -> int:
        return self.outcomes.get(Outcome.FAILED, 0)


def run_sweep(
    sweep: Sweep,
    store: Store,
    *,
    command: str = "",
    on_steps: Callable[[int], None] = lambda model_steps: None,
    plan: Plan | None = None,
    stop: threading.Event | None = None,
) -> RunSummary:
    """Train every cell of the sweep that the store does not hold yet.

    `on_steps(n)` is called from worker threads whenever n more model-steps are done. A KeyboardInterrupt, or `stop`
    when it is set, ends the workers at their next checkpoint; what they finished is committed, and KeyboardInterrupt
    raised.
    """
    began = time.monotonic()
    plan = plan or plan_sweep(sweep, store.settled_keys())
    outcomes: dict[Outcome, int] = {}
    stop = stop or threading.Event()
    workshop = BucketTrainer(sweep.by_key, plan.machine, stop, on_steps)
    for bucket in plan.buckets[:1]:
        workshop.data_for(bucket.shape)  # refuses a task that cannot be learned before the store hears of it
    store.begin_sweep(command, sweep.cells)

    def commit(future: Future) -> None:
        trained: Trained = future.result()
        store.commit(trained.records, trained.weights)
        for record in trained.records:
            outcomes[record.outcome] = outcomes.get(record.outcome, 0) + 1

    with ThreadPoolExecutor(plan.machine.workers) as pool:
        pending = {pool.submit(workshop.train, bucket) for bucket in plan.buckets}
        done: set[Future] = set()
        try:
            while pending:
                done, pending = wait(pending, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
                if stop.is_set():
                    raise KeyboardInterrupt
                for future in done:
                    commit(future)
        except BaseException as error:
            stop.set()
            for future in pending:
                future.cancel()
            wait(pending)
            if isinstance(error, KeyboardInterrupt):
                for future in done | pending:  # committing again what was committed changes nothing
                    if not future.cancelled() and future.exception() is None:
                        commit(future)
            raise
    return RunSummary(already_done=plan.settled, outcomes=outcomes, seconds=time.monotonic() - began)


class BucketTrainer:
    """What the workers share: the tasks' data, one set a length, and the signal to stop."""

    def __init__(
        self,
        tasks: dict[str, AnyTask],
        machine: Hardware,
        stop: threading.Event,
        on_steps: Callable[[int], None],
    ):
        self.tasks, self.machine, self.stop, self.on_steps = tasks, machine, stop, on_steps
        self._data: dict[tuple, tuple[Examples, Units | None]] = {}
        self._lock = threading.Lock()
        self._compile_locks: dict[tuple[Shape, int], threading.Lock] = {}
        # A GPU does one bucket's steps at a time: interleaved with others' they took twice as long in all.
        self._device = threading.Lock() if machine.side_by_side else contextlib.nullcontext()

    def train(self, bucket: Bucket) -> Trained:
        """Train a bucket; split it when memory runs out, and record what fails instead of raising."""
        try:
            return self._train(bucket)
        except (StopRequested, HeadcountError):  # the latter speaks of the task, so of every bucket
            raise
        except Exception as error:  # whatever one bucket dies of must not take the others with it
            if self.stop.is_set():  # the signal that stops us may have stopped a compiler's process too
                raise StopRequested from error
            if "RESOURCE_EXHAUSTED" in str(error) and len(bucket.cells) > 1:
                half = len(bucket.cells) // 2
                parts = [
                    self.train(Bucket(bucket.shape, cells)) for cells in (bucket.cells[:half], bucket.cells[half:])
                ]
                return Trained(parts[0].records + parts[1].records, parts[0].weights | parts[1].weights)
            message = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no message'}"
            return Trained(tuple(_failure(cell, message) for cell in bucket.cells), {})

    def _train(self, bucket: Bucket) -> Trained:
        self._check_stop()
        shape = bucket.shape
        data, units = self.data_for(shape)
        task = self.tasks[shape.task]
        graded = graded_by(task)
        with self._lock:  # a cache hit, or two threads would each make one
            sizes = sizes_of(task)
            parts = program(shape, sizes.dim, sizes.outputs, self.machine.side_by_side, graded)
        states, members = parts.start(bucket.cells, data)
        steps = checkpoint_steps(shape.train.steps)
        with self._compile_locks.setdefault((shape, len(bucket.cells)), threading.Lock()):
            # No steps yet: the curve's first point, and a program that two threads must not compile twice.
            states, measured = parts.advance(states, members, data, 0)
        error = ERROR[graded]
        curves = [np.asarray(measured.validation[error])]
        with self._device:
            began = time.monotonic()
            for before, now in itertools.pairwise(steps):
                self._check_stop()
                states, measured = parts.advance(states, members, data, now - before)
                curves.append(np.asarray(measured.validation[error]))
                self.on_steps((now - before) * len(bucket.cells))
            seconds = (time.monotonic() - began) / len(bucket.cells)
        # Not while holding the device: compiling this, too, is done while another bucket trains.
        fitted = parts.judge(states, data.train) if isinstance(data.train, Kept) else {}
        curves = np.stack(curves)
        metrics = {error: states.best_error, f"final_{error}": measured.validation[error]}
        metrics |= {f"train_{error}": measured.train_error}
        metrics |= {name: grade for name, grade in measured.validation.items() if name != error}
        metrics |= {f"fitted_{name}": grade for name, grade in fitted.items()}
        metrics = {name: np.asarray(grade) for name, grade in metrics.items()}
        stacked = jax.tree.map(np.asarray, states.model)
        records, weights = [], {}
        for i, cell in enumerate(bucket.cells):
            own = {name: float(grade[i]) for name, grade in metrics.items()}
            record = _record(cell, steps, curves[:, i], own, self._provenance(seconds))
            records.append(record)
            if record.outcome is Outcome.FINISHED:
                model = jax.tree.map(operator.itemgetter(i), stacked).with_heads(cell.model.heads)
                if units is not None:
                    model = model.in_raw_units(*units)
                weights[cell.key] = model.to_arrays()
        return Trained(tuple(records), weights)

    def data_for(self, shape: Shape) -> tuple[Examples, Units | None]:
        key = (shape.task, shape.length, shape.train, shape.model.standardises)
        with self._lock:
            if key not in self._data:
                self._data[key] = examples(self.tasks[shape.task].at(shape.length), shape.model, shape.train)
            return self._data[key]

    def _check_stop(self) -> None:
        if self.stop.is_set():
            raise StopRequested

    def _provenance(self, seconds: float) -> dict[str, Any]:
        finished = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        return {
            "seconds": round(seconds, 4),
            "device": self.machine.description,
            "finished": finished,
            "versions": versions(),
        }


def checkpoint_steps(steps: int) -> tuple[int, ...]:
    """Where the curve is measured: 0, `steps`, and evenly between."""
    return tuple(sorted({round(steps * i / CHECKPOINTS) for i in range(CHECKPOINTS + 1)}))


def _record(
    cell: Cell, steps: Sequence[int], curve: np.ndarray, metrics: dict[str, float], provenance: dict[str, Any]
) -> Record:
    """A member that ended without finite numbers diverged; that is its answer, and its neighbours never notice."""
    finite = all(map(math.isfinite, metrics.values()))
    points = tuple((step, float(value)) for step, value in zip(steps, curve, strict=True) if np.isfinite(value))
    return Record(
        cell=cell,
        outcome=Outcome.FINISHED if finite else Outcome.DIVERGED,
        metrics=metrics if finite else {},
        curve=points,
        provenance=provenance,
        message="" if finite else f"the error stopped being finite after step {points[-1][0] if points else 0}",
    )


def _failure(cell: Cell, message: str) -> Record:
    return Record(
        cell=cell, outcome=Outcome.FAILED, metrics={}, curve=(), provenance={"versions": versions()}, message=message
    )


@functools.cache
def versions() -> dict[str, str]:
    """The versions of everything whose change could change the numbers."""
    ours = {"headcount": __version__, "python": platform.python_version()}
    return ours | {name: version(name) for name in ("jax", "jaxlib", "optax")}
