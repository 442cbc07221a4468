"""Images as sequences of patches, each image at a random place in a frame that repeats its border colours.

A larger frame is the same task at a longer length: `at(length)` is the frame of that many patches. An image takes a new
place each time it is shown, or keeps one that is drawn once. Source: the CIFAR-10 experiment of Yu et al. (arXiv
2510.06662), Figures 2c, 2d and 6, which does not say which of the two.
"""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Float, Int, UInt8

from .._shapes import AnyArray, Key, Tokens
from ..data.images import ImageSet, colour_statistics
from ..errors import require, require_count
from ..keys import named_generator
from .base import AbstractTask, Examples, Split, Tokenise, fingerprint
from .labelled import split_indices, train_and_validation
from .objective import Classification

MAX_PLACE = np.iinfo(np.int32).max
"""So far above the places of any frame that remainders are as good as uniform."""


class PlacedImage(NamedTuple):
    """An image that keeps its place: two whole numbers, taken modulo the places that a frame has."""

    image: UInt8[AnyArray, "*images image image 3"]
    place: Int[AnyArray, "*images 2"]


Stored = UInt8[AnyArray, "*images image image 3"] | PlacedImage
"""Images as examples hold them."""


class Frame(Tokenise):
    """An image in its frame, cut into patches of standardised colours, row by row."""

    mean: Float[AnyArray, "3"]
    scale: Float[AnyArray, "3"]
    side: int = eqx.field(static=True)
    patch: int = eqx.field(static=True)

    def __call__(self, content: Stored, key: Key) -> Tokens:
        return self.patches(self.placed(content, key))

    def placed(self, content: Stored, key: Key) -> UInt8[AnyArray, "side side 3"]:
        """Put the image at its own place, or at a random one; a pixel outside has the colour of the nearest one."""
        image, place = content if isinstance(content, PlacedImage) else (content, None)
        pixels = image.shape[0]
        if self.side == pixels:
            return image
        places = self.side - pixels + 1
        corner = jr.randint(key, (2,), 0, places) if place is None else jnp.asarray(place) % places
        rows, columns = (jnp.clip(jnp.arange(self.side) - start, 0, pixels - 1) for start in corner)
        return image[rows][:, columns]

    def patches(self, frame: UInt8[AnyArray, "side side 3"]) -> Tokens:
        across = self.side // self.patch
        cut = frame.reshape(across, self.patch, across, self.patch, 3).transpose(0, 2, 1, 3, 4)
        colours = (cut / 255.0 - self.mean) / self.scale
        return colours.reshape(across * across, self.patch * self.patch * 3)


class ImageTask(AbstractTask):
    """The class of an image, from `length` square patches.

    Args:
        source: Square images, their labels and classes, such as a reader of `headcount.data` returns.
        patch: Side of a patch in pixels.
        side: Side of the frame in pixels, a multiple of `patch`; by default the image's.
        fixed_places: Whether an image keeps one place in the frame; by default it takes a new one each time it is
            shown in training. The place depends on the image's number in `source` alone.

    Raises:
        InputError: Images are not square, or `side` is smaller than the image or no multiple of `patch`. `examples`
            raises it for fewer than 100 training or 20 validation images.

    Example:
        >>> import pathlib
        >>> import numpy as np
        >>> from PIL import Image
        >>> import headcount as hc
        >>> for place, colour in enumerate(["dark", "light"] * 2):
        ...     pathlib.Path("photos", colour).mkdir(parents=True, exist_ok=True)
        ...     pixels = np.full((8, 8, 3), 50 * place, np.uint8)
        ...     Image.fromarray(pixels).save(f"photos/{colour}/{place}.png")
        >>> task = hc.find_task("photos", patch=4)  # an ImageTask
        >>> task.length, task.dim, task.classes, task.at(9).side
        (4, 48, ('dark', 'light'), 12)
    """

    images: UInt8[np.ndarray, "images image image 3"]
    labels: Int[np.ndarray, " images"]
    mean: Float[np.ndarray, "3"]
    scale: Float[np.ndarray, "3"]
    classes: tuple[str, ...] = eqx.field(static=True)
    held_out: int | None = eqx.field(static=True)
    patch: int = eqx.field(static=True)
    length: int = eqx.field(static=True)
    name: str = eqx.field(static=True)
    content: str = eqx.field(static=True)
    fixed_places: bool = eqx.field(static=True)
    uses_positions = True
    objective = Classification()

    def __init__(self, source: ImageSet, *, patch: int = 4, side: int | None = None, fixed_places: bool = False):
        require_count("patch", patch)
        height, width = source.images.shape[1:3]
        require(height == width, f"{source.name}: images must be square, got {height} x {width} pixels.")
        train, _ = train_and_validation(len(source.images), source.held_out)
        mean, scale = colour_statistics(source.images[train])
        self.images, self.labels = source.images, source.labels
        self.mean, self.scale = mean.astype(np.float32), np.where(scale > 0, scale, 1.0).astype(np.float32)
        self.classes, self.held_out, self.patch, self.name = source.classes, source.held_out, patch, source.name
        self.content = fingerprint(source.images, source.labels)
        self.length = _patches(height if side is None else side, patch, height, source.name)
        self.fixed_places = fixed_places

    @property
    def side(self) -> int:
        """Side of the frame in pixels."""
        return self.patch * math.isqrt(self.length)

    @property
    def dim(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Numbers per token: three colours per pixel of a patch."""
        return 3 * self.patch**2

    @property
    def outputs(self) -> int:
        """One score per class."""
        return len(self.classes)

    @property
    def tokenise(self) -> Frame:
        """What places an image in its frame and cuts it into patches."""
        colours: Any = (self.mean, self.scale)
        return Frame(*colours, side=self.side, patch=self.patch)

    def examples(self, train_examples: int, validation_examples: int, seed: int = 0) -> Split:
        count = len(self.images)
        parts = split_indices(count, self.held_out, train_examples, validation_examples, seed, self.name)
        labels: Any = self.labels
        return Split(*(Examples(self.stored(part), labels[part]) for part in parts))

    def stored(self, indices: Int[np.ndarray, " images"]) -> Stored:
        """Return the images of these indices, with their places where those are fixed."""
        images: Any = self.images[indices]
        if not self.fixed_places:
            return images
        places: Any = named_generator(0, "places").integers(0, MAX_PLACE, (len(self.images), 2), dtype=np.int32)
        return PlacedImage(images, places[indices])

    def at(self, length: int) -> "ImageTask":
        require_count("length", length)
        pixels, root = self.images.shape[1], math.isqrt(length)
        require(
            root**2 == length and root * self.patch >= pixels,
            f"{self.name}: {length} patches of {self.patch} pixels fill no square frame around {pixels} x {pixels} "
            f"pixels; length must be a square number of at least {(-(-pixels // self.patch)) ** 2}.",
            what="length",
        )
        return self._with_length(length)

    def spec(self) -> dict[str, Any]:
        # Left out where they are not fixed: models of images are known by their specs since before there was a choice.
        places = {"fixed_places": True} if self.fixed_places else {}
        return places | {
            "task": self.name,
            "patch": self.patch,
            "pixels": self.images.shape[1],
            "classes": len(self.classes),
            "held_out": self.held_out,
            "content": self.content,
        }


def _patches(side: int, patch: int, pixels: int, name: str) -> int:
    require_count("side", side)
    divisor = f"{name}: patch must divide the image's {pixels} pixels, got {patch}."
    require(side != pixels or side % patch == 0, divisor, what="patch")
    multiple = f"{name}: side must be a multiple of the patch, {patch}, and at least the image's {pixels} pixels"
    require(side >= pixels and side % patch == 0, f"{multiple}, got {side}.", what="side")
    return (side // patch) ** 2
