"""A folder of images is read in one order, or refused with the name of the offending file or folder."""

import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

from headcount.data import images as module
from headcount.data.images import colour_statistics, read_image_folder

from ..helpers.refusals import refused

NAMES = st.text("abcdefgXYZ0123456789 _-ü", min_size=1, max_size=8).filter(lambda name: name.strip() == name)


def pixels(count: int, side: int = 8, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, side, side, 3), np.uint8)


def save(path: Path, image: np.ndarray, **options) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(image).save(path, **options)
    return path


@pytest.fixture
def folder(tmp_path):
    """Two classes of two images each, in `animals`."""
    for name in ("cat", "dog"):
        for file, image in zip(("1.png", "2.png"), pixels(2), strict=True):
            save(tmp_path / "animals" / name / file, image)
    return tmp_path / "animals"


@pytest.fixture
def split(folder, tmp_path):
    """The same classes in split/train and split/val."""
    for part in ("train", "val"):
        shutil.copytree(folder, tmp_path / "split" / part)
    return tmp_path / "split"


@settings(deadline=None, max_examples=15)
@given(
    classes=st.lists(NAMES, min_size=2, max_size=4, unique_by=str.lower),
    files=st.lists(NAMES, min_size=1, max_size=3, unique_by=str.lower),
    side=st.integers(1, 9),
    ending=st.sampled_from([".png", ".PNG", ".bmp"]),
    split=st.sampled_from([None, "val", "validation", "test"]),
    data=st.data(),
)
def test_lossless_files_are_read_exactly(classes, files, side, ending, split, data):
    order = data.draw(st.permutations([(name, file) for name in classes for file in files]))
    images = {
        (part, *place): image
        for seed, part in enumerate(["train", split] if split else [""])
        for place, image in zip(order, pixels(len(order), side, seed), strict=True)
    }
    with tempfile.TemporaryDirectory() as root:
        for (part, name, file), image in images.items():
            save(Path(root) / "set" / part / name / f"{file}{ending}", image)
        read = read_image_folder(Path(root) / "set", side=data.draw(st.sampled_from([None, side])))
    expected = [
        (part, name, file)
        for part in (["train", split] if split else [""])
        for name in sorted(classes)
        for file in sorted(files, key=lambda file: file + ending)
    ]
    assert (read.name, read.classes) == ("set", tuple(sorted(classes)))
    assert np.array_equal(read.images, np.stack([images[place] for place in expected]))
    assert [read.classes[label] for label in read.labels] == [name for _, name, _ in expected]
    assert read.held_out == (len(order) if split else None)


@pytest.mark.parametrize("ending", [".jpg", ".jpeg", ".gif", ".webp"])
def test_lossy_files_are_close(tmp_path, ending):
    colours = np.array([[200, 40, 40], [30, 60, 220]], np.uint8)
    for name, colour in zip("ab", colours, strict=True):
        save(tmp_path / name / f"one{ending}", np.broadcast_to(colour, (16, 16, 3)).copy())
    read = read_image_folder(tmp_path)
    assert np.abs(read.images.astype(int) - colours[:, None, None]).max() <= 8


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "CMYK"])
def test_every_mode_becomes_rgb(tmp_path, mode):
    grey = np.kron(np.array([[0, 255], [255, 0]], np.uint8), np.ones((4, 4), np.uint8))
    ending = ".jpg" if mode == "CMYK" else ".png"
    for name in "ab":
        (tmp_path / name).mkdir()
        Image.fromarray(grey).convert("RGB").convert(mode).save(tmp_path / name / f"one{ending}")
    colours = read_image_folder(tmp_path).images.astype(int)
    assert np.abs(colours - grey[None, :, :, None]).max() <= 8


def test_a_palette_with_transparent_colours(tmp_path):
    image = Image.fromarray(pixels(1)[0]).quantize(4)
    for name in "ab":
        (tmp_path / name).mkdir()
        image.save(tmp_path / name / "one.png", transparency=bytes([0, 128, 255, 255]))
    assert np.array_equal(read_image_folder(tmp_path).images[0], np.asarray(image.convert("RGB")))


def test_a_photograph_with_an_exif_rotation_is_turned(tmp_path):
    image = np.zeros((16, 16, 3), np.uint8)
    image[:8] = 255
    turned = Image.Exif()
    turned[0x0112] = 6  # shown a quarter turn clockwise
    for name in "ab":
        save(tmp_path / name / "one.jpg", image, exif=turned, quality=95)
    image = read_image_folder(tmp_path).images[0]
    assert image[:, 8:].min() > 240
    assert image[:, :8].max() < 15


class TestSide:
    """All images become squares of one size, only where asked."""

    def test_the_centre_is_what_is_kept(self, tmp_path):
        wide = np.zeros((4, 10, 3), np.uint8)
        wide[:, 3:7] = pixels(1, 4)[0]
        for name, image in (("tall", wide.swapaxes(0, 1).copy()), ("wide", wide)):
            save(tmp_path / name / "one.png", image)
        read = read_image_folder(tmp_path, side=4)
        assert np.array_equal(read.images[1], pixels(1, 4)[0])
        assert np.array_equal(read.images[0], pixels(1, 4)[0].swapaxes(0, 1))

    @settings(deadline=None, max_examples=15)
    @given(width=st.integers(1, 20), height=st.integers(1, 20), side=st.integers(1, 20))
    def test_one_colour_stays_that_colour_at_any_size(self, width, height, side):
        with tempfile.TemporaryDirectory() as root:
            for name in "ab":
                save(Path(root) / name / "one.png", np.full((height, width, 3), [10, 120, 250], np.uint8))
            read = read_image_folder(Path(root), side=side)
        assert read.images.shape == (2, side, side, 3)
        assert np.array_equal(np.unique(read.images.reshape(-1, 3), axis=0), [[10, 120, 250]])

    def test_sizes_that_differ_need_a_side(self, folder):
        save(folder / "dog" / "3.png", pixels(1, 6)[0])
        with refused("3.png", "6 x 6", "8 x 8", "--side 6"):
            read_image_folder(folder)
        assert read_image_folder(folder, side=6).images.shape == (5, 6, 6, 3)

    def test_an_oblong_needs_a_side(self, folder):
        save(folder / "cat" / "0.png", pixels(1)[0][:5])
        with refused("0.png", "8 x 5", "--side 5"):
            read_image_folder(folder)

    @pytest.mark.parametrize("side", [0, -3, 2.5, True])
    def test_a_side_that_is_none(self, folder, side):
        with refused("side", str(side)):
            read_image_folder(folder, side=side)


class TestLayout:
    def test_hidden_and_system_files_are_ignored(self, folder):
        before = read_image_folder(folder)
        for name in (".DS_Store", ".hidden.png", "Thumbs.db", "desktop.ini"):
            (folder / "cat" / name).write_bytes(b"not an image")
            (folder / name).write_bytes(b"not an image")
        (folder / ".git").mkdir()
        (folder / "README.txt").write_text("cats and dogs")
        after = read_image_folder(folder)
        assert np.array_equal(after.images, before.images)
        assert after.classes == ("cat", "dog")

    def test_val_is_preferred_to_test(self, split):
        shutil.copytree(split / "val", split / "test")
        (split / "test" / "cat" / "1.png").write_bytes(b"not an image")
        read = read_image_folder(split)
        assert (len(read.images), read.held_out) == (8, 4)

    def test_the_name_of_the_current_folder(self, folder, monkeypatch):
        monkeypatch.chdir(folder)
        assert read_image_folder(Path()).name == "animals"

    def test_classes_may_be_called_train_and_test(self, folder):
        shutil.copytree(folder / "cat", folder / "train")
        shutil.copytree(folder / "cat", folder / "test")
        read = read_image_folder(folder)
        assert (read.classes, read.held_out) == (("cat", "dog", "test", "train"), None)


class TestRefusals:
    @pytest.mark.parametrize("name", ["none", "cat/1.png", "cat"])
    def test_not_a_folder_of_classes(self, folder, name):
        with refused(str(folder / name)):
            read_image_folder(folder / name)

    def test_one_class(self, folder):
        shutil.rmtree(folder / "dog")
        with refused(str(folder), "2", "cat"):
            read_image_folder(folder)

    def test_a_class_without_images(self, folder):
        (folder / "emu").mkdir()
        (folder / "emu" / ".keep").touch()
        with refused(str(folder / "emu")):
            read_image_folder(folder)

    def test_images_beside_folders(self, folder, split):
        for root in (folder, split):
            save(root / "loose.png", pixels(1)[0])
            with refused(str(root), "loose.png"):
                read_image_folder(root)

    @pytest.mark.parametrize("name", ["notes.txt", "photo.tiff", "photo", "puppies.png", "text.png"])
    def test_a_class_with_something_else(self, folder, name):
        if name == "puppies.png":
            (folder / "dog" / name).mkdir()
        else:
            (folder / "dog" / name).write_text("words")
        with refused(str(folder / "dog" / name)):
            read_image_folder(folder)

    @pytest.mark.parametrize("ending", [".png", ".jpg", ".gif", ".bmp", ".webp"])
    @settings(deadline=None, max_examples=5)
    @given(share=st.floats(0, 0.9))
    def test_a_truncated_image(self, ending, share):
        with tempfile.TemporaryDirectory() as root:
            save(Path(root) / "a" / f"one{ending}", pixels(1, 32)[0])
            path = save(Path(root) / "b" / f"one{ending}", pixels(1, 32)[0])
            os.truncate(path, int(share * path.stat().st_size))
            with refused(str(path)):
                read_image_folder(Path(root))

    def test_more_than_eight_bits(self, folder):
        save(folder / "dog" / "2.png", pixels(1)[0, :, :, 0].astype(np.uint16) * 256)
        with refused("2.png", "8 bits"):
            read_image_folder(folder)

    def test_parts_that_do_not_fit(self, split):
        shutil.copytree(split / "val" / "dog", split / "val" / "emu")
        with refused(str(split / "val"), "emu"):
            read_image_folder(split)
        shutil.copytree(split / "val", split / "gnu")
        with refused(str(split), "gnu"):
            read_image_folder(split)
        shutil.rmtree(split / "gnu")
        shutil.rmtree(split / "val")
        with refused(str(split), str(split / "train")):
            read_image_folder(split)
        (split / "val").mkdir()
        with refused(str(split / "val")):
            read_image_folder(split)


class TestColours:
    @settings(deadline=None, max_examples=25)
    @given(
        images=hnp.arrays(np.uint8, st.tuples(*[st.integers(1, 6)] * 3, st.just(3))),
        block=st.sampled_from([1, 7, 30, 2**20]),
    )
    def test_they_are_those_of_all_pixels_at_once(self, images, block):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "BLOCK_PIXELS", block)
            mean, std = colour_statistics(images)
        assert mean == pytest.approx((images / 255).mean(axis=(0, 1, 2)), abs=1e-12)
        assert std == pytest.approx((images / 255).std(axis=(0, 1, 2)), abs=1e-12)
