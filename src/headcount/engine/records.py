"""The records of trained members: outcome, curve, and what made them."""

import datetime
import functools
import math
import platform
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from .._choices import Backend
from .._version import __version__
from ..backends import backend_name
from ..store import Cell, Outcome, Record
from .hardware import Hardware

CHECKPOINTS = 20
"""Points of a validation curve; between two of them a run can be stopped."""


def checkpoint_steps(steps: int) -> tuple[int, ...]:
    """Where the curve is measured: 0, `steps`, and evenly between."""
    return tuple(sorted({round(steps * i / CHECKPOINTS) for i in range(CHECKPOINTS + 1)}))


def record_of(
    cell: Cell, steps: Sequence[int], curve: np.ndarray, metrics: dict[str, float], provenance: dict[str, Any]
) -> Record:
    """The record of a member; one that ended without finite numbers diverged."""
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


def failure(cell: Cell, message: str) -> Record:
    """The record of a cell that could not be trained, and why."""
    return Record(
        cell=cell, outcome=Outcome.FAILED, metrics={}, curve=(), provenance={"versions": versions()}, message=message
    )


def provenance(machine: Hardware, backend: Backend, seconds: float) -> dict[str, Any]:
    """Return the provenance of a bucket's records; `seconds` are those of one model."""
    return {
        "seconds": round(seconds, 4),
        "device": machine.description,
        "backend": backend_name(backend),
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "versions": versions(),
    }


@functools.cache
def versions() -> dict[str, str]:
    """The versions of everything whose change could change the numbers."""
    ours = {"headcount": __version__, "python": platform.python_version()}
    return ours | {name: version(name) for name in ("jax", "jaxlib", "optax")}
