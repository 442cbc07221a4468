"""Programs that come out the same to the last bit each time they are compiled, on a GPU too; and as few as needed."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Array


def deterministic_jit(
    function: Callable[..., Any], *, donate: Sequence[int] = (), light: bool = False
) -> Callable[..., Any]:
    """`jax.jit`, without what makes a GPU's numbers depend on the compilation.

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
    """The array as JAX computes with it. `jnp.asarray` would compile a program for every shape."""
    return jax.device_put(array if dtype is None else np.asarray(array, dtype))
