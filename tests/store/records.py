"""Cells, records and experiments made by hand. Light: processes that are to be killed import it too."""

import contextlib
import json
import sqlite3
from pathlib import Path

from headcount.store import FILE_NAME, Cell, Experiment, Outcome, Record, Store, TrainSpec, rows
from headcount.store.database import SCHEMA
from headcount.store.weights import write_weights

MODEL = {"kind": "class-token", "heads": 2}


def a_cell(**changes) -> Cell:
    plain = {"task": {"task": "any"}, "length": 8, "model": MODEL, "train": TrainSpec(), "seed": 0}
    return Cell(**(plain | changes))


def a_record(outcome: Outcome = Outcome.FINISHED, **changes) -> Record:
    plain = {"cell": a_cell(), "metrics": {"nmse": 0.25}, "curve": ((0, 1.0), (9, 0.25)), "provenance": {"seconds": 1}}
    return Record(outcome=outcome, **(plain | changes))


def bucket(*seeds: int, padding: int = 0) -> list[Record]:
    return [a_record(cell=a_cell(seed=seed), message="x" * padding) for seed in seeds]


def an_experiment(*seeds: int, **changes) -> Experiment:
    """The cells of `bucket(*seeds)`, along one axis."""
    plain = {"name": "mine", "question": "How many?", "task": "any", "axes": ("seed",), "settings": {"task": {"d": 1}}}
    return Experiment(**({"places": {a_cell(seed=seed).key: (seed,) for seed in seeds}} | plain | changes))


def insert(store: Store, records: list[Record]) -> None:
    """A commit that has not come to its end: rows in the middle of a transaction, some already in the -wal."""
    connection = store._connection
    connection.execute("PRAGMA cache_size = 1")
    connection.execute("BEGIN IMMEDIATE")
    rows.insert(connection, records, {})


def to_format_4(root: Path) -> None:
    """Rewrite a folder as format 4 had it: the metrics of a cell are JSON."""
    cells, *indexes = SCHEMA[2:]
    cells = cells.replace("    names INTEGER REFERENCES texts,\n", "").replace("metrics BLOB", "metrics TEXT")
    with Store.open_for_reading(root) as store:
        metrics = {record.cell.key: json.dumps(record.metrics, sort_keys=True) for record in store.records()}
    with contextlib.closing(sqlite3.connect(root / FILE_NAME)) as connection, connection:
        connection.execute("ALTER TABLE cells RENAME TO new_cells")
        connection.execute(cells)
        columns = [column for _, column, *_ in connection.execute("PRAGMA table_info(cells)")]
        rows_5 = connection.execute(f"SELECT {', '.join(columns)} FROM new_cells").fetchall()
        for row in (dict(zip(columns, row, strict=True)) for row in rows_5):
            values = row | {"metrics": metrics[row["key"]]}
            connection.execute(f"INSERT INTO cells VALUES ({', '.join('?' * len(columns))})", list(values.values()))
        connection.execute("DELETE FROM texts WHERE id IN (SELECT names FROM new_cells)")
        connection.execute("DROP TABLE new_cells")
        for index in indexes:
            connection.execute(index)
        connection.execute("PRAGMA user_version = 4")


_CELLS_3 = (
    "CREATE TABLE cells (key TEXT PRIMARY KEY, spec TEXT NOT NULL, outcome TEXT NOT NULL, metrics TEXT NOT NULL, "
    "curve TEXT NOT NULL, provenance TEXT NOT NULL, message TEXT NOT NULL) WITHOUT ROWID"
)


def to_format_3(root: Path) -> None:
    """Rewrite a folder as format 3 had it: a row of JSON per cell, and a file of weights for each."""
    with Store.open_for_reading(root) as store:
        records, curves = store.records(), [record.curve for record in store.records()]
        packed = [record.cell.key for record in records if store.weights_path(record.cell.key).exists()]
        for key, arrays in {key: store.weights(key) for key in packed}.items():
            write_weights(root / "weights" / f"{key}.safetensors", arrays)
    for pack in root.glob("weights/pack-*"):
        pack.unlink()
    with contextlib.closing(sqlite3.connect(root / FILE_NAME)) as connection, connection:
        for table in ("cells", "texts", "packs"):
            connection.execute(f"DROP TABLE {table}")
        connection.execute(_CELLS_3)
        for record, curve in zip(records, curves, strict=True):
            parts = [record.cell.spec(), record.outcome.value, record.metrics, curve, record.provenance]
            row = [part if isinstance(part, str) else json.dumps(part, sort_keys=True) for part in parts]
            connection.execute(
                "INSERT INTO cells VALUES (?, ?, ?, ?, ?, ?, ?)", (record.cell.key, *row, record.message)
            )
        connection.execute("PRAGMA user_version = 3")


OLDER = {3: to_format_3, 4: to_format_4}
