"""Which code is a user's, and which comes with Python, with an installed package or with headcount."""

import operator
import sys
from typing import Any

import equinox as eqx
import jax
import numpy as np

from .._user_files import is_installed as is_installed
from .._user_files import is_installed_file as is_installed_file


def has_user_code(tree: Any) -> bool:
    """Whether a part of a task is a user's, which may read variables that change: a program of it is shared with none.

    All but headcount's own functions and modules are, and those that JAX has under a name: what JAX wraps around a
    function, such as `jax.tree_util.Partial`, has the function inside.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from headcount.tasks.user_code import has_user_code
        >>> has_user_code((jnp.sum, 3)), has_user_code(jax.tree_util.Partial(jnp.sum))
        (False, True)
    """
    return any(map(_is_user_code, jax.tree.leaves(tree, is_leaf=_is_user_code)))


def _is_user_code(part: Any) -> bool:
    if not (callable(part) or isinstance(part, eqx.Module)):
        return False
    root = (getattr(part, "__module__", None) or "").partition(".")[0]
    return root != "headcount" and not (root == "jax" and importable_name(part) is not None)


def importable_name(value: Any) -> str | None:
    """Where a function or class of an installed package is found; None for a user's, and for what is not found so."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    name = name or getattr(value, "__name__", None)
    if isinstance(value, np.ufunc):
        module = module or "numpy"
    if not isinstance(module, str) or not isinstance(name, str):
        return None
    there = sys.modules.get(module)
    if there is None or not is_installed(there):
        return None
    try:
        same = operator.attrgetter(name)(there) is value
    except AttributeError:
        return None
    return f"{module}.{name}" if same else None
