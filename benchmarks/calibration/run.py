"""Measure the tasks of a calibration: one results folder per task, and one file with what came out."""

import csv
import io
import json
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from headcount.api import measure
from headcount.engine import Executor
from headcount.errors import HeadcountError, InputError, require
from headcount.report.files import write_whole
from headcount.search import DEFAULT_EFFORT
from headcount.store import FILE_NAME

from .families import GRADUAL, KnownTask
from .record import TaskResult, result_from_dict

PAPER_HEADS = tuple(range(1, 13))
"""Head counts of the papers' protocol: past the largest D of the set."""
RESULT, TABLE = "result.json", "calibration.csv"


def calibrate(
    tasks: Iterable[KnownTask],
    out: Path | str,
    *,
    effort: str | None = None,
    seeds: int | None = None,
    heads: Sequence[int] | None = None,
    on: str | Executor | None = None,
    on_task: Callable[[TaskResult], None] = lambda result: None,
) -> list[TaskResult]:
    """Measure tasks of known D, and record what came out.

    The same call again continues: a task whose result is there is not measured again, unless it failed.

    Args:
        tasks: Tasks of `calibration_set()`.
        out: Folder; each task has its results folder there, and in it its result, result.json.
        effort: "quick", "normal" (where neither effort nor seeds are given) or "thorough".
        seeds: Use the papers' protocol instead: this number of random starts at every head count.
        heads: Head counts of the papers' protocol; 1 to 12 where None.
        on: Where models are trained, as `measure` takes it.
        on_task: Called with every result that is new.

    Returns:
        One result per task, in their order. A measurement that fails has no answer, and `error` says why.

    Raises:
        InputError: If a value cannot be right, or the folder holds results of another protocol.
        HeadcountError: If a result cannot be written.
    """
    options = options_of(effort=effort, seeds=seeds, heads=heads)
    tasks, out, protocol = list(tasks), Path(out), protocol_of(options)
    results = finished(tasks, out, protocol)
    for task in tasks:
        if task.name not in results:
            results[task.name] = _measured(task, out / task.name, protocol, options | {"on": on})
            content = json.dumps(results[task.name].as_dict(), indent=1) + "\n"
            write_whole(out / task.name / RESULT, content.encode(), "the result")
            on_task(results[task.name])
    return [results[task.name] for task in tasks]


def options_of(*, effort: str | None, seeds: int | None, heads: Sequence[int] | None) -> dict[str, Any]:
    """The options of `measure`; normal effort where nothing is given."""
    if seeds is None and heads is None:
        return {"effort": effort or DEFAULT_EFFORT}
    together = f"give effort, or seeds with or without heads: got effort {effort}, seeds {seeds}, heads {heads}."
    require(effort is None and seeds is not None, together, what="effort seeds heads")
    return {"seeds": seeds, "heads": tuple(heads or PAPER_HEADS)}


def protocol_of(options: dict[str, Any]) -> str:
    """The options of `measure` in words."""
    if "effort" in options:
        return f"effort {options['effort']}"
    return f"random starts, {options['seeds']} seeds, heads {', '.join(map(str, options['heads']))}"


def finished(tasks: Iterable[KnownTask], out: Path, protocol: str) -> dict[str, TaskResult]:
    """The results in a folder, by task: of these tasks and this protocol, without those that failed.

    Raises:
        InputError: If the folder holds results of another protocol, whose models would answer for this one.
    """
    results = {}
    for task in tasks:
        stored = _stored(out / task.name / RESULT)
        if stored is not None:
            hint = f"{out} holds results of {stored.protocol}; for {protocol} choose another folder."
            require(stored.protocol == protocol, hint, what="out", given=str(out))
            if stored.task == task and not stored.error:
                results[task.name] = stored
    return results


def _stored(path: Path) -> TaskResult | None:
    try:
        return result_from_dict(json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError, KeyError):  # missing, truncated, or of another version
        return None


def _measured(task: KnownTask, folder: Path, protocol: str, options: dict[str, Any]) -> TaskResult:
    """A task's result; its seconds are known where its results folder is new."""
    continued = (folder / FILE_NAME).exists()
    try:
        arrays = task.task()
        began = time.perf_counter()
        measurement = measure(arrays, out=folder, progress=False, **options)
        answer = measurement.answer()
    except InputError:
        raise
    except HeadcountError as error:
        return TaskResult(task=task, protocol=protocol, sentence="the measurement failed", error=str(error))
    seconds = time.perf_counter() - began
    stated = answer.kind != "enough" or task.family == GRADUAL  # which says nothing of what a task needs
    return TaskResult(
        task=task,
        protocol=protocol,
        sentence=answer.sentence,
        heads=answer.heads if stated else None,
        low=answer.low if stated else None,
        high=answer.high if stated else None,
        early=None if measurement.early is None else int(measurement.early["heads"]),
        early_seconds=None if measurement.early is None else measurement.early["seconds"],
        seconds=None if continued else seconds,
    )


def to_csv(results: Iterable[TaskResult]) -> str:
    """One row per task; what is not known is empty."""
    rows = [result.as_row() for result in results]
    text = io.StringIO()
    if rows:
        writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return text.getvalue()
