"""The numbers the papers printed or plotted, carried as data."""

import csv
import functools
from collections.abc import Sequence
from importlib.resources import files

import numpy as np

from ..answer import NMSE, ErrorTable, Metric

FIRST_PAPER = "arXiv 2510.06662"
SECOND_PAPER = "arXiv 2407.16153"
TABLE_AXES = ("heads", "length")
PLOT_AXES = ("rank", "layers", "multiplier", "dim", "length")
Rows = list[dict[str, str]]


@functools.cache
def published_table(table: str, *, statistic: str) -> ErrorTable:
    """Errors of a table of the first paper, over heads and length, by its name in the file, such as table2."""
    rows = _csv_rows("paper_tables.csv", "table", table)
    axes, errors = _filled_array(rows, TABLE_AXES, "value")
    _, deviation = _filled_array(rows, TABLE_AXES, "std")
    return ErrorTable(axes=axes, errors=errors, deviation=deviation, source=_source(table), statistic=statistic)


@functools.cache
def published_accuracies(table: str, metric: Metric) -> ErrorTable:
    """A table of mean accuracies, in per cent or as shares, as shares of wrong answers."""
    axes, right = _filled_array(_csv_rows("paper_tables.csv", "table", table), TABLE_AXES, "value")
    unit = 100 if np.nanmax(right) > 1 else 1
    return ErrorTable(axes=axes, errors=1 - right / unit, metric=metric, source=_source(table), statistic="mean")


@functools.cache
def published_points(figure: str) -> ErrorTable | None:
    """Points that were read off a plot of the second paper, all without positions; None where there are none."""
    rows = _csv_rows("rank_figures.csv", "figure", figure)
    if not rows:
        return None
    axes, errors = _filled_array(rows, PLOT_AXES, "value")
    return ErrorTable(axes=axes | {"positions": ("none",)}, errors=errors[..., None], metric=NMSE, source=SECOND_PAPER)


def one_seed(published: ErrorTable) -> ErrorTable:
    """A published table as that of one seed, for rules that read errors by seed; one number has no interval."""
    return published.with_axes("seed")


def _filled_array(rows: Rows, names: Sequence[str], column: str) -> tuple[dict[str, tuple[int, ...]], np.ndarray]:
    """The axes of rows, and the numbers of a column in their places, NaN where there is none."""
    axes = {name: tuple(sorted({int(row[name]) for row in rows})) for name in names}
    array = np.full([len(values) for values in axes.values()], np.nan)
    for row in rows:
        place = tuple(values.index(int(row[name])) for name, values in axes.items())
        array[place] = float(row[column] or "nan")
    return axes, array


def _csv_rows(file: str, column: str, name: str) -> Rows:
    lines = (files("headcount.papers") / "data" / file).read_text().splitlines()
    return [row for row in csv.DictReader(lines) if row[column] == name]


def _source(table: str) -> str:
    return f"Table {table.removeprefix('table')}, {FIRST_PAPER}"
