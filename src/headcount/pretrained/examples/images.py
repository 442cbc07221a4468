"""Images for vision transformers: folders, images in memory, and random smooth ones. Needs torch."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from ..._draws import named_generator
from ..._limits import require_fits
from ...data.images import ENDINGS, open_image, visible_entries
from ...errors import InputError, require
from .batches import Batch, Parts, in_batches
from .sizes import Sizes, wanted_examples

FEWEST_IMAGES = 8
"""Of each part, where as many are given and no limit is."""
SMOOTH_SIDE = 6
"""Random images are this coarse before they are enlarged."""


def image_files(folder: Path) -> tuple[list[Path], list[str] | None]:
    """Image files, with the names of their class folders; None where the images lie in the folder itself.

    Of train and validation folders, the images of the validation folder are used.

    Raises:
        InputError: No images, or images both in the folder and in folders below it.
    """
    for name in ("val", "validation", "test"):
        if (folder / name).is_dir() and (folder / "train").is_dir():
            folder = folder / name
            break
    entries = visible_entries(folder)
    loose = [entry for entry in entries if entry.suffix.lower() in ENDINGS and entry.is_file()]
    classes = [entry for entry in entries if entry.is_dir()]
    files = [(file, place.name) for place in classes for file in visible_entries(place) if _is_image(file)]
    require(
        not (loose and files),
        f"{folder} has both images and folders of images; move every image into the folder of its class.",
    )
    require(
        bool(loose or files),
        f"{folder} has no images ({', '.join(ENDINGS)}); give a folder of images, or of one folder per class.",
    )
    return (loose, None) if loose else ([file for file, _ in files], [name for _, name in files])


def image_batches(
    model: nn.Module,
    processor: Any,
    images: Sequence[Any],
    sizes: Sizes,
    seed: int,
    limit: int | None,
    labels: Sequence[int] | None = None,
) -> Parts:
    """Held-out and calibration batches of images (files, PIL images or arrays), each an example."""
    order = named_generator(seed, "examples").permutation(len(images))
    per_image = tokens_per_image(model)
    available = min(len(images), limit or len(images))
    held_out, calibration = wanted_examples(sizes, per_image, limit and available, FEWEST_IMAGES)
    require(available >= 2, f"the data have {available} images; at least 2 are needed.")
    if available < held_out + calibration:
        held_out = min(held_out, max(1, available // 3))
        calibration = min(calibration, available - held_out)

    def batch(places: np.ndarray) -> Batch:
        pixels = prepared(model, processor, [images[place] for place in places])
        extras = {} if labels is None else {"labels": torch.tensor([labels[place] for place in places])}
        return Batch({"pixel_values": pixels}, len(places), None, extras, per_example=per_image)

    rest = order[held_out : held_out + calibration]
    return in_batches(order[:held_out], rest, sizes.batch // per_image, batch)


def random_images(model: nn.Module, sizes: Sizes, seed: int, limit: int | None) -> Parts:
    per_image = tokens_per_image(model)
    held_out, calibration = wanted_examples(sizes, per_image, limit, FEWEST_IMAGES)
    pixels = smooth_images(model, held_out + calibration, seed)

    def batch(some: Tensor) -> Batch:
        return Batch({"pixel_values": some}, len(some), per_example=per_image)

    return in_batches(pixels[:held_out], pixels[held_out:], sizes.batch // per_image, batch)


def prepared(model: nn.Module, processor: Any, images: Sequence[Any]) -> Tensor:
    """Turn images into the model's pixels: by its processor, else resized to its size and scaled to [-1, 1]."""
    opened = [open_image(image) if isinstance(image, Path) else _as_image(image) for image in images]
    if processor is not None:
        return processor(images=opened, return_tensors="pt")["pixel_values"].float()
    height, width = _side(model)
    resized = [np.asarray(image.resize((width, height), Image.Resampling.BICUBIC)) for image in opened]
    return torch.from_numpy(np.stack(resized)).permute(0, 3, 1, 2).float() / 127.5 - 1


def smooth_images(model: nn.Module, count: int, seed: int) -> Tensor:
    """Random images without fine detail, of the size and about the range that the model reads."""
    height, width = _side(model)
    require_fits(
        f"a sample of {count:,} images of {height} x {width} pixels", 4 * count * _channels(model) * height * width
    )
    generator = named_generator(seed, "images")
    coarse = torch.from_numpy(generator.normal(size=(count, _channels(model), SMOOTH_SIDE, SMOOTH_SIDE))).float()
    return torch.nn.functional.interpolate(coarse, size=(height, width), mode="bicubic", align_corners=False)


def tokens_per_image(model: Any) -> int:
    height, width = _side(model)
    patch = getattr(model.config, "patch_size", None) or 16
    rows, columns = patch if isinstance(patch, Sequence) else (patch, patch)
    return (height // rows) * (width // columns) + 1


def _side(model: Any) -> tuple[int, int]:
    side = getattr(model.config, "image_size", None) or 224
    return (side[0], side[1]) if isinstance(side, Sequence) else (side, side)


def _channels(model: Any) -> int:
    return getattr(model.config, "num_channels", None) or 3


def _is_image(path: Path) -> bool:
    return path.suffix.lower() in ENDINGS


def _as_image(image: Any) -> Image.Image:
    if isinstance(image, Image.Image):
        return image.convert("RGB")
    array = np.asarray(image)
    if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] != 3:
        raise InputError(
            f"an image must be a PIL image or a uint8 array of shape (height, width, 3), "
            f"got {array.dtype} of shape {array.shape}."
        )
    return Image.fromarray(array)
