"""Examples in what people hold in Python: frames, dictionaries, pairs, and datasets of PyTorch and Hugging Face.

They are known by what they can do, and no library is imported for them. A table is read as the same table from a file.
"""

import functools
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .._user_files import user_supplied
from ..errors import InputError, require
from .arrow_files import examples_of_splits
from .examples import NAMES, LoadedExamples, Wanted, examples_of_arrays
from .tables import Column, examples_of_table, missing_in
from .values import as_array

PASS_BOTH = "pass both, as in measure(x, y), or a table with targets=COLUMN"


def examples_of_object(given: Any, wanted: Wanted) -> LoadedExamples:
    """Return the examples in an object: sequences with their targets.

    Args:
        given: A pair (x, y); a dictionary of arrays x and y, as in an .npz, or of columns; a pandas or polars
            DataFrame; a Hugging Face Dataset, or DatasetDict with its splits; a PyTorch Dataset or list whose items are
            pairs (x, y) or dictionaries; or a DataLoader of one.
        wanted: What is said about it, as about a file.

    Raises:
        InputError: It is something else, or its content is no examples.
    """
    path = Path(type(given).__name__)
    if hasattr(given, "collate_fn") and hasattr(given, "dataset"):  # a DataLoader, whose order and batches say nothing
        return examples_of_object(given.dataset, wanted)
    if isinstance(given, tuple) and len(given) == 2:
        path = Path("(x, y)")
        return examples_of_arrays(path, {"x": given[0], "y": given[1]}, _of_arrays(path, wanted))
    splits = given if isinstance(given, Mapping) else {"train": given}
    if len(splits) and all(map(_is_arrow, splits.values())):
        tables = {str(name): functools.partial(_arrow_table, each) for name, each in splits.items()}
        return examples_of_splits(path, tables, wanted)
    if isinstance(given, Mapping):
        return _of_mapping(path, {str(name): values for name, values in given.items()}, wanted)
    names = getattr(given, "columns", None)
    if names is not None and hasattr(given, "to_numpy"):
        return _of_frame(path, given, list(names), wanted)
    return _of_items(path, given, wanted)


def _is_arrow(given: Any) -> bool:
    """Return whether this is a dataset of Hugging Face, which can give an Arrow table, or such a table."""
    return hasattr(given, "__len__") and hasattr(given, "column_names")


def _arrow_table(given: Any) -> Any:
    return given.with_format("arrow")[:] if hasattr(given, "with_format") else given


def _of_mapping(path: Path, named: dict[str, Any], wanted: Wanted) -> LoadedExamples:
    """Read arrays called x and y, as in a file of arrays, or else the columns of a table."""
    if {"x", "y"} <= named.keys() <= set(NAMES):
        return examples_of_arrays(path, named, _of_arrays(path, wanted))
    return _of_columns(path, named, wanted)


def _of_frame(path: Path, frame: Any, names: list[Any], wanted: Wanted) -> LoadedExamples:
    """Read a DataFrame of pandas or polars; an index is not read, and a note says so where it has a name."""
    for name in names:
        require(names.count(name) == 1, f'{path} has two columns called "{name}"; rename one.')
    read = _of_columns(path, {str(name): frame[name] for name in names}, wanted)
    index = getattr(getattr(frame, "index", None), "name", None)
    note = f"{path.name}: the index {index} is not read; reset_index() makes a column of it"
    return read if index is None else replace(read, notes=(*read.notes, note))


def _of_columns(path: Path, named: dict[str, Any], wanted: Wanted) -> LoadedExamples:
    """Read the columns of a table."""
    require(len(named) > 1, f"{path} has only the columns {list(named)}; sequences and targets are needed.")
    columns = {name: _column(name, values) for name, values in named.items()}
    counts = {name: len(values) for name, values in columns.items()}
    require(len(set(counts.values())) == 1, f"{path}: columns must be of one length, got {counts}.")
    require(max(counts.values()) > 0, f"{path} has no rows; it needs at least one per example.")
    return examples_of_table(path, columns, wanted)


def _of_arrays(path: Path, wanted: Wanted) -> Wanted:
    """Refuse what is said of columns where there are none."""
    for name in ("targets", "sequence"):
        given = getattr(wanted, name)
        needless = f"{path} has arrays x and y and no columns, so {name} {given} is not needed; leave it out."
        require(given is None, needless, what=name)
    return wanted


def _column(name: str, values: Any) -> Column:
    """Return a column as numbers, with NaN for what is missing; as text; or as lists of numbers."""
    array = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else as_array(values, name))
    missing = missing_in(array)
    there = array[~missing] if len(missing) else array
    if array.dtype.kind in "UT" or (array.dtype == object and len(there) and isinstance(there[0], str)):
        return array.astype(object)
    if array.dtype == object and missing.any():
        return np.array([np.nan if gone else each for each, gone in zip(array, missing, strict=True)], float)
    array = as_array(array, name)
    return list(array) if array.dtype == object and array.ndim == 1 and np.ndim(array[0]) else array


def _of_items(path: Path, given: Any, wanted: Wanted) -> LoadedExamples:
    """Read something with examples as its items: pairs (x, y), or dictionaries."""
    indexed = hasattr(given, "__getitem__") and hasattr(given, "__len__") and not hasattr(given, "shape")
    none = InputError(f"x was given ({path}) without targets: {PASS_BOTH}.", what="y")
    if not indexed:
        raise none
    items = user_supplied(lambda: [given[place] for place in range(len(given))], name=str(path))
    if items and all(isinstance(each, Mapping) for each in items):
        keys = list(items[0])
        same = all(each.keys() == items[0].keys() for each in items)
        require(same, f"{path}: every example must have the keys of the first, {', '.join(map(str, keys))}.")
        return _of_mapping(path, {str(name): [each[name] for each in items] for name in keys}, wanted)
    if not items or not all(isinstance(each, tuple) for each in items):
        raise none
    pairs = all(len(each) == 2 for each in items)
    many = f"{path}: an example must be a pair (x, y), got {len(items[0])} parts; pass a dictionary with x, y and mask."
    require(pairs, many)
    x, y = zip(*items, strict=True)
    return examples_of_arrays(path, {"x": list(x), "y": list(y)}, _of_arrays(path, wanted))
