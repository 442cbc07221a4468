"""Files for people: written whole or not at all, and never over stored results."""

import contextlib
import re
from pathlib import Path

from .. import _files
from ..errors import HeadcountError, InputError, require
from ..store import FILE_NAME

FORMATS = (".svg", ".pdf", ".png")
"""The endings of figures."""


def check_ending(path: Path) -> None:
    """Raise `InputError` where no figure can be saved under this name, or where it would replace results."""
    if path.suffix not in FORMATS:
        raise InputError(f"a figure must end in {', '.join(FORMATS)}, got {path}.")
    with contextlib.suppress(OSError, RuntimeError):  # said when it is written
        _spare_results(path, path.resolve())


def file_name(name: str) -> str:
    """Return a name that a file can have: what a path could read as its own is replaced."""
    return re.sub(r"[^\w.-]+", "-", name).strip(".") or "unnamed"


def write_whole(path: Path, content: bytes, what: str = "") -> None:
    """Put `content` at `path`. A file that was there stays until the new one is complete.

    A link is followed, and what is not a plain file (a pipe, /dev/null) is written to, not replaced.
    """
    name = f"{what} cannot be written to {path}" if what else f"{path} cannot be written"
    try:
        target = path.resolve()
        _spare_results(path, target)
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists() and not target.is_file():
            target.write_bytes(content)
        else:
            _files.write_whole(target, content)
    except (OSError, RuntimeError) as error:  # RuntimeError: a link that leads to itself
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise HeadcountError(f"{name}: {reason}; choose another path.") from error


def _spare_results(path: Path, target: Path) -> None:
    ours = target.name.startswith(FILE_NAME) or target.name == "lock"
    within = (target.parent / FILE_NAME).exists() and ours
    weights = target.parent.name == "weights" and (target.parent.parent / FILE_NAME).exists()
    require(not (within or weights), f"{path} belongs to stored results; choose another name.")
