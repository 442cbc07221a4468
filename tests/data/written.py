"""Examples and tables written in every kind of file, as other programs write them."""

import csv
import gzip
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

Columns = Mapping[str, list[Any]]


def _lists(value: Any) -> Any:
    return (
        value.tolist()
        if isinstance(value, np.ndarray)
        else [_lists(v) for v in value]
        if isinstance(value, list)
        else value
    )


def write_npz(path: Path, arrays: Mapping[str, Any]) -> Path:
    np.savez(path, **arrays)
    return path


def write_pt(path: Path, arrays: Mapping[str, Any]) -> Path:
    import torch

    def tensor(value: Any) -> Any:
        if isinstance(value, list):
            return [tensor(part) for part in value]
        return (
            torch.from_numpy(value) if isinstance(value, np.ndarray) and value.dtype.kind in "fiubc" else _lists(value)
        )

    torch.save({name: tensor(value) for name, value in arrays.items()}, path)
    return path


def write_safetensors(path: Path, arrays: Mapping[str, Any]) -> Path:
    from safetensors.numpy import save_file

    save_file({name: np.ascontiguousarray(value) for name, value in arrays.items()}, path)
    return path


def write_json(path: Path, arrays: Mapping[str, Any]) -> Path:
    path.write_text(json.dumps({name: _lists(value) for name, value in arrays.items()}))
    return path


def write_json_lines(path: Path, arrays: Mapping[str, Any]) -> Path:
    rows = zip(*map(_lists, arrays.values()), strict=True)
    path.write_text("".join(json.dumps(dict(zip(arrays, row, strict=True))) + "\n" for row in rows))
    return path


ARRAY_KINDS: dict[str, Callable[[Path, Mapping[str, Any]], Path]] = {
    ".npz": write_npz,
    ".pt": write_pt,
    ".safetensors": write_safetensors,
    ".json": write_json,
    ".jsonl": write_json_lines,
}
"""Writers of arrays by name."""


def write_text_table(path: Path, columns: Columns) -> Path:
    with gzip.open(path, "wt", newline="") if path.suffix == ".gz" else open(path, "w", newline="") as file:
        rows = csv.writer(file, delimiter="\t" if ".tsv" in path.name else ",")
        rows.writerow(columns)
        rows.writerows(zip(*columns.values(), strict=True))
    return path


def arrow_table(columns: Columns, features: dict[str, Any] | None = None) -> Any:
    import pyarrow as pa

    table = pa.table(dict(columns))
    if features is None:
        return table
    return table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})


def write_parquet(path: Path, columns: Columns) -> Path:
    import pyarrow.parquet as pq

    pq.write_table(arrow_table(columns), path)
    return path


def write_arrow(path: Path, columns: Columns) -> Path:
    """Arrow's file format, also that of .feather."""
    import pyarrow as pa

    table = arrow_table(columns)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    return path


def write_dataset(path: Path, columns: Columns, features: dict[str, Any] | None = None) -> Path:
    """A folder as Hugging Face's `Dataset.save_to_disk` writes it: two shards in Arrow's stream format."""
    import pyarrow as pa

    path.mkdir(parents=True)
    table = arrow_table(columns, features)
    names = [f"data-0000{place}-of-00002.arrow" for place in range(2)]
    half = (table.num_rows + 1) // 2
    for name, part in zip(names, (table[:half], table[half:]), strict=True):
        with pa.OSFile(str(path / name), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(part)
    (path / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names]}))
    (path / "dataset_info.json").write_text(json.dumps({"features": features or {}}))
    return path


def write_dataset_dict(path: Path, splits: Mapping[str, Columns], features: dict[str, Any] | None = None) -> Path:
    """A folder as `DatasetDict.save_to_disk` writes it."""
    for name, columns in splits.items():
        write_dataset(path / name, columns, features)
    (path / "dataset_dict.json").write_text(json.dumps({"splits": list(splits)}))
    return path


TABLE_KINDS: dict[str, Callable[[Path, Columns], Path]] = {
    ".csv": write_text_table,
    ".tsv": write_text_table,
    ".csv.gz": write_text_table,
    ".parquet": write_parquet,
    ".arrow": write_arrow,
    ".feather": write_arrow,
    "": write_dataset,
}
"""Writers of tables; a dataset is a folder, without an ending."""
