"""From format 3, in which a cell was one row of JSON, and format 4, in which its metrics were, to format 5."""

import json
import sqlite3
import struct
from collections.abc import Iterable
from pathlib import Path

from ..errors import StoreError
from .cell import RESTORE, Outcome, Record, cell_from_spec
from .rows import UNREADABLE, Ids, insert, packed, reason_of

OLDEST_READ = 3
BATCH = 1000
"""Cells that are in memory at once."""


def migrate(path: Path, connection: sqlite3.Connection, schema: Iterable[str], version: int) -> None:
    """Bring the table of cells up within the transaction that is open. Weights stay where they are.

    Raises StoreError for a row that cannot be read; the transaction is then the caller's to undo.
    """
    try:
        if version == 3:
            _replace_cells(connection, schema)
        else:
            _pack_metrics(connection)
    except (*UNREADABLE, struct.error) as error:
        raise StoreError(f"{path} holds a row that cannot be read: {reason_of(error)}. {RESTORE}") from error


def _pack_metrics(connection: sqlite3.Connection) -> None:
    """From format 4."""
    connection.execute("ALTER TABLE cells ADD COLUMN names INTEGER REFERENCES texts")
    texts, rows = Ids(connection, "texts", "text"), connection.execute("SELECT id, metrics FROM cells").fetchall()
    changed = ((*packed(_metrics(metrics), texts), number) for number, metrics in rows)
    connection.executemany("UPDATE cells SET names = ?, metrics = ? WHERE id = ?", changed)


def _replace_cells(connection: sqlite3.Connection, schema: Iterable[str]) -> None:
    """From format 3."""
    connection.execute("ALTER TABLE cells RENAME TO old_cells")
    for statement in schema:
        connection.execute(statement)
    rows = connection.execute("SELECT spec, outcome, metrics, curve, provenance, message FROM old_cells")
    while batch := rows.fetchmany(BATCH):
        insert(connection, [_record(*row) for row in batch], {})
    connection.execute("DROP TABLE old_cells")


def _record(spec: str, outcome: str, metrics: str, curve: str, provenance: str, message: str) -> Record:
    return Record(
        cell=cell_from_spec(json.loads(spec)),
        outcome=Outcome(outcome),
        metrics=_metrics(metrics),
        curve=tuple((step, value) for step, value in json.loads(curve)),
        provenance=json.loads(provenance),
        message=message,
    )


def _metrics(text: str) -> dict[str, float]:
    metrics = json.loads(text)
    if not (type(metrics) is dict and set(map(type, metrics.values())) <= {int, float}):
        raise TypeError(f"the metrics {text[:40]} are not numbers by name")
    return metrics
