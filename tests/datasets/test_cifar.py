"""Every official layout of CIFAR-10 gives the same images, and none that is damaged gives any."""

import contextlib
import gzip
import io
import os
import pickle
import shutil
import struct
import tarfile
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PIL import Image

from headcount._errors import HeadcountError, InputError
from headcount.datasets import cifar
from headcount.datasets.cifar import CLASSES, fetch_cifar10, is_cifar10, read_cifar10
from headcount.datasets.images import ImageSet, colour_statistics

REAL = Path(__file__).parents[2].parent / "shared" / "data" / "cifar10"
BATCHES = ("data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch")


def shown(each: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Random pixels of six batches of `each` images, every class among them, and their labels."""
    images = np.random.default_rng(seed).integers(0, 256, (6 * each, 32, 32, 3), np.uint8)
    return images, np.arange(6 * each, dtype=np.int32)[::-1] % 10


def binary(images: np.ndarray, labels: np.ndarray) -> bytes:
    planes = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
    return np.concatenate([labels.astype(np.uint8)[:, None], planes], axis=1).tobytes()


def python2(images: np.ndarray, labels: np.ndarray) -> bytes:
    """The pickle that Python 2 wrote, instruction by instruction; Python 3 writes no text as bytes."""
    planes = images.transpose(0, 3, 1, 2).reshape(len(images), -1)

    def text(value: bytes) -> bytes:
        return b"U" + bytes([len(value)]) + value

    def number(value: int) -> bytes:
        return b"J" + struct.pack("<i", value)

    array = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85" + text(b"b") + b"\x87R"
    kind = (
        b"cnumpy\ndtype\n" + text(b"u1") + b"K\x00K\x01\x87R(K\x03" + text(b"|") + b"NNN" + 2 * number(-1) + b"K\x00tb"
    )
    shape = number(planes.shape[0]) + number(planes.shape[1]) + b"\x86"
    raw = b"T" + struct.pack("<i", planes.size) + planes.tobytes()
    data = array + b"(K\x01" + shape + kind + b"\x89" + raw + b"tb"
    listed = b"](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
    title = text(b"batch_label") + text(b"training batch 1 of 5")
    return b"\x80\x02}(" + title + text(b"labels") + listed + text(b"data") + data + b"u."


def python3(images: np.ndarray, labels: np.ndarray, *, protocol: int = 5) -> bytes:
    planes = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
    return pickle.dumps({"data": planes, "labels": labels.tolist()}, protocol=protocol)


def parts(images: np.ndarray, labels: np.ndarray, write, ending: str = "") -> dict[str, bytes]:
    split = zip(np.split(images, 6), np.split(labels, 6), strict=True)
    return {name + ending: write(*batch) for name, batch in zip(BATCHES, split, strict=True)}


def archive(files: dict[str, bytes], folder: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in {"readme.html": b"<html>", **files}.items():
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def lay_out(layout: str, folder: Path, images: np.ndarray, labels: np.ndarray) -> Path:
    """Write the images in `layout` and return the path to read."""
    kind = "bin" if "binary" in layout else "py"
    inside = f"cifar-10-batches-{kind}"
    files = parts(images, labels, *((binary, ".bin") if kind == "bin" else (python2,)))
    if layout.endswith("archive"):
        name = "cifar-10-binary.tar.gz" if kind == "bin" else "cifar-10-python.tar.gz"
        (folder / name).write_bytes(archive(files, inside))
        return folder / name
    (folder / inside).mkdir(parents=True)
    for name, content in files.items():
        (folder / inside / name).write_bytes(content)
    return folder / inside


LAYOUTS = ("binary folder", "python folder", "binary archive", "python archive")


@contextlib.contextmanager
def refused(*words: str):
    with pytest.raises(InputError) as caught:
        yield
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    assert not message.endswith("..")
    assert [word for word in words if word not in message] == [], message


@contextlib.contextmanager
def scratch():
    folder = Path(tempfile.mkdtemp())
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def assert_holds(found: ImageSet, images: np.ndarray, labels: np.ndarray):
    assert found.name == "cifar10"
    assert found.classes == CLASSES
    assert np.array_equal(found.images, images)
    assert np.array_equal(found.labels, labels)
    assert found.held_out == len(images) // 6
    assert found.images.flags.c_contiguous


def test_the_python2_pickles_of_these_tests_are_true_ones():
    images, labels = shown(2)
    loaded = pickle.loads(python2(images, labels), encoding="bytes")
    assert np.array_equal(loaded[b"data"].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), images)
    assert loaded[b"labels"] == labels.tolist()


@settings(deadline=None, max_examples=15)
@given(each=st.integers(2, 6), seed=st.integers(0, 10**6))
def test_every_layout_gives_the_same_images(each, seed):
    images, labels = shown(each, seed)
    for layout in LAYOUTS:
        with scratch() as folder:
            path = lay_out(layout, folder, images, labels)
            for given_path in (path, folder):
                assert is_cifar10(given_path)
                assert_holds(read_cifar10(given_path), images, labels)


@pytest.mark.parametrize("protocol", range(2, 6))
def test_batches_repacked_by_python3(tmp_path, protocol):
    images, labels = shown(3)
    for name, content in parts(images, labels, lambda *batch: python3(*batch, protocol=protocol)).items():
        (tmp_path / name).write_bytes(content)
    assert_holds(read_cifar10(tmp_path), images, labels)


def test_the_word_for_the_source(tmp_path):
    words = {}
    for layout in LAYOUTS:
        folder = tmp_path / layout
        folder.mkdir()
        words[layout] = read_cifar10(lay_out(layout, folder, *shown(2))).source
    assert words == {
        "binary folder": "official binary batches",
        "python folder": "official Python batches",
        "binary archive": "official binary archive",
        "python archive": "official Python archive",
    }


def test_where_several_layouts_lie_side_by_side_the_first_is_read(tmp_path):
    for place, layout in enumerate(reversed(LAYOUTS)):
        images, labels = shown(2, place)
        lay_out(layout, tmp_path, images, labels)
    images, labels = shown(2, 3)
    assert_holds(read_cifar10(tmp_path), images, labels)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_folder_named_cifar10_is_looked_into(tmp_path, layout):
    (tmp_path / "cifar10").mkdir()
    lay_out(layout, tmp_path / "cifar10", *shown(2))
    assert is_cifar10(tmp_path)
    assert_holds(read_cifar10(tmp_path), *shown(2))


class TestDamage:
    """A batch that is not whole is refused, wherever it ends."""

    @settings(deadline=None, max_examples=40)
    @given(batch=st.sampled_from(BATCHES), kept=st.integers(0, 3 * 3073 - 1))
    @example(batch="data_batch_2", kept=0)
    @example(batch="data_batch_2", kept=3073)
    @example(batch="test_batch", kept=2 * 3073)
    def test_a_binary_batch_cut_anywhere(self, batch, kept):
        with scratch() as folder:
            path = lay_out("binary folder", folder, *shown(3))
            os.truncate(path / f"{batch}.bin", kept)
            with refused(str(path), "not whole"):
                read_cifar10(folder)

    @settings(deadline=None, max_examples=40)
    @given(batch=st.sampled_from(BATCHES), share=st.floats(0, 1, exclude_max=True))
    def test_a_python_batch_cut_anywhere(self, batch, share):
        with scratch() as folder:
            path = lay_out("python folder", folder, *shown(2)) / batch
            os.truncate(path, int(share * path.stat().st_size))
            with refused(str(path), "cannot be read"):
                read_cifar10(folder)

    @pytest.mark.parametrize("layout", LAYOUTS[2:])
    @settings(deadline=None, max_examples=25)
    @given(share=st.floats(0, 1, exclude_max=True))
    def test_an_archive_cut_anywhere(self, layout, share):
        with scratch() as folder:
            path = lay_out(layout, folder, *shown(2))
            os.truncate(path, int(share * path.stat().st_size))
            with refused(str(path), "damaged or not whole"):
                read_cifar10(folder)

    @pytest.mark.parametrize("layout", LAYOUTS[2:])
    @settings(deadline=None, max_examples=25)
    @given(share=st.floats(0, 1, exclude_max=True), flipped=st.integers(1, 255))
    def test_an_archive_with_one_wrong_byte_gives_no_wrong_image(self, layout, share, flipped):
        with scratch() as folder:
            images, labels = shown(2)
            path = lay_out(layout, folder, images, labels)
            content = bytearray(path.read_bytes())
            content[int(share * len(content))] ^= flipped
            path.write_bytes(content)
            try:
                found = read_cifar10(path)
            except InputError:
                return
            assert_holds(found, images, labels)  # a byte of the gzip header, such as its date

    @settings(deadline=None, max_examples=60)
    @given(content=st.binary(max_size=300))
    def test_bytes_that_are_no_batch(self, content):
        with scratch() as folder:
            path = lay_out("python folder", folder, *shown(2))
            (path / "data_batch_3").write_bytes(content)
            with refused("data_batch_3"):
                read_cifar10(path)

    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_a_label_over_nine(self, tmp_path, layout):
        images, labels = shown(2)
        labels[5] = 10
        path = lay_out(layout, tmp_path, images, labels)
        with refused(str(path), "data_batch_3", "label 10", "0 to 9"):
            read_cifar10(path)

    def test_a_text_under_an_archive_name(self, tmp_path):
        (tmp_path / "cifar-10-binary.tar.gz").write_text("<html>404</html>")
        with refused("cifar-10-binary.tar.gz", "damaged"):
            read_cifar10(tmp_path)

    def test_a_gzipped_text_under_an_archive_name(self, tmp_path):
        (tmp_path / "cifar-10-binary.tar.gz").write_bytes(gzip.compress(b"<html>404</html>" * 100))
        with refused("cifar-10-binary.tar.gz", "damaged"):
            read_cifar10(tmp_path)

    def test_an_archive_that_lacks_a_batch(self, tmp_path):
        for name, ending, write in (("binary", ".bin", binary), ("python", "", python2)):
            files = parts(*shown(2), write, ending)
            del files[f"data_batch_4{ending}"]
            path = tmp_path / f"cifar-10-{name}.tar.gz"
            path.write_bytes(archive(files, "cifar-10-batches"))
            with refused(path.name, f"without data_batch_4{ending},"):
                read_cifar10(path)

    def test_an_archive_member_that_is_a_link_is_not_followed(self, tmp_path):
        (tmp_path / "secret").write_bytes(binary(*(half[:2] for half in shown(2))))
        path = tmp_path / "cifar-10-binary.tar.gz"
        with tarfile.open(path, "w:gz") as tar:
            for name in BATCHES:
                member = tarfile.TarInfo(f"{name}.bin")
                member.type, member.linkname = tarfile.SYMTYPE, str(tmp_path / "secret")
                tar.addfile(member)
        with refused("without data_batch_1.bin"):
            read_cifar10(path)

    def test_an_archive_that_claims_too_much(self, tmp_path, monkeypatch):
        monkeypatch.setattr(cifar, "MOST_BYTES", 3073)
        path = lay_out("binary archive", tmp_path, *shown(2))
        with refused("data_batch_1.bin", "claims 6,146 bytes"):
            read_cifar10(path)

    def test_nothing_is_written_beside_an_archive(self, tmp_path):
        path = lay_out("python archive", tmp_path, *shown(2))
        read_cifar10(path)
        assert list(tmp_path.iterdir()) == [path]


class Malice:
    """What a pickle can do to a reader that believes it."""

    def __init__(self, reach: Path):
        self.reach = reach

    def __reduce__(self):
        return os.mkdir, (str(self.reach),)


class TestPickles:
    """No pickle runs anything, nor gives an array that is not one of images."""

    @pytest.fixture
    def folder(self, tmp_path):
        return lay_out("python folder", tmp_path, *shown(2))

    @pytest.mark.parametrize("protocol", range(6))
    def test_a_pickle_that_would_run_code_is_refused_unrun(self, folder, tmp_path, protocol):
        reach = tmp_path / "reached"
        (folder / "test_batch").write_bytes(pickle.dumps({"data": Malice(reach), "labels": []}, protocol=protocol))
        with refused("test_batch", "posix.mkdir"):
            read_cifar10(folder)
        assert not reach.exists()

    @pytest.mark.parametrize(
        "asked", [b"cbuiltins\neval\n", b"cos\nsystem\n", b"cnumpy\nload\n", b"cnumpy.core.multiarray\nscalar\n"]
    )
    def test_only_arrays_can_be_asked_for(self, folder, asked):
        (folder / "test_batch").write_bytes(asked + b"(S'1'\ntR.")
        with refused("test_batch", asked[1:-1].decode().replace("\n", ".")):
            read_cifar10(folder)

    def test_stand_ins_cannot_be_changed_by_a_pickle(self, folder):
        for name in (b"cnumpy\nndarray\n", b"cnumpy\ndtype\n", b"c_codecs\nencode\n"):
            (folder / "test_batch").write_bytes(b"\x80\x02" + name + b"N}U\x06planesK\x01s\x86b.")
            with refused("test_batch", "cannot be read"):
                read_cifar10(folder)
        (folder / "test_batch").write_bytes(python2(*(half[10:] for half in shown(2))))
        assert_holds(read_cifar10(folder), *shown(2))

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            ({"labels": [1, 2]}, "data"),
            ({"data": [1, 2], "labels": [1, 2]}, "data"),
            ([1, 2], "data"),
            ({"data": np.zeros((2, 3071), np.uint8), "labels": [1, 2]}, "3,072"),
            ({"data": np.zeros((2, 3072), np.int8), "labels": [1, 2]}, "bytes"),
            ({"data": np.zeros((2, 1536), np.uint16), "labels": [1, 2]}, "bytes"),
            ({"data": np.zeros((0, 3072), np.uint8), "labels": []}, "data"),
            ({"data": np.zeros((2, 3, 1024), np.uint8), "labels": [1, 2]}, "data"),
            ({"data": np.array([[None] * 3072] * 2), "labels": [1, 2]}, "bytes"),
            ({"data": np.zeros((2, 3072), np.uint8)}, "labels"),
            ({"data": np.zeros((2, 3072), np.uint8), "labels": [1]}, "labels"),
            ({"data": np.zeros((2, 3072), np.uint8), "labels": [1, 2.5]}, "labels"),
            ({"data": np.zeros((2, 3072), np.uint8), "labels": "ab"}, "labels"),
            ({"data": np.zeros((2, 3072), np.uint8), "labels": [1, -1]}, "label -1"),
            ({"data": np.zeros((2, 3072), np.uint8), "labels": [1, 2**70]}, "0 to 9"),
        ],
    )
    @pytest.mark.parametrize("protocol", [2, 5])
    def test_what_is_no_batch(self, folder, content, words, protocol):
        (folder / "data_batch_1").write_bytes(pickle.dumps(content, protocol=protocol))
        with refused("data_batch_1", words):
            read_cifar10(folder)

    @pytest.mark.parametrize("protocol", [2, 5])
    def test_columns_first_is_the_same_array(self, folder, protocol):
        images, labels = (half[:2] for half in shown(2))
        planes = np.asfortranarray(images.transpose(0, 3, 1, 2).reshape(2, -1))
        content = {"data": planes, "labels": labels.tolist()}
        (folder / "data_batch_1").write_bytes(pickle.dumps(content, protocol=protocol))
        assert_holds(read_cifar10(folder), *shown(2))


class TestSprites:
    """The JPEG-coded copy: six pictures of tiles."""

    COLOURS = np.random.default_rng(0).integers(0, 256, (36, 3), np.uint8)

    def write(self, path: Path, labels: int = 6) -> Path:
        arrays = {}
        for place, split in enumerate(cifar.SPLITS):
            tiles = self.COLOURS[6 * place :][:6].reshape(2, 3, 3)
            picture = Image.fromarray(np.kron(tiles, np.ones((32, 32, 1), np.uint8)))
            buffer = io.BytesIO()
            picture.save(buffer, "JPEG", quality=95, subsampling=0)
            arrays[f"jpeg_{split}"] = np.frombuffer(buffer.getvalue(), np.uint8)
            arrays[f"labels_{split}"] = (np.arange(labels) + 6 * place).astype(np.uint8) % 10
        np.savez(path, **arrays)
        return path

    @pytest.mark.parametrize("name", ["all_small_jpeg_q90.npz", "renamed.npz"])
    def test_tiles_in_rows(self, tmp_path, name):
        path = self.write(tmp_path / name)
        assert is_cifar10(path)
        found = read_cifar10(path)
        assert found.source == "JPEG-coded copy"
        assert found.held_out == 6
        assert np.array_equal(found.labels, np.arange(36) % 10)
        assert np.abs(found.images.astype(int) - self.COLOURS[:, None, None]).max() <= 6

    def test_labels_that_do_not_fit(self, tmp_path):
        path = self.write(tmp_path / "all_small_jpeg_q90.npz", labels=5)
        with refused(str(path), "5 labels", "96 x 64"):
            read_cifar10(tmp_path)

    @pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
    def test_a_cut_file(self, tmp_path, share):
        path = self.write(tmp_path / "all_small_jpeg_q90.npz")
        os.truncate(path, int(share * path.stat().st_size))
        with refused(str(path), "damaged"):
            read_cifar10(tmp_path)


class TestWhatIsNotCifar:
    def test_nothing_there(self, tmp_path):
        assert not is_cifar10(tmp_path / "none")
        with refused("none", "there is no"):
            read_cifar10(tmp_path / "none")

    def test_an_empty_folder(self, tmp_path):
        assert not is_cifar10(tmp_path)
        with refused(str(tmp_path), "not CIFAR-10", "cifar-10-binary.tar.gz", "data_batch_1.bin"):
            read_cifar10(tmp_path)

    @pytest.mark.parametrize("layout", LAYOUTS[:2])
    def test_a_missing_batch(self, tmp_path, layout):
        path = lay_out(layout, tmp_path, *shown(2))
        name = "test_batch.bin" if "binary" in layout else "test_batch"
        (path / name).unlink()
        assert not is_cifar10(tmp_path)
        with refused(str(path), f"not {name}."):
            read_cifar10(tmp_path)

    def test_other_files(self, tmp_path):
        np.savez(tmp_path / "arrays.npz", x=np.zeros(3), y=np.zeros(3))
        (tmp_path / "words.txt").write_text("words")
        (tmp_path / "cifar-100-binary.tar.gz").write_bytes(b"")
        for path in tmp_path.iterdir():
            assert not is_cifar10(path)
            with refused(path.name, "not CIFAR-10"):
                read_cifar10(path)

    def test_one_batch_alone(self, tmp_path):
        path = lay_out("binary folder", tmp_path, *shown(2)) / "data_batch_1.bin"
        assert not is_cifar10(path)
        with refused(str(path), "folder"):
            read_cifar10(path)


def test_what_is_fetched_is_the_official_binary_archive(tmp_path, monkeypatch):
    asked = []

    def note(source, folder, **options):
        asked.append((source, folder, options))
        return folder / source.file_name

    monkeypatch.setattr(cifar, "fetch", note)
    assert fetch_cifar10(tmp_path) == tmp_path / "cifar-10-binary.tar.gz"
    fetch_cifar10(tmp_path, print)
    assert [source for source, _, _ in asked] == [cifar.BINARY_ARCHIVE] * 2
    assert [options for _, _, options in asked] == [{}, {"on_bytes": print}]
    assert cifar.BINARY_ARCHIVE.url.endswith("/cifar-10-binary.tar.gz")


def test_an_archive_with_other_bytes_is_not_taken_for_the_official_one(tmp_path):
    lay_out("binary archive", tmp_path, *shown(2))
    with pytest.raises(HeadcountError, match="sha256"):
        fetch_cifar10(tmp_path)


@pytest.mark.skipif(not REAL.exists(), reason="the JPEG-coded copy of CIFAR-10 is not at hand")
def test_the_real_images():
    found = read_cifar10(REAL)
    assert found.images.shape == (60_000, 32, 32, 3)
    assert found.held_out == 10_000
    assert np.bincount(found.labels[:50_000]).tolist() == [5000] * 10
    assert np.bincount(found.labels[50_000:]).tolist() == [1000] * 10
    mean, std = colour_statistics(found.images[:50_000])
    assert mean == pytest.approx([0.4914, 0.4822, 0.4465], abs=2e-3)
    assert std == pytest.approx([0.2470, 0.2435, 0.2616], abs=2e-3)
