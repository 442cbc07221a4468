"""JAX traces the body of a loop, of a condition and of a jitted function once, and keeps the trace by the function.

So a function whose variables have changed would be traced to what it was before. Where something that was looked at
has changed, all that JAX keeps is forgotten; what is still needed is compiled again, or read from disk.
"""

import weakref
from collections.abc import Iterable
from typing import Any

import jax

_digests: dict[int, tuple[weakref.ref[Any], str]] = {}
"""The hash that each living value had last, by its id."""


def forget_changed(values: Iterable[tuple[Any, str]]) -> None:
    """Forget all that JAX keeps if one of the values, given with their hashes, had another hash before."""
    changed = False
    for value, digest in values:
        known, before = _digests.get(id(value), (None, digest))
        changed |= before != digest
        if known is None or before != digest:
            _remember(value, digest)
    if changed:
        jax.clear_caches()


def _remember(value: Any, digest: str) -> None:
    key = id(value)
    try:
        _digests[key] = weakref.ref(value, lambda _: _digests.pop(key, None)), digest
    except TypeError:  # a list, say, which only something else can be traced with
        return
