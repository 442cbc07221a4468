"""Models, tasks and functions in float64."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp


def in_double(tree: Any) -> Any:
    """The same with every number it carries in float64; call it and use it under `jax.enable_x64(True)`."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64) if eqx.is_inexact_array_like(leaf) else leaf, tree)
