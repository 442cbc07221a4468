"""Names and bytes that cannot be used, whatever the kind of file: missing, damaged, of another kind, no file at all.

A variant makes its file in a folder and gives the path and the options to find the task with.
"""

import gzip
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Case = tuple[Path | str, dict[str, Any]]
Variant = Callable[[Path], Case]
TEXT_KINDS = (".csv", ".tsv", ".json", ".jsonl")

ROWS = 100  # the fewest that are taken, so that a lost row is an error
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(ROWS, 3, 2))
Y = GENERATOR.normal(size=ROWS)
LABELS = np.arange(ROWS) % 3


def with_value(values: np.ndarray, value: float) -> np.ndarray:
    copy = values.copy()
    copy.flat[7] = value
    return copy


def bytes_of(name: str, content: bytes, **options: Any) -> Variant:
    def make(folder: Path) -> Case:
        (folder / name).write_bytes(content)
        return folder / name, options

    return make


OTHER_CONTENT = {
    "empty": b"",
    "one byte": b"\x00",
    "zeros": bytes(1000),
    "noise": np.random.default_rng(1).bytes(1000),
    "high bytes": b"\xff\xfe" * 200,
    "a web page": b"<!DOCTYPE html><html><head><title>404</title></head></html>\n",
    "an image": b"\x89PNG\r\n\x1a\n" + bytes(100),
    "a program": b"\x7fELF" + bytes(200),
    "gzip of nothing": gzip.compress(b""),
    "a damaged gzip": gzip.compress(b"x,y\n1,2\n")[:-6],
    "a zip of nothing": b"PK\x05\x06" + bytes(18),
    "a pickle": pickle.dumps({"x": [1], "y": [2]}),
    "a git pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n",
}


def _fifo(path: Path) -> Path:
    os.mkfifo(path)
    return path


def _linked(path: Path, target: str | Path) -> Path:
    path.symlink_to(target)
    return path


def new_folder(path: Path) -> Path:
    path.mkdir()
    return path


def _locked(path: Path) -> Path:
    path.write_bytes(b"x,y\n")
    path.chmod(0)
    return path


def not_files(kind: str) -> dict[str, Variant]:
    """Names with this ending behind which there is no file that can be read."""
    name = f"bad{kind}"
    variants: dict[str, Variant] = {
        "missing": lambda folder: (folder / name, {}),
        "in a missing folder": lambda folder: (folder / "none" / name, {}),
        "a folder": lambda folder: (new_folder(folder / name), {}),
        "a pipe": lambda folder: (_fifo(folder / name), {}),
        "a device": lambda folder: (_linked(folder / name, "/dev/zero"), {}),
        "a link to itself": lambda folder: (_linked(folder / name, name), {}),
        "a link to nothing": lambda folder: (_linked(folder / name, "nothing"), {}),
        "a name too long": lambda folder: (folder / f"{'a' * 300}{kind}", {}),
        "a null byte": lambda folder: (f"{folder}/a\0b{kind}", {}),
    }
    if os.geteuid() != 0:  # root reads everything
        variants["locked"] = lambda folder: (_locked(folder / name), {})
    return variants


def damaged(kind: str, write: Callable[[Path], Path]) -> dict[str, Variant]:
    """A good file of this kind with bytes missing or changed; text is often still text then."""

    def changed(edit: Callable[[bytes], bytes]) -> Variant:
        def make(folder: Path) -> Case:
            path = write(folder / f"bad{kind}")
            path.write_bytes(edit(path.read_bytes()))
            return path, {}

        return make

    shares = (0.01, 0.1, 0.25, 0.3) if kind in TEXT_KINDS else (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
    variants = {
        f"cut at {share:.0%}": changed(lambda content, share=share: content[: int(share * len(content))])
        for share in shares
    }
    if kind in TEXT_KINDS:
        return variants | {"utf-16": changed(lambda content: content.decode().encode("utf-16"))}
    return variants | {
        "cut by a byte": changed(lambda content: content[:-1]),
        "wrong start": changed(lambda content: b"NOTMAGIC" + content[8:]),
        "first half zero": changed(lambda content: bytes(len(content) // 2) + content[len(content) // 2 :]),
    }
