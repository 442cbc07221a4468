"""Which device is measured, how a CPU is held to one core, the clock, and what the figures depend on."""

import importlib.util
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

_held = False
"""Whether this process was held to one core."""


def require_torch() -> None:
    """End with a sentence, before anything is measured, where PyTorch is not installed."""
    if importlib.util.find_spec("torch") is None:
        needed = f"{sys.executable} -m pip install torch"
        sys.exit(f"{Path(sys.argv[0]).name} compares headcount with PyTorch, which is not installed: {needed}")


def device_jax_sees() -> str:
    """Asked in another process: once JAX has started in this one, it is too late to choose cores and threads."""
    question = [sys.executable, "-c", "import jax; print(jax.default_backend())"]
    answer = subprocess.run(question, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    return "cuda" if answer == "gpu" else "cpu"


def share_the_card() -> None:
    """JAX takes memory as it needs it and leaves the rest to PyTorch."""
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"


def hold_to_one_core() -> None:
    """One thread and one core for all that follows; threads inherit the core, so this comes before JAX and PyTorch."""
    global _held
    _held = True
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    os.environ["OMP_NUM_THREADS"] = "1"
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def clock() -> float:
    """Seconds: the wall clock's, or of a process held to one core its CPU time, which no other process adds to."""
    return time.process_time() if _held else time.perf_counter()


def environment(device: str) -> dict:
    """The device and the versions, read from the libraries; PyTorch gets its one thread here."""
    import jax
    import torch

    if device == "cpu":
        torch.set_num_threads(1)
    return {
        "device": f"{_processor()}, one thread" if device == "cpu" else torch.cuda.get_device_name(),
        "versions": {"python": platform.python_version(), "jax": jax.__version__, "torch": torch.__version__},
    }


def _processor() -> str:
    """The processor's own name, where Linux tells it."""
    described = Path("/proc/cpuinfo")
    lines = described.read_text().splitlines() if described.exists() else []
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "CPU")
