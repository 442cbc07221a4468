"""A new folder: where it may be, and that it is there whole or not at all."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...errors import HeadcountError, require


def free_place(out: str | Path, source: str) -> Path:
    """The resolved folder; InputError where something is there, or it is the source or inside it."""
    out = Path(out).expanduser().resolve()
    origin = Path(source).expanduser()
    if origin.is_dir():
        origin = origin.resolve()
        within = out == origin or origin in out.parents or out in origin.parents
        _refuse(out, within, f"is or overlaps the original's folder {origin}; choose another.")
    taken = out.exists() and (not out.is_dir() or any(out.iterdir()))
    _refuse(out, taken, "exists and is not an empty folder; choose another name or remove it.")
    parent = next(folder for folder in out.parents if folder.exists())
    writable = parent.is_dir() and os.access(parent, os.W_OK | os.X_OK)
    _refuse(out, not writable, f"cannot be written: {parent} is not writable; choose another place.")
    return out


def _refuse(out: Path, when: bool, why: str) -> None:
    require(not when, f"{out} {why}", what="out", given=str(out))


@contextmanager
def written_whole(out: Path) -> Iterator[Path]:
    """A folder next to `out` that takes its place at the end, or vanishes."""
    folder = out.with_name(f".{out.name}.{os.getpid()}.unfinished")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        _remove_left_behind(out)
        folder.mkdir()
        yield folder
        os.replace(folder, out)
    except Exception as error:
        # Of a full disk, safetensors raises an error of its own.
        if not isinstance(error, OSError) and type(error).__name__ != "SafetensorError":
            raise
        reason = getattr(error, "strerror", None) or error
        raise HeadcountError(f"{out} cannot be written: {reason}; nothing was left there.") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_left_behind(out: Path) -> None:
    """Remove what killed processes left next to this folder."""
    for folder in out.parent.glob(f".{out.name}.*.unfinished"):
        number = folder.name.removesuffix(".unfinished").rpartition(".")[2]
        if number.isdigit() and not Path(f"/proc/{number}").exists() and os.path.isdir("/proc"):
            shutil.rmtree(folder, ignore_errors=True)
