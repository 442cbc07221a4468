"""Tables as text: .csv and .tsv, plain or gzipped, with one line of column names. An error names line and column.

They are read by Python's csv module, in blocks: pandas fills short rows up, and forgets on which line a cell is.
"""

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
from .examples import LoadedExamples, Wanted, ending
from .lines import bad_line, raw_lines
from .tables import examples_of_table

DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+")
BLOCK_CELLS, BLOCK_ROWS = 2**16, 16
"""Cells that are in memory as text at a time, and the fewest rows of them."""
WORD_BYTES = 160
"""Of memory for a word that is kept once, its letters apart: the object, and its place in a dictionary."""
MAX_WHOLE = 2**53
"""Up to which whole numbers are exact as floats."""


def read_text_table(path: Path, wanted: Wanted) -> LoadedExamples:
    """Return the examples of a .csv or .tsv."""
    rows = _numbered_rows(path)
    line, header = next(rows, (0, []))
    require(line > 0, f"{path} is empty; write a line of column names, then one row per line.")
    names = _column_names(path, line, header)
    columns = [TextColumn(path, name, is_id=name == wanted.sequence) for name in names]
    lines = array("q")
    while block := list(itertools.islice(rows, max(BLOCK_ROWS, BLOCK_CELLS // len(names)))):
        for line, row in block:
            if len(row) != len(names):
                bad_line(path, line, f"{len(row)} cells, but the header has {len(names)} columns")
        new = [line for line, _ in block]
        lines.extend(new)
        for column, cells in zip(columns, zip(*(row for _, row in block), strict=True), strict=True):
            column.add_cells(new, [cell.strip() for cell in cells])
        require_fits(path, sum(column.size for column in columns))
    require(len(lines) > 0, f"{path} has a header but no rows; it needs at least one row per example.")
    values = {column.name: np.concatenate(column.blocks) for column in columns}
    return examples_of_table(path, values, wanted, row=lambda place: f"line {lines[place]}")


def _numbered_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Return the rows of cells with their line; the delimiter is the one that the header has most often."""
    lines = raw_lines(path, kept=True)
    start, first = next(((line, text) for line, text in lines if text.strip()), (0, ""))
    delimiter = "\t" if ending(path).startswith(".tsv") else max(",;\t", key=first.count)
    reader = csv.reader(itertools.chain([first], (text for _, text in lines)), delimiter=delimiter, strict=True)
    try:
        for row in reader:
            if len(row) > 1 or "".join(row).strip():  # not a blank line
                yield start + reader.line_num - 1, row
    except csv.Error as error:
        fault = f"not a row of a table ({error})"
        bad_line(path, start + reader.line_num - 1, fault, "close its quotes, or remove the line")


def _column_names(path: Path, line: int, header: list[str]) -> list[str]:
    require_within(f"{path} has {len(header):,} columns", len(header), "HEADCOUNT_MAX_COLUMNS")
    names = [name.strip() for name in header]
    counted = names == [str(place) for place in range(len(names))]  # pandas names columns so
    if all(cell_number(name) is not None for name in names) and not counted:
        bad_line(path, line, "only numbers, where a line of column names is needed", "add one")
    counts = Counter(names)
    for place, name in enumerate(names, start=1):
        if not name:
            bad_line(path, line, f"column {place} has no name", "name it, or leave an index of pandas out: index=False")
        if counts[name] > 1:
            bad_line(path, line, f'column {place} has the name "{name[:60]}" of another column', "rename one")
        if not name.isprintable():
            bad_line(path, line, f"column {place} has a name that cannot be printed", "save the table as text")
    require(len(names) > 1, f'{path} has one column, "{names[0][:60]}"; sequences and targets are needed.')
    return names


class TextColumn:
    """A column that is read in blocks: all numbers, or all words, as its first cell is; an id is always a word.

    Numbers are kept as numbers, and each word once; `size` is their memory.
    """

    def __init__(self, path: Path, name: str, *, is_id: bool):
        self.path, self.name, self.is_id = path, name, is_id
        self.size = 0
        self.blocks: list[np.ndarray] = []
        self._first = (0, "")  # of the cells that are not empty
        self._words: dict[str, str | None] = {}

    def add_cells(self, lines: list[int], cells: list[str]) -> None:
        """Take more cells, from these lines."""
        if not self._first[1]:
            self._first = next(((line, cell) for line, cell in zip(lines, cells, strict=True) if cell), (0, ""))
        is_words = self.is_id or (bool(self._first[1]) and cell_number(self._first[1]) is None)
        block = self._as_words(lines, cells) if is_words else self._as_numbers(lines, cells)
        self.blocks.append(block)
        self.size += block.nbytes

    def _as_words(self, lines: list[int], cells: list[str]) -> np.ndarray:
        new = dict.fromkeys(word for word in cells if word not in self._words)
        for word in new:
            is_other = not (self.is_id or " " in self._first[1]) and (
                cell_number(word) is not None or DECIMAL_COMMA.fullmatch(word)
            )
            if is_other or (self.is_id and not word):
                self._refuse(lines[cells.index(word)], word)
        self._words |= {word: word or None for word in new}
        self.size += sum(WORD_BYTES + len(word) for word in new)
        return np.array(list(map(self._words.__getitem__, cells)), object)  # labels and names repeat

    def _as_numbers(self, lines: list[int], cells: list[str]) -> np.ndarray:
        numbers = np.array(list(map(cell_number, cells)), float)  # NaN of None
        wrong = ~np.isfinite(numbers) & [bool(cell) and cell.lower() != "nan" for cell in cells]
        if wrong.any():
            place = int(np.argmax(wrong))
            self._refuse(lines[place], cells[place])
        is_whole = set("".join(cells)).isdisjoint(".eE") and bool(np.all(np.abs(numbers) < MAX_WHOLE))  # no NaN
        return numbers.astype(np.int64) if is_whole else numbers

    def _refuse(self, line: int, cell: str) -> NoReturn:
        first = f'"{self._first[1][:40]}" on line {self._first[0]} is'
        if not cell:
            fault = "the cell is empty"
        elif DECIMAL_COMMA.fullmatch(cell):
            fault = f'"{cell}" has a decimal comma; write decimal points'
        elif cell_number(self._first[1]) is None:
            fault = f'"{cell[:40]}" is a number, and {first} a word'
        elif cell_number(cell) is None:
            fault = f'"{cell[:40]}" is not a number, and {first} one'
        else:
            fault = f"{cell} is not a finite number"
        bad_line(self.path, line, f"column {self.name}: {fault}", "correct it, or remove the row or the column")


def cell_number(cell: str) -> float | None:
    """Return the number in a cell, None if it is text."""
    try:
        return None if "_" in cell else float(cell)  # 1_000 is a number to Python alone
    except ValueError:
        return None
