"""What a sweep will do before it does it: buckets in working order, expected time and memory."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import jax

from ..tasks import AbstractObjective, AbstractTask
from .buckets import Bucket, Shape, buckets
from .data import PROBE_EXAMPLES
from .hardware import Hardware, Needs, Sizes, hardware, kernel_sizes, max_members, needs, slots
from .sweep import Sweep


class Pace(NamedTuple):
    """What compiling a program, starting a training step and its arithmetic cost, roughly, on the machines we saw.

    `read_seconds` is for a program that was compiled before and is read from disk.
    """

    compile_seconds: float
    step_seconds: float
    flops: float
    read_seconds: float


CPU_PACE = Pace(5.0, 5e-5, 1.2e10, 0.8)
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
"""What compiling a program leaves behind on a CPU, up to `MAX_PROGRAMS` of them: seen with both kinds of models."""
MAX_PROGRAMS = 4
COPIES = 2
"""Of the examples: as they are given, and as they are trained on."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Buckets still to be trained, the costly ones first, and what they will take.

    `seconds` are for programs that are still to be compiled, `compiled_seconds` for programs that are on disk: which
    they are can only be told by tracing them, half the time of reading one. `compile_seconds` are those of compiling
    alone, over all workers. `bytes` is the memory of the process at its peak; on a GPU, that of the device.
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
    bytes: int


def plan_sweep(
    sweep: Sweep,
    settled: Iterable[str] = (),
    machine: Hardware | None = None,
) -> Plan:
    """Group the cells that are not settled yet, and estimate what they will take."""
    machine = machine or hardware()
    settled = set(settled)
    sizes = _Sizes(sweep.by_key)
    whole = buckets(
        sweep.cells,
        lambda shape: max_members(shape, sizes.of(shape), sizes.objective(shape), machine),
        lambda members, most: slots(members, most, machine),
    )
    left = [
        replace(bucket, cells=cells)
        for bucket in whole
        if (cells := tuple(cell for cell in bucket.cells if cell.key not in settled))
    ]
    costs = [_bucket_seconds(bucket, sizes, machine) for bucket in left]
    programs = {
        (bucket.shape.program, bucket.slots, sizes.of(bucket.shape), _examples(bucket)): _pace(bucket, sizes, machine)
        for bucket in left
    }
    compiling = _over_workers([pace.compile_seconds for pace in programs.values()], machine)
    reading = _over_workers([pace.read_seconds for pace in programs.values()], machine)
    training = _over_workers(costs, replace(machine, workers=1) if machine.side_by_side else machine)
    return Plan(
        machine=machine,
        cells=len(sweep.cells),
        settled=len(sweep.cells) - sum(len(bucket.cells) for bucket in left),
        buckets=tuple(_working_order(left, costs)),
        programs=len(programs),
        model_steps=sum(len(bucket.cells) * bucket.shape.train.steps for bucket in left),
        compile_seconds=compiling,
        compiled_seconds=training + reading,
        seconds=training + compiling,
        bytes=_peak_bytes(left, sizes, machine, len(programs)),
    )


def sizes_of(task: AbstractTask) -> Sizes:
    """The sizes of a task at its length."""
    return Sizes(task.dim, task.outputs, *task.sequences)


class _Sizes:
    """The sizes of every task of a sweep at every length, each found once."""

    def __init__(self, tasks: Mapping[str, AbstractTask]):
        self.tasks = tasks
        self.known: dict[tuple[str, int], Sizes] = {}

    def of(self, shape: Shape) -> Sizes:
        place = shape.task, shape.length
        if place not in self.known:
            self.known[place] = sizes_of(self.tasks[shape.task].at(shape.length))
        return self.known[place]

    def objective(self, shape: Shape) -> AbstractObjective:
        return self.tasks[shape.task].at(shape.length).objective

    def needs(self, bucket: Bucket, members: int, machine: Hardware) -> Needs:
        """The memory of some members of a bucket."""
        given = bucket.shape, self.of(bucket.shape), self.objective(bucket.shape)
        return needs(*given, members, machine.backend, side_by_side=machine.side_by_side)

    def data_bytes(self, bucket: Bucket) -> int:
        """The examples of a bucket: those that are stored, at most as many as are asked for, or those drawn."""
        shape, task = bucket.shape, self.tasks[bucket.shape.task]
        sizes, (train, validation) = self.of(shape), _examples(bucket)
        drawn = 4 * ((train or PROBE_EXAMPLES) + validation) * sizes.sequences * sizes.tokens * sizes.dim
        if task.endless:
            return COPIES * drawn
        stored = sum(leaf.nbytes for leaf in jax.tree.leaves(task) if hasattr(leaf, "nbytes"))
        # An array's examples are tokens; those of images and passages are kept as they are, and smaller.
        return COPIES * (stored if task.tokenise is not None else min(stored, drawn))


def _working_order(left: list[Bucket], costs: list[float]) -> list[Bucket]:
    """Longest first, so that workers end together; pieces of one shape apart, not to wait for one compilation."""
    pieces: dict[Shape, int] = {}
    ranked = []
    for bucket, cost in zip(left, costs, strict=True):
        piece = pieces[bucket.shape] = pieces.get(bucket.shape, -1) + 1
        ranked.append(((piece, -cost), bucket))
    return [bucket for _, bucket in sorted(ranked, key=lambda entry: entry[0])]


def _over_workers(seconds: list[float], machine: Hardware) -> float:
    """How long the workers take for pieces of work that cannot be shared."""
    return max(max(seconds, default=0.0), sum(seconds) / (machine.workers * machine.machines))


def _bucket_seconds(bucket: Bucket, sizes: "_Sizes", machine: Hardware) -> float:
    shape, at = bucket.shape, sizes.of(bucket.shape)
    # A training step costs about three forward passes.
    forward = at.sequences * shape.model.flops(length=at.tokens, dim=at.dim, outputs=at.outputs)
    work = 3 * shape.train.batch * forward
    members, pace = len(bucket.cells), _pace(bucket, sizes, machine)
    starts = 1 if machine.side_by_side else members
    return shape.train.steps * (starts * pace.step_seconds + members * work / pace.flops)


def _examples(bucket: Bucket) -> tuple[int, int]:
    """How many examples there are: a program is compiled for their number."""
    return bucket.shape.train.train_examples, bucket.shape.train.validation_examples


def _pace(bucket: Bucket, sizes: "_Sizes", machine: Hardware) -> Pace:
    shape = bucket.shape
    fused = kernel_sizes(shape, sizes.of(shape), sizes.objective(shape), machine.backend) is not None
    if not machine.side_by_side:
        return FUSED_CPU_PACE if fused else CPU_PACE
    if bucket.shape.train.precision != "float32":
        return HALF_PACE
    return FUSED_GPU_PACE if fused else GPU_PACE


def _peak_bytes(left: list[Bucket], sizes: _Sizes, machine: Hardware, programs: int) -> int:
    """The process itself, the data of every task and length, and the members that are live at once."""
    if not left:
        return 0
    drawn = {(b.shape.task, b.shape.length, _examples(b)): b for b in left}
    data = sum(sizes.data_bytes(bucket) for bucket in drawn.values())
    if not machine.side_by_side:
        process = PROCESS_BYTES + PROGRAM_BYTES * min(programs, MAX_PROGRAMS)
        running = sorted((sum(sizes.needs(bucket, 1, machine)) for bucket in left), reverse=True)
        return process + data + sum(running[: machine.workers])
    each = [sizes.needs(bucket, len(bucket.cells), machine) for bucket in left]
    held = sorted((bucket.held for bucket in each), reverse=True)
    return data + sum(held[: machine.workers]) + max(bucket.turn for bucket in each)


class Fit:
    """What buckets take on workers that may differ from the machine they were planned for.

    Args:
        tasks: The tasks by the key under which shapes name them.
    """

    def __init__(self, tasks: Mapping[str, AbstractTask]):
        self._sizes = _Sizes(tasks)

    def program(self, bucket: Bucket) -> Hashable:
        """What the program of a bucket is compiled for: equal for buckets that share one."""
        return bucket.shape.program, bucket.slots, self._sizes.of(bucket.shape), _examples(bucket)

    def for_machine(self, bucket: Bucket, machine: Hardware) -> Bucket:
        """As many of a bucket's first cells as a worker on this machine trains at once, with the slots it wants."""
        shape = bucket.shape
        most = max(1, max_members(shape, self._sizes.of(shape), self._sizes.objective(shape), machine))
        cells = bucket.cells[:most]
        return Bucket(shape, cells, slots(len(cells), most, machine))

    def seconds(self, bucket: Bucket, machine: Hardware) -> float:
        """How long a worker on this machine trains a bucket, roughly, programs apart."""
        return _bucket_seconds(bucket, self._sizes, machine)
