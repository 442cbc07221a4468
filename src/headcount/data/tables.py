"""Tables as sequences with targets, whatever file they come from. There are three layouts:

    wide       one row per example, one column per token; or, where all are called NAME_NUMBER, per number of a token
    long       one row per token; the column that `sequence` names says which example a row belongs to
    nested     one row per example, whose cells are lists of tokens

Columns that are neither targets nor tokens are refused, not ignored.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from ..errors import InputError, did_you_mean, require
from .examples import LoadedExamples, Wanted, examples_of_arrays

Column = np.ndarray | list[np.ndarray]
"""Numbers, or text as objects, one per row; lists are an array of more axes, or a list of arrays."""
Columns = Mapping[str, Column]
TARGET_NAMES = ("y", "target", "label")
X_NAMES = ("x", "input_ids")
MASK_NAMES = ("mask", "attention_mask")
ID_NAMES = ("id", "idx", "index", "row", "sequence", "seq", "group", "example", "sample")
"""Columns that are no token of a sequence, though they may hold numbers."""
PANDAS_INDEX = ("unnamed: 0", "__index_level_")
SEGMENTS = "token_type_ids"
TIMES = ("time", "date", "datetime", "timestamp", "day", "month", "year", *ID_NAMES)
"""Columns that more often say when or which than what."""
DATE = re.compile(r"(\d{4}-\d\d?-\d\d?|\d\d?[./]\d\d?[./]\d{2,4})([T ][\d:.+Z-]*)?")
MIN_BLOCKS = 10
LISTED = 6
"""Columns that a message names."""


def examples_of_table(
    path: Path,
    columns: Columns,
    wanted: Wanted,
    *,
    row: Callable[[int], str] = lambda place: f"row {place + 1}",
    held_out: int | None = None,
) -> LoadedExamples:
    """Return the sequences and targets of a table, whose columns are of one length.

    `row` is the name of a row in a message, `held_out` the number of rows at the end that are for validation. Raises
    `InputError` if a column is missing, ambiguous, or text where numbers are needed.
    """
    _require_present(path, columns, row)
    names, notes = _target_names(path, columns, wanted)
    rest = {name: values for name, values in columns.items() if name not in names}
    if "input_ids" in rest:
        unread = [
            name for name, values in rest.items() if name == SEGMENTS or (_is_flat(values) and _kind(values) == "O")
        ]
        rest = {name: values for name, values in rest.items() if name not in unread}
        notes += (f"{path.name}: next to input_ids not read: {_listed_columns(unread)}",) if unread else ()
    require(
        len(rest) > 0, f"{path} has no column but the target {_listed_columns(names)}; it needs a column per token."
    )
    if wanted.sequence is not None:
        split = f"{path}: a split of its own is of rows, not of sequences; name one split with its folder."
        require(held_out is None, split, what="sequence")
        named, note = _long(path, columns, wanted, names, row)
        called = [name for name in rest if name != wanted.sequence]
    else:
        y = _targets(path, columns, names, per_token=wanted.per_token)
        nested = {name: values for name, values in rest.items() if not _is_flat(values)}
        named, note = _nested(path, rest, nested) if nested else _wide(path, rest, y)
        named["y"] = y
        called = [] if nested else [name for token in _ordered(path, list(rest))[1] for name in token]
    notes += (f"{path.name}: {note}", *(f"{path.name}: {each}" for each in _about_times(called, wanted)))
    read = examples_of_arrays(path, named, wanted, notes, held_out)
    return read if read.vocabulary else replace(read, columns=tuple(called))


def missing_in(values: np.ndarray) -> np.ndarray:
    """Return which values are missing: None, NaN, and what pandas writes for them."""
    if values.dtype.kind == "O":
        kinds = ("NoneType", "NAType", "NaTType")
        return np.array([type(v).__name__ in kinds or (isinstance(v, float) and v != v) for v in values], bool)
    return values != values if values.ndim == 1 else np.zeros(len(values), bool)  # NaN and NaT alone are unequal


def _require_present(path: Path, columns: Columns, row: Callable[[int], str]) -> None:
    """Raise `InputError` where values of flat columns are missing: how many, where, and what to do."""
    flat = {name: np.asarray(values) for name, values in columns.items() if _is_flat(values)}
    places = {name: found for name, values in flat.items() if len(found := np.flatnonzero(missing_in(values)))}
    if not places:
        return
    rows, total = len(np.unique(np.concatenate(list(places.values())))), len(next(iter(columns.values())))
    worst, found = max(places.items(), key=lambda each: len(each[1]))
    others = f", and in {_listed_columns([name for name in places if name != worst])}" if len(places) > 1 else ""
    where = (
        f"{len(found):,} of {total:,} values of column {worst} are missing, the first in {row(int(found[0]))}{others}"
    )
    which = f"{rows:,} rows" if rows > 1 else "row"
    drop = f"leave out the {which} without (table.dropna() in pandas, table.drop_nulls() in polars)"
    fix = f"{drop} or fill them in" if 2 * rows < total else f"remove the column{'s' if others else ''} or fill them in"
    raise InputError(f"{path}: {where}; {fix}.")


def _about_times(names: list[str], wanted: Wanted) -> list[str]:
    """Return a note where columns seem to say when, or which, and are read as numbers."""
    when = [name for name in names if name.lower() in TIMES or name.lower().endswith("_id")]
    order = ", and tokens are in the order of the rows" if wanted.sequence is not None else ""
    read = f"column {_listed_columns(when)}: read as a number of a token like any other{order}"
    return [f"{read}; remove it if it only says when or which"] if when else []


def _is_flat(values: Column) -> bool:
    return isinstance(values, np.ndarray) and values.ndim == 1


def _kind(values: Column) -> str:
    return values.dtype.kind if isinstance(values, np.ndarray) else values[0].dtype.kind


def _require_column(path: Path, columns: Columns, name: str, what: str) -> None:
    known = f"{did_you_mean(name, columns)} It has: {_listed_columns(list(columns))}."
    require(name in columns, f'{path} has no column "{name}".{known}', what=what)


def _target_names(path: Path, columns: Columns, wanted: Wanted) -> tuple[list[str], tuple[str, ...]]:
    """Return the columns that hold targets, and a note where nobody named them."""
    given = wanted.targets
    if given is not None:
        names = [given] if given in columns else [name.strip() for name in given.split(",")]
        for name in names:
            _require_column(path, columns, name, "targets")
        twice = f"{path}: {given} names a column twice; name each once."
        require(len(set(names)) == len(names), twice, what="targets")
        return names, ()
    usual = [name for name in columns if name.lower() in TARGET_NAMES]
    usual = usual or [name for name in columns if name.lower() == "labels"]  # as Hugging Face's models call it
    if len(usual) == 1:
        return usual, (f"{path.name}: the target is the column {usual[0]}",)
    if not usual and all(re.fullmatch(r"[-+.\deE]+", name) for name in columns):
        raise InputError(f"{path}: the first line has only numbers; a line of column names is needed.")
    fault = f"the columns {', '.join(usual)} could all be" if usual else "no column is called y, target or label, to be"
    listed = f"name it with targets=COLUMN, one of {_listed_columns(list(columns))}"
    raise InputError(f"{path}: {fault} the target; {listed}.", what="targets")


def _targets(path: Path, columns: Columns, names: list[str], *, per_token: bool) -> np.ndarray:
    arrays = [columns[name] for name in names]
    if len(names) == 1 and per_token and isinstance(arrays[0], list):
        return np.fromiter(arrays[0], object)
    for name, values in zip(names, arrays, strict=True):
        one_length = f"{path}: the lists of the target {name} must be of one length"
        fix = "a label per token needs answered_at='tokens' (--answered-at tokens)"
        require(isinstance(values, np.ndarray), f"{one_length}; {fix}.", what="targets")
        plain = len(names) == 1 or (_is_flat(values) and _kind(values) in "fiub")
        require(plain, f"{path}: of several targets each must be numbers; {name} is not.", what="targets")
    return np.asarray(arrays[0]) if len(names) == 1 else np.stack(arrays, axis=1)


def _require_numeric(path: Path, values: Column, name: str) -> None:
    if _kind(values) not in "fiub":
        first = f", such as {str(values[0])[:40]!r}" if _is_flat(values) else ""
        is_date = _kind(values) in "Mm" or bool(first and DATE.fullmatch(str(values[0])))
        kind = "dates" if is_date else "text"
        fix = "make days of them" if is_date else "keep it and the target alone, and its words are read"
        raise InputError(f"{path}: column {name} holds {kind}{first}, not numbers; remove it, or {fix}.")


def _long(
    path: Path, columns: Columns, wanted: Wanted, names: list[str], row: Callable[[int], str]
) -> tuple[dict[str, Column], str]:
    """Read a table with one row per token, grouped by a column; a group's rows keep their order."""
    sequence = str(wanted.sequence)
    _require_column(path, columns, sequence, "sequence")
    same = f"{path}: {sequence} is both the target and the sequence of a row; name two columns."
    require(sequence not in names, same, what="sequence")
    for name, values in columns.items():
        lists = f"{path}: column {name} holds lists, and one row per token has only single values; leave out sequence."
        require(_is_flat(values), lists, what="sequence")
    features = [name for name in columns if name not in (*names, sequence)]
    require(
        len(features) > 0,
        f"{path} has no column but {sequence} and {_listed_columns(names)}; give a column of numbers.",
    )
    words = columns[features[0]] if _is_text(columns, features) else None
    for name in features if words is None else ():
        _require_numeric(path, columns[name], name)
    numbers = [np.asarray(columns[name], float) for name in features if words is None]
    tokens = np.asarray(words) if words is not None else np.stack(numbers, axis=1)
    _, first, group = np.unique(np.asarray(columns[sequence]), return_index=True, return_inverse=True)
    group = np.argsort(np.argsort(first))[group]  # sequences in the order of their first rows
    order = np.argsort(group, kind="stable")
    cuts = np.cumsum(np.bincount(group))[:-1]
    targets = _targets(path, columns, names, per_token=wanted.per_token)
    if wanted.per_token:
        rows = np.split(targets[order], cuts)
        y = np.stack(rows) if len(set(map(len, rows))) == 1 else np.fromiter(rows, object)
    else:
        y = targets[np.sort(first)]
        differs = np.flatnonzero((targets != y[group]).reshape(len(targets), -1).any(axis=1))
        if len(differs):
            label = f"{_listed_columns(names)} of sequence {columns[sequence][differs[0]]} changes at {row(differs[0])}"
            fix = "every row of a sequence repeats its target; a target per token needs answered_at='tokens'"
            raise InputError(f"{path}: {label}; {fix}.", what="answered_at")
    x = np.split(tokens[order], cuts)
    lengths = list(map(len, x))
    size = " to ".join(map(str, dict.fromkeys((min(lengths), max(lengths)))))
    numbers = f"{len(features)} numbers ({_listed_columns(features)})" if words is None else f"the word {features[0]}"
    note = f"{len(x)} sequences of {size} tokens, each of {numbers}, in the file's order"
    return {"x": x, "y": y}, note


def _nested(path: Path, rest: Columns, nested: Columns) -> tuple[dict[str, Column], str]:
    """Read lists of tokens: the column x or input_ids, the only one there is, or several with one number per token."""
    mask = next((name for name in MASK_NAMES if name in nested), None)
    candidates = [name for name in nested if name != mask]
    chosen = [name for name in X_NAMES if name in candidates][:1] or candidates
    require(len(chosen) > 0, f"{path} has a mask but no column of sequences; add one called x.")
    unused = [name for name in rest if name not in chosen and name != mask]
    if len(chosen) > 1 and not all(_is_one_number_per_token(nested[name]) for name in chosen):
        unused = candidates[1:]
    sequences = f"the sequences are the lists in {chosen[0]}, and {_listed_columns(unused)} would not be read"
    require(not unused, f"{path}: {sequences}; remove what is no target.")
    x = nested[chosen[0]] if len(chosen) == 1 else _side_by_side(path, {name: nested[name] for name in chosen})
    named: dict[str, Column] = {"x": x}
    if mask is not None and isinstance(nested[mask], np.ndarray):
        named["mask"] = nested[mask]
    elif mask is not None:
        named["x"] = [tokens[np.asarray(there).astype(bool)] for tokens, there in zip(x, nested[mask], strict=True)]
    return named, f"a sequence is the list in the column{'s' if len(chosen) > 1 else ''} {_listed_columns(chosen)}"


def _is_one_number_per_token(values: Column) -> bool:
    depth = values.ndim - 1 if isinstance(values, np.ndarray) else max(part.ndim for part in values)
    return depth == 1 and _kind(values) == "f"


def _side_by_side(path: Path, nested: Columns) -> list[np.ndarray]:
    """Stack several lists per example as the numbers of its tokens."""
    rows = []
    for place, parts in enumerate(zip(*nested.values(), strict=True), start=1):
        unequal = f"{path}, row {place}: the lists {_listed_columns(list(nested))} differ in length; they must match."
        require(len(set(map(len, parts))) == 1, unequal)
        rows.append(np.stack(parts, axis=1))
    return rows


def _wide(path: Path, rest: Columns, y: np.ndarray) -> tuple[dict[str, Column], str]:
    """Read one row per example: a token per column, or columns NAME_NUMBER for the number NAME of token NUMBER.

    A text alone is a sequence of its words or bytes.
    """
    if _is_text(rest, list(rest)):
        return {"x": next(iter(rest.values()))}, f"a sequence is the text in the column {next(iter(rest))}"
    for name, values in rest.items():
        _require_token(path, name, np.asarray(values), y)
    features, tokens = _ordered(path, list(rest))
    x = np.stack([np.stack([np.asarray(rest[name], float) for name in token], axis=1) for token in tokens], axis=1)
    numbers = "one number" if len(features) == 1 else f"{len(features)} numbers ({_listed_columns(features)})"
    columns = f"{tokens[0][0]} to {tokens[-1][-1]}" if len(rest) > 1 else tokens[0][0]
    return {"x": x}, f"a row is a sequence of {len(tokens)} tokens of {numbers}, columns {columns}"


def _is_text(columns: Columns, names: list[str]) -> bool:
    """Return whether these columns are one, of text: neither dates nor lists written as text."""
    values = columns[names[0]]
    first = str(values[0]).lstrip()
    return len(names) == 1 and _kind(values) == "O" and not first.startswith("[") and not DATE.fullmatch(first)


def _ordered(path: Path, names: list[str]) -> tuple[list[str], list[list[str]]]:
    """Return the features of a token, and the columns of each token."""
    parts = {name: match for name in names if (match := re.fullmatch(r"(.*?)_?(\d+)", name)) is not None}
    places = {(part[1], int(part[2])): name for name, part in parts.items()}
    features = list(dict.fromkeys(feature for feature, _ in places))
    numbers = sorted({number for _, number in places})
    if len(places) == len(names) == len(features) * len(numbers):
        return features, [[places[feature, number] for feature in features] for number in numbers]
    several = [feature for feature in features if sum(each == feature for each, _ in places) > 1]
    if len(several) > 1:  # one column too many or too few would be read as another layout
        odd = [name for name in names if name not in parts or parts[name][1] not in several]
        missing = [f"{feature}_{n}" for n in numbers for feature in several if (feature, n) not in places]
        fault = f"{_listed_columns(odd)} is none of them" if odd else f"{_listed_columns(missing)} is missing"
        raise InputError(f"{path}: {_listed_columns(several)} are numbered tokens, but {fault}; correct it.")
    return [""], [[name] for name in names]


def _require_token(path: Path, name: str, values: np.ndarray, y: np.ndarray) -> None:
    """Raise `InputError` unless a column seems to hold a number of a token."""
    index = name.lower().startswith(PANDAS_INDEX)
    require(not index, f"{path}: column {name} is an index that pandas wrote; write the table with index=False.")
    if values.dtype.kind == "O" and str(values[0]).lstrip().startswith("["):
        lists = f"{path}: the cells of column {name} are lists written as text, such as {str(values[0])[:40]!r}"
        raise InputError(f"{lists}; write the table as Parquet or JSON lines, which keep lists.")
    fix = f"if each row is one token, pass sequence={name}; otherwise remove the column"
    is_id = name.lower() in ID_NAMES or name.lower().endswith("_id") or _counts_rows(values)
    require(not is_id, f"{path}: column {name} seems to number the rows or sequences; {fix}.", what="sequence")
    blocks = f"{path}: rows with one value of {name} follow each other and have one target; {fix}"
    require(not _is_in_blocks(values, y), f"{blocks}, or shuffle the rows.", what="sequence")
    _require_numeric(path, values, name)


def _counts_rows(values: np.ndarray) -> bool:
    """Return whether a column is 0, 1, 2, .. or another count of the rows."""
    return values.dtype.kind in "iu" and len(values) > 2 and bool(np.all(np.diff(values.astype(np.int64)) == 1))


def _is_in_blocks(values: np.ndarray, y: np.ndarray) -> bool:
    """Return whether a column looks like a row's sequence: words or whole numbers in blocks, with one target each."""
    if values.dtype.kind not in "iuO" or y.ndim != 1:
        return False
    changes, blocks = values[1:] != values[:-1], len(np.unique(values))
    one_target = not np.any((y[1:] != y[:-1]) & ~changes)
    return bool(MIN_BLOCKS <= blocks == np.sum(changes) + 1 <= len(values) / 1.5 and one_target)


def _listed_columns(names: list[str]) -> str:
    if len(names) <= LISTED:
        return ", ".join(names)
    return f"{', '.join(names[: LISTED - 1])} .. {names[-1]} ({len(names)} in all)"  # the last is often the target
