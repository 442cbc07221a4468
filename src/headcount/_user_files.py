"""A user's own files and functions: loaded as Python would load them, what they raise told in a sentence. No JAX."""

import functools
import importlib
import importlib.util
import os
import sys
import sysconfig
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .errors import HeadcountError, InputError, require

PACKAGE = str(Path(__file__).parent)


def load_python_file(path: Path):
    """The module in a user's file, which may import the modules next to it, as `python FILE` would let it.

    A module that was imported under the same name from elsewhere, such as by a file in another folder, makes room.
    """
    require(os.path.isfile(path), f"no file {path}; check the name.")
    _import_from(os.path.dirname(os.path.realpath(path)))
    name = f"headcount_user_{path.stem}"  # a file called headcount.py must not hide this package
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise InputError(
            f"{path} could not be run: {type(error).__name__}: {error}; try it with python {path}."
        ) from error
    return module


def _import_from(folder: str) -> None:
    """From now on the modules in a folder are imported before others of their names."""
    sys.path[:] = [folder, *(other for other in sys.path if other != folder)]
    importlib.invalidate_caches()
    beside = {entry.name.removesuffix(".py") for entry in os.scandir(folder) if _is_importable(entry)} - {"__main__"}
    others = {name for name in beside if _is_elsewhere(sys.modules.get(name), folder, name)}
    for name in list(sys.modules):
        if name.partition(".")[0] in others:
            del sys.modules[name]


def _is_importable(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith(".py") or os.path.isfile(os.path.join(entry.path, "__init__.py"))


def _is_elsewhere(module: types.ModuleType | None, folder: str, name: str) -> bool:
    """Whether a module of this name is a user's, and another one than that in the folder."""
    if module is None or is_installed(module):
        return False
    file = getattr(module, "__file__", None)
    return file is None or os.path.dirname(os.path.realpath(file)) not in (folder, os.path.join(folder, name))


def is_installed(module: types.ModuleType) -> bool:
    """Whether a module is Python's own, of an installed package, or of headcount."""
    if module.__name__ == "__main__":
        return False
    file = getattr(module, "__file__", None)
    if file is None:  # compiled into Python, or a package without an __init__.py
        paths = list(getattr(module, "__path__", ()))
        return not paths or all(map(is_installed_file, paths))
    return is_installed_file(file)


@functools.cache
def is_installed_file(file: str) -> bool:
    """Whether a file is Python's own, of an installed package, or of headcount."""
    if file.startswith("<frozen"):
        return True
    path = os.path.realpath(file)
    if {"site-packages", "dist-packages"} & set(Path(path).parts):
        return True
    folders = (PACKAGE, *map(os.path.realpath, (sysconfig.get_path(name) for name in ("stdlib", "platstdlib"))))
    return any(path.startswith(folder + os.sep) for folder in folders)


def user_supplied(function: Callable, *arguments: Any, name: str) -> Any:
    """`function(*arguments)`, a user's function: what it raises becomes an `InputError` with the task's name."""
    try:
        return function(*arguments)
    except HeadcountError:
        raise
    except Exception as error:
        first_line = (str(error).splitlines() or ["no message"])[0].rstrip(".")
        raise InputError(
            f"{name}: the user-supplied function raised {type(error).__name__}: {first_line}; correct it."
        ) from error
