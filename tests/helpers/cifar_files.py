"""CIFAR-10's official binary files, with random pixels or given ones."""

import io
import tarfile
from pathlib import Path

import numpy as np

from headcount.papers.data.cifar import ARCHIVE, BATCHES, FOLDER


def random_cifar(per_batch: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Random pixels of six batches, and labels in which every class occurs."""
    images = np.random.default_rng(seed).integers(0, 256, (6 * per_batch, 32, 32, 3), np.uint8)
    return images, np.arange(6 * per_batch, dtype=np.int32)[::-1] % 10


def batch_bytes(images: np.ndarray, labels: np.ndarray) -> dict[str, bytes]:
    """The content of the six files."""
    planes = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
    records = np.concatenate([labels.astype(np.uint8)[:, None], planes], axis=1)
    return {name: part.tobytes() for name, part in zip(BATCHES, np.split(records, 6), strict=True)}


def write_cifar_folder(folder: Path, images: np.ndarray, labels: np.ndarray) -> Path:
    (folder / FOLDER).mkdir(parents=True)
    for name, content in batch_bytes(images, labels).items():
        (folder / FOLDER / name).write_bytes(content)
    return folder / FOLDER


def write_cifar_archive(folder: Path, files: dict[str, bytes]) -> Path:
    path = folder / ARCHIVE
    with tarfile.open(path, mode="w:gz", compresslevel=1) as archive:
        for name, content in {"readme.html": b"<html>", **files}.items():
            member = tarfile.TarInfo(f"{FOLDER}/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path
