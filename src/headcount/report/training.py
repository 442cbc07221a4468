"""How training went: validation errors along the steps, and training next to validation errors."""

from collections.abc import Iterable

import numpy as np

from ..answer import Answer, ErrorTable, count_of_heads
from ..answer.table import numbers_first
from ..store import Experiment, Record, Value
from .chart import Chart, Series
from .charts import RANDOM, about_rank, axis_label, axis_name, draws_of, main_axis

MAX_RUNS = 6
"""Curves that are drawn per value of the main axis and kind of start, the best first."""
BELOW, ABOVE = 2, 1
"""Values below and above the answer whose curves are drawn."""


def curves_chart(experiment: Experiment, records: Iterable[Record], table: ErrorTable, answer: Answer) -> Chart | None:
    """Chart the validation error against step: a colour per head count near the answer, a thin line per seed.

    Of the longest length and the first draw of the data; None where no curve was stored.
    """
    axis = "rank" if about_rank(table) else main_axis(table)
    runs = _at_longest(experiment, records, table)
    if about_rank(table):
        heads = answer.at[0] if answer.at is not None else max((at.get("heads", 0) for at, _ in runs), default=0)
        runs = [run for run in runs if run[0].get("heads") == heads]
    series = []
    for place, value in enumerate(_near(sorted({at.get(axis, 1) for at, _ in runs}, key=numbers_first), answer, axis)):
        here = [(at.get("start", RANDOM) == RANDOM, record) for at, record in runs if at.get(axis, 1) == value]
        for kind in ("measured", "descended"):
            alike = [record for is_random, record in here if is_random == (kind == "measured")]
            for record in sorted(alike, key=lambda record: record.error)[:MAX_RUNS]:
                steps, errors = zip(*record.curve, strict=True) if record.curve else ((), ())
                x, y = tuple(map(float, steps)), tuple(map(float, errors))
                series += [Series(_named(axis, value), x, y, place, kind, thin=True)] if record.curve else []
    if not series:
        return None
    most = max(max(line.x) for line in series)
    has_descended = any(line.kind == "descended" for line in series)
    descended = "; dotted: descended from trained models with more heads" if has_descended else ""
    return Chart(
        name="training-curves",
        title="Training curves",
        x_label="training step",
        y_label=table.metric.label,
        x_ticks=tuple(dict.fromkeys(float(round(step)) for step in np.linspace(0, max(most, 1.0), 5))),
        series=tuple(series),
        caption=f"a line per seed, at {_length(table)} tokens{descended}",
        log_y=all(y > 0 for line in series for y in line.y),
    )


def fit_chart(experiment: Experiment, records: Iterable[Record], table: ErrorTable) -> Chart | None:
    """Chart training and validation error of the best model at every value of the main axis, at the longest length.

    None where no training error was stored, or where the values are words.
    """
    axis, name = main_axis(table), table.metric.name
    best: dict[Value, Record] = {}
    for at, record in _at_longest(experiment, records, table):
        value = at.get(axis, 1)
        if value not in best or record.error < best[value].error:
            best[value] = record
    values = sorted(best, key=numbers_first)
    training = tuple(_training_error(best[value], name) for value in values)
    if about_rank(table) or any(isinstance(v, str) for v in values) or not np.isfinite(training).any():
        return None
    places, validation = tuple(map(float, values)), tuple(best[value].error for value in values)
    return Chart(
        name="training-error",
        title="Training and validation error",
        x_label=axis_label(axis),
        y_label=f"error ({table.metric.short})",
        x_ticks=places,
        series=(Series("validation error", places, validation, 0), Series("training error", places, training, 1)),
        caption=f"the best model at {_length(table)} tokens; training far below validation is overfitting",
        log_y=0 not in (*validation, *training),
    )


def _training_error(record: Record, metric: str) -> float:
    """Return the error on the training examples at the end where that was measured, else while training."""
    return record.metrics.get(f"fitted_{metric}", record.metrics.get(f"train_{metric}", float("nan")))


def _at_longest(
    experiment: Experiment, records: Iterable[Record], table: ErrorTable
) -> list[tuple[dict[str, Value], Record]]:
    """Return the finished records of the longest length and the first draw of the data, with their coordinates."""
    draws = draws_of(table)
    wanted = {"length": _length(table)} | ({"data_seed": draws[0]} if draws else {})
    part = experiment.part(**{axis: [value] for axis, value in wanted.items() if axis in experiment.axes})
    return [(experiment.coordinates(each.cell.key), each) for each in part.own(records) if each.finished]


def _length(table: ErrorTable) -> Value:
    return max(table.values("length"), default=1)


def _near(values: list[Value], answer: Answer, axis: str) -> list[Value]:
    """Return the values around the answer; the last ones where there is none."""
    need = answer.needs.get(axis)
    if need is None or need.at not in values:
        return values[-(BELOW + 1 + ABOVE) :]
    here = values.index(need.at)
    return values[max(0, here - BELOW) : here + ABOVE + 1]


def _named(axis: str, value: Value) -> str:
    return count_of_heads(value) if axis == "heads" and isinstance(value, int) else f"{axis_name(axis)} {value}"
