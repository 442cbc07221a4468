"""Files that cannot be used, by kind: damaged, of another kind, with parts missing or wrong, or not files at all.

A variant makes its file in a folder and gives the path and the options to find the task with.
"""

import gzip
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .written import ARRAY_KINDS, TABLE_KINDS, write_arrow, write_dataset_dict

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


def _folder(path: Path) -> Path:
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
        "a folder": lambda folder: (_folder(folder / name), {}),
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

    shares = (0.01, 0.25, 0.5, 0.75) if kind in TEXT_KINDS else (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
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


def bad_arrays(kind: str) -> dict[str, Variant]:
    """Arrays x and y that are no examples, and options that do not fit."""
    write = ARRAY_KINDS[kind]

    def arrays(options: dict[str, Any] | None = None, **named: Any) -> Variant:
        return lambda folder: (write(folder / f"bad{kind}", named), options or {})

    with_text = {} if kind == ".safetensors" else {
        "text in x": arrays(x=np.full((ROWS, 3, 2), "word"), y=Y),
        "one class": arrays(x=X, y=np.full(ROWS, "cat")),
        "a class per example": arrays(x=X, y=np.arange(ROWS).astype(str)),
    }  # fmt: skip
    rows = {
        "no y": arrays(x=X),
        "no x": arrays(y=Y),
        "an unknown array": arrays(x=X, y=Y, notes=Y),
        "NaN in x": arrays(x=with_value(X, np.nan), y=Y),
        "infinite x": arrays(x=with_value(X, np.inf), y=Y),
        "NaN in y": arrays(x=X, y=with_value(Y, np.nan)),
        "infinite y": arrays(x=X, y=with_value(Y, -np.inf)),
        "one row": arrays(x=X[:1], y=Y[:1]),
        "few rows": arrays(x=X[:99], y=Y[:99]),
        "constant y": arrays(x=X, y=np.ones(ROWS)),
        "x without sequences": arrays(x=X[:, 0, 0], y=Y),
        "x of four axes": arrays(x=X[..., None], y=Y),
        "negative ids": arrays(x=np.full((ROWS, 3), -2), y=Y),
        "targets of their own": arrays({"targets": "y"}, x=X, y=Y),
        "a sequence column": arrays({"sequence": "y"}, x=X, y=Y),
        "an unknown option": arrays({"dim": 3}, x=X, y=Y),
        "answered at nothing": arrays({"answered_at": "end"}, x=X, y=Y),
        "ids beyond the vocabulary": arrays({"vocabulary": 2}, x=LABELS[:, None].repeat(3, 1), y=Y),
    }
    if kind == ".jsonl":
        return rows | with_text
    return rows | with_text | {
        "no rows": arrays(x=X[:0], y=Y[:0]),
        "fewer targets": arrays(x=X, y=Y[:90]),
        "no tokens": arrays(x=X[:, :0], y=Y),
        "no dim": arrays(x=X[:, :, :0], y=Y),
        "scalar y": arrays(x=X, y=np.float64(3)[None][:0]),
        "a mask of another shape": arrays(x=X, y=Y, mask=np.ones((ROWS, 2), bool)),
        "a mask of other numbers": arrays(x=X, y=Y, mask=np.full((ROWS, 3), 2)),
        "a mask without a token": arrays(x=X, y=Y, mask=np.zeros((ROWS, 3), bool)),
        "too great lengths": arrays(x=X, y=Y, lengths=np.full(ROWS, 4)),
        "lengths of 0": arrays(x=X, y=Y, lengths=np.zeros(ROWS, int)),
        "mask and lengths": arrays(x=X, y=Y, mask=np.ones((ROWS, 3), bool), lengths=np.full(ROWS, 3)),
        "half a validation": arrays(x=X, y=Y, x_validation=X),
        "validation of another dim": arrays(x=X, y=Y, x_validation=X[:, :, :1], y_validation=Y),
        "a mask of one part": arrays(
            x=X, y=Y, x_validation=X, y_validation=Y, mask=np.ones((ROWS, 3), bool)
        ),
    }  # fmt: skip


def only_npz() -> dict[str, Variant]:
    """What NumPy's own format adds: pickled objects and headers that lie."""

    def header(shape: str, kind: str = "<f8") -> bytes:
        text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
        return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + bytes(64)

    def saved(**arrays: Any) -> Variant:
        return lambda folder: (np.savez(folder / "bad.npz", **arrays) or folder / "bad.npz", {})

    ragged = np.empty(ROWS, object)
    ragged[:] = [[1.0]] * ROWS
    return {
        "objects": saved(x=X.astype(object), y=Y),
        "ragged objects": saved(x=ragged, y=Y),
        "complex numbers": saved(x=X + 1j, y=Y),
        "dates": saved(x=X, y=np.arange(ROWS).astype("M8[s]")),
        "bytes": saved(x=X, y=np.full(ROWS, b"cat")),
        "records": saved(x=X, y=np.zeros(ROWS, [("a", float)])),
    } | {
        f"a header of {words}": bytes_of("bad.npz", header(shape))
        for words, shape in {
            "absurd size": "(10**15, 3)", "huge size": "(1000000000000000, 3)", "negative size": "(-1, 3)",
            "text": "'many'",
        }.items()
    }  # fmt: skip


def _with_targets(make: Variant) -> Variant:
    def both(folder: Path) -> Case:
        np.save(folder / "y.npy", Y)
        return make(folder)[0], {"targets": str(folder / "y.npy")}

    return both


def npy_pairs() -> dict[str, Variant]:
    """x.npy with another file for y."""

    def pair(x: np.ndarray, y: np.ndarray) -> Variant:
        def make(folder: Path) -> Case:
            np.save(folder / "bad.npy", x)
            np.save(folder / "y.npy", y)
            return folder / "bad.npy", {"targets": str(folder / "y.npy")}

        return make

    def without(options: Callable[[Path], dict[str, Any]]) -> Variant:
        def make(folder: Path) -> Case:
            np.save(folder / "bad.npy", X)
            np.savez(folder / "both.npz", x=X, y=Y)
            return folder / "bad.npy", options(folder)

        return make

    return {
        "no targets": without(lambda folder: {}),
        "missing targets": without(lambda folder: {"targets": str(folder / "none.npy")}),
        "an npz of targets": without(lambda folder: {"targets": str(folder / "both.npz")}),
        "a folder of targets": without(lambda folder: {"targets": str(folder)}),
        "a column": without(lambda folder: {"targets": "price"}),
        "fewer targets": pair(X, Y[:90]),
        "NaN": pair(with_value(X, np.nan), Y),
        "NaN targets": pair(X, with_value(Y, np.nan)),
        "constant": pair(X, np.ones(ROWS)),
        "text": pair(np.full((ROWS, 3), "a"), Y),
        "one axis": pair(Y, Y),
        "no rows": pair(X[:0], Y[:0]),
        "complex": pair(X * 1j, Y),
    }


def bad_tables(kind: str) -> dict[str, Variant]:
    """Tables that are no examples, and options that do not fit."""
    write = TABLE_KINDS[kind]
    good = {"a": X[:, 0, 0].tolist(), "b": X[:, 1, 0].tolist(), "y": Y.tolist()}
    rows = list(range(ROWS))

    def table(options: dict[str, Any] | None = None, **columns: Any) -> Variant:
        return lambda folder: (write(folder / f"bad{kind}", columns), options or {})

    long = {"id": [row // 2 for row in rows], "a": good["a"], "y": [float(row // 2) for row in rows]}
    missing = None if kind not in (".csv", ".tsv", ".csv.gz") else ""
    return {
        "no target": table(a=good["a"], b=good["b"]),
        "two targets": table(**good, label=good["a"]),
        "an unknown target": table({"targets": "price"}, **good),
        "an unknown one of two": table({"targets": "y,price"}, **good),
        "a target twice": table({"targets": "y,y"}, **good),
        "the target alone": table(y=good["y"]),
        "all are targets": table({"targets": "a,b,y"}, **good),
        "text among several targets": table({"targets": "y,z"}, **good, z=["cat", "dog"] * (ROWS // 2)),
        "a column of text": table(**good, name=["cat"] * ROWS),
        "a column of dates": table(**good, when=["2024-01-01"] * ROWS),
        "a missing cell": table(a=[*good["a"][:-1], missing], b=good["b"], y=good["y"]),
        "a missing target": table(a=good["a"], b=good["b"], y=[*good["y"][:-1], missing]),
        "NaN": table(a=[*good["a"][:-1], float("nan")], y=good["y"]),
        "infinite": table(a=[*good["a"][:-1], float("-inf")], y=good["y"]),
        "an infinite target": table(a=good["a"], y=[*good["y"][:-1], float("inf")]),
        "constant y": table(a=good["a"], y=[1.0] * ROWS),
        "one class": table(a=good["a"], y=["cat"] * ROWS),
        "a column that counts": table(id=rows, **good),
        "no rows": table(a=[], y=[]),
        "one row": table(a=[1.0], y=[2.0]),
        "few rows": table(**{name: values[:99] for name, values in good.items()}),
        "an unknown sequence": table({"sequence": "group"}, **good),
        "the target as sequence": table({"sequence": "y"}, **good),
        "nothing beside sequence and target": table({"sequence": "id"}, id=long["id"], y=long["y"]),
        "few sequences": table({"sequence": "id"}, **long),
        "a target that changes": table({"sequence": "id"}, **(long | {"y": good["y"]})),
        "a target per token of unequal sequences": table(
            {"sequence": "id", "answered_at": "tokens"}, **(long | {"id": [0, 0, 0, *long["id"][3:]]})
        ),
        "an unknown option": table({"patch": 4}, **good),
        "an unknown place of answers": table({"answered_at": "start"}, **good),
    }  # fmt: skip


def text_tables(kind: str) -> dict[str, Variant]:
    """What only text can have wrong; the line and the column are named."""
    sep = "\t" if kind == ".tsv" else ","

    def text(content: str, encoding: str = "utf-8", **options: Any) -> Variant:
        return bytes_of(f"bad{kind}", content.replace(",", sep).encode(encoding), **options)

    body = "".join(f"{row},{row + 0.5},{-row}\n" for row in range(ROWS))
    return {
        "no header": text(body),
        "a header alone": text("a,b,y\n"),
        "a column without a name": text("a,,y\n" + body),
        "an index": text(",a,y\n" + body),
        "a name twice": text("a,a,y\n" + body),
        "one column": text("a\n1\n2\n"),
        "blank lines": text("\n \n\n"),
        "a short row": text("a,b,y\n" + body + "1,2\n"),
        "a long row": text("a,b,y\n" + body + "1,2,3,4\n"),
        "other delimiters": text("a,b,y\n" + body + "1;2;3\n"),
        "spaces for delimiters": text("a b y\n1 2 3\n"),
        "one word": text("a,b,y\n" + body + "1,two,3\n"),
        "a word first": text("a,b,y\n1,two,3\n" + body),
        "a number among labels": text("a,b,y\n1,2,cat\n" + body),
        "an open quote": text('a,b,y\n"1,2,3\n' + body),
        "text after a quote": text('a,b,y\n"1"2,2,3\n' + body),
        "Latin-1": text("a,b,größe\n" + body, "latin-1"),
        "a null byte": text("a,b,y\n1,\0,3\n" + body),
        "thousands": text("a,b,y\n1_000,2,3\n" + body),
        "decimal commas": bytes_of(f"bad{kind}", b"a;b;y\n" + b"0,5;1,5;2\n" * ROWS),
    }


def json_texts(kind: str) -> dict[str, Variant]:
    line = '{"x": [[1, 2]], "y": 1}'
    texts = {
        "a number": "3", "a string": '"x"', "null": "null", "lists": "[[1, 2], [3, 4]]",
        "deep": "[" * 100_000, "an unknown key": '[{"x": [1], "y": 2, "z": 3}]',
        "a null token": '[{"x": [null], "y": 2}]',
        "an object token": '[{"x": {"a": 1}, "y": 2}]', "an empty sequence": '[{"x": [], "y": 2}]',
        "uneven tokens": '[{"x": [[1, 2], [3]], "y": 2}]',
        "uneven dims": '[{"x": [[1, 2]], "y": 1}, {"x": [[1]], "y": 2}]',
        "uneven targets": '[{"x": [1], "y": [1, 2]}, {"x": [1], "y": [1]}]', "a text token": '[{"x": ["a"], "y": 2}]',
        "a giant number": '[{"x": [1' + "0" * 400 + '], "y": 2}]', "no objects": "[]", "mixed": "[1, 2]",
        "an empty object": "{}", "other keys": '{"tokens": [[1]], "label": [2]}',
        "a single quote": "{'x': [1], 'y': 2}",
    }  # fmt: skip
    if kind == ".jsonl":  # the lines of the lists above
        texts = {
            name: text[1:-1].replace("}, {", "}\n{") if text.startswith("[{") else text for name, text in texts.items()
        }
        texts |= {"a later line": f"{line}\n" * 99 + "{", "a later key": f"{line}\n" * 99 + '{"x": [[1, 2]]}\n'}
    return {name: bytes_of(f"bad{kind}", text.encode()) for name, text in texts.items()}


def nested_tables(kind: str) -> dict[str, Variant]:
    """Lists in cells, and types, as only Arrow has them."""
    write = TABLE_KINDS[kind]
    tokens = X.tolist()
    ragged = [row[: 1 + place % 3] for place, row in enumerate(tokens)]

    def table(**columns: Any) -> Variant:
        return lambda folder: (write(folder / f"bad{kind}", columns), {})

    return {
        "a null token": table(x=[*tokens[:-1], [None]], y=Y.tolist()),
        "a null list": table(x=[*tokens[:-1], None], y=Y.tolist()),
        "an empty list": table(x=[*tokens[:-1], []], y=Y.tolist()),
        "uneven tokens": table(x=[*tokens[:-1], [[1.0]]], y=Y.tolist()),
        "lists of text": table(x=[["a", "b"]] * ROWS, y=Y.tolist()),
        "an unused column": table(x=tokens, y=Y.tolist(), z=Y.tolist()),
        "two columns of ids": table(a=[[1, 2]] * ROWS, b=[[1, 2]] * ROWS, y=Y.tolist()),
        "ragged targets": table(x=tokens, y=ragged),
        "structures": table(x=[{"a": 1.0}] * ROWS, y=Y.tolist()),
        "bytes": table(x=[b"1"] * ROWS, y=Y.tolist()),
        "a mask alone": table(mask=[[1, 1]] * ROWS, y=Y.tolist()),
        "a mask of another length": table(x=ragged, mask=[[1]] * ROWS, y=Y.tolist()),
        "lists of other lengths": table(
            a=[[1.0] * 3] * ROWS, b=[[1.0] * 2] * ROWS, y=Y.tolist()
        ),
    }  # fmt: skip


def _state_alone(folder: Path) -> Case:
    path = _folder(folder / "bad")
    (path / "state.json").write_text("{}")
    return path, {}


def dataset_folders() -> dict[str, Variant]:
    """Folders that `save_to_disk` might have written."""
    good = {"x": X.tolist(), "y": Y.tolist()}
    few = {name: values[:30] for name, values in good.items()}

    def edited(edit: Callable[[Path], Any], features: dict[str, Any] | None = None, **columns: Any) -> Variant:
        def make(folder: Path) -> Case:
            path = folder / "bad"
            write = {"train": good | columns, "validation": few | {name: v[:30] for name, v in columns.items()}}
            write_dataset_dict(path, write, features)
            edit(path)
            return path, {}

        return make

    def rewritten(name: str, text: str) -> Variant:
        return edited(lambda path: (path / name).write_text(text))

    labels = {"y": {"_type": "ClassLabel", "names": ["a", "b"]}}
    shard = "train/data-00000-of-00002.arrow"
    return {
        "no JSON": rewritten("dataset_dict.json", "{"),
        "a list": rewritten("dataset_dict.json", "[]"),
        "no splits": rewritten("dataset_dict.json", "{}"),
        "empty splits": rewritten("dataset_dict.json", '{"splits": []}'),
        "splits of numbers": rewritten("dataset_dict.json", '{"splits": [1]}'),
        "a missing split": rewritten("dataset_dict.json", '{"splits": ["train", "test"]}'),
        "a split elsewhere": rewritten("dataset_dict.json", '{"splits": ["train", "../../etc"]}'),
        "no train": rewritten("dataset_dict.json", '{"splits": ["a", "b"]}'),
        "a state of no JSON": rewritten("train/state.json", "nothing"),
        "a state without files": rewritten("train/state.json", "{}"),
        "a state of nameless files": rewritten("train/state.json", '{"_data_files": [{}]}'),
        "a state of other files": rewritten("train/state.json", '{"_data_files": [{"filename": "/etc/passwd"}]}'),
        "a state of missing files": rewritten("train/state.json", '{"_data_files": [{"filename": "none.arrow"}]}'),
        "a missing shard": edited(lambda path: (path / shard).unlink()),
        "an empty shard": edited(lambda path: (path / shard).write_bytes(b"")),
        "a shard of text": edited(lambda path: (path / shard).write_text("x,y\n1,2\n")),
        "a cut shard": edited(lambda path: (path / shard).write_bytes((path / shard).read_bytes()[:-900])),
        "a shard of another table": edited(lambda path: write_arrow(path / shard, {"z": [1]})),
        "a label beyond its names": edited(lambda path: None, labels, y=[5] * ROWS),
        "a missing label": edited(lambda path: None, labels, y=[-1] * ROWS),
        "labels of numbers": edited(lambda path: None, labels),
        "a state alone": _state_alone,
    }  # fmt: skip


def unread(kind: str) -> dict[str, Variant]:
    """Kinds that no reader reads, whatever is in them."""
    return {words: bytes_of(f"bad{kind}", content) for words, content in OTHER_CONTENT.items() if content}


def _good_arrays(kind: str) -> Callable[[Path], Path]:
    return lambda path: ARRAY_KINDS[kind](path, {"x": X, "y": Y})


def _good_table(kind: str) -> Callable[[Path], Path]:
    return lambda path: TABLE_KINDS[kind](path, {"a": X[:, 0, 0].tolist(), "b": X[:, 1, 0].tolist(), "y": Y.tolist()})


def _contents(kind: str) -> dict[str, Variant]:
    return {words: bytes_of(f"bad{kind}", content) for words, content in OTHER_CONTENT.items()}


def variants(kind: str) -> dict[str, Variant]:
    """The hostile variants of a kind of file, by what is wrong."""
    if kind == "":
        return bad_tables(kind) | nested_tables(kind) | dataset_folders()
    base = not_files(kind) | _contents(kind)
    if kind == ".npy":
        return {words: _with_targets(make) for words, make in base.items()} | npy_pairs()
    if kind in ARRAY_KINDS:
        base |= damaged(kind, _good_arrays(kind)) | bad_arrays(kind)
        more = {".npz": only_npz, ".json": lambda: json_texts(kind), ".jsonl": lambda: json_texts(kind)}
        return base | more.get(kind, dict)()
    if kind in TABLE_KINDS:
        base |= damaged(kind, _good_table(kind)) | bad_tables(kind)
        arrow = kind in (".parquet", ".arrow", ".feather")
        return base | (nested_tables(kind) if arrow else text_tables(kind) if kind in (".csv", ".tsv") else {})
    return unread(kind) | not_files(kind)


KINDS = (*ARRAY_KINDS, ".npy", *TABLE_KINDS)
UNREAD = (".pkl", ".mat", ".h5", ".xlsx", ".txt", ".mp3", ".zip")
