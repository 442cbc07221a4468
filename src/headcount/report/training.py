"""How training went: validation errors along the steps, and training next to validation errors."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ..answer import Answer, ErrorTable, count_of_heads
from ..store import Experiment, Record, Value
from .chart import Chart, Series
from .charts import RANDOM, about_rank, axis_label, axis_name, draws_of, main_axis

MAX_RUNS = 6
"""Curves that are drawn per value of the main axis and kind of start, the best first."""
BELOW, ABOVE = 2, 1
"""Values below and above the answer whose curves are drawn."""


def curves_chart(experiment: Experiment, records: Iterable[Record], table: ErrorTable, answer: Answer) -> Chart | None:
    """Validation error against step: a colour per head count near the answer, a thin line per seed.

    Of the longest length and the first draw of the data; None where no curve was stored.
    """
    axis = "rank" if about_rank(table) else main_axis(table)
    runs = _shown(experiment, records, table)
    if about_rank(table):
        heads = answer.at[0] if answer.at is not None else max((run.at.get("heads", 0) for run in runs), default=0)
        runs = [run for run in runs if run.at.get("heads") == heads]
    values = _near(sorted({run.at.get(axis, 1) for run in runs}, key=_order), answer, axis)
    series = tuple(
        Series(
            name=_named(axis, value),
            x=tuple(float(step) for step, _ in run.record.curve),
            y=tuple(float(error) for _, error in run.record.curve),
            place=place,
            kind="measured" if run.random else "descended",
            thin=True,
        )
        for place, value in enumerate(values)
        for run in _best_runs([run for run in runs if run.at.get(axis, 1) == value])
        if run.record.curve
    )
    if not series:
        return None
    most = max(max(line.x) for line in series)
    descended = "; dotted: descended from trained models with more heads" if _has_descended(series) else ""
    return Chart(
        name="training-curves",
        title="Training curves",
        x_label="training step",
        y_label=table.metric.label,
        x_ticks=tuple(dict.fromkeys(float(round(step)) for step in np.linspace(0, max(most, 1.0), 5))),
        series=series,
        caption=f"a line per seed, at {_length(table)} tokens{descended}",
        log_y=all(y > 0 for line in series for y in line.y),
    )


def fit_chart(experiment: Experiment, records: Iterable[Record], table: ErrorTable) -> Chart | None:
    """Training next to validation error of the best model at every value of the main axis, at the longest length.

    None where no training error was stored, or where the values are words.
    """
    axis, name = main_axis(table), table.metric.name
    best_runs: dict[Value, _Run] = {}
    for run in _shown(experiment, records, table):
        value = run.at.get(axis, 1)
        if value not in best_runs or run.error < best_runs[value].error:
            best_runs[value] = run
    best = {value: run.record for value, run in best_runs.items()}
    values = sorted(best, key=_order)
    training = tuple(_training_error(best[value], name) for value in values)
    if about_rank(table) or any(isinstance(v, str) for v in values) or not np.isfinite(training).any():
        return None
    errors = {"validation": tuple(best[value].error for value in values), "training": training}
    return Chart(
        name="training-error",
        title="Training and validation error",
        x_label=axis_label(axis),
        y_label=f"error ({table.metric.short})",
        x_ticks=tuple(map(float, values)),
        series=tuple(
            Series(f"{kind} error", tuple(map(float, values)), line, place=place)
            for place, (kind, line) in enumerate(errors.items())
        ),
        caption=f"the best model at {_length(table)} tokens; training far below validation is overfitting",
        log_y=not any(value == 0 for line in errors.values() for value in line),
    )


def _training_error(record: Record, metric: str) -> float:
    """On the training examples at the end where that was measured, else while training."""
    return record.metrics.get(f"fitted_{metric}", record.metrics.get(f"train_{metric}", float("nan")))


def at_longest(experiment: Experiment, records: Iterable[Record], table: ErrorTable) -> list[Record]:
    """The finished records of the longest length and the first draw of the data, which charts of training show."""
    draws = draws_of(table)
    wanted = {"length": _length(table)} | ({"data_seed": draws[0]} if draws else {})
    part = experiment.part(**{axis: [value] for axis, value in wanted.items() if axis in experiment.axes})
    return [record for record in part.own(records) if record.finished]


class _Run(NamedTuple):
    """A model by its coordinates and error."""

    at: dict[str, Value]
    error: float
    record: Record

    @property
    def random(self) -> bool:
        """Whether it started from random weights."""
        return self.at.get("start", RANDOM) == RANDOM


def _shown(experiment: Experiment, records: Iterable[Record], table: ErrorTable) -> list[_Run]:
    """The finished models of the longest length and the first draw of the data."""
    finished = at_longest(experiment, records, table)
    return [_Run(experiment.coordinates(record.cell.key), record.error, record) for record in finished]


def _length(table: ErrorTable) -> Value:
    return max(table.values("length"), default=1)


def _near(values: list[Value], answer: Answer, axis: str) -> list[Value]:
    """The values around the answer; the last ones where there is none."""
    need = answer.needs.get(axis)
    if need is None or need.at not in values:
        return values[-(BELOW + 1 + ABOVE) :]
    here = values.index(need.at)
    return values[max(0, here - BELOW) : here + ABOVE + 1]


def _best_runs(runs: list[_Run]) -> list[_Run]:
    """The best of each kind of start, random ones first."""
    ranked = sorted(runs, key=lambda run: run.error)
    return [*[run for run in ranked if run.random][:MAX_RUNS], *[run for run in ranked if not run.random][:MAX_RUNS]]


def _has_descended(series: tuple[Series, ...]) -> bool:
    return any(line.kind == "descended" for line in series)


def _named(axis: str, value: Value) -> str:
    return count_of_heads(value) if axis == "heads" and isinstance(value, int) else f"{axis_name(axis)} {value}"


def _order(value: Value) -> tuple[bool, float, str]:
    """Numbers by size, words after them."""
    word = isinstance(value, str)
    return word, 0.0 if word else float(value), str(value)
