"""Tables and lists that fit a terminal of any width without breaking a word."""

import re
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

GAP = 2
"""Columns between two columns of a table without a box, its padding."""
MAX_HIGHLIGHTED = 10_000
"""Characters: the time that highlighting takes grows with the square of a long word."""
MIN_TEXT = 24
"""Columns that a text needs beside its name; with fewer it stands below."""


@dataclass(frozen=True)
class _Column:
    name: str
    justify: Literal["left", "right"]


@dataclass
class FittedTable:
    """A table whose cells are never wrapped: columns that do not fit go below, after the first ones again.

    Args:
        keys: How many of the first columns name a row, and are repeated.
    """

    keys: int = 1
    columns: list[_Column] = field(default_factory=list)
    rows: list[tuple[tuple[Text, ...], str | None]] = field(default_factory=list)

    def add_column(self, name: str, *, justify: Literal["left", "right"] = "left") -> None:
        self.columns.append(_Column(name, justify))

    def add_row(self, *cells: Text | str, style: str | None = None) -> None:
        """Cells are texts, or markup."""
        texts = tuple(cell if isinstance(cell, Text) else Text.from_markup(cell) for cell in cells)
        self.rows.append((texts, style))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        for place, block in enumerate(self._blocks(options.max_width)):
            if place:
                yield ""
            yield self._table(block)

    def _widths(self) -> list[int]:
        headers = [Text.from_markup(column.name) for column in self.columns]
        cells = [headers, *(row for row, _ in self.rows)]
        return [max(_width(row[place]) for row in cells if place < len(row)) for place in range(len(self.columns))]

    def _blocks(self, width: int) -> Iterator[list[int]]:
        """The places of the columns that stand beside each other."""
        widths = self._widths()
        first = list(range(min(self.keys, len(widths))))
        taken = sum(widths[place] + GAP for place in first)
        block, room = [], width - taken
        for place in range(len(first), len(widths)):
            if block and room < widths[place] + GAP:
                yield [*first, *block]
                block, room = [], width - taken
            block.append(place)
            room -= widths[place] + GAP
        yield [*first, *block]

    def _table(self, block: list[int]) -> Table:
        view = Table(box=None)
        for place in block:
            view.add_column(self.columns[place].name, justify=self.columns[place].justify, no_wrap=True)
        for row, style in self.rows:
            view.add_row(*(row[place] for place in block if place < len(row)), style=style)
        view.min_width = view.width = sum(self._widths()[place] + GAP for place in block)
        return view


@dataclass(frozen=True)
class Prose:
    """Markup as lines of whole words; `indent` columns are left free before each.

    A no-break space holds two words together, and is written as a space.
    """

    markup: str
    indent: int = 0

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        text = Text.from_markup(self.markup)
        if len(text) <= MAX_HIGHLIGHTED:
            console.highlighter.highlight(text)
        for paragraph in text.split("\n", allow_blank=True):
            starts = _line_starts(paragraph.plain, max(1, options.max_width - self.indent))
            for line in paragraph.divide(starts):
                line.rstrip()
                line.plain = line.plain.replace("\xa0", " ")
                yield _line(" " * self.indent, line)


@dataclass(frozen=True)
class Facts:
    """Names and what is said of them: beside each other, or below where the terminal is narrow."""

    rows: tuple[tuple[str, str], ...]
    name_style: str = "dim"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        if not self.rows:
            return
        names = max(cell_len(name) for name, _ in self.rows)
        room = options.max_width - names - 4
        longest = max((cell_len(word) for _, text in self.rows for word in text.split()), default=0)
        beside = room >= max(MIN_TEXT, longest)
        for name, text in self.rows:
            lines = _wrapped(text, room if beside else options.max_width - 4)
            if beside:
                for place, line in enumerate(lines):
                    yield _line((f" {name if place == 0 else '':>{names}}  ", self.name_style), line)
            else:
                yield _line((f" {name}", self.name_style))
                for line in lines:
                    yield _line(f"    {line}")


def facts(rows: Iterable[tuple[str, str]]) -> Facts:
    """Names and what is said of them."""
    return Facts(tuple(rows))


def _line_starts(text: str, width: int) -> list[int]:
    """Where lines begin, but the first."""
    starts, begin, at = [], 0, 0
    for word in re.findall(r"[ \t]*[^ \t]+", text):
        end = at + len(word)
        if at > begin and cell_len(text[begin:end].strip()) > width:
            begin = at + len(word) - len(word.lstrip())
            starts.append(begin)
        at = end
    return starts


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(1, width), break_long_words=False, break_on_hyphens=False) or [""]


def _line(*parts: Any) -> Text:
    return Text.assemble(*parts, no_wrap=True, overflow="ignore")


def _width(text: Text) -> int:
    return max((cell_len(line) for line in text.plain.split("\n")), default=0)
