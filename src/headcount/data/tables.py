"""Tables as sequences with targets, whatever file they come from. There are three layouts:

    wide       one row per example, one column per token; or, where all are called NAME_NUMBER, per number of a token
    long       one row per token; the column that `sequence` names says which example a row belongs to
    nested     one row per example, whose cells are lists of tokens

Columns that are neither targets nor tokens are refused, not ignored.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import InputError, did_you_mean, require
from .conversions import with_lines, without_columns, without_text
from .examples import Arrays, Wanted

Columns = Mapping[str, np.ndarray | list[np.ndarray]]
"""Columns by name: numbers, or text as objects, one per row; lists are arrays of more axes, or lists of arrays."""
TARGET_NAMES = ("y", "target", "label")
X_NAMES = ("x", "input_ids")
MASK_NAMES = ("mask", "attention_mask")
ID_NAMES = ("id", "idx", "index", "row", "sequence", "seq", "group", "example", "sample")
"""Columns that are no token of a sequence, though they may hold numbers."""
PANDAS_INDEX = ("unnamed: 0", "__index_level_")
MIN_BLOCKS = 10
LISTED = 6
"""Columns that a message names."""


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of one length, how a row is called in a message, and the rows at the end that are for validation."""

    columns: Columns
    row: Callable[[int], str] = lambda place: f"row {place + 1}"
    held_out: int | None = None


def examples_of_table(path: Path, table: Table, wanted: Wanted) -> Arrays:
    """The sequences and targets of a table.

    Raises:
        InputError: A column is missing, ambiguous, or text where numbers are needed.
    """
    names, notes = _target_names(path, table.columns, wanted)
    rest = {name: values for name, values in table.columns.items() if name not in names}
    alone = f"{path} has no column beside the target{'s' if len(names) > 1 else ''} {_listed(names)}"
    require(len(rest) > 0, f"{alone}; it needs a column per token.")
    if wanted.sequence is not None:
        return _long(path, table, wanted, names, notes)
    y = _targets(path, table.columns, names)
    nested = {name: values for name, values in rest.items() if not _is_flat(values)}
    named, more = _nested(path, rest, nested) if nested else _wide(path, rest, y)
    return Arrays(named | {"y": y}, notes + more, table.held_out)


def _is_flat(values: np.ndarray | list[np.ndarray]) -> bool:
    return isinstance(values, np.ndarray) and values.ndim == 1


def _target_names(path: Path, columns: Columns, wanted: Wanted) -> tuple[list[str], tuple[str, ...]]:
    """The columns that hold targets, and a note where nobody named them."""
    if wanted.targets is not None:
        given = str(wanted.targets)
        names = [given] if given in columns else [name.strip() for name in given.split(",")]
        for name in names:
            listed = _listed(list(columns))
            hint = f'{path} has no column "{name}".{did_you_mean(name, columns)} It has: {listed}.'
            require(name in columns, hint, what="targets", given=given)
        require(
            len(set(names)) == len(names),
            f"{path}: {given} names a column twice; name each once.",
            what="targets",
            given=given,
        )
        return names, ()
    usual = [name for name in columns if name.lower() in TARGET_NAMES]
    if len(usual) == 1:
        return usual, (f"{path.name}: the target is the column {usual[0]}",)
    if not usual and all(re.fullmatch(r"[-+.\deE]+", name) for name in columns):
        raise InputError(f"{path}: the first line has only numbers; a line of column names is needed.")
    fault = f"the columns {', '.join(usual)} could all be" if usual else "no column is called y, target or label, to be"
    listed = f"name it with targets=COLUMN, one of {_listed(list(columns))}"
    raise InputError(f"{path}: {fault} the target; {listed}.", what="targets")


def _targets(path: Path, columns: Columns, names: list[str]) -> np.ndarray:
    arrays = [columns[name] for name in names]
    for name, values in zip(names, arrays, strict=True):
        if not isinstance(values, np.ndarray):
            raise InputError(
                f"{path}: the lists of the target {name} must be of one length.", what="targets", given=name
            )
    if len(names) == 1:
        return np.asarray(arrays[0])
    for name, values in zip(names, arrays, strict=True):
        plain = _is_flat(values) and values.dtype.kind in "fiub"  # pyright: ignore[reportAttributeAccessIssue]
        require(plain, f"{path}: of several targets each must be numbers; {name} is not.", what="targets", given=name)
    return np.stack([np.asarray(values) for values in arrays], axis=1)


def _require_numeric(path: Path, values: np.ndarray | list[np.ndarray], name: str) -> None:
    kind = values.dtype.kind if isinstance(values, np.ndarray) else values[0].dtype.kind
    if kind in "fiub":
        return
    first = values.tolist()[0] if isinstance(values, np.ndarray) else "..."
    lines = without_columns(path, [name]) if path.is_dir() else without_text(path, name)
    raise with_lines(f"{path}: column {name} holds text, such as {str(first)[:40]!r}, not numbers.", path, *lines)


def _long(path: Path, table: Table, wanted: Wanted, names: list[str], notes: tuple[str, ...]) -> Arrays:
    """One row per token, grouped by a column; a group's rows keep their order."""
    columns, sequence = table.columns, str(wanted.sequence)
    hint = f'{path} has no column "{sequence}".{did_you_mean(sequence, columns)} It has: {_listed(list(columns))}.'
    require(sequence in columns, hint, what="sequence", given=sequence)
    same = f"{path}: {sequence} is both the target and the sequence of a row; name two columns."
    require(sequence not in names, same, what="sequence", given=sequence)
    for name, values in columns.items():
        lists = f"{path}: column {name} holds lists, and one row per token has only single values; leave out sequence."
        require(_is_flat(values), lists, what="sequence", given=sequence)
    held = "a split of its own is of rows, not of sequences"
    require(table.held_out is None, f"{path}: {held}; name one split with its folder.", what="sequence")
    features = [name for name in columns if name not in (*names, sequence)]
    require(
        len(features) > 0, f"{path} has no column beside {sequence} and {_listed(names)}; it needs a column of numbers."
    )
    for name in features:
        _require_numeric(path, columns[name], name)
    tokens = np.stack([np.asarray(columns[name], float) for name in features], axis=1)
    keys, first, inverse = np.unique(np.asarray(columns[sequence]), return_index=True, return_inverse=True)
    rank = np.empty(len(keys), int)
    rank[np.argsort(first)] = np.arange(len(keys))  # sequences in the order of their first rows
    group = rank[inverse]
    order = np.argsort(group, kind="stable")
    cuts = np.cumsum(np.bincount(group))[:-1]
    targets = _targets(path, columns, names)
    if wanted.per_token:
        rows = np.split(targets[order], cuts)
        equal = len({len(part) for part in rows}) == 1
        unequal = f"{path}: a target per token needs sequences of one length, and those of {sequence} differ; pad them."
        require(equal, unequal, what="answered_at", given="tokens")
        y = np.stack(rows)
    else:
        y = targets[np.sort(first)]
        differs = np.flatnonzero((targets != y[group]).reshape(len(targets), -1).any(axis=1))
        if len(differs):
            label = f"{_listed(names)} of sequence {columns[sequence][differs[0]]} changes at {table.row(differs[0])}"
            fix = "every row of a sequence repeats its target; a target per token needs answered_at='tokens'"
            raise InputError(f"{path}: {label}; {fix}.", what="answered_at", given="sequence")
    x = np.split(tokens[order], cuts)
    lengths = [len(part) for part in x]
    equal = min(lengths) == max(lengths)
    size = f"{lengths[0]}" if equal else f"{min(lengths)} to {max(lengths)}"
    shape = f"{len(x)} sequences of {size} tokens, each of {len(features)} numbers ({_listed(features)})"
    return Arrays({"x": np.stack(x) if equal else x, "y": y}, (*notes, f"{path.name}: {shape}, in the file's order"))


def _nested(path: Path, rest: Columns, nested: Columns) -> tuple[dict, tuple[str, ...]]:
    """Lists of tokens: the column x or input_ids, the only one there is, or several with one number per token."""
    mask = next((name for name in MASK_NAMES if name in nested), None)
    candidates = [name for name in nested if name != mask]
    chosen = [name for name in X_NAMES if name in candidates][:1] or candidates
    numbers = all(_is_one_number_per_token(nested[name]) for name in chosen)
    require(len(chosen) > 0, f"{path} has a mask but no column of sequences beside it; add one called x.")
    unused = [name for name in rest if name not in chosen and name != mask]
    if len(chosen) > 1 and not numbers:
        unused = candidates[1:]
    if unused:
        lines = without_columns(path, unused)
        fault = f"{'columns' if len(unused) > 1 else 'column'} {_listed(unused)} beside {chosen[0]}"
        raise with_lines(f"{path}: {fault} would not be read; remove what is no target.", path, *lines)
    note = f"{path.name}: a sequence is the list in the column{'s' if len(chosen) > 1 else ''} {_listed(chosen)}"
    x = nested[chosen[0]]
    if len(chosen) > 1:
        x = _side_by_side(path, {name: nested[name] for name in chosen})
    if mask is not None and not isinstance(x, np.ndarray):
        return {"x": _without_absent(path, x, nested[mask], mask)}, (note,)
    return {"x": x} | ({} if mask is None else {"mask": nested[mask]}), (note,)


def _is_one_number_per_token(values: np.ndarray | list[np.ndarray]) -> bool:
    if isinstance(values, np.ndarray):
        return values.ndim == 2 and values.dtype.kind == "f"
    return all(part.ndim == 1 and part.dtype.kind == "f" for part in values)


def _side_by_side(path: Path, nested: Columns) -> np.ndarray | list[np.ndarray]:
    """Several lists per example as the numbers of its tokens."""
    rows = []
    for place, parts in enumerate(zip(*nested.values(), strict=True)):
        lengths = {name: len(part) for name, part in zip(nested, parts, strict=True)}
        unequal = f"{path}, row {place + 1}: the lists {_listed(list(nested))} differ in length"
        require(
            len(set(lengths.values())) == 1, f"{unequal} ({', '.join(map(str, lengths.values()))}); they must match."
        )
        rows.append(np.stack(parts, axis=1))
    return np.stack(rows) if len({len(row) for row in rows}) == 1 else rows


def _without_absent(path: Path, x: list[np.ndarray], mask, name: str) -> list[np.ndarray]:
    """Sequences of unequal lengths without the tokens that their mask leaves out."""
    for place, (row, present) in enumerate(zip(x, mask, strict=True)):
        require(len(row) == len(present), f"{path}, row {place + 1}: {name} must be as long as the sequence.")
    return [row[np.asarray(present).astype(bool)] for row, present in zip(x, mask, strict=True)]


def _wide(path: Path, rest: Columns, y: np.ndarray) -> tuple[dict, tuple[str, ...]]:
    """One row per example: a token per column, or columns NAME_NUMBER for the number NAME of token NUMBER."""
    for name, values in rest.items():
        index = name.lower().startswith(PANDAS_INDEX)
        require(not index, f"{path}: column {name} is an index that pandas wrote; write the table with index=False.")
        if _holds_lists(values):
            lists = f"{path}: the cells of column {name} are lists written as text, such as {str(values[0])[:40]!r}"
            raise InputError(f"{lists}; write the table as Parquet or JSON lines, which keep lists.")
        fix = f"if each row is one token, pass sequence={name}; otherwise remove the column"
        is_id = name.lower() in ID_NAMES or name.lower().endswith("_id") or _counts_rows(np.asarray(values))
        require(not is_id, f"{path}: column {name} seems to number the rows or sequences; {fix}.", what="sequence")
        blocks = f"{path}: rows with one value of {name} follow each other and have one target; {fix}"
        require(not _is_in_blocks(np.asarray(values), y), f"{blocks}, or shuffle the rows.", what="sequence")
        _require_numeric(path, values, name)
    names = list(rest)
    parts = [re.fullmatch(r"(.*?)_?(\d+)", name) for name in names]
    places = {(part[1], int(part[2])): name for part, name in zip(parts, names, strict=True) if part is not None}
    features = list(dict.fromkeys(feature for feature, _ in places))
    tokens = sorted({token for _, token in places})
    several = [feature for feature in features if sum(each == feature for each, _ in places) > 1]
    whole = len(places) == len(names) == len(features) * len(tokens)
    if len(several) > 1 and not whole:
        _refuse_partly_numbered(path, names, places, several)
    if whole:
        ordered = [[places[feature, token] for feature in features] for token in tokens]
    else:
        features, ordered = [""], [[name] for name in names]
    x = np.stack([np.stack([np.asarray(rest[name], float) for name in token], axis=1) for token in ordered], axis=1)
    numbers = "one number" if len(features) == 1 else f"{len(features)} numbers ({_listed(features)})"
    columns = f"{ordered[0][0]} to {ordered[-1][-1]}" if len(names) > 1 else names[0]
    return {"x": x}, (f"{path.name}: a row is a sequence of {len(ordered)} tokens of {numbers}, columns {columns}",)


def _holds_lists(values: np.ndarray | list[np.ndarray]) -> bool:
    return isinstance(values, np.ndarray) and values.dtype.kind == "O" and str(values[0]).lstrip().startswith("[")


def _counts_rows(values: np.ndarray) -> bool:
    """Whether a column is 0, 1, 2, .. or another count of the rows."""
    return values.dtype.kind in "iu" and len(values) > 2 and bool(np.all(np.diff(values.astype(np.int64)) == 1))


def _refuse_partly_numbered(
    path: Path, names: list[str], places: Mapping[tuple[str, int], str], several: list[str]
) -> None:
    """Columns of which most are called NAME_NUMBER: one too many or too few would be read as another layout."""
    numbered = {name for (feature, _), name in places.items() if feature in several}
    odd = [name for name in names if name not in numbered]
    numbers = sorted({number for feature, number in places if feature in several})
    missing = [f"{feature}_{n}" for n in numbers for feature in several if (feature, n) not in places]
    fault = f"{_listed(odd)} is none of them" if odd else f"{_listed(missing)} is missing"
    raise InputError(f"{path}: the columns of {_listed(several)} are numbered tokens, but {fault}; remove or add it.")


def _is_in_blocks(values: np.ndarray, y: np.ndarray) -> bool:
    """Whether a column looks like the sequence of a row: words or whole numbers in blocks, with one target each."""
    if values.dtype.kind not in "iuO" or y.ndim != 1:
        return False
    changes, blocks = values[1:] != values[:-1], len(np.unique(values))
    one_target = not np.any((y[1:] != y[:-1]) & ~changes)
    return MIN_BLOCKS <= blocks == np.sum(changes) + 1 <= len(values) / 1.5 and one_target


def _listed(names: list[str]) -> str:
    if len(names) <= LISTED:
        return ", ".join(names)
    return f"{', '.join(names[: LISTED - 1])} .. {names[-1]} ({len(names)} in all)"  # the last is often the target
