"""Tables that are no examples, in every kind of file that holds tables."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from .hostile_bytes import ROWS, Case, Variant, X, Y, bytes_of, new_folder
from .written import TABLE_KINDS, write_arrow, write_dataset_dict


def bad_tables(kind: str) -> dict[str, Variant]:
    """Tables that are no examples, and options that do not fit."""
    write = TABLE_KINDS[kind]
    good = {"a": X[:, 0, 0].tolist(), "b": X[:, 1, 0].tolist(), "y": Y.tolist()}
    rows = list(range(ROWS))

    def table(options: dict[str, Any] | None = None, **columns: Any) -> Variant:
        return lambda folder: (write(folder / f"bad{kind}", columns), options or {})

    long = {"id": [row // 2 for row in rows], "a": good["a"], "y": [float(row // 2) for row in rows]}
    few = {"id": [row // 4 for row in rows], "a": good["a"], "y": [float(row // 4) for row in rows]}
    numbered = {f"{name}_{place}": good["a"] for place in range(2) for name in ("temp", "rain")}
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
        "a column that counts under any name": table(customer=rows, **good),
        "lists written as text": table(seq=["[0.5, 1.5]"] * ROWS, y=good["y"]),
        "numbered columns and another": table(**numbered, age=good["b"], y=good["y"]),
        "numbered columns and a gap": table(**numbered, rain_3=good["b"], y=good["y"]),
        "an index of pandas": table(__index_level_0__=[row * 7 % ROWS for row in rows], **good),
        "no rows": table(a=[], y=[]),
        "one row": table(a=[1.0], y=[2.0]),
        "few rows": table(**{name: values[:39] for name, values in good.items()}),
        "sequences that are not named": table(patient=long["id"], a=good["a"], y=long["y"]),
        "sequences of words that are not named": table(
            patient=[f"p{row // 2}" for row in rows], a=good["a"], y=long["y"]
        ),
        "an unknown sequence": table({"sequence": "group"}, **good),
        "the target as sequence": table({"sequence": "y"}, **good),
        "nothing but sequence and target": table({"sequence": "id"}, id=long["id"], y=long["y"]),
        "few sequences": table({"sequence": "id"}, **few),
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
    path = new_folder(folder / "bad")
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
