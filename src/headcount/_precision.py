"""Models, tasks and functions in float64."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

LARGE = 1e12
"""Sums of squares of numbers up to this fit into float32."""


def wide(values: np.ndarray) -> np.ndarray:
    """The same, in float64 where sums of their squares could be too large for float32.

    Example:
        >>> float(np.std(wide(np.array([1e30, 3e30], np.float32))))
        1e+30
    """
    large = values.dtype == np.float32 and np.abs(values).max(initial=0.0) > LARGE
    return values.astype(np.float64) if large else values


def in_double(tree: Any) -> Any:
    """The same with every number it carries in float64; call it and use it under `jax.enable_x64(True)`."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64) if eqx.is_inexact_array_like(leaf) else leaf, tree)


def traced_in_double(function: Callable[[jax.Array], jax.Array], *shape: int) -> Callable[[jax.Array], jax.Array]:
    """The function of an array of this shape in float64, also where it closes over NumPy arrays.

    JAX remembers such an array in the precision in which it first met it, and a program of both does not compile. Call
    it and use it under `jax.enable_x64(True)`.
    """
    closed = jax.make_jaxpr(in_double(function))(jax.ShapeDtypeStruct(shape, jnp.float64))
    constants = in_double([jnp.asarray(np.asarray(constant)) for constant in closed.consts])
    traced = jaxpr_as_fun(ClosedJaxpr(closed.jaxpr, constants))
    return lambda x: traced(x)[0]
