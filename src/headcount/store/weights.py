"""Trained weights as safetensors, plain named arrays: the weights of all cells of a commit are one file, a pack.

The arrays of a pack are named "KEY/name".
"""

import contextlib
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load, save

from .._files import UNFINISHED, only_regular, read_regular, write_whole
from ..errors import StoreError
from .database import RESTORE

Weights = dict[str, np.ndarray]
FOLDER = "weights"
PREFIX = "pack-"
MAX_BYTES = 256 << 20
"""Arrays of a pack, which is put together in memory; more become several packs."""


def write_weights(path: Path, arrays: Weights) -> None:
    """Write all or nothing: the name appears only when the bytes are on disk."""
    path.parent.mkdir(exist_ok=True)
    write_whole(path, _bytes_of(arrays), durable=True)


def read_weights(path: Path) -> Weights:
    """The arrays of a weights file. `StoreError` where it is missing or damaged."""
    try:
        return load(read_regular(path))
    except FileNotFoundError as error:
        raise StoreError(f"there are no stored weights at {path}.") from error
    except (SafetensorError, OSError) as error:
        raise StoreError(f"the weights at {path} cannot be read: {error}.") from error


def write_packs(root: Path, weights: Mapping[str, Weights]) -> dict[str, str]:
    """Write the weights of some cells; the name of each cell's pack by its key. They are on disk when this returns.

    Raises OSError where they cannot be written.
    """
    packs: dict[str, str] = {}
    for part in _pack_parts(weights):
        content = _bytes_of({f"{key}/{name}": array for key, named in part.items() for name, array in named.items()})
        pack = f"{PREFIX}{hashlib.sha256(content).hexdigest()[:20]}.safetensors"
        packs |= dict.fromkeys(part, pack)
        (root / FOLDER).mkdir(exist_ok=True)
        write_whole(root / FOLDER / pack, content, durable=True)
    return packs


def _bytes_of(arrays: Weights) -> bytes:
    return save({name: np.asarray(array, order="C") for name, array in arrays.items()})


def _pack_parts(weights: Mapping[str, Weights]) -> Iterator[dict[str, Weights]]:
    """The cells in parts of at most `MAX_BYTES`, or of one cell."""
    part, size = {}, 0
    for key, arrays in weights.items():
        more = sum(np.asarray(array).nbytes for array in arrays.values())
        if part and size + more > MAX_BYTES:
            yield part
            part, size = {}, 0
        part[key], size = arrays, size + more
    if part:
        yield part


def read_pack(path: Path, key: str) -> Weights:
    """The arrays of one cell of a pack. `StoreError` where they are missing or damaged."""
    try:
        open(path, "rb", opener=only_regular).close()  # a pipe would be waited for
        with safe_open(path, framework="np") as pack:
            own = [name for name in list(pack.keys()) if name.startswith(f"{key}/")]
            arrays = {name.partition("/")[2]: pack.get_tensor(name) for name in own}
    except FileNotFoundError as error:
        raise StoreError(f"the weights of cell {key} are lost: there is no {path}. {RESTORE}") from error
    except (SafetensorError, OSError, ValueError) as error:
        raise StoreError(f"the weights of cell {key} at {path} cannot be read: {error}. {RESTORE}") from error
    if not arrays:
        raise StoreError(f"there are no weights of cell {key} in {path}. {RESTORE}")
    return arrays


def remove_orphans(root: Path, known: Iterable[str]) -> None:
    """Remove packs that no row names and unfinished files: what a kill in mid-commit leaves.

    Files that cannot be removed stay; they do no harm.
    """
    known = set(known)
    with contextlib.suppress(OSError):
        for name in os.listdir(root / FOLDER):
            if name.endswith(UNFINISHED) or (name.startswith(PREFIX) and name not in known):
                (root / FOLDER / name).unlink()
