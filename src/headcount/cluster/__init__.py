"""Training on a Ray cluster."""

import importlib.util
from typing import TYPE_CHECKING

from ..errors import InputError, require_count

if TYPE_CHECKING:
    from ..engine.executors import Executor

INSTALL = "pip install 'headcount[ray]'"


def ray_executor(on: str = "ray", *, workers: int | None = None) -> "Executor":
    """Return an executor that trains on a Ray cluster, for one sweep after another; close it at the end.

    One bucket per CPU core at a time, or where the cluster has GPUs, as many per GPU as it trains side by side.

    Args:
        on: "ray" for the cluster that RAY_ADDRESS names, or else one on this machine, started now and stopped when the
            executor is closed; "auto" for a cluster that was started here; "host:port" of a head, or "ray://host:port".
        workers: How many at most; without GPUs also more than there are cores. As many as there are where None.

    Returns:
        The executor, one of whose workers has answered.

    Raises:
        InputError: If Ray is not installed, nothing answers at the address, the cluster has neither CPUs nor GPUs, or
            its workers have another version of headcount, JAX or Python.

    Example:
        >>> with ray_executor("ray", workers=2) as executor:  # doctest: +SKIP
        ...     run_sweep(sweep, store, executor=executor)
    """
    if workers is not None:
        require_count("workers", workers)
    if importlib.util.find_spec("ray") is None:
        raise InputError(f"training on a Ray cluster needs Ray, which is not installed: {INSTALL}.", what="on")
    from .dispatch import RayExecutor

    return RayExecutor(on, workers=workers)
