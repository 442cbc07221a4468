"""Records as a table for other programs. Without timing it depends on the cells alone, byte for byte."""

import csv
import io
import json
from collections.abc import Iterable
from typing import Any

from ..store import Record

METRICS = ("nmse", "final_nmse", "train_nmse")
"""Columns where no record has finished."""
TIMING = ("seconds", "device", "finished")


def rows(records: Iterable[Record], *, timing: bool = False) -> list[dict[str, Any]]:
    """One flat row per record."""
    records, table = list(records), []
    metrics = tuple(dict.fromkeys(name for record in records for name in sorted(record.metrics, key=_usual)))
    for record in records:
        spec = record.cell.spec()
        row = {"key": record.cell.key, "task": spec["task"]["task"], "length": spec["length"]}
        row |= spec["model"] | {"rank": record.cell.model.rank, "seed": spec["seed"]} | spec["train"]
        row |= {"outcome": record.outcome.value} | {name: record.metrics.get(name) for name in metrics or METRICS}
        row |= {"task_spec": json.dumps(spec["task"], sort_keys=True), "message": record.message}
        if timing:
            row |= {name: record.provenance.get(name) for name in TIMING}
        table.append(row)
    return table


def _usual(name: str) -> tuple[int, str]:
    """The order of columns: those of METRICS first, then by name."""
    return (METRICS.index(name) if name in METRICS else len(METRICS), name)


def to_csv(records: Iterable[Record], *, timing: bool = False) -> str:
    """The rows as CSV; a row without a value has an empty field."""
    table = rows(records, timing=timing)
    text = io.StringIO()
    if table:
        columns = list(dict.fromkeys(name for row in table for name in row))
        writer = csv.DictWriter(text, fieldnames=columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)
    return text.getvalue()


def to_json(records: Iterable[Record], *, timing: bool = False) -> str:
    """The same rows, each with its validation curve."""
    records = list(records)
    table = [row | {"curve": record.curve} for row, record in zip(rows(records, timing=timing), records, strict=True)]
    return json.dumps(table, indent=1) + "\n"
