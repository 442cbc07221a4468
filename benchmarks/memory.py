"""How much memory a piece of PyTorch's work takes on top of what its process already holds."""

import ctypes
import gc
from collections.abc import Callable
from pathlib import Path

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def bytes_taken(device: str, work: Callable[[], object]) -> int | None:
    """The peak of PyTorch's memory on a GPU, or of the process's on a CPU, less what was held before `work`.

    None on a CPU where the system is not Linux.
    """
    return _on_gpu(work) if device == "cuda" else _resident(work)


def _resident(work: Callable[[], object]) -> int | None:
    if not CLEAR.exists():
        return None
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # memory that was freed but kept would hide what the work takes
    CLEAR.write_text("5")  # the peak starts again from here
    before = _status("VmRSS")
    work()
    return max(0, _status("VmHWM") - before)


def _on_gpu(work: Callable[[], object]) -> int:
    import torch

    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    work()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def _status(name: str) -> int:
    (line,) = (line for line in STATUS.read_text().splitlines() if line.startswith(f"{name}:"))
    return 1024 * int(line.split()[1])
