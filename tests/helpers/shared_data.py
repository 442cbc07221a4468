"""The real data in ../shared/data, converted into the official formats that headcount reads."""

import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from .cifar_files import write_cifar_folder

SHARED = Path(__file__).parents[3] / "shared" / "data"
CIFAR = SHARED / "cifar10" / "all_small_jpeg_q90.npz"
MARCO = SHARED / "msmarco"
needs_cifar = pytest.mark.skipif(not CIFAR.exists(), reason=f"{CIFAR} is not there")
needs_marco = pytest.mark.skipif(not MARCO.exists(), reason=f"{MARCO} is not there")


def convert_cifar(folder: Path) -> Path:
    """All of CIFAR-10 in the official binary version, from six JPEG pictures of 100 x 100 images."""
    splits = (*(f"train_batch_{number}" for number in range(1, 6)), "test")
    with np.load(CIFAR) as stored:
        pictures = [np.asarray(Image.open(io.BytesIO(stored[f"jpeg_{split}"].tobytes()))) for split in splits]
        labels = np.concatenate([stored[f"labels_{split}"] for split in splits])
    images = [picture.reshape(100, 32, 100, 32, 3).swapaxes(1, 2).reshape(-1, 32, 32, 3) for picture in pictures]
    return write_cifar_folder(folder, np.concatenate(images), labels)


def marco_queries() -> Iterator[dict[str, Any]]:
    return _records("queries")


def convert_marco(folder: Path) -> Path:
    """The dev-small queries and their passages in MS MARCO's official files; a passage's id is its line."""
    lines = {
        "collection": (f"{record['id']}\t{_one_line(record['text'])}" for record in _records("passages")),
        "queries.dev.small": (f"{record['query_id']}\t{_one_line(record['query'])}" for record in marco_queries()),
        "qrels.dev.small": (f"{record['query_id']}\t0\t{record['positive']}\t1" for record in marco_queries()),
    }
    for name, content in lines.items():
        (folder / f"{name}.tsv").write_text("\n".join(content) + "\n", encoding="utf-8")
    return folder


def _records(kind: str) -> Iterator[dict[str, Any]]:
    with gzip.open(MARCO / f"dev_small_{kind}.jsonl.gz", "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def _one_line(text: str) -> str:
    return " ".join(text.split())
