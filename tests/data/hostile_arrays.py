"""Arrays x and y that are no examples, in every kind of file that holds arrays."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .hostile_bytes import LABELS, ROWS, Case, Variant, X, Y, bytes_of, with_value
from .written import ARRAY_KINDS


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
        "few rows": arrays(x=X[:39], y=Y[:39]),
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


def with_targets(make: Variant) -> Variant:
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
