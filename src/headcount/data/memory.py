"""Whether what a file holds fits in the memory that is allowed, before it is read; see `_limits`."""

import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from .._limits import JSON_FACTOR, require_fits
from ..errors import require


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
    """Check the header of one array, in a file of `size` bytes."""
    is_first = np.lib.format.read_magic(file) == (1, 0)
    read_header = np.lib.format.read_array_header_1_0 if is_first else np.lib.format.read_array_header_2_0
    shape, _, dtype = read_header(file)
    if not dtype.hasobject:
        claimed = math.prod(shape) * max(1, dtype.itemsize)  # values of no bytes would be any number
        require_fits(path, claimed)
        said = f"{name} says that it holds {claimed:,} bytes, and there are {size:,}"
        require(claimed <= size, f"{path} is truncated or damaged: {said}; save or copy it again.")


def read_limited(path: Path, factor: int = JSON_FACTOR) -> bytes:
    """Read a file that will take `factor` times as much memory; raise `InputError` if that is too much."""
    require_fits(path, factor * path.stat().st_size)
    return path.read_bytes()
