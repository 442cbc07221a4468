"""Plan a sweep: its buckets in working order, the expected time and memory."""

import functools
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import jax

from .._limits import require_fits
from ..tasks import AbstractTask
from .buckets import Bucket, BucketShape, buckets
from .data import PROBE_EXAMPLES
from .hardware import (
    CPU_MEMBERS,
    FUSED_SLOTS,
    GPU_SLOTS,
    Hardware,
    TaskShape,
    examples_at_once,
    hardware,
    kernel_sizes,
    max_members,
    needs,
)
from .sweep import Sweep


class Pace(NamedTuple):
    """Rough costs of compiling a program, of starting a training step and of its arithmetic, as measured.

    `read_seconds` is for a program that was compiled before and is read from disk.
    """

    compile_seconds: float
    step_seconds: float
    flops: float
    read_seconds: float


CPU_PACE = Pace(5.0, 5e-5, 1.2e10, 0.8)
PARTS_PACE = Pace(5.0, 5e-5, 8e10, 0.8)
"""A CPU that computes a batch in parts: encoders from 16 to 384 wide did 40 to 160 GFLOP per second on a core with
AVX-512."""
GPU_PACE = Pace(10.0, 1.5e-4, 4e12, 2.0)
HALF_PACE = Pace(15.0, 1.5e-4, 3e13, 2.0)
"""A GPU in half precision: seen with vision transformers of 1 to 16 heads."""
FUSED_CPU_PACE = Pace(2.5, 2e-5, 1.5e11, 0.4)
"""Where the fused back end takes whole steps, which leaves validation to be compiled: one core with AVX-512."""
FUSED_GPU_PACE = Pace(1.5, 8e-5, 7e12, 0.2)
"""The same on a GPU: seen on an H200 with Table 2 at paper scale, and with 1 and 1,024 members at length 8."""

PROCESS_BYTES = 320 << 20
"""Python with JAX, before the first model: seen on Linux."""
PROGRAM_BYTES = 250 << 20
"""Memory that compiling a program keeps on a CPU, up to `MAX_PROGRAMS` of them: seen with both kinds of models."""
MAX_PROGRAMS = 4
SLOWER = 4
"""How much slower than its pace a GPU may train thin models: vision transformers of one head."""
COPIES = 2
"""Of the examples: as they are given, and as they are trained on."""


@dataclass(frozen=True, kw_only=True)
class TrainingPlan:
    """Buckets still to be trained, the costly ones first, and what they will take.

    `seconds` are for programs that are still to be compiled, `compiled_seconds` for programs that are on disk: which
    they are can only be told by tracing them, half the time of reading one. `compile_seconds` are those of compiling
    alone, over all workers, `bucket_seconds` those of the longest bucket: what a worker that dies may lose.
    `bytes` is the memory of the process at its peak; on a GPU, that of the device. `largest` is what cannot be divided,
    its bytes and what it is: the examples of a length, or one model with a batch.
    """

    machine: Hardware
    cells: int
    settled: int
    buckets: tuple[Bucket, ...]
    programs: int
    model_steps: int
    compile_seconds: float
    compiled_seconds: float
    seconds: float
    bucket_seconds: float
    bytes: int
    largest: tuple[int, str]

    def require_trainable(self) -> None:
        """Raise `InputError` if the machine that was planned for, or the largest worker, has too little memory."""
        size, what = self.largest
        require_fits(what, size, self.machine.memory)


def plan_sweep(
    sweep: Sweep,
    settled: Iterable[str] = (),
    machine: Hardware | None = None,
) -> TrainingPlan:
    """Group the cells that are not settled yet, and estimate what they will take."""
    machine = machine or hardware()
    settled = set(settled)
    of = _Estimates(sweep.by_key, machine)
    whole = buckets(sweep.cells, of.max_members, of.slots)
    left = [
        bucket if len(cells) == len(bucket.cells) else replace(bucket, cells=cells)
        for bucket in whole
        if (cells := tuple(cell for cell in bucket.cells if cell.key not in settled))
    ]
    costs = [of.seconds(bucket) for bucket in left]
    programs = {(*of.compiled_for(bucket.shape), bucket.slots): of.pace(bucket.shape) for bucket in left}
    compiling = _over_workers([pace.compile_seconds for pace in programs.values()], machine)
    reading = _over_workers([pace.read_seconds for pace in programs.values()], machine)
    training = _over_workers(costs, replace(machine, workers=1) if machine.side_by_side else machine)
    return TrainingPlan(
        machine=machine,
        cells=len(sweep.cells),
        settled=len(sweep.cells) - sum(len(bucket.cells) for bucket in left),
        buckets=tuple(_working_order(left, costs)),
        programs=len(programs),
        model_steps=sum(len(bucket.cells) * bucket.shape.train.steps for bucket in left),
        compile_seconds=compiling,
        compiled_seconds=training + reading,
        seconds=training + compiling,
        bucket_seconds=max(costs, default=0.0),
        bytes=_peak_bytes(left, of, machine, len(programs)),
        largest=max((of.largest(bucket.shape) for bucket in left), key=operator.itemgetter(0), default=(0, "nothing")),
    )


def task_shape(task: AbstractTask) -> TaskShape:
    """What programs are compiled for of a task at its length."""
    return TaskShape(task.dim, task.outputs, *task.sequences, task.objective)


class _Estimates:
    """Estimates per shape of a sweep, each computed once: thousands of buckets share one.

    A task is asked for its sizes once per length, which traces its functions.
    """

    def __init__(self, tasks: Mapping[str, AbstractTask], machine: Hardware):
        self.tasks, self.machine = tasks, machine
        self._shape_at = functools.cache(lambda task, length: task_shape(tasks[task].at(length)))
        self.pace = functools.cache(self._pace)
        self.flops = functools.cache(self._flops)
        self.compiled_for = functools.cache(lambda shape: (shape.program, self.task_at(shape), _examples(shape)))
        self.needs = functools.cache(lambda shape, members: needs(shape, self.task_at(shape), members, machine))
        self.largest = functools.cache(self._largest)

    def task_at(self, shape: BucketShape) -> TaskShape:
        """The task of a shape at its length."""
        return self._shape_at(shape.task, shape.length)

    def is_fused(self, shape: BucketShape) -> bool:
        """Whether kernels take the training steps of a shape."""
        return kernel_sizes(shape, self.task_at(shape), self.machine.backend) is not None

    def max_members(self, shape: BucketShape) -> int:
        return max_members(shape, self.task_at(shape), self.machine)

    def slots(self, shape: BucketShape, members: int, most: int) -> int:
        """For how many members a program is compiled: few sizes, so that a bucket of another size has one already.

        Empty slots cost nothing on a CPU, and little by kernels. Plain JAX trains those of a GPU in vain: there are
        none where that may take as long as compiling.
        """
        if not self.machine.side_by_side:
            return max(CPU_MEMBERS, members)
        sizes = FUSED_SLOTS if self.machine.backend == "fused" else GPU_SLOTS
        enough = next((count for count in sizes if members <= count), members)
        wanted, pace = max(members, min(enough, most)), self.pace(shape)
        in_vain = (wanted - members) * shape.train.steps * self.flops(shape) / pace.flops
        return wanted if self.is_fused(shape) or in_vain <= pace.compile_seconds / SLOWER else members

    def seconds(self, bucket: Bucket) -> float:
        """Estimate the seconds that a bucket trains."""
        shape, members, pace = bucket.shape, len(bucket.cells), self.pace(bucket.shape)
        starts = 1 if self.machine.side_by_side else members
        return shape.train.steps * (starts * pace.step_seconds + members * self.flops(shape) / pace.flops)

    def data_bytes(self, shape: BucketShape) -> int:
        """The examples of a shape: those that are stored, at most as many as are asked for, or those drawn."""
        task, drawn = self.tasks[shape.task], self._drawn_bytes(shape)
        if task.endless:
            return COPIES * drawn
        stored = sum(leaf.nbytes for leaf in jax.tree.leaves(task) if hasattr(leaf, "nbytes"))
        # An array's examples are tokens; those of images and passages are kept as they are, and smaller.
        return COPIES * (stored if task.tokenise is not None else min(stored, drawn))

    def _drawn_bytes(self, shape: BucketShape) -> int:
        """The tokens and targets that are asked for."""
        task = self.task_at(shape)
        return 4 * _examples_drawn(shape) * (task.sequences * task.tokens * task.dim + task.outputs)

    def _largest(self, shape: BucketShape) -> tuple[int, str]:
        """Of a shape, what cannot be divided; examples of a file are in memory already."""
        task, outputs = self.tasks[shape.task], self.task_at(shape).outputs
        weights = shape.model.parameters(**self.task_at(shape).model_sizes)
        what = f"{task.name}: a model of {weights:,} weights with a batch of {shape.train.batch:,}"
        model = max(self.needs(shape, 1)), what
        if not task.endless:
            return model
        what = f"a set of {_examples_drawn(shape):,} examples of {shape.length:,} tokens and {outputs:,} outputs"
        examples = self._drawn_bytes(shape), f"{task.name}: {what}"
        return examples if examples[0] > model[0] else model

    def _flops(self, shape: BucketShape) -> float:
        """A training step of one member, which costs about three forward passes."""
        task = self.task_at(shape)
        return 3 * shape.train.batch * task.sequences * shape.model.flops(**task.model_sizes)

    def _pace(self, shape: BucketShape) -> Pace:
        fused = self.is_fused(shape)
        if not self.machine.side_by_side:
            in_parts = examples_at_once(shape, self.task_at(shape), side_by_side=False) < shape.train.batch
            return FUSED_CPU_PACE if fused else PARTS_PACE if in_parts else CPU_PACE
        if shape.train.precision != "float32":
            return HALF_PACE
        return FUSED_GPU_PACE if fused else GPU_PACE


def _working_order(left: list[Bucket], costs: list[float]) -> list[Bucket]:
    """Longest first, so that workers end together; pieces of one shape apart, not to wait for one compilation."""
    pieces: dict[BucketShape, int] = {}
    ranked = []
    for bucket, cost in zip(left, costs, strict=True):
        piece = pieces[bucket.shape] = pieces.get(bucket.shape, -1) + 1
        ranked.append(((piece, -cost), bucket))
    return [bucket for _, bucket in sorted(ranked, key=lambda entry: entry[0])]


def _over_workers(seconds: list[float], machine: Hardware) -> float:
    """Estimate the seconds of all workers for pieces of work that cannot be divided."""
    return max(max(seconds, default=0.0), sum(seconds) / (machine.workers * machine.machines))


def _examples(shape: BucketShape) -> tuple[int, int]:
    """Return the numbers of examples; a program is compiled for them."""
    return shape.train.train_examples, shape.train.validation_examples


def _examples_drawn(shape: BucketShape) -> int:
    """Return the number of examples that are drawn; of a stream, those its units are computed from."""
    train, validation = _examples(shape)
    return (train or PROBE_EXAMPLES) + validation


def _peak_bytes(left: list[Bucket], of: _Estimates, machine: Hardware, programs: int) -> int:
    """The process itself, the data of every task and length, and the members that are live at once."""
    if not left:
        return 0
    drawn = {(shape.task, shape.length, _examples(shape)): shape for bucket in left for shape in [bucket.shape]}
    data = sum(map(of.data_bytes, drawn.values()))
    if not machine.side_by_side:
        process = PROCESS_BYTES + PROGRAM_BYTES * min(programs, MAX_PROGRAMS)
        running = sorted((sum(of.needs(bucket.shape, 1)) for bucket in left), reverse=True)
        return process + data + sum(running[: machine.workers])
    each = [of.needs(bucket.shape, len(bucket.cells)) for bucket in left]
    held = sorted((bucket.held for bucket in each), reverse=True)
    return data + sum(held[: machine.workers]) + max(bucket.turn for bucket in each)
