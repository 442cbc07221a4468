"""What headcount answers to a task, stored before any stock model is trained."""

import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from headcount import ArrayTask, measure
from headcount.answer.answer_base import Answer, Interval
from headcount.errors import HeadcountError
from headcount.stock import StockExamples, train_stock
from headcount.stock.choose import choose
from headcount.stock.measured import PATIENCE, heads_to_begin


@dataclass(frozen=True, kw_only=True)
class StoredAnswer:
    """headcount's answer to a task.

    Args:
        task: Its name.
        layers: Layers of the models that were measured.
        kind: "needs", "enough" or another kind of answer; "failed" where there is no answer because of an error.
        sentence: The answer, or the error, in words.
        heads: The head count; None without one. `low` and `high` are its interval; `high` None: no upper end was found.
        errors: Smallest error by head count.
        seconds: CPU seconds of this process.
        wall: Seconds of the clock.
        config: The stock model that `--for torch` chooses from the answer, of real sets alone.
        choosing: CPU seconds of choosing it.
        notes: How the data were read.
    """

    task: str
    layers: int = 1
    kind: str
    sentence: str
    heads: int | None = None
    low: int | None = None
    high: int | None = None
    errors: dict[int, float]
    seconds: float
    wall: float
    notes: list[str]
    config: dict[str, Any] | None = None
    choosing: float = 0.0

    def holds(self, heads: int) -> bool:
        """Whether a head count lies in the interval."""
        return self.low is not None and self.low <= heads <= (np.inf if self.high is None else self.high)

    @property
    def answered(self) -> Answer:
        """The answer as `headcount.answer` has it: its kind and its heads."""
        needs = {} if self.heads is None else {"heads": Interval(self.heads, self.low or 1, self.high or self.heads)}
        kind = self.kind if self.kind != "failed" else "none"
        return Answer(sentence=self.sentence, kind=kind, needs=needs)  # pyright: ignore[reportArgumentType]

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON."""
        return asdict(self)


def measured_answer(
    name: str, x: Any, y: np.ndarray, folder: Path, *, layers: int = 1, effort: str = "quick", **options: Any
) -> StoredAnswer:
    """Measure a task; `options` are those of `headcount.ArrayTask`."""
    began, used = time.perf_counter(), time.process_time()
    errors: dict[int, float] = {}
    notes: list[str] = []
    fields: dict[str, Any]
    try:
        task = ArrayTask(x, y, name=name, **options)
        notes = list(task.notes)
        measurement = measure(task, out=folder, progress=False, effort=effort, layers=layers)
        answer, table = measurement.answer(), measurement.table
        for axis in (each for each in table.axes if each != "heads"):
            table = table.reduced(axis)
        counts = table.values("heads")
        errors = {count: round(float(error), 6) for count, error in zip(counts, table.errors, strict=True)}
        fields = {"kind": answer.kind, "sentence": answer.sentence, "heads": answer.heads}
        fields |= {"low": answer.low, "high": answer.high}
    except HeadcountError as error:
        fields = {"kind": "failed", "sentence": str(error)}
    seconds, wall = time.process_time() - used, time.perf_counter() - began
    return StoredAnswer(task=name, layers=layers, errors=errors, seconds=seconds, wall=wall, notes=notes, **fields)


def with_choice(answer: StoredAnswer, examples: StockExamples, steps: int) -> StoredAnswer:
    """Return the answer with the stock model that `measure --for torch` chooses from it; `steps` are of a full run."""
    used = time.process_time()
    heads, fewer = heads_to_begin(answer.answered)
    choice = choose(
        lambda config, count: train_stock(config, examples, steps=count, patience=PATIENCE),
        "torch",
        heads=heads,
        fewer=fewer,
        shape=examples.shape,
        steps=steps,
    )
    return replace(answer, config=choice.chosen.config.as_dict(), choosing=time.process_time() - used)
