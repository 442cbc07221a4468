"""Files that cannot be used, by kind.

A variant makes its file in a folder and gives the path and the options to find the task with.
"""

from collections.abc import Callable
from pathlib import Path

from .hostile_arrays import bad_arrays, json_texts, npy_pairs, only_npz, with_targets
from .hostile_bytes import OTHER_CONTENT, Variant, X, Y, bytes_of, damaged, not_files
from .hostile_tables import bad_tables, dataset_folders, nested_tables, text_tables
from .written import ARRAY_KINDS, TABLE_KINDS


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
        return {words: with_targets(make) for words, make in base.items()} | npy_pairs()
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
