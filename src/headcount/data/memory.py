"""Whether what a file holds fits in the memory that is allowed, before it is read; see `_limits`."""

import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from .._limits import JSON_FACTOR, TEXT_FACTOR, require_fits
from ..errors import InputError

MAX_GZIP_RATIO = 1032
"""Bytes that one byte of a gzip file can stand for at most."""

__all__ = [
    "gzipped_bytes",
    "read_limited",
    "require_arrays_fit",
    "require_fits",
    "require_text_fits",
    "require_unpacked_fits",
]


def require_text_fits(path: Path, size: int, factor: int = TEXT_FACTOR) -> None:
    """Raise `InputError` if numbers in `size` bytes of text need more than the limit."""
    require_fits(path, factor * size)


def gzipped_bytes(path: Path) -> int:
    """Read how many bytes a gzip file says that it holds, modulo 4 GiB; 0 where its end cannot be right."""
    size = path.stat().st_size
    with open(path, "rb") as file:
        file.seek(max(0, size - 4))
        said = int.from_bytes(file.read(4), "little")
    return said if said <= MAX_GZIP_RATIO * size else 0


def require_unpacked_fits(path: Path) -> None:
    """Raise `InputError` if a file, or what a zip archive says that it holds, is larger than the limit."""
    require_fits(path, path.stat().st_size)
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            require_fits(path, sum(member.file_size for member in archive.infolist()))


def require_arrays_fit(path: Path) -> None:
    """Raise `InputError` if an .npy, or the arrays of an .npz, are larger than the limit or than the file.

    NumPy takes the memory that a header asks for before it reads a number.
    """
    require_unpacked_fits(path)
    if not zipfile.is_zipfile(path):
        with open(path, "rb") as file:
            _require_array_fits(path, path.name, file, path.stat().st_size)
        return
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            with archive.open(member) as file:
                _require_array_fits(path, member.filename, file, member.file_size)


def _require_array_fits(path: Path, name: str, file: Any, size: int) -> None:
    """Return the same of one array, in a file of `size` bytes; whatever is not an array is left to NumPy to refuse."""
    try:
        version = np.lib.format.read_magic(file)
        first, later = np.lib.format.read_array_header_1_0, np.lib.format.read_array_header_2_0
        shape, _, dtype = {(1, 0): first, (2, 0): later, (3, 0): later}[version](file)
    except (ValueError, KeyError, struct.error, EOFError, RecursionError, SyntaxError, TypeError):
        return
    if dtype.hasobject:
        return
    count = 1
    for axis in shape:
        count *= axis
    claimed = count * max(1, dtype.itemsize)  # values of no bytes would be any number
    require_fits(path, claimed)
    if claimed > size:
        said = f"{name} says that it holds {claimed:,} bytes, and there are {size:,}"
        raise InputError(f"{path} is truncated or damaged: {said}; save or copy it again.")


def read_limited(path: Path, factor: int = JSON_FACTOR) -> bytes:
    """The bytes of a file that will take `factor` times as much memory. Raises `InputError` if that is too much."""
    require_fits(path, factor * path.stat().st_size)
    return path.read_bytes()
