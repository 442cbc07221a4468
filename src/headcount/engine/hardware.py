"""What the machine has, how members are mapped on it, and how many of them fit."""

import os
import platform
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import jax

from .._choices import Backend
from ..backends import chosen
from .buckets import Shape

MEMORY_SHARE = 0.5
"""The share of free memory that one run plans to use."""
CPU_MEMBERS = 8
"""Members of a bucket on a CPU, where they run one after another and only their weights add up: few enough that all
cores have work and that little is lost when a run is stopped."""
GPU_SLOTS = (8, 32)
"""Up to so many members a GPU's step takes hardly longer than for one, so that empty slots are almost free."""
GPU_WORKERS = 6
"""Buckets in hand at once on a GPU: while one trains, the others compile, which takes about as long (seconds each)."""


@dataclass(frozen=True)
class Hardware:
    """`side_by_side`: members ride `vmap` (a GPU) rather than `lax.map` (a CPU). `workers`: buckets in hand at once.
    `backend`: what computes, where it has kernels for a model."""

    platform: str
    description: str
    memory: int
    workers: int
    side_by_side: bool
    backend: Backend = "reference"


def hardware(*, backend: str | None = None) -> Hardware:
    """The device JAX chose, and the back end: "auto", "reference", "fused", or None for HEADCOUNT_BACKEND.

    Raises `InputError` for any other back end, and where "fused" is asked for and is not available.
    """
    return replace(_device(), backend=chosen(backend))


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


def member_bytes(shape: Shape, sizes: Sizes) -> int:
    """Memory one member needs while it takes a step: its weights with Adam's moments, and what its gradient needs."""
    weights = 6 * shape.model.parameters(length=sizes.tokens, dim=sizes.dim, outputs=sizes.outputs)
    activations = sizes.sequences * shape.model.activations(length=sizes.tokens, dim=sizes.dim)
    return 4 * (weights + shape.train.batch * activations)


def slots(members: int, most: int, machine: Hardware) -> int:
    """For how many members a program is compiled: few sizes, so that a bucket of another size needs no other program.

    Empty slots cost nothing on a CPU. On a GPU they are trained in vain.
    """
    if not machine.side_by_side:
        return max(CPU_MEMBERS, members)
    enough = next((count for count in GPU_SLOTS if members <= count), members)
    return max(members, min(enough, most))


def max_members(shape: Shape, sizes: Sizes, machine: Hardware) -> int:
    """How many members one bucket may hold."""
    if not machine.side_by_side:
        return CPU_MEMBERS
    return max(1, int(MEMORY_SHARE * machine.memory / machine.workers / member_bytes(shape, sizes)))
