"""Tables as text: .csv and .tsv, plain or gzipped, with one line of column names. An error names line and column."""

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .._errors import require
from .conversions import ending
from .examples import Arrays, Wanted
from .lines import bad_line, numbered_lines
from .tables import Columns, Table, examples_of_table

DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+")
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}


def read_text_table(path: Path, wanted: Wanted) -> Arrays:
    """The examples of a .csv or .tsv."""
    return examples_of_table(path, _table(path, wanted), wanted)


def _table(path: Path, wanted: Wanted) -> Table:
    rows = _rows(path)
    line, header = next(rows, (0, []))
    require(line > 0, f"{path} is empty.")
    _check_header(path, line, header)
    lines, cells = [], []
    for line, row in rows:
        if len(row) != len(header):
            bad_line(path, line, f"{len(row)} cells, but the header has {len(header)} columns{_other(row)}")
        lines.append(line)
        cells.append(row)
    require(len(cells) > 0, f"{path} has a header but no rows.")
    columns: Columns = {
        name.strip(): _column(path, name.strip(), lines, list(values), mixed=name.strip() == wanted.sequence)
        for name, values in zip(header, zip(*cells, strict=True), strict=True)
    }
    return Table(columns, row=lambda place: f"line {lines[place]}")


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The rows of cells with their line; the delimiter is the one that the header has most often."""
    current = 0

    def texts() -> Iterator[str]:
        nonlocal current
        for number, text in numbered_lines(path):
            current = number
            yield text

    lines = texts()
    first = next(lines, None)
    if first is None:
        return
    tab = ending(path).startswith(".tsv")
    delimiter = "\t" if tab else max(DELIMITERS, key=first.count)

    def with_first() -> Iterator[str]:
        yield first
        yield from lines

    try:
        for row in csv.reader(with_first(), delimiter=delimiter, strict=True):
            yield current, row
    except csv.Error as error:
        bad_line(path, current, f"not a row of a table ({error})")


def _other(row: list[str]) -> str:
    """A hint where a row seems to be cut at another delimiter."""
    other = next((name for mark, name in DELIMITERS.items() if len(row) == 1 and mark in row[0]), None)
    return "" if other is None else f"; {other} divide it"


def _check_header(path: Path, line: int, header: list[str]) -> None:
    names = [name.strip() for name in header]
    counted = names == [str(place) for place in range(len(names))]  # pandas names columns so
    if all(number(name) is not None for name in names) and not counted:
        bad_line(path, line, "only numbers, where a line of column names is needed")
    for place, name in enumerate(names, start=1):
        if not name:
            index = " (an index that pandas wrote? use to_csv(..., index=False))" if place == 1 else ""
            bad_line(path, line, f"column {place} has no name{index}")
        if name in names[: place - 1]:
            bad_line(path, line, f'column {place} has the name "{name[:60]}" of another column')
        if not name.isprintable():
            bad_line(path, line, f"column {place} has a name that cannot be printed: not a text file")
    require(len(names) > 1, f'{path} has one column, "{names[0][:60]}"; sequences and targets are needed.')


def _column(path: Path, name: str, lines: list[int], cells: list[str], *, mixed: bool) -> np.ndarray:
    """Whole numbers, numbers or text; no cell may be empty, and unless `mixed` none may be text among numbers."""
    cells = [cell.strip() for cell in cells]
    try:
        values = np.array([float(cell) for cell in cells])
        plain = "_" not in "".join(cells)  # 1_000 is a number to Python alone
    except ValueError:
        values, plain = np.empty(0), False
    if plain:
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            bad_line(path, lines[bad[0]], f"column {name}: {cells[bad[0]]} is not a finite number")
        return _whole(cells, values)
    numbers = [number(cell) for cell in cells]
    for line, cell in zip(lines, cells, strict=True):
        if not cell:
            bad_line(path, line, f"column {name}: the cell is empty")
        if DECIMAL_COMMA.fullmatch(cell) and not mixed:
            bad_line(path, line, f'column {name}: "{cell}" has a decimal comma; write decimal points')
    if not mixed and any(value is not None for value in numbers):
        place = next(place for place, value in enumerate(numbers) if (value is None) != (numbers[0] is None))
        text = next(place for place in (place, 0) if numbers[place] is None)
        bad_line(path, lines[text], f'column {name}: "{cells[text][:40]}" is not a number, as others in it are')
    return np.array(cells, str)


def number(cell: str) -> float | None:
    """The number in a cell, None if it is text."""
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None


def _whole(cells: list[str], values: np.ndarray) -> np.ndarray:
    """As integers, where every cell is written as one."""
    if all(cell.lstrip("+-").isdigit() for cell in cells) and np.all(np.abs(values) < 2**53):
        return values.astype(np.int64)
    return values
