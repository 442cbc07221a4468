"""Tables as text: .csv and .tsv, plain or gzipped, with one line of column names. An error names line and column."""

import csv
import itertools
import re
from array import array
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import numpy as np

from .._limits import require_fits, require_within
from ..errors import require
from .conversions import ending
from .examples import Arrays, Wanted
from .lines import bad_line, raw_lines
from .tables import Table, examples_of_table

DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+")
BLOCK_ROWS = 1024
WORD_BYTES = 160
"""Of memory for a word that is kept once, its letters apart: the object, and its place in a dictionary."""
MAX_WHOLE = 2**53
"""Up to which whole numbers are exact as floats."""
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}


def read_text_table(path: Path, wanted: Wanted) -> Arrays:
    """The examples of a .csv or .tsv."""
    return examples_of_table(path, _table(path, wanted), wanted)


def _table(path: Path, wanted: Wanted) -> Table:
    rows = _rows(path)
    line, header = next(rows, (0, []))
    require(line > 0, f"{path} is empty; write a line of column names, then one row per line.")
    require_within(f"{path} has {len(header):,} columns", len(header), "HEADCOUNT_MAX_COLUMNS")
    _check_header(path, line, header)
    names = [name.strip() for name in header]
    columns = [TextColumn(path, name, keeps_text=name == wanted.sequence) for name in names]
    lines = array("q")
    while block := list(itertools.islice(rows, BLOCK_ROWS)):
        for line, row in block:
            if len(row) != len(header):
                bad_line(
                    path,
                    line,
                    f"{len(row)} cells, but the header has {len(header)} columns{_other(row)}",
                    "correct or remove the row",
                )
        new = [line for line, _ in block]
        lines.extend(new)
        for column, cells in zip(columns, zip(*(row for _, row in block), strict=True), strict=True):
            column.add(new, [cell.strip() for cell in cells])
        require_fits(path, sum(column.size for column in columns))
    require(len(lines) > 0, f"{path} has a header but no rows; it needs at least one row per example.")
    return Table({column.name: column.values() for column in columns}, row=lambda place: f"line {lines[place]}")


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The rows of cells with their line; the delimiter is the one that the header has most often."""
    current = 0

    def texts() -> Iterator[str]:
        nonlocal current
        for number, text in raw_lines(path, kept=True):
            current = number
            yield text

    lines = texts()
    first = next((text for text in lines if text.strip()), None)
    if first is None:
        return
    tab = ending(path).startswith(".tsv")
    delimiter = "\t" if tab else max(DELIMITERS, key=first.count)
    try:
        for row in csv.reader(itertools.chain([first], lines), delimiter=delimiter, strict=True):
            if len(row) > 1 or "".join(row).strip():  # not a blank line
                yield current, row
    except csv.Error as error:
        bad_line(path, current, f"not a row of a table ({error})", "close its quotes, or remove the line")


def _other(row: list[str]) -> str:
    """A hint where a row seems to be cut at another delimiter."""
    other = next((name for mark, name in DELIMITERS.items() if len(row) == 1 and mark in row[0]), None)
    return "" if other is None else f"; {other} divide it"


def _check_header(path: Path, line: int, header: list[str]) -> None:
    names = [name.strip() for name in header]
    counted = names == [str(place) for place in range(len(names))]  # pandas names columns so
    if all(number(name) is not None for name in names) and not counted:
        bad_line(path, line, "only numbers, where a line of column names is needed", "add one")
    seen: set[str] = set()
    for place, name in enumerate(names, start=1):
        if not name:
            index = " (an index that pandas wrote? use to_csv(..., index=False))" if place == 1 else ""
            bad_line(path, line, f"column {place} has no name{index}", "name it")
        if name in seen:
            bad_line(path, line, f'column {place} has the name "{name[:60]}" of another column', "rename one")
        if not name.isprintable():
            bad_line(
                path, line, f"column {place} has a name that cannot be printed: not a text file", "save it as text"
            )
        seen.add(name)
    require(len(names) > 1, f'{path} has one column, "{names[0][:60]}"; sequences and targets are needed.')


class TextColumn:
    """A column that is read in blocks: numbers are kept as numbers, and each word once; `size` is their memory.

    No cell may be empty, and unless the column `keeps_text` none may be text among numbers.
    """

    def __init__(self, path: Path, name: str, *, keeps_text: bool):
        self.path, self.name, self.keeps_text = path, name, keeps_text
        self._numbers: list[np.ndarray] = []
        self._texts: list[str] = []
        self._words: dict[str, str] = {}
        self.size = 0
        self._first: dict[str, tuple[int, str]] = {}  # the first cell of each kind, with its line
        self._counts: Counter[str] = Counter()
        self._whole = True

    def add(self, lines: list[int], cells: list[str]) -> None:
        """Take more cells, from these lines."""
        try:
            if "_" in "".join(cells):  # 1_000 is a number to Python alone
                raise ValueError
            values = [float(cell) for cell in cells]
        except ValueError:
            values = [number(cell) for cell in cells]
        numbers = np.array(values, float)  # None becomes NaN
        if "number" not in self._first or not np.all(np.isfinite(numbers)):  # None and NaN are not finite
            for line, cell, value in zip(lines, cells, values, strict=True):
                self._look(line, cell, value)
        else:
            self._counts["number"] += len(cells)
        if self.keeps_text or self._counts["text"]:
            new = set(cells) - self._words.keys()
            self._words |= zip(new, new, strict=True)
            self._texts += map(self._words.__getitem__, cells)  # labels and names repeat
            self.size += 8 * len(cells) + sum(WORD_BYTES + len(word) for word in new)
        if not self._counts["text"]:
            self._numbers.append(numbers)
            self.size += numbers.nbytes
            is_whole = self._whole and all(cell.lstrip("+-").isdigit() for cell in cells)
            self._whole = is_whole and bool(np.all(np.abs(numbers) < MAX_WHOLE))

    def _look(self, line: int, cell: str, value: float | None) -> None:
        if not cell:
            self._refuse(line, "the cell is empty")
        if DECIMAL_COMMA.fullmatch(cell) and not self.keeps_text:
            self._refuse(line, f'"{cell}" has a decimal comma; write decimal points')
        kind = "text" if value is None else "number"
        self._counts[kind] += 1
        self._first.setdefault(kind, (line, cell))
        if value is not None and not np.isfinite(value):
            self._counts["not finite"] += 1
            self._first.setdefault("not finite", (line, cell))

    def values(self) -> np.ndarray:
        """All cells that were taken: whole numbers, numbers, or text as objects."""
        if not self._counts["text"]:
            if "not finite" in self._first:
                line, cell = self._first["not finite"]
                self._refuse(line, f"{cell} is not a finite number")
            numbers = np.concatenate(self._numbers)
            return numbers.astype(np.int64) if self._whole else numbers
        if self._counts["number"] and not self.keeps_text:
            self._refuse_mixture()
        return np.array(self._texts, object)

    def _refuse_mixture(self) -> NoReturn:
        """Blame the kind of cell that there is less of; "nan" among words is a missing word."""
        is_missing = self._counts["number"] == self._counts["not finite"]
        is_number_odd = is_missing or self._counts["number"] < self._counts["text"]
        line, cell = self._first["number" if is_number_odd else "text"]
        others = "is a number, and others in it are words" if is_number_odd else "is not a number, as others in it are"
        self._refuse(line, f'"{cell[:40]}" {"among words is a missing value" if is_missing else others}')

    def _refuse(self, line: int, fault: str) -> NoReturn:
        bad_line(self.path, line, f"column {self.name}: {fault}", "correct it, or remove the row or the column")


def number(cell: str) -> float | None:
    """The number in a cell, None if it is text."""
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None
