"""What a sweep will do before it does it: buckets in working order, expected time and memory."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..store import Precision
from ..tasks import AbstractTask
from .buckets import Bucket, Shape, buckets
from .hardware import Hardware, Sizes, hardware, max_members, member_bytes, slots
from .sweep import Sweep


class Pace(NamedTuple):
    """What compiling a program, starting a training step and its arithmetic cost, roughly, on the machines we saw."""

    compile_seconds: float
    step_seconds: float
    flops: float


CPU_PACE = Pace(2.0, 5e-5, 1.2e10)
GPU_PACE = Pace(10.0, 1.5e-4, 4e12)
HALF_PACE = Pace(15.0, 1.5e-4, 3e13)
"""A GPU in half precision: seen with vision transformers of 1 to 16 heads."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Buckets still to be trained, the costly ones first, and what they will take."""

    machine: Hardware
    cells: int
    settled: int
    buckets: tuple[Bucket, ...]
    programs: int
    model_steps: int
    seconds: float
    bytes: int


def plan_sweep(
    sweep: Sweep,
    settled: Iterable[str] = (),
    machine: Hardware | None = None,
) -> Plan:
    """Group the cells that are not settled yet, and estimate what they will take."""
    machine = machine or hardware()
    settled = set(settled)
    sizes = _Sizes(sweep)
    whole = buckets(
        sweep.cells,
        lambda shape: max_members(shape, sizes.of(shape), machine),
        lambda members, most: slots(members, most, machine),
    )
    left = [
        replace(bucket, cells=cells)
        for bucket in whole
        if (cells := tuple(cell for cell in bucket.cells if cell.key not in settled))
    ]
    costs = [_bucket_seconds(bucket, sizes.of(bucket.shape), machine) for bucket in left]
    programs = {(bucket.shape.program, bucket.slots, sizes.of(bucket.shape), _examples(bucket)) for bucket in left}
    pace = _pace(machine)
    return Plan(
        machine=machine,
        cells=len(sweep.cells),
        settled=len(sweep.cells) - sum(len(bucket.cells) for bucket in left),
        buckets=tuple(_working_order(left, costs)),
        programs=len(programs),
        model_steps=sum(len(bucket.cells) * bucket.shape.train.steps for bucket in left),
        seconds=sum(costs) / (1 if machine.side_by_side else machine.workers)
        + pace.compile_seconds * len(programs) / machine.workers,
        bytes=_peak_bytes(left, sizes, machine),
    )


def sizes_of(task: AbstractTask) -> Sizes:
    """The sizes of a task at its length."""
    return Sizes(task.dim, task.outputs, *task.sequences)


class _Sizes:
    """The sizes of every task of a sweep at every length, each found once."""

    def __init__(self, sweep: Sweep):
        self.tasks = sweep.by_key
        self.known: dict[tuple[str, int], Sizes] = {}

    def of(self, shape: Shape) -> Sizes:
        place = shape.task, shape.length
        if place not in self.known:
            self.known[place] = sizes_of(self.tasks[shape.task].at(shape.length))
        return self.known[place]


def _working_order(left: list[Bucket], costs: list[float]) -> list[Bucket]:
    """Longest first, so that workers end together; pieces of one shape apart, not to wait for one compilation."""
    pieces: dict[Shape, int] = {}
    ranked = []
    for bucket, cost in zip(left, costs, strict=True):
        piece = pieces[bucket.shape] = pieces.get(bucket.shape, -1) + 1
        ranked.append(((piece, -cost), bucket))
    return [bucket for _, bucket in sorted(ranked, key=lambda entry: entry[0])]


def _bucket_seconds(bucket: Bucket, sizes: Sizes, machine: Hardware) -> float:
    shape = bucket.shape
    # A training step costs about three forward passes.
    forward = sizes.sequences * shape.model.flops(length=sizes.tokens, dim=sizes.dim, outputs=sizes.outputs)
    work = 3 * shape.train.batch * forward
    members, pace = len(bucket.cells), _pace(machine, shape.train.precision)
    starts = 1 if machine.side_by_side else members
    return shape.train.steps * (starts * pace.step_seconds + members * work / pace.flops)


def _examples(bucket: Bucket) -> tuple[int, int]:
    """How many examples there are: a program is compiled for their number."""
    return bucket.shape.train.train_examples, bucket.shape.train.validation_examples


def _pace(machine: Hardware, precision: Precision = "float32") -> Pace:
    if not machine.side_by_side:
        return CPU_PACE
    return GPU_PACE if precision == "float32" else HALF_PACE


def _peak_bytes(left: list[Bucket], sizes: _Sizes, machine: Hardware) -> int:
    """Data of every task and length, and the members that are live at once."""
    stored = {
        (b.shape.task, b.shape.length, b.shape.train.train_examples + b.shape.train.validation_examples): b
        for b in left
    }
    data = sum(8 * count * length * sizes.of(b.shape).dim for (_, length, count), b in stored.items())
    live = sorted(
        (member_bytes(b.shape, sizes.of(b.shape)) * (len(b.cells) if machine.side_by_side else 1) for b in left),
        reverse=True,
    )
    return data + sum(live[: machine.workers])
