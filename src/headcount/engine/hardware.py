"""What the machine has, how members are mapped on it, and how many of them fit."""

import os
import platform
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import jax

from .._choices import Backend
from ..backends import chosen, wanted
from ..backends.advance import ModelSizes
from .buckets import Shape

MEMORY_SHARE = 0.5
"""The share of free memory that one run plans to use."""
CPU_MEMBERS = 8
"""Members of a bucket on a CPU, where they run one after another and only their weights add up: few enough that all
cores have work and that little is lost when a run is stopped."""
GPU_SLOTS = (8, 32)
"""Up to so many members a GPU's step takes hardly longer than for one, so that empty slots are almost free."""
FUSED_SLOTS = (8, 32, 128, 512)
"""The same for the fused back end, where an empty slot costs nothing but its validation."""
GPU_WORKERS = 16
"""Buckets in hand at once on a GPU: one trains while the others compile, each on a core of its own."""
FUSED_BLOCK = 2048
"""Validation examples evaluated at a time by the fused back end, which keeps no hidden vectors."""
FUSED_STEPS = 32
"""Steps per call of the kernel that takes whole steps: enough that starting a call costs little, few enough that
drawing their batches needs no memory."""


@dataclass(frozen=True)
class Hardware:
    """`side_by_side`: members ride `vmap` (a GPU) rather than `lax.map` (a CPU). `workers`: buckets in hand at once.
    `backend`: what computes, where it has kernels for a model; `asked`: it was asked for by its name."""

    platform: str
    description: str
    memory: int
    workers: int
    side_by_side: bool
    backend: Backend = "reference"
    asked: bool = False


def hardware(*, backend: str | None = None) -> Hardware:
    """The device JAX chose, and the back end: "auto", "reference", "fused", or None for HEADCOUNT_BACKEND.

    Raises `InputError` for any other back end, and where "fused" is asked for and is not available.
    """
    return replace(_device(), backend=chosen(backend), asked=wanted(backend) != "auto")


def _device() -> Hardware:
    device = jax.devices()[0]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if device.platform == "cpu":
        return Hardware("cpu", f"CPU, {cores} cores{_cpu_model()}", _free_memory(), cores, side_by_side=False)
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


def _free_memory() -> int:
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return 4 << 30


class Sizes(NamedTuple):
    """What a program needs to know of a task at one length: numbers per token and per answer, sequences per example,
    and tokens of each."""

    dim: int
    outputs: int
    sequences: int
    tokens: int


def takes_whole_steps(shape: Shape, sizes: Sizes, backend: Backend) -> bool:
    """Whether a kernel takes whole training steps of these models, as far as sizes say."""
    known = _kernel_sizes(shape, sizes) is not None and shape.train.precision == "float32"
    return backend == "fused" and known and shape.train.train_examples > 0 and sizes.sequences == 1


def _kernel_sizes(shape: Shape, sizes: Sizes) -> ModelSizes | None:
    return shape.model.step_sizes(length=sizes.tokens, dim=sizes.dim, outputs=sizes.outputs)


def state_bytes(shape: Shape, sizes: Sizes) -> int:
    """Memory of a member that waits for its turn: its weights and Adam's moments."""
    return 4 * 3 * shape.model.parameters(length=sizes.tokens, dim=sizes.dim, outputs=sizes.outputs)


def member_bytes(shape: Shape, sizes: Sizes, backend: Backend = "reference") -> int:
    """Memory one member needs while it takes a step: its weights with Adam's moments, twice, and what its gradient
    needs. The fused back end keeps nothing of a batch but its indices; there validation needs most."""
    states = 2 * state_bytes(shape, sizes)
    if takes_whole_steps(shape, sizes, backend):
        model = _kernel_sizes(shape, sizes)
        assert model is not None
        pooled = min(FUSED_BLOCK, shape.train.validation_examples) * model.heads * (model.hidden + model.length)
        return states + 4 * (pooled + FUSED_STEPS * (shape.train.batch + 1))
    activations = sizes.sequences * shape.model.activations(length=sizes.tokens, dim=sizes.dim)
    return states + 4 * shape.train.batch * activations


def slots(members: int, most: int, machine: Hardware) -> int:
    """For how many members a program is compiled: few sizes, so that a bucket of another size needs no other program.

    Empty slots cost nothing on a CPU. On a GPU they are trained in vain, unless by the fused back end.
    """
    if not machine.side_by_side:
        return max(CPU_MEMBERS, members)
    sizes = FUSED_SLOTS if machine.backend == "fused" else GPU_SLOTS
    enough = next((count for count in sizes if members <= count), members)
    return max(members, min(enough, most))


def max_members(shape: Shape, sizes: Sizes, machine: Hardware) -> int:
    """How many members one bucket may hold: on a GPU one bucket trains while as many as the other workers wait."""
    if not machine.side_by_side:
        return CPU_MEMBERS
    bytes_each = member_bytes(shape, sizes, machine.backend) + (machine.workers - 1) * state_bytes(shape, sizes)
    return max(1, int(MEMORY_SHARE * machine.memory / bytes_each))
