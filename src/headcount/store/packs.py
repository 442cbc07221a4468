"""Packs: the weights of all cells of a commit in one safetensors file, its arrays named "KEY/name"."""

import contextlib
import functools
import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from .._files import only_regular
from ..errors import StoreError
from .cell import RESTORE
from .database import read_only, why_unread
from .weights import UNFINISHED, Weights, sync_folder, write_file

FOLDER = "weights"
FIRST_FORMAT = 4
"""Of results folders that have packs."""
PREFIX = "pack-"
MAX_BYTES = 256 << 20
"""Arrays of a pack, which is put together in memory; more go into several packs."""
HEADER_BYTES = 8
MAX_HEADER = 1 << 30


def write_packs(root: Path, weights: dict[str, Weights]) -> dict[str, str]:
    """Write the weights of some cells; the name of each cell's pack by its key. They are on disk when this returns.

    Raises OSError where they cannot be written; none of them is left then.
    """
    folder = root / FOLDER
    packs: dict[str, str] = {}
    try:
        for part in _parts(weights):
            arrays = {f"{key}/{name}": array for key, named in part.items() for name, array in named.items()}
            content = save({name: np.asarray(array, order="C") for name, array in arrays.items()})
            pack = f"{PREFIX}{hashlib.sha256(content).hexdigest()[:20]}.safetensors"
            packs |= dict.fromkeys(part, pack)
            folder.mkdir(exist_ok=True)
            write_file(folder / pack, content)
        if packs:
            sync_folder(folder)
    except OSError:
        for pack in set(packs.values()):
            (folder / pack).unlink(missing_ok=True)
        raise
    return packs


def _parts(weights: dict[str, Weights]) -> Iterator[dict[str, Weights]]:
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


def pack_of(file: Path, key: str) -> str | None:
    """The name of the pack that has the weights of a cell; None where it has none, or the folder is of format 3.

    By a connection of its own: trainers ask from their threads, and after a folder was closed.
    """
    try:
        with contextlib.closing(read_only(file)) as connection:
            if connection.execute("PRAGMA user_version").fetchone()[0] < FIRST_FORMAT:
                return None
            row = connection.execute(
                "SELECT p.name FROM cells c JOIN packs p ON p.id = c.pack WHERE c.key = ?", (key,)
            ).fetchone()
    except sqlite3.Error as error:
        raise why_unread(file, error) from error
    return None if row is None else str(row[0])


def read_pack(path: Path, key: str) -> Weights:
    """The arrays of one cell of a pack. `StoreError` where they are missing or damaged."""
    try:
        status = path.stat()
        header, begin = _header(path, status.st_mtime_ns, status.st_size)
        return load(_cut_out(path, header[key], begin))
    except FileNotFoundError as error:
        raise StoreError(f"the weights of cell {key} are lost: there is no {path}. {RESTORE}") from error
    except KeyError as error:
        raise StoreError(f"there are no weights of cell {key} in {path}. {RESTORE}") from error
    except (SafetensorError, OSError, ValueError, TypeError, AttributeError) as error:
        raise StoreError(f"the weights of cell {key} at {path} cannot be read: {error}. {RESTORE}") from error


@functools.lru_cache(maxsize=8)
def _header(path: Path, changed: int, size: int) -> tuple[dict[str, dict[str, dict]], int]:
    """Where the arrays of every cell of a pack lie, and where they begin. Kept: parents are read one by one."""
    with open(path, "rb", opener=only_regular) as file:
        length = int.from_bytes(file.read(HEADER_BYTES), "little")
        if length > min(size, MAX_HEADER):
            raise ValueError("it is truncated")
        entries = json.loads(file.read(length))
    cells: dict[str, dict[str, dict]] = {}
    for name, entry in entries.items():
        key, _, own = name.partition("/")
        cells.setdefault(key, {})[own] = entry
    return cells, HEADER_BYTES + length


def _cut_out(path: Path, entries: dict[str, dict], begin: int) -> bytes:
    """The arrays of one cell as a safetensors file of their own."""
    header, parts, written = {}, [], 0
    with open(path, "rb", opener=only_regular) as file:
        for name, entry in sorted(entries.items(), key=lambda each: each[1]["data_offsets"]):
            start, end = entry["data_offsets"]
            file.seek(begin + start)
            part = file.read(end - start)
            if len(part) != end - start:
                raise ValueError("it is truncated")
            header[name] = entry | {"data_offsets": [written, written + len(part)]}
            parts.append(part)
            written += len(part)
    text = json.dumps(header).encode()
    return b"".join([len(text).to_bytes(HEADER_BYTES, "little"), text, *parts])


def remove_orphans(root: Path, connection: sqlite3.Connection) -> None:
    """Remove the packs that no row names and files that were not finished: what a kill in mid-commit leaves.

    Files that cannot be removed stay; they do no harm.
    """
    try:
        names = [name for name in os.listdir(root / FOLDER) if name.startswith(PREFIX) or name.endswith(UNFINISHED)]
    except OSError:
        return
    known = {name for (name,) in connection.execute("SELECT name FROM packs")} if names else set()
    for name in names:
        if name not in known:
            with contextlib.suppress(OSError):
                (root / FOLDER / name).unlink()
