"""A folder of images is read as it lies, in one order, or refused with the name of what is in the way."""

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

import jaxtyping
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

from headcount._errors import InputError
from headcount.datasets import images as module
from headcount.datasets.images import ImageSet, colour_statistics, read_image_folder

NAMES = st.text("abcdefgXYZ0123456789 _-ü", min_size=1, max_size=8).filter(lambda name: name.strip() == name)


@contextlib.contextmanager
def refused(*words: str):
    """What a user without a type checker meets: one sentence with `words` in it."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        with pytest.raises(InputError) as caught:
            yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", before)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    assert not message.endswith("..")
    assert [word for word in words if word not in message] == [], message


def pixels(count: int, side: int = 8, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, side, side, 3), np.uint8)


def save(path: Path, image: np.ndarray, **options) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(image).save(path, **options)
    return path


@pytest.fixture
def folder(tmp_path):
    """Two classes of two images each, in `animals`."""
    for shown in ("cat", "dog"):
        for name, image in zip(("1.png", "2.png"), pixels(2), strict=True):
            save(tmp_path / "animals" / shown / name, image)
    return tmp_path / "animals"


@settings(deadline=None, max_examples=25)
@given(
    classes=st.lists(NAMES, min_size=2, max_size=4, unique_by=str.lower),
    files=st.lists(NAMES, min_size=1, max_size=3, unique_by=str.lower),
    side=st.integers(1, 9),
    ending=st.sampled_from([".png", ".PNG", ".bmp"]),
    split=st.sampled_from([None, "val", "validation", "test"]),
    data=st.data(),
)
def test_what_is_written_without_loss_is_read_again(classes, files, side, ending, split, data):
    order = data.draw(st.permutations([(shown, file) for shown in classes for file in files]))
    images = {
        (part, *place): image
        for seed, part in enumerate(["train", split] if split else [""])
        for place, image in zip(order, pixels(len(order), side, seed), strict=True)
    }
    root = Path(tempfile.mkdtemp())
    for (part, shown, file), image in images.items():
        save(root / "set" / part / shown / f"{file}{ending}", image)
    found = read_image_folder(root / "set", side=data.draw(st.sampled_from([None, side])))
    shutil.rmtree(root)
    parts = ["train", split] if split else [""]
    expected = [
        (part, shown, file)
        for part in parts
        for shown in sorted(classes)
        for file in sorted(files, key=lambda file: file + ending)
    ]
    assert found.name == "set"
    assert found.classes == tuple(sorted(classes))
    assert np.array_equal(found.images, np.stack([images[place] for place in expected]))
    assert [found.classes[label] for label in found.labels] == [shown for _, shown, _ in expected]
    assert found.held_out == (len(order) if split else None)


@pytest.mark.parametrize("ending", [".jpg", ".jpeg", ".gif", ".webp"])
def test_formats_with_loss_are_near(tmp_path, ending):
    colours = np.array([[200, 40, 40], [30, 60, 220]], np.uint8)
    for shown, colour in zip("ab", colours, strict=True):
        save(tmp_path / shown / f"one{ending}", np.broadcast_to(colour, (16, 16, 3)).copy())
    found = read_image_folder(tmp_path)
    assert np.abs(found.images.astype(int) - colours[:, None, None]).max() <= 8


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "CMYK"])
def test_every_mode_becomes_rgb(tmp_path, mode):
    grey = np.kron(np.array([[0, 255], [255, 0]], np.uint8), np.ones((4, 4), np.uint8))
    ending = ".jpg" if mode == "CMYK" else ".png"
    for shown in "ab":
        (tmp_path / shown).mkdir()
        Image.fromarray(grey).convert("RGB").convert(mode).save(tmp_path / shown / f"one{ending}")
    found = read_image_folder(tmp_path).images.astype(int)
    assert np.abs(found - grey[None, :, :, None]).max() <= 8


def test_a_palette_with_transparent_colours(tmp_path):
    image = Image.fromarray(pixels(1)[0]).quantize(4)
    for shown in "ab":
        (tmp_path / shown).mkdir()
        image.save(tmp_path / shown / "one.png", transparency=bytes([0, 128, 255, 255]))
    assert np.array_equal(read_image_folder(tmp_path).images[0], np.asarray(image.convert("RGB")))


def test_a_photograph_taken_sideways_is_turned(tmp_path):
    image = np.zeros((16, 16, 3), np.uint8)
    image[:8] = 255
    turned = Image.Exif()
    turned[0x0112] = 6  # shown a quarter turn clockwise
    for shown in "ab":
        save(tmp_path / shown / "one.jpg", image, exif=turned, quality=95)
    found = read_image_folder(tmp_path).images[0]
    assert found[:, 8:].min() > 240
    assert found[:, :8].max() < 15


class TestSide:
    """All images become squares of one size, only where asked."""

    def test_the_centre_is_what_is_kept(self, tmp_path):
        wide = np.zeros((4, 10, 3), np.uint8)
        wide[:, 3:7] = pixels(1, 4)[0]
        for shown, image in (("tall", wide.swapaxes(0, 1).copy()), ("wide", wide)):
            save(tmp_path / shown / "one.png", image)
        found = read_image_folder(tmp_path, side=4)
        assert np.array_equal(found.images[1], pixels(1, 4)[0])
        assert np.array_equal(found.images[0], pixels(1, 4)[0].swapaxes(0, 1))

    @settings(deadline=None, max_examples=25)
    @given(width=st.integers(1, 20), height=st.integers(1, 20), side=st.integers(1, 20))
    def test_one_colour_stays_that_colour_at_any_size(self, width, height, side):
        root = Path(tempfile.mkdtemp())
        for shown in "ab":
            save(root / shown / "one.png", np.full((height, width, 3), [10, 120, 250], np.uint8))
        found = read_image_folder(root, side=side)
        shutil.rmtree(root)
        assert found.images.shape == (2, side, side, 3)
        assert np.array_equal(np.unique(found.images.reshape(-1, 3), axis=0), [[10, 120, 250]])

    def test_sizes_that_differ_need_a_side(self, folder):
        save(folder / "dog" / "3.png", pixels(1, 6)[0])
        with refused("3.png", "6 x 6", "8 x 8", "--side 6"):
            read_image_folder(folder)
        assert read_image_folder(folder, side=6).images.shape == (5, 6, 6, 3)

    def test_an_oblong_needs_a_side(self, folder):
        save(folder / "cat" / "0.png", pixels(1)[0][:5])
        with refused("0.png", "8 x 5", "not a square", "--side 5"):
            read_image_folder(folder)

    @pytest.mark.parametrize("side", [0, -3, 2.5, True])
    def test_a_side_that_is_none(self, folder, side):
        with refused("side", str(side)):
            read_image_folder(folder, side=side)


class TestWhatIsLeftOut:
    def test_hidden_files_and_what_systems_leave(self, folder):
        before = read_image_folder(folder)
        for name in (".DS_Store", ".hidden.png", "Thumbs.db", "desktop.ini"):
            (folder / "cat" / name).write_bytes(b"not an image")
            (folder / name).write_bytes(b"not an image")
        (folder / ".git").mkdir()
        assert np.array_equal(read_image_folder(folder).images, before.images)
        assert read_image_folder(folder).classes == ("cat", "dog")

    def test_words_beside_the_classes(self, folder):
        (folder / "README.txt").write_text("cats and dogs")
        assert read_image_folder(folder).classes == ("cat", "dog")

    def test_a_test_part_where_there_is_a_validation_part(self, folder, tmp_path):
        for part in ("train", "val", "test"):
            shutil.copytree(folder, tmp_path / "split" / part)
        (tmp_path / "split" / "test" / "cat" / "1.png").write_bytes(b"not an image")
        found = read_image_folder(tmp_path / "split")
        assert (len(found.images), found.held_out) == (8, 4)


class TestNames:
    def test_the_folder_one_stands_in(self, folder, monkeypatch):
        monkeypatch.chdir(folder)
        assert read_image_folder(Path()).name == "animals"

    def test_railways_are_a_class(self, folder):
        shutil.copytree(folder / "cat", folder / "train")
        shutil.copytree(folder / "cat", folder / "test")
        found = read_image_folder(folder)
        assert found.classes == ("cat", "dog", "test", "train")
        assert found.held_out is None


class TestRefusals:
    def test_nothing_there_or_a_file(self, folder):
        for path in (folder / "none", folder / "cat" / "1.png"):
            with refused(str(path), "not a folder"):
                read_image_folder(path)

    def test_one_class_or_none(self, folder):
        shutil.rmtree(folder / "dog")
        with refused(str(folder), "at least 2", "got cat"):
            read_image_folder(folder)
        with refused(str(folder / "cat"), "at least 2", "got none"):
            read_image_folder(folder / "cat")

    def test_a_class_without_images(self, folder):
        (folder / "emu").mkdir()
        (folder / "emu" / ".keep").touch()
        with refused(str(folder / "emu"), "no images"):
            read_image_folder(folder)

    def test_an_image_beside_the_classes(self, folder):
        save(folder / "loose.png", pixels(1)[0])
        with refused(str(folder), "loose.png", "folder of its class"):
            read_image_folder(folder)

    def test_an_image_beside_the_parts(self, folder, tmp_path):
        for part in ("train", "val"):
            shutil.copytree(folder, tmp_path / "split" / part)
        save(tmp_path / "split" / "loose.png", pixels(1)[0])
        with refused(str(tmp_path / "split"), "loose.png"):
            read_image_folder(tmp_path / "split")

    @pytest.mark.parametrize("name", ["notes.txt", "photo.tiff", "photo"])
    def test_another_file_in_a_class(self, folder, name):
        (folder / "dog" / name).write_text("words")
        with refused(str(folder / "dog" / name), ".webp"):
            read_image_folder(folder)

    def test_a_folder_in_a_class(self, folder):
        (folder / "dog" / "puppies.png").mkdir()
        with refused("puppies.png", "not an image file"):
            read_image_folder(folder)

    def test_a_text_called_an_image(self, folder):
        (folder / "dog" / "2.png").write_text("words")
        with refused(str(folder / "dog" / "2.png"), "not an image"):
            read_image_folder(folder)

    @pytest.mark.parametrize("ending", [".png", ".jpg", ".gif", ".bmp", ".webp"])
    @settings(deadline=None, max_examples=15)
    @given(share=st.floats(0, 0.9))
    def test_a_cut_image(self, ending, share):
        root = Path(tempfile.mkdtemp())
        for shown in "ab":
            path = save(root / shown / f"one{ending}", pixels(1, 32)[0])
        os.truncate(path, int(share * path.stat().st_size))
        with refused(str(path), "cannot be read"):
            read_image_folder(root)
        shutil.rmtree(root)

    def test_more_than_eight_bits(self, folder):
        save(folder / "dog" / "2.png", pixels(1)[0, :, :, 0].astype(np.uint16) * 256)
        with refused("2.png", "8 bits"):
            read_image_folder(folder)

    def test_a_training_part_alone(self, folder, tmp_path):
        shutil.copytree(folder, tmp_path / "split" / "train")
        with refused(str(tmp_path / "split"), "val, validation, test", str(tmp_path / "split" / "train")):
            read_image_folder(tmp_path / "split")

    def test_classes_beside_the_parts(self, folder, tmp_path):
        for part in ("train", "val", "emu"):
            shutil.copytree(folder, tmp_path / "split" / part)
        with refused(str(tmp_path / "split"), "emu"):
            read_image_folder(tmp_path / "split")

    def test_a_validation_class_never_trained_on(self, folder, tmp_path):
        for part in ("train", "test"):
            shutil.copytree(folder, tmp_path / "split" / part)
        (tmp_path / "split" / "test" / "dog").rename(tmp_path / "split" / "test" / "emu")
        with refused(str(tmp_path / "split" / "test"), "emu"):
            read_image_folder(tmp_path / "split")

    def test_a_validation_part_without_classes(self, folder, tmp_path):
        shutil.copytree(folder, tmp_path / "split" / "train")
        (tmp_path / "split" / "val").mkdir()
        with refused(str(tmp_path / "split" / "val"), "got none"):
            read_image_folder(tmp_path / "split")


class TestImageSet:
    GOOD = {  # noqa: RUF012 - never written to
        "name": "few",
        "images": pixels(4),
        "labels": np.array([0, 1, 1, 0], np.int32),
        "classes": ("cat", "dog"),
        "held_out": 2,
        "source": "made up",
    }

    def test_what_is_right(self):
        assert ImageSet(**self.GOOD).held_out == 2
        assert ImageSet(**self.GOOD | {"held_out": None}).held_out is None

    @pytest.mark.parametrize(
        ("changed", "words"),
        [
            ({"images": pixels(4).astype(np.float32)}, ["uint8", "float32"]),
            ({"images": pixels(4)[..., 0]}, ["(4, 8, 8)"]),
            ({"images": pixels(4)[..., :2]}, ["(4, 8, 8, 2)"]),
            ({"images": pixels(4)[:0], "labels": np.zeros(0, np.int32)}, ["(0, 8, 8, 3)"]),
            ({"images": pixels(5)}, ["5 images", "4 labels"]),
            ({"labels": np.array([0, 1, 1, 0])}, ["int32", "int64"]),
            ({"labels": np.zeros((4, 1), np.int32)}, ["(4, 1)"]),
            ({"labels": np.array([0, 1, 2, 0], np.int32)}, ["0 and 1", "got 2"]),
            ({"labels": np.array([0, 1, -1, 0], np.int32)}, ["0 and 1", "got -1"]),
            ({"labels": np.array([0, 0, 1, 0], np.int32)}, ["none of dog"]),
            ({"classes": ("cat",)}, ["at least 2", "cat"]),
            ({"classes": ("cat", "cat")}, ["different"]),
            ({"held_out": 0}, ["1 to 3", "got 0"]),
            ({"held_out": 4}, ["1 to 3", "got 4"]),
        ],
    )
    def test_what_is_wrong(self, changed, words):
        with refused("few", *words):
            ImageSet(**self.GOOD | changed)


class TestColours:
    @settings(deadline=None, max_examples=40)
    @given(
        images=hnp.arrays(np.uint8, st.tuples(*[st.integers(1, 6)] * 3, st.just(3))),
        block=st.sampled_from([1, 7, 30, 2**20]),
    )
    def test_they_are_those_of_all_pixels_at_once(self, images, block):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "PIXELS_A_BLOCK", block)
            mean, std = colour_statistics(images)
        assert mean == pytest.approx((images / 255).mean(axis=(0, 1, 2)), abs=1e-12)
        assert std == pytest.approx((images / 255).std(axis=(0, 1, 2)), abs=1e-12)

    def test_no_pixels(self):
        with refused("at least one pixel", "(0, 8, 8, 3)"):
            colour_statistics(pixels(1)[:0])
