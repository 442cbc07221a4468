"""Images in frames, cut into patches: against the obvious loops over pixels."""

import functools

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.tasks import ImageTask
from headcount.tasks.image import PlacedImage
from headcount.tasks.labelled import train_and_validation, train_count

from ..helpers.compiling import compile_quickly  # noqa: F401
from ..helpers.refusals import refused
from ..helpers.tolerance import assert_close
from .labelled import some_images
from .laws import ALL, Construction, LabelledTaskLaws

CONSTRUCTIONS = {
    "given validation images": Construction(
        make=lambda: ImageTask(some_images(), patch=4),
        outputs=2,
        other_length=9,
        stored=(120, 40),
        tokens=lambda length: (length, 48),
    ),
    "drawn validation images": Construction(
        make=lambda: ImageTask(some_images(held_out=None, side=5), patch=2, side=6),
        outputs=2,
        other_length=16,
        stored=(128, 32),
        tokens=lambda length: (length, 12),
    ),
    "fixed places": Construction(
        make=lambda: ImageTask(some_images(), patch=4, fixed_places=True),
        outputs=2,
        other_length=16,
        stored=(120, 40),
        tokens=lambda length: (length, 48),
    ),
}


class TestImages(LabelledTaskLaws):
    constructions = CONSTRUCTIONS

    @staticmethod
    def names(part):
        images = part.content.image if isinstance(part.content, PlacedImage) else part.content
        return [image.tobytes() for image in images]

    def test_labels_stay_with_their_images(self, task):
        known = {image.tobytes(): label for image, label in zip(task.images, task.labels, strict=True)}
        for part in task.examples(ALL, ALL, 4):
            assert [known[name] for name in self.names(part)] == part.targets.tolist()


# The frame.

OWN, SIDE, PATCH = 4, 6, 2


@functools.cache
def task(side: int = SIDE) -> ImageTask:
    return ImageTask(some_images(side=OWN), patch=PATCH, side=side)


def placed_slowly(image, side: int, row: int, column: int):
    """Every pixel of the frame has the colour of the nearest pixel of the image, whose corner is at (row, column)."""
    frame = np.zeros((side, side, 3), np.uint8)
    places = [(r, c) for r in range(len(image)) for c in range(len(image))]
    for y in range(side):
        for x in range(side):
            nearest = min(places, key=lambda place: (place[0] + row - y) ** 2 + (place[1] + column - x) ** 2)
            frame[y, x] = image[nearest]
    return frame


def test_a_frame_is_filled_with_the_nearest_colours_and_every_place_is_reached():
    image = jnp.asarray(task().images[0])
    reach = range(SIDE - OWN + 1)
    known = {
        placed_slowly(np.asarray(image), SIDE, row, column).tobytes(): (row, column)
        for row in reach
        for column in reach
    }
    assert len(known) == 9
    frames = jax.jit(jax.vmap(lambda key: task().tokenise.placed(image, key)))(jr.split(jr.key(0), 300))
    found = [known[np.asarray(frame).tobytes()] for frame in frames]
    counts = np.array([found.count(place) for place in known.values()])
    # 300 draws of nine places: 33 each, give or take 5.4.
    assert counts.min() > 12
    assert counts.max() < 58


def test_a_frame_of_the_image_s_own_size_is_the_image():
    image, show = task().images[3], task(OWN).tokenise
    for seed in (0, 1):
        assert np.array_equal(show.placed(image, jr.key(seed)), image)
    assert_close(show(image, jr.key(0)), show(image, jr.key(1)))


def test_another_key_is_another_place():
    image, show = jnp.asarray(task().images[0]), task().tokenise
    tokens = np.asarray(jax.jit(jax.vmap(lambda key: show(image, key)))(jr.split(jr.key(0), 20)))
    assert len({shown.tobytes() for shown in tokens}) > 3


@functools.cache
def fixed(side: int = SIDE) -> ImageTask:
    return ImageTask(some_images(side=OWN), patch=PATCH, side=side, fixed_places=True)


def kept_places(part) -> dict[bytes, tuple[int, ...]]:
    """The place of every image."""
    image, place = part.content
    return {each.tobytes(): tuple(at) for each, at in zip(image, place.tolist(), strict=True)}


def test_a_fixed_place_is_that_of_the_image_whatever_the_key_the_seed_and_the_length():
    content = fixed().examples(ALL, ALL, 3).train.content
    show = jax.jit(jax.vmap(fixed().tokenise.placed))
    keys = [jr.split(jr.key(seed), len(content.image)) for seed in (0, 1)]
    frames, again = (np.asarray(show(jax.tree.map(jnp.asarray, content), key)) for key in keys)
    assert np.array_equal(frames, again)
    for image, place, frame in list(zip(*content, frames, strict=True))[:20]:
        assert np.array_equal(frame, placed_slowly(image, SIDE, *(place % (SIDE - OWN + 1))))
    splits = [fixed().examples(ALL, ALL, seed) for seed in (3, 4)] + [fixed(8).examples(50, 30, 5)]
    known = [kept_places(split.train) | kept_places(split.validation) for split in splits]
    assert known[0] == known[1]
    assert known[2].items() <= known[0].items()


@pytest.mark.parametrize("side", [5, 6, 8])
def test_fixed_places_are_uniform_and_differ_between_images(side):
    source = some_images(count=4000, side=OWN)
    places = side - OWN + 1
    kept = ImageTask(source, patch=1, side=side, fixed_places=True).stored(np.arange(4000)).place % places
    counts = np.bincount(kept[:, 0] * places + kept[:, 1], minlength=places**2)
    expected = 4000 / places**2
    assert np.sum((counts - expected) ** 2 / expected) < 3 * places**2 + 5, "chi squared"


def test_fixed_places_are_another_task_and_drawn_ones_keep_their_spec():
    source = some_images()
    drawn, kept = ImageTask(source, fixed_places=False).spec(), ImageTask(source, fixed_places=True).spec()
    assert "fixed_places" not in drawn
    assert kept == drawn | {"fixed_places": True}


def test_without_a_larger_frame_fixed_places_change_nothing():
    content = fixed(OWN).stored(np.arange(3))
    kept, drawn = (each(OWN).tokenise for each in (fixed, task))
    for image, place in zip(*content, strict=True):
        assert_close(kept(PlacedImage(image, place), jr.key(0)), drawn(image, jr.key(1)))


@settings(deadline=None, max_examples=20)
@given(across=st.integers(1, 3), patch=st.sampled_from([1, 2, 4]), seed=st.integers(0, 2**16))
def test_patches_are_the_frame_row_by_row(across, patch, seed):
    side = across * patch
    source = some_images(side=side, seed=seed)
    task = ImageTask(source, patch=patch)
    tokens = task.tokenise.patches(source.images[0])
    frame = np.zeros((side, side, 3))
    for place, token in enumerate(np.asarray(tokens)):
        top, left = patch * (place // across), patch * (place % across)
        for at, colours in enumerate(token.reshape(-1, 3)):
            frame[top + at // patch, left + at % patch] = colours * task.scale + task.mean
    assert_close(255 * frame, source.images[0])


# Standard colours.


def training_images(task: ImageTask) -> np.ndarray:
    return task.examples(ALL, ALL).train.content


@pytest.mark.parametrize("held_out", [40, None])
def test_colours_are_standard_over_the_training_images_alone(held_out):
    source = some_images(held_out=held_out)
    task = ImageTask(source, patch=4)
    pixels = training_images(task).reshape(-1, 3) / 255
    assert_close(task.mean, np.mean(pixels, axis=0))
    assert_close(task.scale, np.std(pixels, axis=0))
    shown = np.asarray(jax.vmap(task.tokenise.patches)(training_images(task))).reshape(-1, 3)
    assert_close(np.mean(shown, axis=0, dtype=np.float64).astype(np.float32), np.zeros(3))
    assert_close(np.std(shown, axis=0, dtype=np.float64).astype(np.float32), np.ones(3))


def test_validation_images_do_not_change_the_colours():
    one, other = some_images(), some_images()
    other.images[-40:] = 255 - other.images[-40:]
    assert np.array_equal(ImageTask(one).mean, ImageTask(other).mean)
    assert np.array_equal(ImageTask(one).scale, ImageTask(other).scale)
    assert ImageTask(one).spec() != ImageTask(other).spec()


def test_a_colour_that_never_varies_is_only_centred():
    source = some_images()
    source.images[..., 2] = 7
    task = ImageTask(source)
    assert task.scale[2] == 1
    assert np.max(np.abs(np.asarray(task.tokenise.patches(source.images[0])).reshape(-1, 3)[:, 2])) < 1e-6


# What identifies it.


def test_the_spec_covers_images_labels_and_patches():
    source = some_images()
    swapped = some_images()
    swapped.labels[:2] = swapped.labels[1::-1]
    specs = [
        ImageTask(source).spec(),
        ImageTask(source, patch=2).spec(),
        ImageTask(swapped).spec(),
        ImageTask(some_images(seed=1)).spec(),
        ImageTask(some_images(held_out=41)).spec(),
    ]
    assert len({str(spec) for spec in specs}) == len(specs)
    assert ImageTask(source, side=16).spec() == specs[0]


def test_sizes():
    made = ImageTask(some_images(), patch=2, side=12)
    assert (made.length, made.side, made.dim, made.outputs) == (36, 12, 12, 2)
    assert made.at(16).side == 8


# Refusals.


@pytest.mark.parametrize("side", [4, 10, 6])
def test_a_side_that_does_not_hold_the_image_or_no_whole_patches_is_refused(side):
    with refused("multiple of the patch, 4", "at least the image's 8 pixels", f"got {side}"):
        ImageTask(some_images(), patch=4, side=side)


def test_an_image_of_no_whole_patches_needs_a_frame():
    with refused("8 pixels", "got 3"):
        ImageTask(some_images(), patch=3)
    assert ImageTask(some_images(), patch=3, side=9).length == 9


@pytest.mark.parametrize("length", [1, 5, 8])
def test_a_length_that_fills_no_frame_is_refused(length):
    with refused(f"{length} patches of 4 pixels", "8 x 8 pixels", "a square number of at least 4"):
        ImageTask(some_images(), patch=4).at(length)


@pytest.mark.parametrize("name", ["patch", "side"])
@pytest.mark.parametrize("value", [0, -4, 2.0, True])
def test_a_bad_count_is_refused(name, value):
    with refused(name, repr(value), "at least 1"):
        ImageTask(some_images(), **{name: value})


def test_a_bad_length_is_refused():
    with refused("length", "0", "at least 1"):
        ImageTask(some_images()).at(0)


@pytest.mark.parametrize(("count", "held_out"), [(100, None), (120, 30), (160, 19)])
def test_too_few_images_are_refused(count, held_out):
    train, validation = (80, 20) if held_out is None else (count - held_out, held_out)
    with refused(f"{train} training", f"{validation} validation", "at least 100 and 20"):
        ImageTask(some_images(count=count, held_out=held_out)).examples(ALL, ALL)


# The split.


@given(st.integers(0, 30_000), st.none() | st.integers(0, 30_000))
def test_every_example_is_for_training_or_for_validation(count, held_out):
    held_out = None if held_out is None else min(held_out, count)
    train, validation = train_and_validation(count, held_out)
    assert np.array_equal(np.sort(np.concatenate([train, validation])), np.arange(count))
    if held_out is None:
        assert len(validation) == min(count // 5, 2000)
        assert len(train) == train_count(count)
    else:
        assert validation.tolist() == list(range(count - held_out, count))
