"""Labelled images of one size, and the reader of a folder with one subfolder per class.

FOLDER/CLASS/IMAGE               no validation part: some images are held out later
FOLDER/train/CLASS/IMAGE         validation in the first of FOLDER/val, FOLDER/validation, FOLDER/test that exists
"""

import math
import os
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float64, Int32, UInt8
from PIL import Image, ImageOps, UnidentifiedImageError

from .._limits import require_fits, require_size
from ..errors import InputError, one_line_of, require, require_count

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp")
VALIDATION_FOLDERS = ("val", "validation", "test")
SYSTEM_FILES = ("thumbs.db", "desktop.ini")
REPLACE = "replace it, or remove it"
WIDE_MODES = ("I", "F")  # more than 8 bits per channel, which a conversion to RGB would clip
BLOCK_PIXELS = 2**20
MAX_SIDE = 2**14
PIXEL_BYTES = 8
"""Of memory per pixel while an image is decoded and converted."""


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Images and their labels; the last `held_out` are the validation examples (None: no split is given)."""

    name: str
    images: UInt8[np.ndarray, "images height width 3"]
    labels: Int32[np.ndarray, " images"]
    classes: tuple[str, ...]
    held_out: int | None


def read_image_folder(path: Path, *, side: int | None = None) -> ImageSet:
    """Read a folder with one subfolder per class, or with train/ and val/ that each have them.

    Classes and files are in alphabetical order, validation images last. `side` crops every image about its centre and
    resizes it to this many pixels; by default images are not changed, and must be squares of one size.

    Raises `InputError` for a folder of another layout, and for a file that is not an image or is damaged.
    """
    if side is not None:
        require_count("side", side)
        require_size("side", side, MAX_SIDE)
    require(path.is_dir(), f"{path} is not a folder; give one with a subfolder of images per class.")
    training, validation = _split(path)
    classes = _classes(training)
    found = ", ".join(classes) or "none"
    require(len(classes) >= 2, f"{training} must have at least 2 subfolders, one per class, got {found}.")
    files, held_out = _files(training, classes), None
    if validation is not None:
        validated = _classes(validation)
        require(len(validated) > 0, f"{validation} must have a subfolder per class, got none.")
        unknown = ", ".join(name for name in validated if name not in classes)
        message = f"{validation} has classes that {training} does not have: {unknown}; add or remove them."
        require(not unknown, message)
        validation_files = _files(validation, validated)
        files, held_out = files + validation_files, len(validation_files)
    return ImageSet(
        name=Path(os.path.abspath(path)).name,
        images=_read_all([file for file, _ in files], side),
        labels=np.array([classes.index(name) for _, name in files], np.int32),
        classes=classes,
        held_out=held_out,
    )


def colour_statistics(
    images: UInt8[np.ndarray, "images height width 3"],
) -> tuple[Float64[np.ndarray, " 3"], Float64[np.ndarray, " 3"]]:
    """Return mean and standard deviation of red, green and blue over all pixels, scaled to [0, 1].

    Computed from a histogram of the 256 levels, so that no image is converted to floating point.
    """
    counts = np.zeros((3, 256), np.int64)
    step = max(1, BLOCK_PIXELS // (images.shape[1] * images.shape[2]))
    for start in range(0, len(images), step):
        for channel in range(3):
            levels = images[start : start + step, :, :, channel].ravel()
            counts[channel] += np.bincount(levels, minlength=256)
    shares, levels = counts / counts[0].sum(), np.arange(256) / 255
    mean = shares @ levels
    return mean, np.sqrt(np.sum(shares * (levels - mean[:, None]) ** 2, axis=1))


def visible_entries(folder: Path) -> list[Path]:
    """List what is in `folder`, sorted by name, without hidden and system files."""
    try:
        entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
    except OSError as error:
        raise InputError(f"{folder} cannot be read ({error.strerror}); check its permissions.") from error
    return [entry for entry in entries if not entry.name.startswith(".") and entry.name.lower() not in SYSTEM_FILES]


def _is_image(path: Path) -> bool:
    return path.suffix.lower() in ENDINGS and not path.is_dir()


def _split(path: Path) -> tuple[Path, Path | None]:
    """Return the folders of training and of validation classes. A folder `train` with images in it is a class."""
    folders = set(_classes(path))
    if "train" not in folders or not _classes(path / "train"):
        return path, None
    parts = [name for name in VALIDATION_FOLDERS if name in folders]
    missing = f"{path} has train but none of {', '.join(VALIDATION_FOLDERS)}"
    require(len(parts) > 0, f"{missing}; give {path / 'train'} to hold out some of its images.")
    others = sorted(folders - {"train", *VALIDATION_FOLDERS})
    require(not others, f"{path} has both train and other folders ({', '.join(others)}); move classes into train.")
    return path / "train", path / parts[0]


def _classes(folder: Path) -> tuple[str, ...]:
    entries = visible_entries(folder)
    names = tuple(entry.name for entry in entries if entry.is_dir())
    loose = next((entry.name for entry in entries if _is_image(entry)), "")
    both = f"{folder} has both folders and images ({loose}); move every image into the folder of its class."
    require(not (names and loose), both)
    return names


def _files(folder: Path, classes: tuple[str, ...]) -> list[tuple[Path, str]]:
    """Return every image file with its class."""
    files = []
    for name in classes:
        entries = visible_entries(folder / name)
        for entry in entries:
            only = f"the folder of a class may only hold {', '.join(ENDINGS)}"
            require(_is_image(entry), f"{entry} is not an image file; remove it: {only}.")
        require(len(entries) > 0, f"{folder / name} has no images; every class needs at least one.")
        files += [(entry, name) for entry in entries]
    return files


def _read_all(files: list[Path], side: int | None) -> UInt8[np.ndarray, "images side side 3"]:
    """Return the images of `files`, in their order, read one by one into one array."""
    first = _read_square(files[0], side)
    require_fits(f"{len(files):,} images of {len(first)} x {len(first)} pixels", len(files) * first.nbytes)
    images = np.empty((len(files), *first.shape), np.uint8)
    for place, file in enumerate(files):
        image = first if place == 0 else _read_square(file, side)
        sizes = f"{file} is {len(image)} x {len(image)} pixels but {files[0]} is {len(first)} x {len(first)}"
        fix = f"resize all with --side {min(len(image), len(first))}"
        require(len(image) == len(first), f"{sizes}; {fix}.")
        images[place] = image
    return images


def _read_square(file: Path, side: int | None) -> UInt8[np.ndarray, "side side 3"]:
    """Return an image that is square, or made so where `side` is given."""
    image = open_image(file)
    width, height = image.size
    shorter = min(width, height)
    if side is not None:
        left, top = (width - shorter) // 2, (height - shorter) // 2
        image = image.crop((left, top, left + shorter, top + shorter))
        return np.asarray(image.resize((side, side), Image.Resampling.BICUBIC))
    fix = f"crop and resize all images with --side {shorter}"
    require(width == height, f"{file} is {width} x {height} pixels, not square; {fix}.")
    return np.asarray(image)


def open_image(file: Path) -> Image.Image:
    """Return the image in RGB, turned upright; of an animation, the first frame."""
    try:
        with warnings.catch_warnings(), Image.open(file) as opened:
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # we have our own limit
            require_fits(f"{file}, {opened.size[0]} x {opened.size[1]} pixels,", PIXEL_BYTES * math.prod(opened.size))
            wide = opened.mode.split(";")[0] in WIDE_MODES
            image = ImageOps.exif_transpose(opened)
            if "transparency" in image.info:  # else the palette's colours are lost with its transparency
                image = image.convert("RGBA")
            image = image.convert("RGB")
    except InputError:
        raise
    except UnidentifiedImageError as error:
        raise InputError(f"{file} cannot be read: not an image of a known format; {REPLACE}.") from error
    except Image.DecompressionBombError as error:
        raise InputError(f"{file} cannot be read: {one_line_of(error)}; resize it before.") from error
    except Exception as error:  # a damaged file can raise nearly anything
        raise InputError(f"{file} cannot be read: {one_line_of(error)}; {REPLACE}.") from error
    require(not wide, f"{file} has more than 8 bits per channel; save it as 8-bit RGB or grey.")
    return image
