"""headcount's own training, timed: the compiled program that `run_sweep` runs, on the data that `run_sweep` gives it.

Run as a script, it trains 32 members at T = 128 in one program and prints the peak memory of its process in bytes. It
never imports PyTorch, whose libraries would count.

`backend` is "fused" (our kernels), "reference" (JAX alone), or None: what `run_sweep` would choose.
"""

import contextlib
import resource
import sys
import threading
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.stages import Compiled, Lowered
from machine import clock

from headcount import ClassTokenSpec, TrainSpec, find_task, sweep
from headcount.engine import hardware
from headcount.engine.buckets import ProgramShape, buckets
from headcount.engine.data import BucketData, StoredTokens, prepare
from headcount.engine.hardware import TaskShape
from headcount.engine.plan import task_shape
from headcount.engine.train import Program, program
from headcount.models import AbstractSpec
from headcount.tasks import AbstractTask

HEADS = 4
HIDDEN = 32
BATCH = 256
TRAIN = TrainSpec(batch=BATCH)
MEMORY_LENGTH = 128
MEMORY_MEMBERS = 32
DRAWN_MEMBERS = 32
"""Models drawn at random for one program; more members are copies of them with batches of their own."""

_RUNNING = threading.Lock()
"""Programs may be compiled in several threads; they run one after another, or their memory would add up."""


class WarmProgram:
    """`members` models of one spec in one compiled program, warmed up.

    `first_errors` are the validation errors of all members after one step: those of two back ends should agree.
    `peak_bytes` is what the largest of its compiled programs holds: arguments, results and temporaries.
    """

    def __init__(
        self,
        task: AbstractTask,
        spec: AbstractSpec,
        train: TrainSpec,
        members: int = 1,
        data: BucketData | None = None,
        backend: str | None = None,
    ):
        cells = sweep(
            task,
            axes={"heads": [spec.heads], "seed": range(min(members, DRAWN_MEMBERS))},
            model=lambda _: spec,
            train=train,
        ).cells
        (bucket,) = buckets(cells, lambda _: members, lambda shape, count, most: count)
        self.data: BucketData = prepare(task, bucket.shape.model, train).data if data is None else data
        self.batch, self.members_count = train.batch, members
        self.program = _program(bucket.shape.program, task_shape(task), backend)
        self.states, self.members = _copied(*self.program.start(bucket.cells, self.data), members)
        with _recorded_programs() as compiled:
            self.program.compile(self.states, self.members, self.data)
        self.peak_bytes = max(map(_bytes, compiled), default=0)
        with _RUNNING:
            _, self.first_errors = self.advance(1)

    def advance(self, steps: int) -> tuple[float, np.ndarray]:
        """Train every member for `steps` steps and validate it, as between two checkpoints: seconds and errors."""
        began = clock()
        # The program uses up the states it is given: only the ones it returns can be used again.
        self.states, measured = self.program.advance(self.states, self.members, self.data, steps)
        jax.block_until_ready(self.states)
        errors = np.asarray(measured.validation[self.program.task.objective.error])
        return clock() - began, errors

    @property
    def stored_examples(self) -> StoredTokens:
        """The training examples, which these programs keep as tokens."""
        examples = self.data.train
        assert isinstance(examples, StoredTokens)
        return examples

    def seconds_per_model_step(self, steps: int) -> float:
        """The time of `advance(steps)`, its validation pass included, shared among members and steps."""
        seconds, errors = self.advance(steps)
        if np.isfinite(errors).mean() < 0.9:
            raise FloatingPointError("more than a tenth of the members diverged: this is not the time of training")
        return seconds / (steps * self.members_count)


class Engine(WarmProgram):
    """The model of the first paper's Table 2."""

    def __init__(
        self, *, length: int, members: int, heads: int = HEADS, backend: str | None = None, train: TrainSpec = TRAIN
    ):
        task = find_task("sum-of-maxima", length=length, intrinsic_dim=4, dim=4)
        self.spec = ClassTokenSpec(heads=heads, hidden=HIDDEN)
        self.sizes = {"length": length, "dim": task.dim, "outputs": task.outputs}
        forward = self.spec.flops(**self.sizes)
        self.flops = 3 * train.batch * forward  # per model and step; a backward pass is two forward passes
        super().__init__(task, self.spec, train, members, backend=backend)

    def drawn_models(self, members: int) -> Any:
        """Random weights of some members, stacked; without the heads that a program may be padded with."""
        drawn = [self.spec.init(seed, **self.sizes) for seed in range(min(members, DRAWN_MEMBERS))]
        return jax.tree.map(lambda *parts: np.stack([parts[place % len(parts)] for place in range(members)]), *drawn)


def _program(shape: ProgramShape, task: TaskShape, backend: str | None) -> Program:
    """The one place where a benchmark chooses a back end.

    Raises `InputError` where "fused" is asked for and is not available, `ValueError` where it has no kernels for the
    model.
    """
    machine = hardware(backend=backend)
    # Not out of the cache: threads that compile one and the same object could each replace what the other compiled.
    chosen = program.make(shape, task, machine.side_by_side, machine.backend)
    if backend is not None and chosen.backend != backend:
        raise ValueError(f"back end {backend} has no kernels for {shape.model}")
    return chosen


@contextlib.contextmanager
def _recorded_programs() -> Iterator[list[Compiled]]:
    """What this thread compiles ahead meanwhile."""
    _recording.programs = recorded = []
    try:
        yield recorded
    finally:
        _recording.programs = None


def _recording_compile(lowered: Lowered, *arguments: Any, **options: Any) -> Compiled:
    compiled = _compile(lowered, *arguments, **options)
    recorded = getattr(_recording, "programs", None)
    if recorded is not None:
        recorded.append(compiled)
    return compiled


_recording = threading.local()
_compile = Lowered.compile
Lowered.compile = _recording_compile  # type: ignore[method-assign] - JAX tells the memory of a program only to the process that compiled it


def _bytes(program: Compiled) -> int:
    size: Any = program.memory_analysis()
    kept = size.argument_size_in_bytes + size.output_size_in_bytes - size.alias_size_in_bytes
    return kept + size.temp_size_in_bytes


def _copied(states: Any, members: Any, count: int) -> tuple[Any, Any]:
    """States and members repeated until there are `count`, every member with batches of its own."""
    drawn = len(members.active)
    places = jnp.arange(count) % drawn
    states, members = jax.tree.map(lambda part: part[places], (states, members))
    keys = jax.vmap(jax.random.fold_in)(members.key, jnp.arange(count) // drawn) if count > drawn else members.key
    return states, members._replace(key=keys)


if __name__ == "__main__":
    engine = Engine(length=MEMORY_LENGTH, members=MEMORY_MEMBERS)
    for _ in range(3):
        engine.advance(20)
    unit = 1 if sys.platform == "darwin" else 1024  # Linux counts in KiB
    print(unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
