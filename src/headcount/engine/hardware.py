"""Describe the machine, how members are mapped on it, and how many of them fit."""

import bisect
import os
import platform
from dataclasses import dataclass, replace
from math import log
from pathlib import Path
from typing import NamedTuple

import jax

from .._choices import Backend
from .._limits import max_bytes
from ..backends import choose_backend, kernels_for, requested_backend
from ..backends.advance import ModelSizes, scratch_floats
from ..tasks import AbstractObjective, Classification, Regression
from .buckets import BucketShape, ProgramShape

PLANNED_SHARE = 0.5
"""Of a GPU's memory: what the buckets in progress are planned to fill. Their programs need the rest."""
CPU_MEMBERS = 8
"""Members of a bucket on a CPU, where they run one after another and only their weights add up: few enough that all
cores have work and that little is lost when a run is stopped."""
GPU_SLOTS = (8, 32)
"""Up to these counts of members a GPU's step takes hardly longer than for one: empty slots are almost free."""
FUSED_SLOTS = (8, 32, 128, 512)
"""The same for the fused back end, where an empty slot costs nothing but its validation."""
GPU_WORKERS = 16
"""Buckets in progress at once on a GPU: some train while the others compile, each on a core of its own."""
MOST_MEMBERS = 1 << 20
"""Of a bucket, where memory sets no bound."""
FUSED_BLOCK = 2048
"""Validation examples evaluated at a time by the fused back end, which keeps no hidden vectors."""
FUSED_STEPS = 32
"""Steps per call of the kernel that takes whole steps: enough that starting a call costs little, few enough that
drawing their batches needs no memory."""
TOKENS_AT_ONCE = 256
"""Of the parts of a batch on a CPU. Training steps of encoders from 64 to 384 wide took 0.4 to 0.9 times as long as
whole batches on one core with AVX-512; with half or twice the tokens 0.9 to 1.4 times as long as with these."""
WHOLE_BYTES = 4 << 20
"""A batch that keeps at most this for its gradient is computed as a whole on a CPU: about what the caches hold."""
MAX_IN_PART = 4 * TOKENS_AT_ONCE
"""Examples of a part of a batch, at most."""


@dataclass(frozen=True)
class Hardware:
    """`memory`: the bytes that training may use. `side_by_side`: members ride `vmap` (a GPU) rather than `lax.map` (a
    CPU). `workers`: buckets in progress at once.
    `backend`: what computes, where it has kernels for a model; `asked`: it was asked for by its name. `machines`: how
    many there are of this kind, each with these workers and this memory."""

    platform: str
    description: str
    memory: int
    workers: int
    side_by_side: bool
    backend: Backend = "reference"
    asked: bool = False
    machines: int = 1


def hardware(*, backend: str | None = None) -> Hardware:
    """The device JAX chose, and the back end: "auto", "reference", "fused", or None for HEADCOUNT_BACKEND.

    Raises `InputError` for any other back end, and where "fused" is asked for and is not available.
    """
    return replace(_device(), backend=choose_backend(backend), asked=requested_backend(backend) != "auto")


def _device() -> Hardware:
    device = jax.devices()[0]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if device.platform == "cpu":
        return Hardware("cpu", f"CPU, {cores} cores{_cpu_model()}", max_bytes(), cores, side_by_side=False)
    limit = (device.memory_stats() or {}).get("bytes_limit", 8 << 30)
    return Hardware(device.platform, device.device_kind, limit, min(GPU_WORKERS, cores), side_by_side=True)


def _cpu_model() -> str:
    """Which processor it is, where the system says so: two of them may round differently."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return f" ({platform.processor()})" if platform.processor() else ""
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f" ({names[0]})" if names else ""


class TaskShape(NamedTuple):
    """What programs are compiled for of a task at one length: numbers per token and per answer, sequences per example,
    tokens of each, and the objective."""

    dim: int
    outputs: int
    sequences: int
    tokens: int
    objective: AbstractObjective

    @property
    def model_sizes(self) -> dict[str, int]:
        """The sizes that a model is made for."""
        return {"length": self.tokens, "dim": self.dim, "outputs": self.outputs}


def kernel_sizes(shape: BucketShape | ProgramShape, task: TaskShape, backend: Backend) -> ModelSizes | None:
    """The model as the kernel sees it that takes whole training steps; None where it cannot. Decided here alone."""
    stored = shape.train.train_examples > 0 and task.sequences == 1
    known = shape.train.precision == "float32" and isinstance(task.objective, Regression | Classification)
    if not (backend == "fused" and stored and known):
        return None
    return shape.model.step_sizes(**task.model_sizes)


def examples_at_once(shape: BucketShape | ProgramShape, task: TaskShape, *, side_by_side: bool) -> int:
    """Return how many examples of a batch are computed at a time: all on a GPU, of models without parts, or where
    they keep little.

    Otherwise a divisor of the batch, the one that gives parts of about `TOKENS_AT_ONCE` tokens.
    """
    batch = shape.train.batch
    kept = 4 * batch * task.sequences * shape.model.activations(length=task.tokens, dim=task.dim)
    if side_by_side or not shape.model.in_parts or kept <= WHOLE_BYTES:
        return batch
    tokens = task.sequences * task.tokens
    divisors = [*(count for count in range(1, min(batch, MAX_IN_PART + 1)) if batch % count == 0), batch]
    return min(divisors, key=lambda count: abs(log(count * tokens / TOKENS_AT_ONCE)))


class Needs(NamedTuple):
    """The memory of a bucket: `held` while it is in progress, and `turn` more while the device works for it alone."""

    held: int
    turn: int


def needs(shape: BucketShape, task: TaskShape, members: int, machine: Hardware) -> Needs:
    """Estimate the memory that some members need.

    In plain JAX a bucket waits for its turn with its weights and Adam's moments; a step needs them twice, and what its
    gradient needs. Kernels train several buckets at the same time on a GPU: each has its states twice, the batches of
    some steps and of those to come, and scratch memory; only validation has turns.
    """
    state = 4 * 3 * shape.model.parameters(**task.model_sizes)
    model, train = kernel_sizes(shape, task, machine.backend), shape.train
    if model is None:
        activations = task.sequences * shape.model.activations(length=task.tokens, dim=task.dim)
        at_once = examples_at_once(shape, task, side_by_side=machine.side_by_side)
        # Of a batch in parts the tokens are there as a whole; otherwise they are among the activations.
        shown = train.batch * task.sequences * task.tokens * task.dim if at_once < train.batch else 0
        return Needs(members * state, members * (state + 4 * (shown + at_once * activations)))
    scratch = 4 * _scratch_floats(model, members, train.batch) if machine.side_by_side else 0
    batches = 2 * 4 * FUSED_STEPS * (train.batch + 1)
    pooled = min(FUSED_BLOCK, train.validation_examples) * model.heads * (model.hidden + model.length)
    return Needs(members * (2 * state + batches) + scratch, members * 4 * pooled)


def _scratch_floats(model: ModelSizes, members: int, batch: int) -> int:
    return scratch_floats(model, members, batch) if not kernels_for("gpu").problem else 0


def max_members(shape: BucketShape, task: TaskShape, machine: Hardware) -> int:
    """Return how many members one bucket may hold: on a GPU as many buckets as there are workers are in progress."""
    if not machine.side_by_side:
        return CPU_MEMBERS

    def fits(members: int) -> bool:
        held, turn = needs(shape, task, members, machine)
        return machine.workers * held + turn <= PLANNED_SHARE * machine.memory

    # Not by division: scratch memory does not grow with the members for ever.
    return max(1, bisect.bisect_left(range(1, MOST_MEMBERS), True, key=lambda members: not fits(members)))
