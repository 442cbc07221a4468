"""Trained weights as safetensors: plain named arrays, no pickle."""

import os
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from .._files import read_regular
from ..errors import StoreError

Weights = dict[str, np.ndarray]
UNFINISHED = ".unfinished"
"""The ending of a file that is being written."""


def write_weights(path: Path, arrays: Weights) -> None:
    """Write all or nothing: the name appears only when the bytes are on disk."""
    path.parent.mkdir(exist_ok=True)
    write_file(path, save({name: np.asarray(array, order="C") for name, array in arrays.items()}))
    sync_folder(path.parent)


def write_file(path: Path, content: bytes) -> None:
    """Write all or nothing; whether the name lasts is up to `sync_folder`."""
    unfinished = path.with_suffix(UNFINISHED)
    try:
        with open(unfinished, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Make new names last; a system that cannot sync a folder (Windows) does without."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_weights(path: Path) -> Weights:
    """The arrays of a weights file. `StoreError` where it is missing or damaged."""
    try:
        return load(read_regular(path))
    except FileNotFoundError as error:
        raise StoreError(f"there are no stored weights at {path}.") from error
    except (SafetensorError, OSError) as error:
        raise StoreError(f"the weights at {path} cannot be read: {error}.") from error
