"""CIFAR-10 as it is found on disk: official batches of either kind, extracted or not, or the JPEG-coded copy.

Six batches of equally many images, five for training and one for validation. In a binary batch an image is 3,073
bytes: its label, then 1,024 bytes of red, of green and of blue, row by row. A Python batch is a pickle with the same
bytes under `data` and a list under `labels`. Source of the data: Krizhevsky (2009).
"""

import gzip
import io
import math
import pickle
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int32, UInt8
from PIL import Image

from .._errors import HeadcountError, InputError, require
from .download import OnBytes, Source, fetch
from .images import ImageSet, reason

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
SIDE = 32
PIXELS = 3 * SIDE * SIDE
PYTHON = ("data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch")
BINARY = tuple(f"{name}.bin" for name in PYTHON)
BINARY_ARCHIVE = Source(
    "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    "cifar-10-binary.tar.gz",
    "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
)
PYTHON_ARCHIVE = Source(
    "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
    "cifar-10-python.tar.gz",
    "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
)
ARCHIVES = (BINARY_ARCHIVE.file_name, PYTHON_ARCHIVE.file_name)
SPRITES = "all_small_jpeg_q90.npz"
SPLITS = (*(f"train_batch_{number}" for number in range(1, 6)), "test")
FOLDERS = (".", "cifar-10-batches-bin", "cifar-10-batches-py")
MOST_BYTES = 2**30  # thirty times an official batch; an archive that claims more is not believed

Batch = tuple[UInt8[np.ndarray, "records 32 32 3"], Int32[np.ndarray, " records"]]
Reader = Callable[[Path], list[Batch]]


def read_cifar10(path: Path) -> ImageSet:
    """The images of CIFAR-10 in a folder, in one of its usual subfolders or in a file; those to test with come last."""
    require(path.exists(), f"there is no file or folder {path}.")
    found = _find(path)
    if found is None:
        raise InputError(_not_found(path))
    place, read, source = found
    batches = read(place)
    counts = [len(labels) for _, labels in batches]
    require(
        len(set(counts)) == 1,
        f"{place}: the batches of CIFAR-10 hold equally many images, got {', '.join(map(str, counts))}; "
        "one of them is not whole.",
    )
    return ImageSet(
        name="cifar10",
        images=np.concatenate([images for images, _ in batches]),
        labels=np.concatenate([labels for _, labels in batches]),
        classes=CLASSES,
        held_out=counts[-1],
        source=source,
    )


def is_cifar10(path: Path) -> bool:
    """Whether `read_cifar10` would know `path` for CIFAR-10, by the names in it and not by its bytes."""
    return _find(path) is not None


def fetch_cifar10(folder: Path, on_bytes: OnBytes | None = None) -> Path:
    """The official binary archive in `folder`, downloaded and checked unless it is there already."""
    return fetch(BINARY_ARCHIVE, folder) if on_bytes is None else fetch(BINARY_ARCHIVE, folder, on_bytes=on_bytes)


def _find(path: Path) -> tuple[Path, Reader, str] | None:
    """Where the images are, what reads them and where they come from in words; the first of the layouts that is there.

    An archive is known by its name, so that nothing has to be decompressed to tell.
    """
    if path.is_file():
        if path.name in ARCHIVES:
            return path, _read_archive, _archive_words(path)
        sprites = path.name == SPRITES or _holds_sprites(path)
        return (path, _read_sprites, "JPEG-coded copy") if sprites else None
    roots = [path, path / "cifar10"]
    folders = [root / name for root in roots for name in FOLDERS]
    for names, read, words in (
        (BINARY, _read_binary, "official binary batches"),
        (PYTHON, _read_python, "official Python batches"),
    ):
        for folder in folders:
            if all((folder / name).is_file() for name in names):
                return folder, read, words
    for name in (*ARCHIVES, SPRITES):
        for root in roots:
            if (root / name).is_file() and (found := _find(root / name)):
                return found
    return None


def _archive_words(path: Path) -> str:
    return "official binary archive" if path.name == BINARY_ARCHIVE.file_name else "official Python archive"


def _not_found(path: Path) -> str:
    """Why `path` was not known for CIFAR-10, as far as can be told."""
    for root in (path, path / "cifar10"):
        for folder in (root / name for name in FOLDERS):
            for names in (BINARY, PYTHON):
                missing = [name for name in names if not (folder / name).is_file()]
                if len(missing) < len(names):
                    return f"{folder} holds some batches of CIFAR-10 but not {', '.join(missing)}."
    return (
        f"{path} is not CIFAR-10; give {' or '.join(ARCHIVES)} under its own name, {SPRITES}, "
        f"or a folder that holds one of them or the batches {BINARY[0]} to {BINARY[-1]}."
    )


def _read_binary(folder: Path) -> list[Batch]:
    return [_binary_batch(_read_bytes(folder / name), folder / name) for name in BINARY]


def _read_python(folder: Path) -> list[Batch]:
    return [_python_batch(_read_bytes(folder / name), folder / name) for name in PYTHON]


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise HeadcountError(f"{path} cannot be read ({error.strerror}).") from error


def _read_archive(path: Path) -> list[Batch]:
    """The batches straight from the archive, to its last byte, so that its own checksum is looked at too."""
    batches: dict[str, Batch] = {}
    try:
        with gzip.open(path) as unzipped:
            with tarfile.open(fileobj=unzipped, mode="r|") as archive:
                for member in archive:
                    name = Path(member.name).name
                    if member.isreg() and name in BINARY + PYTHON:
                        decode = _binary_batch if name in BINARY else _python_batch
                        batches[name] = decode(_member_bytes(archive, member, path), path / name)
            while unzipped.read(2**20):
                pass
    except HeadcountError:
        raise
    except Exception as error:  # gzip, zlib and tarfile raise many kinds for a damaged file
        raise InputError(f"{path} is damaged or not whole ({reason(error)}); fetch it again.") from error
    for names in (BINARY, PYTHON):
        if batches.keys() >= set(names):
            return [batches[name] for name in names]
    missing = [name for name in (PYTHON if batches.keys() & set(PYTHON) else BINARY) if name not in batches]
    raise InputError(f"{path} is an archive without {', '.join(missing)}, which CIFAR-10 has.")


def _member_bytes(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> bytes:
    require(
        member.size <= MOST_BYTES,
        f"{path / member.name} claims {member.size:,} bytes, where an official batch has {10_000 * (PIXELS + 1):,}.",
    )
    file = archive.extractfile(member)
    assert file is not None  # a regular file has bytes
    with file:
        return file.read()


def _binary_batch(content: bytes, path: Path) -> Batch:
    record = PIXELS + 1
    require(
        len(content) > 0 and len(content) % record == 0,
        f"{path} has {len(content):,} bytes, which is no whole number of images of {record:,} bytes; it is not whole.",
    )
    records = np.frombuffer(content, np.uint8).reshape(-1, record)
    return _from_planes(records[:, 1:]), _labels(records[:, 0].tolist(), path)


def _from_planes(planes: UInt8[np.ndarray, "records bytes"]) -> UInt8[np.ndarray, "records 32 32 3"]:
    return np.ascontiguousarray(planes.reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1))


def _labels(labels: list[int], path: Path) -> Int32[np.ndarray, " records"]:
    bad = next((label for label in labels if not 0 <= label < len(CLASSES)), None)
    require(bad is None, f"{path} has a label {bad}, where those of CIFAR-10 are 0 to 9.")
    return np.array(labels, np.int32)


class _Noted:
    """What a pickle asks of NumPy, noted rather than done, so that a pickle's bytes never reach NumPy's own loading."""

    def __init__(self, *arguments: Any):
        self.arguments: tuple[Any, ...] = arguments
        self.state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _NotedArray(_Noted):
    """An array, whether remade from its state (old protocols) or from a buffer (new ones)."""

    def planes(self) -> np.ndarray | None:
        """The array, where it is one of whole bytes in rows of one image; else None."""
        if self.state is None:
            content, kind, shape, order = self.arguments
            fortran = order == "F"
        else:
            _, shape, kind, fortran, content = self.state
        code = kind.arguments[0]
        code = code.decode() if isinstance(code, bytes) else code
        sound = code in ("u1", "|u1", "uint8") and len(shape) == 2 and shape[0] >= 1 and shape[1] == PIXELS
        if not sound or len(content) != math.prod(shape):
            return None
        return np.frombuffer(content, np.uint8).reshape(shape, order="F" if fortran else "C")


class _NotedBytes(_Noted):
    """How Python 3 writes bytes in Python 2's protocol: as the text whose characters have their numbers."""

    def __new__(cls, text: str, coding: str = "latin1"):
        return text.encode("latin1")


class _BatchUnpickler(pickle.Unpickler):
    """Reads numbers, texts, lists, dicts and notes of arrays, and runs nothing that a pickle names."""

    NAMES = {  # noqa: RUF012 - never written to
        "numpy.ndarray": _NotedArray,
        "numpy.dtype": _Noted,
        "_codecs.encode": _NotedBytes,
        **dict.fromkeys(("numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct"), _NotedArray),
        **dict.fromkeys(("numpy.core.numeric._frombuffer", "numpy._core.numeric._frombuffer"), _NotedArray),
    }

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        name = f"{module_name}.{global_name}"
        if name not in self.NAMES:
            raise pickle.UnpicklingError(f"it asks for {name}, which no array needs")
        return self.NAMES[name]


def _python_batch(content: bytes, path: Path) -> Batch:
    try:
        loaded = _BatchUnpickler(io.BytesIO(content), encoding="bytes").load()
        fields = loaded if isinstance(loaded, dict) else {}
        data, labels = (fields.get(key.encode(), fields.get(key)) for key in ("data", "labels"))
        planes = data.planes() if isinstance(data, _NotedArray) else None
    except Exception as error:  # a pickle that is none, or damaged, can raise nearly anything
        raise InputError(f"{path} cannot be read as a Python batch of CIFAR-10: {reason(error)}.") from error
    if planes is None:
        raise InputError(
            f"{path} must hold images under data, as an array of bytes of shape (images, {PIXELS:,}), and does not."
        )
    if not isinstance(labels, list) or [type(label) for label in labels] != [int] * len(planes):
        raise InputError(f"{path} must hold a list of one label an image under labels, and does not.")
    return _from_planes(planes), _labels(labels, path)


def _holds_sprites(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return {f"{kind}_{split}.npy" for kind in ("jpeg", "labels") for split in SPLITS} <= set(archive.namelist())
    except Exception:  # not a zip file, or a damaged one, about which zipfile raises many kinds
        return False


def _read_sprites(path: Path) -> list[Batch]:
    """The six pictures of the JPEG-coded copy, each a grid of images in rows."""
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
            return [_sprite_batch(stored[f"jpeg_{split}"], stored[f"labels_{split}"], path) for split in SPLITS]
    except HeadcountError:
        raise
    except Exception as error:  # numpy, zipfile and Pillow raise many kinds for a damaged file
        raise InputError(f"{path} is damaged or not whole ({reason(error)}).") from error


def _sprite_batch(jpeg: np.ndarray, labels: np.ndarray, path: Path) -> Batch:
    with Image.open(io.BytesIO(jpeg.tobytes())) as opened:
        sprite = np.asarray(opened.convert("RGB"))
    rows, columns = sprite.shape[0] // SIDE, sprite.shape[1] // SIDE
    require(
        sprite.shape == (rows * SIDE, columns * SIDE, 3) and labels.shape == (rows * columns,),
        f"{path} has {labels.size} labels for a picture of {sprite.shape[1]} x {sprite.shape[0]} pixels, "
        f"where every {SIDE} x {SIDE} of them are an image.",
    )
    tiles = sprite.reshape(rows, SIDE, columns, SIDE, 3).swapaxes(1, 2).reshape(-1, SIDE, SIDE, 3)
    return tiles, _labels([int(label) for label in labels], path)
