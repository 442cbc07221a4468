"""The library of kernels: found, loaded and made known to JAX, or why it is not.

It is a shared library with C symbols and no Python ABI, from the package `headcount_kernels`, or the file that
HEADCOUNT_KERNELS_LIBRARY names. JAX itself is imported only when the library is loaded.
"""

import ctypes
import functools
import importlib
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import HeadcountError

PACKAGE = "headcount_kernels"
PATH_VARIABLE = "HEADCOUNT_KERNELS_LIBRARY"
INSTALL = 'in a clone pip install ./kernels, or where there are wheels pip install "headcount[fast]"'
REINSTALL = f"install it again: {INSTALL}"
OPERATIONS = {
    "headcount_pool": "HeadcountPool",
    "headcount_pool_gradient": "HeadcountPoolGradient",
    "headcount_advance": "HeadcountAdvance",
}
"""Targets of `jax.ffi` and the symbols behind them, which end in the platform."""
GPU_OPERATIONS = {"headcount_advance_aside": "HeadcountAdvanceAside", "headcount_join": "HeadcountJoin"}
"""Those that only a GPU has: kernels next to XLA's stream."""
PLATFORMS = {"cpu": ("cpu", "Cpu"), "gpu": ("CUDA", "Gpu")}
"""JAX's name of the device, XLA's name of the platform, and the end of the symbols."""
ELF = b"\x7fELF\x02\x01"
"""How a 64-bit little-endian Linux library begins."""


@dataclass(frozen=True, kw_only=True)
class Kernels:
    """The library for a device, or `problem`: why there is none and what to do, a sentence without its full stop.

    `unit` is what its code is for: an instruction set such as "AVX-512", or "CUDA sm_90". Not `installed`: there is no
    library at all, as on any machine that has only the pure-Python package.
    """

    path: Path | None = None
    version: str = ""
    unit: str = ""
    problem: str = ""
    installed: bool = True


def kernels_for(platform: str) -> Kernels:
    """Return the kernels for a device, "cpu" or "gpu"; the library is loaded the first time."""
    named = os.environ.get(PATH_VARIABLE, "")
    return load_library(Path(named) if named else _packaged(), platform)


def _packaged() -> Path | None:
    """Find the library of the package; None without the package, or where a clone of it was not built."""
    try:
        path = importlib.import_module(PACKAGE).library_path()
    except ImportError:
        return None
    return path if path is not None and path.exists() else None


@functools.cache
def load_library(path: Path | None, platform: str) -> Kernels:
    """Load a library and make its operations known to JAX for a device. Nothing raises: see `Kernels.problem`."""
    if path is None:
        return Kernels(installed=False, problem=f"the fused kernels are not installed; to install them: {INSTALL}")
    try:
        return _loaded(path, platform)
    except HeadcountError as error:
        return Kernels(problem=str(error))


def _loaded(path: Path, platform: str) -> Kernels:
    if platform not in PLATFORMS:
        raise HeadcountError(f"there are no fused kernels for {platform}, only for {' and '.join(PLATFORMS)}")
    try:
        require_whole(path)
        opened = ctypes.CDLL(str(path))
        version, unit = (_word(opened, f"headcount_kernels_{name}") for name in ("version", "cpu"))
    except (OSError, AttributeError) as error:
        message = f"the fused kernels of {path} cannot be loaded ({_line(error)}); {REINSTALL}"
        raise HeadcountError(message) from error
    if platform == "gpu":
        has_gpu_part = hasattr(opened, "headcount_kernels_gpu")
        unit = _gpu_unit(_word(opened, "headcount_kernels_gpu").split() if has_gpu_part else ())
    _register(opened, path, platform)
    return Kernels(path=path, version=version, unit=unit)


def require_whole(path: Path) -> None:
    """Raise `OSError` for a file that is missing or truncated: to load part of a library can end the process."""
    with path.open("rb") as file:
        header = file.read(64)
    if len(header) < 64:
        raise OSError("the file is truncated")
    if header.startswith(ELF):  # its last part is a table, whose place and size the header says
        (start,) = struct.unpack_from("<Q", header, 40)
        size, count = struct.unpack_from("<HH", header, 58)
        if path.stat().st_size < start + size * count:
            raise OSError("the file is truncated")


def _word(opened: ctypes.CDLL, name: str) -> str:
    function = getattr(opened, name)
    function.restype = ctypes.c_char_p
    return (function() or b"").decode()


def _register(opened: ctypes.CDLL, path: Path, platform: str) -> None:
    """Make every operation known for a device."""
    import jax

    xla_platform, ending = PLATFORMS[platform]
    operations = OPERATIONS | (GPU_OPERATIONS if platform == "gpu" else {})
    try:
        for target, symbol in operations.items():
            jax.ffi.register_ffi_target(target, jax.ffi.pycapsule(getattr(opened, symbol + ending)), xla_platform)
    except AttributeError as error:
        raise HeadcountError(f"the fused kernels of {path} have no part for {platform}; {REINSTALL}") from error
    except Exception as error:  # of a type that changes with JAX
        refused = f"JAX {jax.__version__} refuses the fused kernels of {path} ({_line(error)})"
        raise HeadcountError(f"{refused}; install one that fits: {INSTALL}") from error


def _gpu_unit(targets: Sequence[str]) -> str:
    """Return the device's architecture, on which one of the targets must run."""
    import jax

    capability = str(getattr(jax.devices()[0], "compute_capability", ""))
    major, _, minor = capability.partition(".")
    if not targets:
        raise HeadcountError(f"the fused kernels were built without a GPU part; {REINSTALL}")
    if not (major.isdigit() and minor.isdigit()):
        return f"CUDA {capability}".strip()  # unknown: tried, and the reference takes over where it fails
    name, device = f"sm_{major}{minor}", int(major + minor)
    for target in targets:
        kind, _, number = target.partition("_")
        built = int("".join(filter(str.isdigit, number)) or 0)
        # Machine code (sm) runs on its own generation, from its version on; PTX (compute) on that one and later ones.
        if built <= device and (kind == "compute" or built // 10 == device // 10):
            return f"CUDA {name}"
    built = " ".join(targets)
    raise HeadcountError(f"the fused kernels were built for {built}, and this GPU is {name}; {REINSTALL}")


def _line(error: Exception) -> str:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return text.splitlines()[0].strip(" .")
