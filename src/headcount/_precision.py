"""Models, tasks and functions in float64."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

LARGE = 1e12
"""Sums of squares of numbers up to this fit into float32."""


def wide(values: np.ndarray) -> np.ndarray:
    """Return the same, in float64 where sums of their squares could be too large for float32.

    Example:
        >>> f"{np.std(wide(np.array([1e30, 3e30], np.float32))):.3g}"
        '1e+30'
    """
    large = values.dtype == np.float32 and np.abs(values).max(initial=0.0) > LARGE
    return values.astype(np.float64) if large else values


@dataclass(frozen=True)
class _InDouble:
    """A function of arrays to one array in float64, also where it closes over NumPy arrays.

    JAX remembers such an array in the precision in which it first met it, and a program of both does not compile.
    """

    function: Callable[..., Any]

    def __call__(self, *arguments: jax.Array) -> jax.Array:
        shapes = [jax.ShapeDtypeStruct(jnp.shape(each), jnp.result_type(each)) for each in arguments]
        return _traced(self.function, *shapes)(*arguments)


def in_double(tree: Any) -> Any:
    """Return the same with every number and every function it carries in float64; call and use it under
    `jax.enable_x64(True)`.
    """
    return jax.tree.map(_leaf_in_double, tree)


def _leaf_in_double(leaf: Any) -> Any:
    if eqx.is_inexact_array_like(leaf):
        return jnp.asarray(leaf, jnp.float64)
    return _InDouble(leaf) if callable(leaf) and not isinstance(leaf, _InDouble) else leaf


def traced_in_double(function: Callable[[jax.Array], jax.Array], *shape: int) -> Callable[[jax.Array], jax.Array]:
    """Trace the function of an array of this shape in float64, once; `in_double` does so to functions that it carries.

    Call it and use it under `jax.enable_x64(True)`.
    """
    return _traced(in_double(function), jax.ShapeDtypeStruct(shape, jnp.float64))


def _traced(function: Callable[..., Any], *shapes: jax.ShapeDtypeStruct) -> Callable[..., jax.Array]:
    closed = jax.make_jaxpr(function)(*shapes)
    with jax.ensure_compile_time_eval():  # arrays, also where the call is traced itself
        constants = in_double([jnp.asarray(np.asarray(constant)) for constant in closed.consts])
    traced = jaxpr_as_fun(ClosedJaxpr(closed.jaxpr, constants))
    return lambda *arguments: traced(*arguments)[0]
