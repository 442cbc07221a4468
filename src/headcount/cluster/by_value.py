"""A user's code on its way to workers that do not have its files: sent by value, with the modules it is made of."""

import contextlib
import functools
import importlib.metadata
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any


@contextlib.contextmanager
def sent_by_value(cloudpickle: Any) -> Iterator[None]:
    """Within it, `cloudpickle` (the module) sends what is defined in local modules as code, not as a name to import.

    Local are the file that was named (`mine.py`), the modules next to it that it imports, and every other module that
    is neither part of Python nor of an installed package. `__main__` is always sent so.
    """
    modules = local_modules()
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)


def local_modules() -> list[ModuleType]:
    """The imported modules that a worker could not import."""
    return [module for name, module in tuple(sys.modules.items()) if _is_local(name, module)]


def _is_local(name: str, module: Any) -> bool:
    root = name.partition(".")[0]
    if not isinstance(module, ModuleType) or name == "__main__" or module.__name__ != name:
        return False
    if root in sys.stdlib_module_names or root == "headcount" or root in _installed_names():
        return False
    file = getattr(module, "__file__", None)
    if file is None or not file.endswith(".py"):  # built in, or compiled: code that cannot be sent
        return False
    return not any(Path(file).is_relative_to(folder) for folder in _installed_folders())


@functools.cache
def _installed_names() -> frozenset[str]:
    """Top-level names of installed packages, also of those that are installed as a link to their source."""
    return frozenset(importlib.metadata.packages_distributions())


@functools.cache
def _installed_folders() -> tuple[Path, ...]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return tuple({Path(sysconfig.get_path(name)) for name in names})
