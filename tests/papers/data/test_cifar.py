"""The folder and the archive of CIFAR-10 give the same images; a damaged one gives an error, never a wrong image."""

import gzip
import os
import tarfile
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headcount.data.images import ImageSet, colour_statistics
from headcount.errors import InputError
from headcount.papers.data.cifar import ARCHIVE, BATCHES, CLASSES, URL, is_cifar10, read_cifar10

from ...helpers.cifar_files import batch_bytes, random_cifar, write_cifar_archive, write_cifar_folder
from ...helpers.refusals import refused
from ...helpers.shared_data import convert_cifar, needs_cifar

IMAGES, LABELS = random_cifar(2)


def assert_holds(data: ImageSet, images: np.ndarray = IMAGES, labels: np.ndarray = LABELS) -> None:
    assert (data.name, data.classes, data.held_out) == ("cifar10", CLASSES, len(images) // 6)
    assert np.array_equal(data.images, images)
    assert np.array_equal(data.labels, labels)
    assert data.images.flags.c_contiguous


@settings(deadline=None, max_examples=10)
@given(per_batch=st.integers(2, 6), seed=st.integers(0, 10**6))
def test_folder_and_archive_give_what_was_written(per_batch, seed):
    images, labels = random_cifar(per_batch, seed)
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        batches = write_cifar_folder(Path(one), images, labels)
        archive = write_cifar_archive(Path(other), batch_bytes(images, labels))
        for path in (batches, batches.parent, archive, archive.parent):
            assert is_cifar10(path)
            assert_holds(read_cifar10(path), images, labels)
        assert list(archive.parent.iterdir()) == [archive]


class TestDamage:
    @settings(deadline=None, max_examples=25)
    @given(batch=st.sampled_from(BATCHES), kept=st.integers(0, 2 * 3073 - 1))
    @example(batch="data_batch_2.bin", kept=0)
    @example(batch="test_batch.bin", kept=3073)
    def test_a_truncated_batch(self, batch, kept):
        with tempfile.TemporaryDirectory() as folder:
            path = write_cifar_folder(Path(folder), IMAGES, LABELS)
            os.truncate(path / batch, kept)
            with refused(str(path), "1" if kept == 3073 else f"{kept:,}"):
                read_cifar10(path)

    @settings(deadline=None, max_examples=40)
    @given(share=st.floats(0, 1, exclude_max=True), flipped=st.integers(0, 255))
    def test_an_archive_truncated_or_with_one_wrong_byte(self, share, flipped):
        with tempfile.TemporaryDirectory() as folder:
            path = write_cifar_archive(Path(folder), batch_bytes(IMAGES, LABELS))
            content = bytearray(path.read_bytes())
            place = int(share * len(content))
            if flipped:
                content[place] ^= flipped
            path.write_bytes(content if flipped else content[:place])
            try:
                data = read_cifar10(path)
            except InputError as error:
                assert path.name in str(error)  # noqa: PT017 - either is right
            else:
                assert flipped, "a truncated archive was read"
                assert_holds(data)  # a byte of the gzip header, such as its date

    @pytest.mark.parametrize(
        "content", [b"<html>404</html>", gzip.compress(b"<html>404</html>" * 100)], ids=["plain", "gzipped"]
    )
    def test_an_archive_that_is_a_web_page(self, tmp_path, content):
        (tmp_path / ARCHIVE).write_bytes(content)
        with refused(ARCHIVE):
            read_cifar10(tmp_path)

    def test_a_label_over_nine(self, tmp_path):
        labels = LABELS.copy()
        labels[5] = 10
        write_cifar_folder(tmp_path, IMAGES, labels)
        with refused("data_batch_3.bin", "label 10"):
            read_cifar10(tmp_path)

    def test_a_missing_batch(self, tmp_path):
        path = write_cifar_folder(tmp_path, IMAGES, LABELS)
        (path / "data_batch_4.bin").unlink()
        with refused(str(path), "data_batch_4.bin"):
            read_cifar10(tmp_path)
        files = batch_bytes(IMAGES, LABELS)
        del files["data_batch_4.bin"]
        archive = write_cifar_archive(tmp_path, files)
        with refused(str(archive), "data_batch_4.bin"):
            read_cifar10(archive)

    def test_a_link_in_an_archive_is_not_followed(self, tmp_path):
        (tmp_path / "secret").write_bytes(batch_bytes(IMAGES, LABELS)["test_batch.bin"])
        path = tmp_path / ARCHIVE
        with tarfile.open(path, "w:gz") as archive:
            for name in BATCHES:
                member = tarfile.TarInfo(name)
                member.type, member.linkname = tarfile.SYMTYPE, str(tmp_path / "secret")
                archive.addfile(member)
        with refused(path.name, "data_batch_1.bin"):
            read_cifar10(path)


def test_the_python_version_is_recognised_and_refused(tmp_path):
    """Its pickles could run code; the message names the binary archive."""
    batches = tmp_path / "cifar-10-batches-py"
    batches.mkdir()
    (batches / "data_batch_1").write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    archive = tmp_path / "elsewhere" / "cifar-10-python.tar.gz"
    archive.parent.mkdir()
    archive.write_bytes(b"")
    for path in (tmp_path, batches, batches / "data_batch_1", archive, archive.parent):
        assert is_cifar10(path)
        with refused(URL):
            read_cifar10(path)


def test_what_is_not_cifar(tmp_path):
    (tmp_path / "words.txt").write_text("words")
    (tmp_path / "cifar-100-binary.tar.gz").write_bytes(b"")
    for path in (tmp_path, tmp_path / "words.txt", tmp_path / "cifar-100-binary.tar.gz", tmp_path / "none"):
        assert not is_cifar10(path)
        with refused(str(path)):
            read_cifar10(path)


@pytest.mark.slow
@needs_cifar
def test_the_real_images(tmp_path):
    data = read_cifar10(convert_cifar(tmp_path))
    assert data.images.shape == (60_000, 32, 32, 3)
    assert data.held_out == 10_000
    assert np.bincount(data.labels[:50_000]).tolist() == [5000] * 10
    assert np.bincount(data.labels[50_000:]).tolist() == [1000] * 10
    mean, std = colour_statistics(data.images[:50_000])
    assert mean == pytest.approx([0.4914, 0.4822, 0.4465], abs=2e-3)
    assert std == pytest.approx([0.2470, 0.2435, 0.2616], abs=2e-3)
