"""Train buckets: data, program, steps and checkpoints of one bucket after another, in any number of threads."""

import contextlib
import itertools
import operator
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from .._choices import Backend
from ..backends import say_once
from ..errors import HeadcountError, StoreError
from ..events import Event, Events
from ..models import AbstractModel, from_arrays
from ..store import Cell, Outcome, Record
from ..store.weights import Weights
from ..tasks import AbstractTask
from .buckets import Bucket, BucketShape, ProgramShape, parent_spec, spec_of
from .data import BucketData, PreparedData, PreparedExamples, RawExamples, StoredTokens
from .hardware import Hardware, TaskShape
from .plan import task_shape
from .records import checkpoint_steps, failure, provenance, record_of
from .together import Together
from .train import Measured, Member, Program, TrainState, backend_for, program

WATCHED_AT = 7
"""The checkpoint, of 20, at which a run may look at a model part-way: after a third of its training."""


class StopRequested(Exception):  # noqa: N818 - a signal, not an error
    """The run was asked to stop; what had finished is in the store."""


@dataclass(frozen=True)
class Glimpse:
    """A model part-way through its training: its cell, the steps it has taken, some training tokens to judge it on, its
    validation error, and that of the best constant answer with its standard error.

    Tokens and model are in standard units.
    """

    cell: Cell
    step: int
    model: AbstractModel
    tokens: Any
    error: float
    baseline: tuple[float, float]


Watch = Callable[[Glimpse], dict[str, Any]]
"""Sees the first model of a bucket part-way; what it returns is kept in that model's provenance."""


@dataclass(frozen=True)
class Trained:
    """Records and weights of a trained bucket, for the process that owns the store."""

    records: tuple[Record, ...]
    weights: dict[str, Weights]


@dataclass(frozen=True, kw_only=True)
class Job:
    """Buckets to be trained, the costly ones first, and all that training them needs.

    `tasks` have the keys by which shapes name them, `programs` counts what is to be compiled, and `weights_of` gives
    the weights of a cell's parent by its key. Once `stop` is set, workers end at their next checkpoint.
    """

    tasks: Mapping[str, AbstractTask]
    buckets: tuple[Bucket, ...]
    programs: int
    weights_of: Callable[[str], Weights]
    examples: PreparedExamples
    watch: Watch | None
    events: Events
    stop: threading.Event

    def data_for(self, shape: BucketShape) -> PreparedData:
        """The data of a shape, in this process."""
        return self.examples.prepared(self.tasks[shape.task], shape.length, shape.model, shape.train)


class BucketTrainer:
    """Trains the buckets of a job; the threads of a process share one."""

    def __init__(self, job: Job, machine: Hardware):
        self.job, self.machine = job, machine
        self._ready = set[tuple]()
        self._lock = threading.Lock()
        self._compile_locks: dict[tuple, threading.Lock] = {}
        self._by_reference = set[tuple[ProgramShape, TaskShape]]()
        # XLA does one bucket's steps at a time: interleaved with others' they took twice as long in all.
        self._device = threading.Lock() if machine.side_by_side else contextlib.nullcontext()
        self._together = Together() if machine.side_by_side else None

    def train(self, bucket: Bucket) -> Trained:
        """Train a bucket; split it when memory runs out, and record what fails instead of raising."""
        backend = self._backend(bucket.shape)
        try:
            return self._train(bucket, backend)
        except (StopRequested, HeadcountError):  # the latter is about the task, so about every bucket
            raise
        except Exception as error:  # a bucket that fails must not stop the others
            if self.job.stop.is_set():  # the signal that stops us may have stopped a compiler's process too
                raise StopRequested from error
            traceback.clear_frames(error.__traceback__)  # they hold the device's memory, which may be what ran out
            if "RESOURCE_EXHAUSTED" in str(error) and len(bucket.cells) > 1:
                half = len(bucket.cells) // 2
                halves = (bucket.cells[:half], bucket.cells[half:])
                parts = [self.train(Bucket(bucket.shape, cells, len(cells))) for cells in halves]
                return Trained(parts[0].records + parts[1].records, parts[0].weights | parts[1].weights)
            if isinstance(error, jax.errors.JaxRuntimeError) and backend == "fused":
                self._leave_to_reference(bucket.shape, error)
                return self.train(bucket)
            message = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no message'}"
            return Trained(tuple(failure(cell, message) for cell in bucket.cells), {})

    def _backend(self, shape: BucketShape) -> Backend:
        """Choose the back end of a shape: fused where it has kernels for it and none of them has failed."""
        backend = backend_for(shape.program, self.machine.backend)
        if backend != self.machine.backend and self.machine.asked:
            say_once(
                "the fused back end has kernels for class-token models of one layer with soft attention to all tokens, "
                f"in float32; plain JAX trains this {shape.model.kind} model."
            )
        with self._lock:
            return "reference" if self._compiled_for(shape) in self._by_reference else backend

    def _leave_to_reference(self, shape: BucketShape, error: Exception) -> None:
        """A kernel has failed: models of this shape and these sizes are trained in plain JAX from now on."""
        with self._lock:
            self._by_reference.add(self._compiled_for(shape))
        task, why = self._compiled_for(shape)[1], str(error).splitlines()[0].rstrip(".")
        say_once(
            f"the fused kernels cannot train {shape.model.heads} heads at length {task.tokens} with tokens of "
            f"{task.dim} numbers ({why}); plain JAX trains them, slower. To train everything so: --backend reference."
        )

    def _compiled_for(self, shape: BucketShape) -> tuple[ProgramShape, TaskShape]:
        """Return the compilation key of a shape's program."""
        return shape.program, task_shape(self.job.tasks[shape.task].at(shape.length))

    def _train(self, bucket: Bucket, backend: Backend) -> Trained:
        self._check_stop()
        shape = bucket.shape
        prepared = self.job.data_for(shape)
        data = prepared.data
        with self._lock:  # a cache hit, or two threads would each make one
            known_by = (*self._compiled_for(shape), self.machine.side_by_side, backend)
            parts = program(*known_by)
        trained = None if shape.from_random else [self._parent(cell, prepared) for cell in bucket.cells]
        states, members = parts.start(bucket.cells, data, slots=bucket.slots, trained=trained)
        steps = checkpoint_steps(shape.train.steps)
        # Not the program itself, which may be released before this trainer is.
        compiled_for = (known_by, bucket.slots, len(data.validation.targets), type(data.train))
        with self._compile_locks.setdefault(compiled_for, threading.Lock()):
            # Before it waits for the device, and not by two threads at once.
            parts.compile(states, members, data)
        with self._lock:
            self._ready.add(compiled_for)
            self.job.events(Event("programs", done=len(self._ready), total=max(self.job.programs, len(self._ready))))
        error = parts.task.objective.error
        with self._turn(parts, data):
            # No steps yet: the curve's first point.
            states, measured, _ = self._advance(parts, states, members, data, 0)
            curves = [np.asarray(measured.validation[error])]
            seconds = 0.0
            seen: dict[str, Any] = {}
            for before, now in itertools.pairwise(steps):
                self._check_stop()
                states, measured, took = self._advance(parts, states, members, data, now - before)
                seconds += took
                curves.append(np.asarray(measured.validation[error]))
                self.job.events(Event("steps", done=(now - before) * len(bucket.cells)))
                self.job.events(Event("checkpoint", done=now, detail=(bucket.cells, curves[-1][: len(bucket.cells)])))
                if len(curves) == WATCHED_AT + 1:
                    seen = self._look(bucket, states, now, prepared, float(curves[-1][0]))
        # Not while holding the device: compiling this, too, is done while another bucket trains.
        objective = parts.task.objective
        judged = RawExamples if objective.error == objective.batch_error else RawExamples | StoredTokens
        fitted = parts.judge(states, members, data.train) if isinstance(data.train, judged) else {}
        grades = {error: states.best_error, f"final_{error}": measured.validation[error]}
        grades |= {f"train_{objective.batch_error}": measured.train_error}
        grades |= {name: grade for name, grade in measured.validation.items() if name != error}
        grades |= {f"fitted_{name}": grade for name, grade in fitted.items()}
        grades = {name: np.asarray(grade) for name, grade in grades.items()}
        origin = provenance(self.machine, parts.backend, seconds / len(bucket.cells))
        return self._results(bucket, states, grades, np.stack(curves), prepared, origin, seen)

    def _turn(self, parts: Program, data: BucketData) -> contextlib.AbstractContextManager[Any]:
        """The bucket's turn on the device, or on a GPU its place among those that kernels train at the same time."""
        together = self._together if parts.by_kernel(data) else None
        return self._device if together is None else together.training()

    def _advance(
        self, parts: Program, states: TrainState, members: Member, data: BucketData, steps: int
    ) -> tuple[TrainState, Measured, float]:
        """Advance a bucket's members; also the seconds that are theirs."""
        if self._together is not None and parts.by_kernel(data):
            request = parts.request(states, members, data, steps)
            moved, seconds = self._together.advance(request)
            return *parts.measured(request, moved, data), seconds
        began = time.monotonic()
        states, measured = jax.block_until_ready(parts.advance(states, members, data, steps))
        return states, measured, time.monotonic() - began

    def _parent(self, cell: Cell, prepared: PreparedData) -> AbstractModel:
        """The trained model that a cell starts from, in standard units and without the heads that are removed."""
        try:
            parent = from_arrays(parent_spec(cell), self.job.weights_of(cell.parent))
        except HeadcountError as error:
            raise StoreError(
                f"a model with {spec_of(cell).heads} heads descends from cell {cell.parent}, which is lost: {error} "
                "Restore it from a copy, or choose another folder; what is stored is as it was."
            ) from error
        if prepared.units is not None:
            parent = parent.in_raw_units(*prepared.units.inverse())
        if not cell.removed:
            return parent
        return parent.head_removal(prepared.removal_tokens()).without(cell.removed)

    def _look(
        self, bucket: Bucket, states: TrainState, step: int, prepared: PreparedData, error: float
    ) -> dict[str, Any]:
        """Return the result of the `watch` callback for the bucket's first model."""
        if self.job.watch is None or not bucket.shape.from_random or prepared.data.probe is None:
            return {}
        cell = bucket.cells[0]
        model = jax.tree.map(lambda leaf: np.asarray(leaf)[0], states.model).with_heads(spec_of(cell).heads)
        return self.job.watch(Glimpse(cell, step, model, prepared.removal_tokens(), error, prepared.baseline))

    def _results(
        self,
        bucket: Bucket,
        states: TrainState,
        grades: dict[str, np.ndarray],
        curves: np.ndarray,
        prepared: PreparedData,
        origin: dict[str, Any],
        seen: dict[str, Any],
    ) -> Trained:
        """The members of a trained bucket as records, and the weights of those that finished."""
        steps = checkpoint_steps(bucket.shape.train.steps)
        baseline = dict(zip(("baseline", "baseline_noise"), prepared.baseline, strict=True))
        stacked = jax.tree.map(np.asarray, states.model)
        records, weights = [], {}
        for i, cell in enumerate(bucket.cells):
            metrics = {name: float(grade[i]) for name, grade in grades.items()} | baseline
            record = record_of(cell, steps, curves[:, i], metrics, origin | (seen if i == 0 else {}))
            records.append(record)
            if record.outcome is Outcome.FINISHED:
                model = jax.tree.map(operator.itemgetter(i), stacked).with_heads(spec_of(cell).heads)
                model = model if prepared.units is None else model.in_raw_units(*prepared.units)
                weights[cell.key] = model.to_arrays()
        return Trained(tuple(records), weights)

    def _check_stop(self) -> None:
        if self.job.stop.is_set():
            raise StopRequested
