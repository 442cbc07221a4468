"""A user's own files and functions: loaded as Python would load them; what they raise becomes a sentence. No JAX."""

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

INSTALLED: tuple[str, ...] = tuple(
    os.path.realpath(folder)
    for folder in (str(Path(__file__).parent), *map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib")))
)
"""Folders of headcount, of Python, and of installed packages."""


def load_python_file(path: Path):
    """Import a user's file, which may import the modules next to it, as `python FILE` would let it.

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
    """Import the modules in a folder before others of their names from now on."""
    sys.path[:] = [folder, *(other for other in sys.path if other != folder)]
    importlib.invalidate_caches()
    nearby = {entry.name.removesuffix(".py") for entry in os.scandir(folder) if _is_importable(entry)} - {"__main__"}
    others = {name for name in nearby if _is_elsewhere(sys.modules.get(name), folder, name)}
    for name in list(sys.modules):
        if name.partition(".")[0] in others:
            del sys.modules[name]


def _is_importable(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith(".py") or os.path.isfile(os.path.join(entry.path, "__init__.py"))


def _is_elsewhere(module: types.ModuleType | None, folder: str, name: str) -> bool:
    """Whether a module of this name is a user's, and another one than that in the folder."""
    file = getattr(module, "__file__", None)
    if module is None or (file is None and not getattr(module, "__path__", None)):  # not there, or a part of Python
        return False
    home = os.path.dirname(os.path.realpath(file)) if file is not None else ""
    return not home.startswith(INSTALLED) and home not in (folder, os.path.join(folder, name))


def user_supplied(function: Callable, *arguments: Any, name: str) -> Any:
    """Call a user's function: what it raises becomes an `InputError` with the task's name."""
    try:
        return function(*arguments)
    except HeadcountError:
        raise
    except Exception as error:
        first_line = (str(error).splitlines() or ["no message"])[0].rstrip(".")
        raise InputError(
            f"{name}: the user-supplied function raised {type(error).__name__}: {first_line}; correct it."
        ) from error
