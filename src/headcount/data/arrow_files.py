"""Arrow's tables: .parquet, .arrow and .feather files, and folders that Hugging Face's `save_to_disk` wrote."""

import contextlib
import functools
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .._limits import require_fits, require_within
from ..errors import HeadcountError, InputError, require
from .examples import LoadedExamples, Wanted
from .memory import read_limited
from .tables import Column, Columns, examples_of_table

AGAIN = "write the dataset again with save_to_disk"
BATCH_ROWS = 4096
NUMBER_BYTES = 4
TEXTS = ("STRING", "NONE")
"""Logical types of text in a Parquet file."""
VALIDATION_SPLITS = ("validation", "valid", "val", "dev", "test")
"""Splits of a dataset that are validation examples; the first that is there."""


def is_saved_dataset(folder: Path) -> bool:
    """Return whether `save_to_disk` of Hugging Face's datasets wrote the folder, by its files' names."""
    return any((folder / name).is_file() for name in ("dataset_dict.json", "dataset_info.json", "state.json"))


def read_arrow_table(path: Path, wanted: Wanted) -> LoadedExamples:
    """Return the examples of a .parquet, .arrow or .feather file."""
    arrow = _pyarrow(path)
    return examples_of_table(path, _table_columns(path, _read_table(path, arrow), arrow), wanted)


def read_saved_dataset(folder: Path, wanted: Wanted) -> LoadedExamples:
    """Return the examples of a dataset folder."""
    arrow = _pyarrow(folder)
    if not (folder / "dataset_dict.json").is_file():
        return examples_of_splits(folder, {"train": functools.partial(_read_split, folder, arrow)}, wanted)
    splits = json.loads(read_limited(folder / "dataset_dict.json"))["splits"]
    if len(splits) == 1:
        return read_saved_dataset(_inside(folder, splits[0]), wanted)
    read = {split: lambda split=split: _read_split(_inside(folder, split), arrow) for split in splits}
    return examples_of_splits(folder, read, wanted)


def examples_of_splits(folder: Path, splits: Mapping[str, Callable[[], Any]], wanted: Wanted) -> LoadedExamples:
    """Return the examples of a dataset's Arrow tables; of several splits, train and the first for validation."""
    arrow = _pyarrow(folder)
    if len(splits) == 1:
        return examples_of_table(folder, _table_columns(folder, next(iter(splits.values()))(), arrow), wanted)
    others = [split for split in splits if split != "train"]
    listed = f"{folder} has no split train, only {', '.join(splits) or 'none'}"
    require("train" in splits, f"{listed}; name one: {folder / next(iter(splits), '')}.")
    validation = next((split for split in VALIDATION_SPLITS if split in splits), others[0])
    train, validated = splits["train"](), splits[validation]()
    names = train.schema.names
    same = f"{folder}: train and {validation} must have the same columns."
    require(sorted(names) == sorted(validated.schema.names), same)
    table = arrow.concat_tables([train, validated.select(names)], promote_options="permissive")
    unused = [split for split in others if split != validation]
    notes = [f"{folder.name}: validation examples are the split {validation}"]
    notes += [f"{folder.name}: not used: the split {', '.join(unused)}"] if unused else []
    read = examples_of_table(folder, _table_columns(folder, table, arrow), wanted, held_out=validated.num_rows)
    return replace(read, notes=(*notes, *read.notes))


def _pyarrow(path: Path) -> Any:
    try:
        import pyarrow
        import pyarrow.compute  # a submodule, which pyarrow does not load by itself
    except ImportError as error:
        message = f"{path}: this kind of table needs the package pyarrow: pip install 'headcount[tables]'."
        raise HeadcountError(message) from error
    return pyarrow


def _inside(folder: Path, name: str) -> Path:
    """Return a file or folder of `folder`, which a name from a file must not leave."""
    require(Path(name).name == name, f"{folder} names {name!r}, which must be the name of a file in it.")
    return folder / name


def _read_split(folder: Path, arrow: Any) -> Any:
    """Return the table of one split, whose state lists its files."""
    files = sorted(folder.glob("data-*.arrow"))
    if (folder / "state.json").is_file():
        listed = json.loads(read_limited(folder / "state.json"))["_data_files"]
        files = [_inside(folder, entry["filename"]) for entry in listed]
    require(len(files) > 0, f"{folder} has no data files (data-00000-of-00001.arrow); {AGAIN}.")
    for file in files:
        require(file.is_file(), f"{folder} lacks {file.name}, which its state.json lists; {AGAIN}.")
    return arrow.concat_tables([_read_table(file, arrow) for file in files])


def _read_table(path: Path, arrow: Any) -> Any:
    """Read a table and check it in full, so that damaged lengths are an error rather than a crash."""
    with open(path, "rb") as file:
        start = file.read(6)
        file.seek(0)
        if path.suffix.lower() == ".parquet":
            import pyarrow.parquet

            table = _batches(path, *_parquet_batches(path, file, pyarrow.parquet.ParquetFile), arrow)
        elif start == b"ARROW1":
            reader = arrow.ipc.open_file(file)
            parts = (reader.get_batch(place) for place in range(reader.num_record_batches))
            table = _batches(path, parts, reader.schema, arrow)
        else:
            reader = arrow.ipc.open_stream(file)
            table = _batches(path, reader, reader.schema, arrow)
    table.validate(full=True)
    return table


def _parquet_batches(path: Path, file: Any, opened: Any) -> tuple[Iterator[Any], Any]:
    """Return the batches of a Parquet file and its schema. A few of its bytes can stand for a billion values.

    Text stays a dictionary and codes, as the file has it: each value is in memory once, however often it occurs.
    """
    footer = opened(file).metadata
    require_within(f"{path} has {footer.num_columns:,} columns", footer.num_columns, "HEADCOUNT_MAX_COLUMNS")
    columns = [footer.schema.column(place) for place in range(footer.num_columns)]
    is_text = [each.physical_type == "BYTE_ARRAY" and each.logical_type.type in TEXTS for each in columns]
    texts = [each.path for each, text in zip(columns, is_text, strict=True) if text]
    size = largest = 0
    for group in map(footer.row_group, range(footer.num_row_groups)):
        chunks = [group.column(place) for place in range(footer.num_columns)]
        for chunk, column in zip(chunks, columns, strict=True):
            size += max(chunk.total_uncompressed_size, chunk.num_values * max(NUMBER_BYTES, column.length))
        largest = max(largest, sum(itertools.compress((each.total_uncompressed_size for each in chunks), is_text)))
    require_fits(path, size + largest)  # the texts of the rows that are being read are there twice
    reader = opened(file, metadata=footer, read_dictionary=texts)
    return reader.iter_batches(batch_size=BATCH_ROWS), reader.schema_arrow


def _batches(path: Path, batches: Iterable[Any], schema: Any, arrow: Any) -> Any:
    """Join batches to a table; stop reading once they need more memory than is allowed."""
    parts, before = [], arrow.total_allocated_bytes()
    for part in batches:
        parts.append(part)
        require_fits(path, arrow.total_allocated_bytes() - before)
    return arrow.Table.from_batches(parts, schema)


def _table_columns(path: Path, table: Any, arrow: Any) -> Columns:
    names = table.schema.names
    for name, count in Counter(names).items():
        require(count == 1, f'{path} has two columns called "{name}"; rename one.')
    require(len(names) > 1, f"{path} has only the columns {names}; sequences and targets are needed.")
    require(table.num_rows > 0, f"{path} has no rows; it needs at least one per example.")
    labels = _class_names(path, table.schema)
    columns: dict[str, Any] = {}
    for name in names:
        values: Any = _column_values(path, name, table.column(name).combine_chunks(), arrow)
        if name in labels:  # by their names instead of their places
            wrong = values[(values < 0) | (values >= len(labels[name]))]
            number = f"0 to {len(labels[name]) - 1}, got {wrong.flat[0] if wrong.size else None}"
            require(wrong.size == 0, f"{path}: labels in column {name} must be {number} (-1 marks a missing label).")
            values = np.array(labels[name], object)[values]
        columns[name] = values
    return columns


def _column_values(path: Path, name: str, array: Any, arrow: Any, *, in_lists: bool = False) -> Column:
    """Return a column as numbers, as text, or as lists of numbers."""
    kind, types = array.type, arrow.types
    if isinstance(kind, arrow.BaseExtensionType):
        return _column_values(path, name, array.storage, arrow, in_lists=in_lists)
    missing = np.flatnonzero(np.asarray(array.is_null()))
    if types.is_dictionary(kind) and not len(missing):  # only entries that occur are made values, each once
        used, codes = np.unique(array.indices.to_numpy(zero_copy_only=False), return_inverse=True)
        entries = array.dictionary.take(arrow.array(used))
        values = _column_values(path, name, entries, arrow, in_lists=in_lists)
        return values[codes] if isinstance(values, np.ndarray) else [values[code] for code in codes]
    if types.is_dictionary(kind):
        return _column_values(path, name, array.dictionary_decode(), arrow, in_lists=in_lists)
    nested = isinstance(kind, arrow.ListType | arrow.LargeListType | arrow.FixedSizeListType)
    if len(missing) and (in_lists or nested):
        where = f"{path}: a list in column" if in_lists else f"{path}, row {missing[0] + 1}: column"
        raise InputError(f"{where} {name} has a missing value; fill it in, or drop the row.")
    if types.is_decimal(kind):
        return array.cast(arrow.float64()).to_numpy(zero_copy_only=False)
    if types.is_null(kind) or (types.is_boolean(kind) and len(missing)):
        return np.array(array.to_pylist(), object)
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        return array.to_numpy(zero_copy_only=False)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return np.array(array.to_pylist(), object)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _list_values(path, name, array, arrow)
    raise InputError(f"{path}: column {name} holds {kind}, neither numbers nor lists of them; remove it.")


def _list_values(path: Path, name: str, array: Any, arrow: Any) -> Column:
    """Return one array where all lists are of one length, otherwise an array per list."""
    lengths = arrow.compute.list_value_length(array).to_numpy(zero_copy_only=False)
    inner = _column_values(path, name, array.flatten(), arrow, in_lists=True)
    if not isinstance(inner, np.ndarray):
        raise InputError(f"{path}: the tokens in column {name} must all have the same number of values.")
    if len(set(lengths.tolist())) == 1:
        return inner.reshape(len(lengths), int(lengths[0]), *inner.shape[1:])
    return np.split(inner, np.cumsum(lengths)[:-1])


def _class_names(path: Path, schema: Any) -> dict[str, list[str]]:
    """Read the class names that Hugging Face's datasets store with a schema, by column; none where they are damaged."""
    stored, info = (schema.metadata or {}).get(b"huggingface"), path / "dataset_info.json"
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError, AttributeError):
        content = json.loads(read_limited(info)) if stored is None else json.loads(stored)["info"]
        features = {name: each for name, each in content["features"].items() if isinstance(each, dict)}
        labels = {name: each for name, each in features.items() if each.get("_type") == "ClassLabel"}
        return {name: list(map(str, each["names"])) for name, each in labels.items()}
    return {}
