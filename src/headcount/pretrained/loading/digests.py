"""A fingerprint of what a model was judged on."""

import dataclasses
import functools
import hashlib
import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np


def digest_of(value: Any) -> str:
    """20 hex digits of the SHA-256 over everything in a value: arrays, tensors, texts, numbers, and containers of them.

    A function counts by its source, or by its compiled code where that cannot be read; an object with an `identity` by
    that; any other object by its class's name.

    Example:
        >>> digest_of({"x": np.arange(3)}) == digest_of({"x": np.arange(3)})
        True
        >>> digest_of(["a", "b"]) == digest_of(["ab"])
        False
    """
    digest = hashlib.sha256()
    _add(digest, value)
    return digest.hexdigest()[:20]


def _add(digest: Any, value: Any) -> None:
    if hasattr(value, "detach"):  # a tensor of torch, which is not imported for it
        value = value.detach().cpu().contiguous().numpy()
    if isinstance(value, np.ndarray):
        digest.update(f"array {value.dtype} {value.shape}\n".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, Mapping):
        digest.update(f"mapping {len(value)}\n".encode())
        for name, each in value.items():
            _add(digest, str(name))
            _add(digest, each)
    elif isinstance(value, list | tuple):
        digest.update(f"list {len(value)}\n".encode())
        for each in value:
            _add(digest, each)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        digest.update(f"{type(value).__name__}\n".encode())
        _add(digest, {each.name: getattr(value, each.name) for each in dataclasses.fields(value)})
    elif isinstance(value, str | bytes | int | float | bool | None):
        digest.update(f"{type(value).__name__} {value!r}\n".encode())
    elif isinstance(value, functools.partial):
        _add(digest, ["partial", value.func, value.args, value.keywords])
    else:
        digest.update(f"{_source(value)}\n".encode())
        identity = getattr(value, "identity", None)
        if identity is not None:
            _add(digest, identity)


def _source(value: Any) -> str:
    try:
        return inspect.getsource(value)
    except (TypeError, OSError):
        code = getattr(value, "__code__", None)
        if code is not None:
            constants = [each for each in code.co_consts if not inspect.iscode(each)]  # the repr of code has an address
            return f"{code.co_code.hex()} {constants} {code.co_names}"
        return f"{type(value).__module__}.{type(value).__qualname__}"
