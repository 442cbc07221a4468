"""Send a user's code to workers that lack its files: by value, with the modules that it imports."""

import contextlib
import functools
import importlib.metadata
import os
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from .._user_files import INSTALLED


@contextlib.contextmanager
def sent_by_value(cloudpickle: Any) -> Iterator[None]:
    """Within it, `cloudpickle` (the module) sends what local modules define as code, not as a name to import."""
    modules = local_modules()
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)


def local_modules() -> list[ModuleType]:
    """Return the imported modules that a worker could not import: the user's file, and the modules next to it."""
    return [module for name, module in tuple(sys.modules.items()) if _is_local(name, module)]


def _is_local(name: str, module: Any) -> bool:
    if not isinstance(module, ModuleType) or name == "__main__" or module.__name__ != name:  # __main__ always goes so
        return False
    file = getattr(module, "__file__", None)
    if file is None or not file.endswith(".py") or name.partition(".")[0] in _installed_names():
        return False
    return not os.path.realpath(file).startswith(INSTALLED)


@functools.cache
def _installed_names() -> frozenset[str]:
    """Top-level names of installed packages, also of those that are installed as a link to their source."""
    return frozenset(("headcount", *sys.stdlib_module_names, *importlib.metadata.packages_distributions()))
