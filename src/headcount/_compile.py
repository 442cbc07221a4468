"""Programs that come out the same to the last bit each time they are compiled, on a GPU too; and as few as needed.

Compiled programs are kept in memory by `KeptPrograms`, up to a number and up to a size. The size is counted in memory
maps: a program for a CPU is hundreds of them, the more the larger it is, and a process that has more than the system
allows (65,530 by default on Linux) ends.
"""

import ctypes
import functools
import gc
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import jax
import numpy as np
from jaxtyping import Array

T = TypeVar("T")

MAX_PROGRAMS = 64
MAX_MAPS = 12_288
"""Programs are let go where a process has more memory maps: about twenty programs, a fifth of what systems allow."""

_kept: list["KeptPrograms[Any]"] = []
_lock = threading.RLock()  # one for all: each lets go of the others' programs too
_left = 0
"""Memory maps that were left when everything had been let go."""


class KeptPrograms(Generic[T]):
    """A function that makes programs, and keeps those that were used last: same arguments, same compiled program.

    Before it makes a new one it drops the older half where this process has too many memory maps. Thread-safe.
    """

    def __init__(self, make: Callable[..., T]):
        functools.update_wrapper(self, make)
        self.make = make
        self._programs: OrderedDict[tuple, T] = OrderedDict()
        self.hits, self.misses = 0, 0
        _kept.append(self)

    def __call__(self, *arguments: Any) -> T:
        key = (arguments, tuple(map(type, arguments)))  # 1, 1.0 and True are equal, and other programs
        with _lock:
            if key in self._programs:
                self.hits += 1
                self._programs.move_to_end(key)
                return self._programs[key]
            self.misses += 1
            if _is_full():
                _let_go(share=0.5)
            self._programs[key] = self.make(*arguments)
            if len(self._programs) > MAX_PROGRAMS:
                self._programs.popitem(last=False)
            return self._programs[key]

    def __len__(self) -> int:
        return len(self._programs)

    def let_go(self, share: float = 1.0) -> None:
        """Forget the oldest programs; one that is in use lives as long as that."""
        with _lock:
            for _ in range(round(share * len(self._programs))):
                self._programs.popitem(last=False)


def let_go_of_programs() -> None:
    """Make room between two runs, where this process has too many memory maps: programs, and what JAX keeps itself.

    What is still needed is compiled again, or read from disk.
    """
    global _left
    if _is_full():
        _let_go(share=0.5)
        if memory_maps() > 0.75 * MAX_MAPS:
            jax.clear_caches()
            _let_go(share=1.0)
            _left = memory_maps()
    else:
        _return_free_memory()


def memory_maps() -> int:
    """Return how many memory maps this process has; 0 where the system does not say."""
    try:
        return Path("/proc/self/maps").read_bytes().count(b"\n")
    except OSError:
        return 0


def _is_full() -> bool:
    # Where letting go of everything left many, another time would not help.
    return memory_maps() > max(MAX_MAPS, 2 * _left)


def _let_go(share: float) -> None:
    for programs in _kept:
        programs.let_go(share)
    gc.collect()  # a program and its compiled functions hold each other
    _return_free_memory()


def _return_free_memory() -> None:
    """Return freed memory to the system: compiling frees much, and glibc, which alone has this function, keeps it."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def deterministic_jit(
    function: Callable[..., Any], *, donate: Sequence[int] = (), light: bool = False
) -> Callable[..., Any]:
    """Return `jax.jit`, without what makes a GPU's numbers depend on the compilation.

    XLA tries kernels against each other while it compiles for a GPU, and which one wins, and so how sums are rounded,
    changes from one compilation to the next. With deterministic operations it does not, and compiles in half the time.

    A `light` program runs for less time than it takes to compile: on a CPU it is optimised less, and compiled in half
    the time.
    """
    options: dict[str, str | bool | int] = {}
    if jax.default_backend() == "gpu":
        options["xla_gpu_deterministic_ops"] = True
    elif light and jax.default_backend() == "cpu" and not jax.config.read("jax_disable_most_optimizations"):
        options["xla_backend_optimization_level"] = 1
    return jax.jit(function, donate_argnums=tuple(donate), compiler_options=options or None)


def compile_ahead(program: Callable[..., Any], *arguments: Any) -> None:
    """Compile a jitted function for these arguments, so that calling it with their like only runs it."""
    program.lower(*arguments).compile()  # pyright: ignore[reportFunctionMemberAccess]


def on_device(array: Any, dtype: Any = None) -> Array:
    """Return the array as JAX computes with it. `jnp.asarray` would compile a program for every shape."""
    return jax.device_put(array if dtype is None else np.asarray(array, dtype))
