"""CIFAR-10 in its official binary version: the folder `cifar-10-batches-bin`, or the archive it comes in.

Five training batches and one test batch, each with the same number of images. An image is a record of 3,073 bytes: its
label, then 1,024 bytes each of red, green and blue, row by row. Source: Krizhevsky (2009).
"""

import gzip
import os
import tarfile
from pathlib import Path

import numpy as np
from jaxtyping import Int32, UInt8

from ..._limits import require_fits
from ...data.images import ImageSet
from ...data.memory import read_limited
from ...errors import InputError, one_line_of, require

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
SIDE = 32
RECORD_BYTES = 1 + 3 * SIDE * SIDE
BATCHES = (*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin")
FOLDER = "cifar-10-batches-bin"
URL = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
ARCHIVE = "cifar-10-binary.tar.gz"
AGAIN = f"download it again, {URL}"
PICKLED = ("cifar-10-python.tar.gz", "cifar-10-batches-py", "data_batch_1", "test_batch")

Batch = tuple[UInt8[np.ndarray, "records 32 32 3"], Int32[np.ndarray, " records"]]


def read_cifar10(path: Path) -> ImageSet:
    """Read CIFAR-10 from the archive, the folder of its batches, or a folder that holds either.

    Returns:
        All images; the test batch comes last and is held out.

    Raises:
        InputError: `path` holds no CIFAR-10, its Python version, or a file that is missing, truncated or damaged.
    """
    require(path.exists(), f"there is no file or folder {path}; check the name.")
    place = _find(path)
    if place is None:
        raise InputError(f"{path} is not CIFAR-10: give {ARCHIVE}, or a folder that holds it or {BATCHES[0]}.")
    require(
        place.name not in PICKLED,
        f"{place} is CIFAR-10's Python version (pickles); download the binary version, {URL}.",
    )
    batches = _read_archive(place) if place.is_file() else _read_folder(place)
    counts = [len(labels) for _, labels in batches]
    require(
        len(set(counts)) == 1,
        f"{place}: batches must have the same number of images, got {', '.join(map(str, counts))}: truncated; {AGAIN}.",
    )
    return ImageSet(
        name="cifar10",
        images=np.concatenate([images for images, _ in batches]),
        labels=np.concatenate([labels for _, labels in batches]),
        classes=CLASSES,
        held_out=counts[-1],
    )


def is_cifar10(path: Path) -> bool:
    """Return whether `path` is meant to be CIFAR-10, by file names alone; `read_cifar10` may still refuse it."""
    return _find(path) is not None


def _find(path: Path) -> Path | None:
    """Return the archive, or the folder of batches, whole or not."""
    if os.path.isfile(path):  # unlike Path.is_file, False for a name too long
        return path if path.name in (ARCHIVE, *PICKLED) else None
    folders = [folder for folder in (path, path / FOLDER) if any(os.path.isfile(folder / name) for name in BATCHES)]
    others = [path / name for name in (ARCHIVE, *PICKLED) if os.path.exists(path / name)]
    return next(iter(folders + others), None)


def _read_folder(folder: Path) -> list[Batch]:
    missing = [name for name in BATCHES if not (folder / name).is_file()]
    require(not missing, f"{folder} lacks {', '.join(missing)}; {AGAIN}.")
    try:
        return [_decode(read_limited(folder / name, len(BATCHES)), folder / name) for name in BATCHES]
    except OSError as error:
        raise InputError(f"{folder} cannot be read ({error.strerror}); check its permissions.") from error


def _read_archive(path: Path) -> list[Batch]:
    """Return the batches, decompressed in memory; read to the last byte so that gzip's checksum is verified."""
    contents: dict[str, bytes] = {}
    try:
        with gzip.open(path) as unzipped:
            with tarfile.open(fileobj=unzipped, mode="r|") as archive:
                for member in archive:
                    name = Path(member.name).name
                    file = archive.extractfile(member) if member.isreg() and name in BATCHES else None
                    if file is not None:
                        require_fits(path, member.size + sum(map(len, contents.values())))
                        contents[name] = file.read()
            while unzipped.read(2**20):
                pass
    except InputError:
        raise
    except Exception as error:  # gzip, zlib and tarfile raise many kinds for a damaged file
        raise InputError(f"{path} is truncated or damaged ({one_line_of(error)}); download it again.") from error
    missing = [name for name in BATCHES if name not in contents]
    require(not missing, f"{path} lacks {', '.join(missing)}; {AGAIN}.")
    return [_decode(contents[name], path / name) for name in BATCHES]


def _decode(content: bytes, path: Path) -> Batch:
    require(
        len(content) > 0 and len(content) % RECORD_BYTES == 0,
        f"{path} is {len(content):,} bytes, not a multiple of the {RECORD_BYTES:,}-byte record: truncated; {AGAIN}.",
    )
    records = np.frombuffer(content, np.uint8).reshape(-1, RECORD_BYTES)
    labels = records[:, 0].astype(np.int32)
    largest = int(labels.max())
    require(largest < len(CLASSES), f"{path} has label {largest}; CIFAR-10's labels are 0 to 9; {AGAIN}.")
    images = records[:, 1:].reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(images), labels
