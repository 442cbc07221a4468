"""NumPy's files: an .npz with x and y, or one .npy with x and one with y. Pickled objects are never loaded."""

import os
from pathlib import Path

import numpy as np

from ..errors import InputError, require
from .examples import Arrays, Wanted, no_options
from .memory import require_arrays_fit


def read_npz(path: Path, wanted: Wanted) -> Arrays:
    """The arrays of an .npz."""
    no_options(path, wanted)
    content = _load(path)
    if isinstance(content, np.ndarray):
        raise InputError(
            f"{path} is an .npy file by its content; rename it, and pass y with targets=y.npy.", what="targets"
        )
    return Arrays(content)


def read_npy(path: Path, wanted: Wanted) -> Arrays:
    """x from one .npy and y from another."""
    no_options(path, wanted, but="targets")
    require(
        wanted.targets is not None, f"{path} holds x alone; pass y in another, as in targets=y.npy.", what="targets"
    )
    targets = Path(str(wanted.targets))
    missing = f"no file {targets}, the targets of {path}; give the .npy that holds y."
    require(os.path.isfile(targets), missing, what="targets", given=str(targets))
    arrays = {}
    for name, file in (("x", path), ("y", targets)):
        content = _load(file)
        if not isinstance(content, np.ndarray):
            what = "targets" if name == "y" else ""
            raise InputError(f"{path} must hold x alone and its targets y alone, but {file} is an .npz.", what=what)
        arrays[name] = content
    return Arrays(arrays)


def _load(path: Path) -> np.ndarray | dict[str, np.ndarray]:
    try:
        require_arrays_fit(path)
        with open(path, "rb") as file:
            loaded = np.load(file, allow_pickle=False)
            return loaded if isinstance(loaded, np.ndarray) else {name: loaded[name] for name in loaded.files}
    except (InputError, MemoryError):
        raise
    except Exception as error:  # NumPy and zipfile raise many types for a damaged or pickled file
        if "Object arrays" in str(error):
            fix = "save numbers, sequences padded to one length, with their lengths as an array called lengths"
            raise InputError(f"{path} holds Python objects (ragged arrays?); {fix}.") from error
        fix = "write it with np.savez(path, x=x, y=y) or np.save, or copy it again"
        raise InputError(f"{path} cannot be read as .npz or .npy ({type(error).__name__}); {fix}.") from error
