"""Records as a table for other programs. Without timing it depends on the cells alone, byte for byte."""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from ..answer import Metric, error_table
from ..answer.metric import FITTED_ERROR
from ..answer.table import QUANTILES
from ..errors import require
from ..store import Cell, Experiment, Outcome, Record, backend_of, json_text
from ..store.cell import train_text
from .provenance import provenance

Run = tuple[str, str]
"""A command, and when it began."""
METRICS = ("nmse", "final_nmse", "train_nmse")
"""Columns where no record has finished."""
STATISTICS = ("minimum", "median", "mean", "maximum")
OVER_SEEDS = (*QUANTILES, "mean", "std", "seeds", "lost")
"""Names of a row of a table that are not coordinates."""
CSV_ALONE = (
    "--summary is CSV of trained cells and their origin; leave out --format json, --json and --timing, and name a "
    "folder without inspections."
)
CURVE = "curve"
TIMING = ("seconds", "device", "backend", "finished")


def exported_rows(
    experiments: Iterable[Experiment], records: Iterable[Record], *, timing: bool = False
) -> list[dict[str, Any]]:
    """Return a row per cell and experiment: coordinates, then the cell's content, outcome, metrics and curve.

    `parent` and `removed`, a JSON list of heads, say what a model starts from; both are empty for a random start.
    """
    by_key = {record.cell.key: record for record in records}
    metrics = sorted({name for record in by_key.values() for name in record.metrics}, key=_usual) or list(METRICS)
    table = []
    for experiment in experiments:
        alike: dict[tuple[int, int, int], dict[str, Any]] = {}
        for key, record in by_key.items():
            if key not in experiment.places:
                continue
            cell = record.cell
            shared = id(cell.task), id(cell.model), id(cell.train)
            if shared not in alike:
                alike[shared] = _row_of_many(experiment, cell, metrics)
            row = alike[shared].copy()
            row |= {"key": key, "length": cell.length, "seed": cell.seed} | experiment.coordinates(key)
            row |= {"start": cell.start, "parent": cell.parent, "removed": _heads_json(cell.removed)}
            row |= {"outcome": record.outcome.value} | {name: record.metrics.get(name) for name in metrics}
            row["message"] = record.message
            if timing:
                row |= {name: record.provenance.get(name) for name in TIMING}
                row["backend"] = None if record.outcome is Outcome.FAILED else backend_of(record.provenance)
            row[CURVE] = record.curve
            table.append(row)
    return table


def _row_of_many(experiment: Experiment, cell: Cell, metrics: list[str]) -> dict[str, Any]:
    """Return the columns, in order, of cells that share a task, a model and a way of training, and what is equal."""
    row: dict[str, Any] = {"experiment": experiment.name, "study": experiment.study, "scale": experiment.scale}
    row |= {"key": cell.key, "task": cell.task.get("task", "")} | experiment.coordinates(cell.key)
    content = {"length": cell.length, **cell.model, "seed": cell.seed, **json.loads(train_text(cell.train))}
    row |= {name: value for name, value in content.items() if name not in row}
    row |= dict.fromkeys(("start", "parent", "removed", "outcome", *metrics))
    return row | {"task_spec": json_text(cell.task), "message": ""}


def _heads_json(removed: tuple[int, ...]) -> str:
    return json.dumps(removed) if removed else ""


def _usual(name: str) -> tuple[int, str]:
    """Sort columns: those of METRICS first, then by name."""
    return (METRICS.index(name) if name in METRICS else len(METRICS), name)


def rows_text(content: list[dict[str, Any]] | str, form: Literal["csv", "json"]) -> str:
    """Write rows as CSV, or as JSON with a row per line; CSV has no curves. A text is CSV already.

    Raises InputError where that is to be JSON.
    """
    if isinstance(content, str):
        require(form == "csv", CSV_ALONE)
        return content
    if form == "json":
        lines = ",\n ".join(map(json.dumps, content))
        return f"[{lines}]\n"
    return csv_text(content)


def csv_text(table: list[dict[str, Any]]) -> str:
    """Write rows as CSV, with every column that one of them has; empty where there are none."""
    text = io.StringIO()
    if table:
        columns = list(dict.fromkeys(name for names in dict.fromkeys(map(tuple, table)) for name in names))
        kept = [name for name in columns if name != CURVE]
        writer = csv.DictWriter(text, kept, restval="", extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)
    return text.getvalue()


def summary_csv(experiments: Iterable[Experiment], records: Iterable[Record], runs: Mapping[str, Sequence[Run]]) -> str:
    """Return a row per place of every experiment: statistics over seeds, as CSV, small enough to keep next to a text.

    Lines that begin with # say where the numbers come from. `runs` are the commands and times by experiment. The first
    statistics are of the validation error; those of the training error at the end follow where it was measured.
    """
    records = list(records)
    return "\n".join(_summary(each, each.own(records), runs.get(each.name, ())) for each in experiments)


def _summary(experiment: Experiment, records: Sequence[Record], runs: Sequence[Run]) -> str:
    origin = provenance(records, missing=len(experiment.places) - len(records), runs=runs)
    counts = ", ".join(f"{count} {name}" for name, count in origin.outcomes.items() if count) or "0"
    facts = {
        "experiment": f"{experiment.name}: {experiment.question}",
        "command": "; ".join(filter(None, origin.commands)) or "run from Python",
        "device": "; ".join(origin.devices),
        "back end": origin.backend,
        "versions": "; ".join(origin.versions),
        "finished": origin.ended,
        "models": f"{counts} of {len(experiment.places)}",
    }
    header = "".join(f"# {name}: {words}\n" for name, words in facts.items() if words)
    if not any(record.finished for record in records):
        return header
    found = _finished(experiment, records)
    axes = [axis for axis in (found[0] if found else ()) if axis not in OVER_SEEDS]
    table = [{name: row[name] for name in (*axes, "seeds")} | _statistics(row) for row in found]
    if any(FITTED_ERROR.name in record.metrics for record in records):
        fitted = _finished(experiment, records, FITTED_ERROR)
        table = [row | _statistics(each, "fitted_") for row, each in zip(table, fitted, strict=True)]
    return header + csv_text(table)


def _finished(experiment: Experiment, records: Sequence[Record], metric: Metric | None = None) -> list[dict[str, Any]]:
    return [row for row in error_table(experiment, records, metric=metric).rows() if row["seeds"]]


def _statistics(row: dict[str, Any], prefix: str = "") -> dict[str, str]:
    return {f"{prefix}{name}": f"{row[name]:.4g}" for name in STATISTICS}
