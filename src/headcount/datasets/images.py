"""Labelled images of one size: what every reader returns, and the reader of a folder of image files.

FOLDER/CLASS/IMAGE               nobody set a validation part apart
FOLDER/train/CLASS/IMAGE         with the first of FOLDER/val, FOLDER/validation and FOLDER/test for validation
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float64, Int32, UInt8
from PIL import Image, ImageOps, UnidentifiedImageError

from .._errors import InputError, require, require_count

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp")
VALIDATION_FOLDERS = ("val", "validation", "test")
LEFT_BY_SYSTEMS = ("thumbs.db", "desktop.ini")
WIDE_MODES = ("I", "F")  # more than 8 bits a channel, which a conversion to RGB would clip
PIXELS_A_BLOCK = 2**20


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Images and what they show; the last `held_out` of them are for validation, None where nobody set any apart."""

    name: str
    images: UInt8[np.ndarray, "images height width 3"]
    labels: Int32[np.ndarray, " images"]
    classes: tuple[str, ...]
    held_out: int | None
    source: str

    def __post_init__(self):
        name, shape, count = self.name, self.images.shape, len(self.images)
        require(
            len(shape) == 4 and shape[3] == 3 and 0 not in shape and self.images.dtype == np.uint8,
            f"{name}: images must be uint8 of shape (images, height, width, 3), got {self.images.dtype} {shape}.",
        )
        require(
            self.labels.ndim == 1 and self.labels.dtype == np.int32,
            f"{name}: labels must be int32 of shape (images,), got {self.labels.dtype} {self.labels.shape}.",
        )
        require(len(self.labels) == count, f"{name}: {count} images and {len(self.labels)} labels must be as many.")
        require(
            len(self.classes) >= 2 and len(set(self.classes)) == len(self.classes),
            f"{name}: classes must be at least 2 different names, got {', '.join(self.classes) or 'none'}.",
        )
        low, high = int(self.labels.min()), int(self.labels.max())
        require(
            low >= 0 and high < len(self.classes),
            f"{name}: labels of {len(self.classes)} classes must lie between 0 and {len(self.classes) - 1}, "
            f"got {low if low < 0 else high}.",
        )
        require(
            self.held_out is None or 1 <= self.held_out < count,
            f"{name}: of {count} images, 1 to {count - 1} can be held out for validation, got {self.held_out}.",
        )
        seen = np.bincount(self.labels[: count - (self.held_out or 0)], minlength=len(self.classes))
        without = [self.classes[index] for index in np.flatnonzero(seen == 0)]
        require(not without, f"{name}: every class needs a training image; there is none of {', '.join(without)}.")


def read_image_folder(path: Path, *, side: int | None = None) -> ImageSet:
    """The images of a folder with one subfolder a class, cropped about their centre and resized to `side` pixels.

    Without `side` they are taken as they are, and must be squares of one size.
    """
    if side is not None:
        require_count("side", side)
    require(path.is_dir(), f"{path} is not a folder of images; give one that holds a folder for every class.")
    training, validation = _split(path)
    classes = _classes(training)
    require(
        len(classes) >= 2,
        f"{training} must hold at least 2 folders, one a class, got {', '.join(classes) or 'none'}.",
    )
    files = _files(training, classes)
    held_out = None
    if validation is not None:
        shown = _classes(validation)
        require(len(shown) > 0, f"{validation} must hold a folder for every class, got none.")
        unknown = [name for name in shown if name not in classes]
        require(not unknown, f"{validation} holds classes that {training} does not: {', '.join(unknown)}.")
        apart = _files(validation, shown)
        files, held_out = files + apart, len(apart)
    return ImageSet(
        name=Path(os.path.abspath(path)).name,
        images=_read_all([file for file, _ in files], side),
        labels=np.array([classes.index(shown) for _, shown in files], np.int32),
        classes=classes,
        held_out=held_out,
        source="image folder",
    )


def colour_statistics(
    images: UInt8[np.ndarray, "images height width 3"],
) -> tuple[Float64[np.ndarray, " 3"], Float64[np.ndarray, " 3"]]:
    """Mean and standard deviation of red, green and blue over all pixels, where 255 counts as 1.

    They come from the counts of the 256 levels, so no image is ever converted.
    """
    require(images.size > 0, f"colours are those of at least one pixel, got images of shape {images.shape}.")
    counts = np.zeros((3, 256), np.int64)
    step = max(1, PIXELS_A_BLOCK // (images.shape[1] * images.shape[2]))
    for start in range(0, len(images), step):
        for channel in range(3):
            levels = images[start : start + step, :, :, channel].ravel()
            counts[channel] += np.bincount(levels, minlength=256)
    shares, levels = counts / counts[0].sum(), np.arange(256) / 255
    mean = shares @ levels
    return mean, np.sqrt(np.sum(shares * (levels - mean[:, None]) ** 2, axis=1))


def reason(error: Exception) -> str:
    """What another library says is wrong, in one line that can end a sentence."""
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__


def _entries(folder: Path) -> list[Path]:
    """What `folder` holds, by name; neither hidden things nor what file managers leave behind."""
    try:
        found = sorted(folder.iterdir(), key=lambda entry: entry.name)
    except OSError as error:
        raise InputError(f"{folder} cannot be read ({error.strerror}).") from error
    return [entry for entry in found if not entry.name.startswith(".") and entry.name.lower() not in LEFT_BY_SYSTEMS]


def _is_image(path: Path) -> bool:
    return path.suffix.lower() in ENDINGS


def _split(path: Path) -> tuple[Path, Path | None]:
    """The folders of training and of validation classes. A folder "train" of images alone is a class (of railways)."""
    folders = set(_classes(path))
    if "train" not in folders or not _classes(path / "train"):
        return path, None
    parts = [name for name in VALIDATION_FOLDERS if name in folders]
    require(
        len(parts) > 0,
        f"{path} holds train but none of {', '.join(VALIDATION_FOLDERS)}; "
        f"give {path / 'train'} to have some of its images set apart.",
    )
    others = sorted(folders - {"train", *VALIDATION_FOLDERS})
    require(not others, f"{path} holds both train and other folders ({', '.join(others)}); classes belong in train.")
    return path / "train", path / parts[0]


def _classes(folder: Path) -> tuple[str, ...]:
    entries = _entries(folder)
    names = tuple(entry.name for entry in entries if entry.is_dir())
    loose = [entry.name for entry in entries if not entry.is_dir() and _is_image(entry)]
    require(
        not (names and loose),
        f"{folder} holds images beside its folders, such as {loose[0] if loose else ''}; "
        "put every image into the folder of its class.",
    )
    return names


def _files(folder: Path, classes: tuple[str, ...]) -> list[tuple[Path, str]]:
    """Every image file with its class."""
    found = []
    for shown in classes:
        entries = _entries(folder / shown)
        others = [entry for entry in entries if entry.is_dir() or not _is_image(entry)]
        require(
            not others,
            f"{others[0] if others else ''} is not an image file; "
            f"the folder of a class holds only files that end in {', '.join(ENDINGS)}.",
        )
        require(len(entries) > 0, f"{folder / shown} holds no images; every class needs at least one.")
        found += [(entry, shown) for entry in entries]
    return found


def _read_all(files: list[Path], side: int | None) -> UInt8[np.ndarray, "images side side 3"]:
    """The images of `files` in their order, every one read straight into its place."""
    read = _read_each(files, side)
    first = next(read)
    images = np.empty((len(files), *first.shape), np.uint8)
    images[0] = first
    for index, image in enumerate(read, start=1):
        require(
            image.shape == first.shape,
            f"{files[index]} is {_size(image)} pixels and {files[0]} is {_size(first)}; "
            f"choose one side for all, such as --side {min(image.shape[0], first.shape[0])}.",
        )
        images[index] = image
    return images


def _size(image: np.ndarray) -> str:
    return f"{image.shape[1]} x {image.shape[0]}"


def _read_each(files: list[Path], side: int | None) -> Iterator[UInt8[np.ndarray, "_ _ 3"]]:
    for file in files:
        image = _open(file)
        width, height = image.size
        shorter = min(width, height)
        if side is None:
            require(
                width == height,
                f"{file} is {width} x {height} pixels, not a square; "
                f"choose a side to crop and resize all images to, such as --side {shorter}.",
            )
        else:
            left, top = (width - shorter) // 2, (height - shorter) // 2
            image = image.crop((left, top, left + shorter, top + shorter))
            image = image.resize((side, side), Image.Resampling.BICUBIC)
        yield np.asarray(image)


def _open(file: Path) -> Image.Image:
    """The image in RGB, upright; the first frame where it moves."""
    try:
        with Image.open(file) as opened:
            wide = opened.mode.split(";")[0] in WIDE_MODES
            image = ImageOps.exif_transpose(opened)
            if "transparency" in image.info:  # a palette's colours are looked up before its transparency is dropped
                image = image.convert("RGBA")
            image = image.convert("RGB")
    except UnidentifiedImageError as error:
        raise InputError(f"{file} cannot be read: it is not an image of a known format.") from error
    except Exception as error:  # a damaged file can raise nearly anything
        raise InputError(f"{file} cannot be read: {reason(error)}.") from error
    require(not wide, f"{file} has more than 8 bits a channel; save it as 8-bit RGB or grey.")
    return image
