"""Bad files and folders for every reader: those of the tests, and good ones with bytes or values changed at random."""

import functools
import importlib.util
import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from inputs_case import Case, Input
from PIL import Image

from tests.data.hostile import KINDS, UNREAD, variants
from tests.data.hostile_bytes import TEXT_KINDS, X, Y
from tests.data.written import ARRAY_KINDS, TABLE_KINDS
from tests.helpers import cifar_files
from tests.papers.data import texts

Writer = Callable[[Path], Path]
UNWRITABLE = frozenset() if importlib.util.find_spec("torch") else frozenset((".pt",))
"""Kinds of files that cannot be written here: torch is an extra."""


def _flags(options: dict[str, object]) -> list[object]:
    return [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", value)]


def listed_files(_: random.Random) -> Iterator[Input]:
    """Every file of `tests/data/hostile.py`; none can be taken."""
    for kind in (*KINDS, *UNREAD):
        if kind in UNWRITABLE:
            continue
        for words, variant in variants(kind).items():
            if "null byte" in words and words == "a null byte" and kind not in TEXT_KINDS:
                continue  # cannot be typed

            def case(folder: Path, variant=variant) -> Case:
                path, options = variant(folder)
                return Case(("measure", path, *_flags(options), "--dry-run"), refused=True)

            yield Input(f"file {kind or 'dataset'}", words, case)


def _good_files() -> dict[str, Writer]:
    columns = {"a": X[:, 0, 0].tolist(), "b": X[:, 1, 0].tolist(), "y": Y.tolist()}
    writers = {kind: write for kind, write in ARRAY_KINDS.items() if kind not in UNWRITABLE}
    arrays = {kind: lambda path, write=write: write(path, {"x": X, "y": Y}) for kind, write in writers.items()}
    return arrays | {
        kind: lambda path, write=write: write(path, columns) for kind, write in TABLE_KINDS.items() if kind
    }


def changed_files(rng: random.Random) -> Iterator[Input]:
    """Good files with bytes changed, cut, repeated or inserted; some can still be read."""
    good = _good_files()
    while True:
        kind, seed = rng.choice(list(good)), rng.randrange(2**32)

        def case(folder: Path, kind=kind, seed=seed) -> Case:
            path = good[kind](folder / f"bad{kind}")
            path.write_bytes(changed(path.read_bytes(), random.Random(seed), text=kind in TEXT_KINDS))
            return Case(("measure", path, "--dry-run"), refused=False)

        yield Input(f"changed {kind}", str(seed), case)


WORDS = (
    b"nan",
    b"1e999",
    b"-",
    b"",
    b'"',
    b"\0",
    b"[",
    b"]]",
    b"{",
    b"null",
    b"9" * 400,
    b"\xff\xfe",
    b"\n",
    b",",
    b"\t",
)


def changed(content: bytes, rng: random.Random, *, text: bool) -> bytes:
    """Some bytes with one to three changes."""
    edited = bytearray(content)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(edited) + 1)
        size = rng.choice((1, 1, 4, 16, len(edited) // 3))
        match rng.choice(
            ("words",) * 3 + ("cut", "repeat") if text else ("flip", "flip", "noise", "cut", "end", "repeat")
        ):
            case "words":
                edited[at : at + rng.randint(0, 3)] = rng.choice(WORDS)
            case "flip" if at < len(edited):
                edited[at] ^= 1 << rng.randrange(8)
            case "noise":
                edited[at : at + size] = rng.randbytes(min(size, 64))
            case "cut":
                del edited[at : at + size]
            case "end":
                del edited[at:]
            case "repeat":
                edited[at:at] = edited[at : at + size]
    return bytes(edited)


def _images(folder: Path) -> Path:
    for name in ("cat", "dog"):
        (folder / name).mkdir(parents=True)
        for place in range(3):
            pixels = np.random.default_rng(place).integers(0, 256, (8, 8, 3), np.uint8)
            Image.fromarray(pixels).save(folder / name / f"{place}.png")
    return folder


def _json_lines(folder: Path) -> Path:
    lines = [{"query": f"heron {place}", "positive": f"river {place}", "negatives": ["stone"]} for place in range(30)]
    return texts.write_records(folder / "own.jsonl", lines)


def _cifar(folder: Path) -> Path:
    return cifar_files.write_cifar_folder(folder, *cifar_files.random_cifar(2)).parent


def _cifar_archive(folder: Path) -> Path:
    folder.mkdir()
    return cifar_files.write_cifar_archive(folder, cifar_files.batch_bytes(*cifar_files.random_cifar(2)))


FOLDERS: dict[str, Writer] = {
    "images": _images,
    "CIFAR-10": _cifar,
    "CIFAR-10 archive": _cifar_archive,
    "MS MARCO": texts.write_official,
    "BEIR": texts.write_beir,
    "passages": _json_lines,
    "dataset": lambda path: TABLE_KINDS[""](path, {"x": X.tolist(), "y": Y.tolist()}),
}
PASSAGES = ("MS MARCO", "BEIR", "passages")


def changed_folders(rng: random.Random) -> Iterator[Input]:
    """Folders of images, passages, batches and shards in which a file is changed, missing, empty or something else."""
    while True:
        kind, seed = rng.choice([*FOLDERS, "BERT"]), rng.randrange(2**32)
        yield Input(f"folder {kind}", str(seed), functools.partial(_changed_folder, kind=kind, seed=seed))


def _changed_folder(folder: Path, kind: str, seed: int) -> Case:
    rng = random.Random(seed)
    bert = texts.write_bert(folder / "bert")
    path = FOLDERS["passages" if kind == "BERT" else kind](folder / "bad")
    inside = bert if kind == "BERT" else path
    files = sorted(file for file in inside.rglob("*") if file.is_file()) if inside.is_dir() else [path]
    _spoil(rng.choice(files), rng)
    options = ("--embeddings", bert) if kind in PASSAGES or kind == "BERT" else ()
    return Case(("measure", path, *options, "--dry-run"), refused=False)


def _spoil(file: Path, rng: random.Random) -> None:
    content = file.read_bytes()
    match rng.choice(("bytes",) * 8 + ("missing", "empty", "folder", "link", "web page", "json", "twice")):
        case "bytes":
            file.write_bytes(changed(content, rng, text=file.suffix in (".jsonl", ".tsv", ".json")))
        case "missing":
            file.unlink()
        case "empty":
            file.write_bytes(b"")
        case "folder":
            file.unlink()
            file.mkdir()
        case "link":
            file.unlink()
            file.symlink_to(file.name)
        case "web page":
            file.write_text("<!DOCTYPE html><html><title>404</title></html>\n")
        case "json":
            file.write_text(json.dumps(rng.choice(([], {}, 3, "word", None, {"splits": {}}, [[[]]]))))
        case "twice":
            shutil.copy(file, file.with_name(f"again{''.join(file.suffixes)}"))


PYTHON = {
    "no such name": "task = 3",
    "not a task": "made = 3",
    "a function of another thing": "def made(): return 3",
    "a syntax error": "def made(:",
    "an error on import": "raise ValueError('no')",
    "a missing package": "import no_such_package_at_all",
    "an exit": "raise SystemExit(3)",
    "a function that raises": "def made(): raise KeyError('size')",
    "a task that raises": "import headcount as hc\nmade = hc.FunctionTask(function=lambda x: 1 / 0, length=8, dim=2)",
    "a constant": "import headcount as hc\nmade = hc.FunctionTask(function=lambda x: 0 * x[0, 0], length=8, dim=2)",
    "a matrix": "import headcount as hc\nmade = hc.FunctionTask(function=lambda x: x, length=8, dim=2)",
    "a string": "import headcount as hc\nmade = hc.FunctionTask(function=lambda x: 'a', length=8, dim=2)",
    "no numbers": "import headcount as hc\nmade = hc.FunctionTask(function=lambda x: x[0, 0] / 0 * 0, length=8, dim=2)",
    "length 0": "import headcount as hc\nmade = hc.FunctionTask(function=lambda x: x[0, 0], length=0, dim=2)",
    "dim of text": "import headcount as hc\nmade = hc.FunctionTask(function=lambda x: x[0, 0], length=8, dim='2')",
    "arrays of two sizes": "import headcount as hc, numpy as np\nmade = hc.ArrayTask(np.ones((9, 2, 2)), np.ones(8))",
    "arrays of text": "import headcount as hc\nmade = hc.ArrayTask([['a']] * 100, list(range(100)))",
    "endless recursion": "def made(): return made()",
    "not UTF-8": "# \udcff\nmade = 3",
}


def python_files(_: random.Random) -> Iterator[Input]:
    """Python files whose task cannot be used."""
    for words, code in PYTHON.items():

        def case(folder: Path, code=code) -> Case:
            path = folder / "mine.py"
            path.write_bytes(code.encode(errors="surrogateescape"))
            return Case(("measure", f"{path}:made", "--out", folder / "out", "--effort", "quick"), refused=True)

        yield Input("Python file", words, case)
    for words in ("mine.py:", ":made", "no.such.module:made", "os:path", "headcount:no_such", "mine.py", "a:b:c"):
        yield Input(
            "Python file", words, lambda folder, words=words: Case(("measure", words, "--dry-run"), refused=True)
        )
