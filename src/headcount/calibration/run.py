"""Measure the tasks of a calibration: one results folder per task, and one file with what came out."""

import csv
import io
import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._choices import require_choice
from .._files import read_regular
from .._limits import require_within, shortened
from ..api import measure
from ..engine import Executor
from ..errors import HeadcountError, require, require_count
from ..report.files import write_whole
from ..search import DEFAULT_EFFORT, EFFORTS
from ..store import FILE_NAME
from .families import KnownTask
from .record import TaskResult, result_from_dict

PAPER_HEADS = tuple(range(1, 13))
"""Head counts of the papers' protocol: past the largest D of the set."""
RESULT, TABLE = "result.json", "calibration.csv"


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """How every task is measured: by effort, or as in the papers by random starts at every one of `heads`.

    Raises:
        InputError: If both are given, or neither, or a value cannot be right.
    """

    effort: str | None = None
    seeds: int | None = None
    heads: tuple[int, ...] | None = None

    def __post_init__(self):
        require(
            (self.effort is None) != (self.seeds is None),
            f"give effort or seeds, not both: got effort {self.effort} and {self.seeds} seeds.",
            what="effort seeds",
        )
        require(
            self.heads is None or self.seeds is not None,
            "heads are for random starts at every head count: give seeds too.",
            what="heads seeds",
            given=self.heads,
        )
        if self.effort is not None:
            require_choice("effort", self.effort, EFFORTS)
        if self.seeds is not None:
            require_count("seeds", self.seeds, least=2)
            models = self.seeds * len(self.tried)
            asked = (
                f"{shortened(models)} models per task ({len(self.tried)} head counts x {shortened(self.seeds)} seeds)"
            )
            require_within(f"seeds: {asked} are asked for", models, "HEADCOUNT_MAX_MODELS")

    @property
    def options(self) -> dict[str, Any]:
        """What `measure` is given."""
        return {"effort": self.effort} if self.seeds is None else {"seeds": self.seeds, "heads": self.tried}

    @property
    def tried(self) -> tuple[int, ...]:
        """The head counts of the papers' protocol."""
        return PAPER_HEADS if self.heads is None else self.heads

    def __str__(self) -> str:
        if self.seeds is None:
            return f"effort {self.effort}"
        return f"random starts, {self.seeds} seeds, heads {', '.join(map(str, self.tried))}"


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
        seeds: Use the papers' protocol instead: as many random starts at every head count.
        heads: Head counts of the papers' protocol; 1 to 12 where None.
        on: Where models are trained, as `measure` takes it.
        on_task: Called with every result that is new.

    Returns:
        One result per task, in their order. A measurement that raises a `HeadcountError` has no answer, and `error`
        says why.

    Raises:
        InputError: If effort or seeds cannot be right, or both are given.
        HeadcountError: If a result cannot be written.
    """
    protocol = protocol_of(effort=effort, seeds=seeds, heads=heads)
    tasks, out = list(tasks), Path(out)
    refuse_other(tasks, out, protocol)
    results = finished(tasks, out, protocol)
    for task in tasks:
        if task.name not in results:
            results[task.name] = _measured(task, out / task.name, protocol, on)
            content = json.dumps(results[task.name].as_dict(), indent=1) + "\n"
            write_whole(out / task.name / RESULT, content.encode(), "the result")
            on_task(results[task.name])
    return [results[task.name] for task in tasks]


def protocol_of(*, effort: str | None = None, seeds: int | None = None, heads: Sequence[int] | None = None) -> Protocol:
    """The protocol of these arguments; normal effort where nothing is given."""
    effort = DEFAULT_EFFORT if effort is None and seeds is None else effort
    return Protocol(effort=effort, seeds=seeds, heads=None if heads is None else tuple(heads))


def refuse_other(tasks: Iterable[KnownTask], out: Path, protocol: Protocol) -> None:
    """Raise `InputError` where a folder holds results of another protocol: their models would answer for this one."""
    for task in tasks:
        stored = _stored(out / task.name / RESULT)
        if stored is not None:
            hint = f"{out} holds results of {stored.protocol}; for {protocol} choose another folder."
            require(stored.protocol == str(protocol), hint, what="out", given=str(out))


def finished(tasks: Iterable[KnownTask], out: Path, protocol: Protocol) -> dict[str, TaskResult]:
    """The results in a folder, by task: of these tasks and this protocol, without those that failed.

    A result that cannot be read is not there.
    """
    results = {task.name: (task, _stored(out / task.name / RESULT)) for task in tasks}
    return {
        name: result
        for name, (task, result) in results.items()
        if result is not None and result.task == task and result.protocol == str(protocol) and not result.error
    }


def _stored(path: Path) -> TaskResult | None:
    try:
        return result_from_dict(json.loads(read_regular(path)))
    except (
        OSError,
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        RecursionError,
    ):  # missing, truncated, or of another version
        return None


def _measured(task: KnownTask, folder: Path, protocol: Protocol, on: str | Executor | None) -> TaskResult:
    """A task's result; its seconds are known where its results folder is new."""
    continued = (folder / FILE_NAME).exists()
    try:
        arrays = task.task()
        began = time.perf_counter()
        measurement = measure(arrays, out=folder, progress=False, on=on, **protocol.options)
        answer = measurement.answer()
    except HeadcountError as error:
        return TaskResult(task=task, protocol=str(protocol), sentence="the measurement failed", error=str(error))
    seconds = time.perf_counter() - began
    return TaskResult(
        task=task,
        protocol=str(protocol),
        sentence=answer.sentence,
        heads=answer.heads,
        low=answer.low,
        high=answer.high,
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
