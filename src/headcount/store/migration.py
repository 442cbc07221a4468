"""From format 3, in which a cell was one row of JSON, to format 4."""

import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from .._errors import StoreError
from .cell import RESTORE, Outcome, Record, cell_from_spec
from .rows import insert

OLDEST_READ = 3
BATCH = 1000
"""Cells that are in memory at once."""


def migrate(path: Path, connection: sqlite3.Connection, schema: Iterable[str]) -> None:
    """Replace the table of cells within the transaction that is open. Weights stay where they are, a file per cell.

    Raises StoreError for a row that cannot be read; the transaction is then the caller's to undo.
    """
    connection.execute("ALTER TABLE cells RENAME TO old_cells")
    for statement in schema:
        connection.execute(statement)
    rows = connection.execute("SELECT spec, outcome, metrics, curve, provenance, message FROM old_cells")
    while batch := rows.fetchmany(BATCH):
        try:
            insert(connection, [_record(*row) for row in batch], {})
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise StoreError(f"{path} holds a row that cannot be read: {error}. {RESTORE}") from error
    connection.execute("DROP TABLE old_cells")


def _record(spec: str, outcome: str, metrics: str, curve: str, provenance: str, message: str) -> Record:
    return Record(
        cell=cell_from_spec(json.loads(spec)),
        outcome=Outcome(outcome),
        metrics=json.loads(metrics),
        curve=tuple((step, value) for step, value in json.loads(curve)),
        provenance=json.loads(provenance),
        message=message,
    )
