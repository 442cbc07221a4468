"""The numbers the papers printed or plotted, carried as data."""

import csv
import functools
from importlib.resources import files

import numpy as np

from ..answer import NMSE, ErrorTable, Metric

FIRST_PAPER = "arXiv 2510.06662"
SECOND_PAPER = "arXiv 2407.16153"
PLOT_AXES = ("rank", "layers", "multiplier", "dim", "length")


@functools.cache
def published_table(table: str, *, statistic: str) -> ErrorTable:
    """Errors of a table of the first paper, over heads and length, by its name in the file, such as table2."""
    values, deviation = _first_paper(table)
    axes = {axis: tuple(sorted({place[i] for place in values})) for i, axis in enumerate(("heads", "length"))}
    return ErrorTable(
        axes=axes,
        errors=_filled(axes, values),
        deviation=_filled(axes, deviation),
        source=_source(table),
        statistic=statistic,
    )


@functools.cache
def published_accuracies(table: str, metric: Metric) -> ErrorTable:
    """A table of mean accuracies, in per cent or as shares, as shares of wrong answers."""
    values, _ = _first_paper(table)
    unit = 100 if max(values.values()) > 1 else 1
    axes = {axis: tuple(sorted({place[i] for place in values})) for i, axis in enumerate(("heads", "length"))}
    errors = 1 - _filled(axes, values) / unit
    return ErrorTable(axes=axes, errors=errors, metric=metric, source=_source(table), statistic="mean")


@functools.cache
def published_points(figure: str) -> ErrorTable | None:
    """Points that were read off a plot of the second paper, all without positions; None where there are none."""
    rows = [row for row in _rows("rank_figures.csv") if row["figure"] == figure]
    if not rows:
        return None
    values = {tuple(int(row[axis]) for axis in PLOT_AXES): float(row["value"]) for row in rows}
    axes = {axis: tuple(sorted({place[i] for place in values})) for i, axis in enumerate(PLOT_AXES)}
    errors = _filled(axes, values)[..., None]
    return ErrorTable(axes=axes | {"positions": ("none",)}, errors=errors, metric=NMSE, source=SECOND_PAPER)


def one_seed(published: ErrorTable) -> ErrorTable:
    """A published table as that of one seed, for rules that read errors by seed; one number has no interval."""
    return published.with_axes("seed")


def _first_paper(table: str) -> tuple[dict[tuple[int, ...], float], dict[tuple[int, ...], float]]:
    """Values and standard deviations of a table by heads and length."""
    rows = [row for row in _rows("paper_tables.csv") if row["table"] == table]
    values = {(int(row["heads"]), int(row["length"])): float(row["value"]) for row in rows}
    printed = {(int(row["heads"]), int(row["length"])): float(row["std"]) for row in rows if row["std"]}
    return values, printed


def _filled(axes: dict[str, tuple[int, ...]], values: dict[tuple[int, ...], float]) -> np.ndarray:
    """The values in their places, NaN elsewhere."""
    array = np.full([len(along) for along in axes.values()], np.nan)
    for place, value in values.items():
        array[tuple(along.index(at) for along, at in zip(axes.values(), place, strict=True))] = value
    return array


def _rows(name: str) -> list[dict[str, str]]:
    lines = (files("headcount.papers") / "data" / name).read_text().splitlines()
    return list(csv.DictReader(lines))


def _source(table: str) -> str:
    return f"Table {table.removeprefix('table')}, {FIRST_PAPER}"
