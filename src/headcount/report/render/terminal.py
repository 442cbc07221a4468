"""Documents for a terminal of any width. No word and no command is broken, and columns that do not fit go below."""

import math
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text as Line

from ...answer.claim import ClaimResult, Verdict
from ...answer.next_steps import NextStep
from ..chart import HeatMap
from ..document import Claims, Document, Entry, Grid, NamedFacts, Notes, Steps, Text, Words, text

GAP = 2
"""Columns between two columns of a table without a box."""
MIN_PROSE = 24
"""Columns that prose needs to stand next to something; with fewer it stands below."""
STYLES = {"best": "", "solved": "green", "smallest": "bold green", "differs": "bold"}
"""How roles of entries look; other styles are those of rich."""
VERDICTS = {Verdict.HOLDS: "green", Verdict.DIFFERS: "red", Verdict.UNDECIDED: "yellow"}
BLOCKS = " \u2591\u2592\u2593\u2588"
"""From nothing to the largest."""


def print_document(document: Document, console: Console, last: Console | None) -> None:
    """Print a document, its closing line on the console `last`, where it is wanted."""
    for line in _document_lines(document, console.width):
        console.print(line, no_wrap=True, overflow="ignore", crop=False)
    if document.closing and last is not None:
        last.print(document.closing, style="bold", markup=False, highlight=False)


def _document_lines(document: Document, width: int) -> Iterator[RenderableType]:
    warning = [text((document.warning, "yellow"))] if document.warning else []
    headline = [text((document.headline, "bold"))] if document.headline and not document.closing else []
    before: Any = None
    for block in (*warning, *document.blocks, *headline):
        lines = [] if getattr(block, "shown", "always") == "page" else list(_block(block, width))
        if lines and before is not None and (type(before) is not type(block) or isinstance(block, Grid)):
            yield ""
        before = block if lines else before
        yield from lines
    if document.closing and before is not None:
        yield ""


def _block(block: Any, width: int) -> Iterator[RenderableType]:
    match block:
        case Text(words, _, True):
            yield _unbroken_line(*words)
        case Text(words, indent):
            yield from _prose(width, *words, indent=indent)
        case Grid(folded=False):
            yield from _grid_lines(block, width)
        case HeatMap() if block.words and not block.counts:
            yield from _grid_lines(_shades(block), width)
        case NamedFacts(rows):
            yield from _facts(rows, width)
        case Notes(items, _, name):
            yield from _facts([(name, item) for item in items], width)
        case Claims(results):
            for result in results:
                yield from _claim(result, width)
        case Steps(steps):
            yield from _steps(steps, width)
        case _:
            pass  # for pages


def _prose(width: int, *words: Words, indent: int = 0) -> Iterator[RenderableType]:
    """Yield lines of whole words. A no-break space holds two words together, and is written as a space."""
    for paragraph in Line.assemble(*words).split("\n", allow_blank=True):
        for line in paragraph.divide(_line_starts(paragraph.plain, max(1, width - indent))):
            line.rstrip()
            line.plain = line.plain.replace("\xa0", " ")
            yield _unbroken_line(" " * indent, line)


def _line_starts(words: str, width: int) -> list[int]:
    """Return where lines begin, but the first."""
    starts, begin, at = [], 0, 0
    for word in words.split(" "):
        if at > begin and cell_len(words[begin : at + len(word)].strip()) > width:
            begin = at
            starts.append(begin)
        at += len(word) + 1
    return starts


def _facts(rows: Sequence[tuple[str, str]], width: int) -> Iterator[RenderableType]:
    """Yield names, and what is said of them at their right, or below where the terminal is narrow."""
    names = max((cell_len(name) for name, _ in rows), default=0)
    room = width - names - 4
    longest = max((cell_len(word) for _, words in rows for word in words.split()), default=0)
    at_right = room >= max(MIN_PROSE, longest)
    for name, words in rows:
        lines = _wrapped(words, room if at_right else width - 4)
        if at_right:
            heads = [name, *[""] * (len(lines) - 1)]
            yield from (
                _unbroken_line((f" {head:>{names}}  ", "dim"), line) for head, line in zip(heads, lines, strict=True)
            )
        else:
            yield _unbroken_line((f" {name}", "dim"))
            yield from (_unbroken_line(f"    {line}") for line in lines)


def _grid_lines(grid: Grid, width: int) -> Iterator[RenderableType]:
    """Yield a table; columns that do not fit stand below, after the ones that name the rows again."""
    if grid.title:
        yield from _prose(width, grid.title)
    align = grid.align or f"l{'r' * (len(grid.columns) - 1)}"
    cells = [[Line(name) for name in grid.columns], *(list(map(_entry, row)) for row in grid.rows)]
    natural = [max(_width(row[place]) for row in cells if place < len(row)) + GAP for place in range(len(align))]
    needed = [min(each, MIN_PROSE + GAP) if kind == "p" else each for each, kind in zip(natural, align, strict=True)]
    keys = list(range(grid.keys))
    blocks: list[list[int]] = [[]]
    for column in range(grid.keys, len(align)):
        if blocks[-1] and sum(needed[place] for place in (*keys, *blocks[-1], column)) > width:
            blocks.append([])
        blocks[-1].append(column)
    for place, block in enumerate(blocks):
        if place:
            yield ""
        shown = keys + block
        room = width - sum(natural[column] for column in shown if align[column] != "p") - GAP
        widths = {column: natural[column] - GAP for column in shown}
        widths |= {column: max(MIN_PROSE, min(room, widths[column])) for column in shown if align[column] == "p"}
        table = Table(box=None, width=sum(widths.values()) + GAP * len(shown))
        for column in shown:
            side: Literal["left", "right"] = "right" if align[column] == "r" else "left"
            table.add_column(cells[0][column], justify=side, no_wrap=align[column] != "p", width=widths[column])
        for k, row in enumerate(cells[1:]):
            entries = (row[column] for column in shown if column < len(row))
            table.add_row(*entries, style="bold green" if k in grid.marked else None)
        yield table


def _entry(entry: str | Entry) -> Line:
    if isinstance(entry, str):
        return Line(entry)
    return Line.assemble((entry.words, STYLES.get(entry.style, entry.style)), entry.aside)


def _shades(chart: HeatMap) -> Grid:
    """Write a heat map as words and blocks, the darker the larger."""
    shares = chart.colour_shares()

    def entry(i: int, j: int) -> str:
        dark = BLOCKS[min(len(BLOCKS) - 1, int(shares[i, j] * len(BLOCKS)))] if math.isfinite(shares[i, j]) else ""
        return f"{dark}{chart.words[i][j]}"

    return Grid(
        title=f"{chart.title}: {chart.caption}",
        columns=(f"{chart.row_label}, {chart.column_label}", *map(str, chart.columns)),
        rows=tuple((str(row), *(entry(i, j) for j in range(len(chart.columns)))) for i, row in enumerate(chart.rows)),
        align="r" * (1 + len(chart.columns)),
    )


def _claim(result: ClaimResult, width: int) -> Iterator[RenderableType]:
    """Yield a verdict and its statement; below it the evidence, and that of the same rule on published numbers."""
    verdicts: list[Words] = [(result.verdict, VERDICTS[result.verdict])]
    if result.reference is not None:
        verdict = result.reference.verdict
        verdicts += [" (published numbers: ", (verdict, VERDICTS[verdict]), ")"]
    yield from _prose(width, *verdicts, f"  {result.statement}", indent=1)
    yield from _prose(width, (result.evidence, "dim"), indent=4)
    if result.reference is not None:
        yield from _prose(width, (f"published numbers: {result.reference.evidence}", "dim"), indent=4)


def _steps(steps: Sequence[NextStep], width: int) -> Iterator[RenderableType]:
    """Yield what to do next. Lines of a command that is too wide end in a backslash between its words."""
    if steps:
        yield _unbroken_line(("Next", "bold"))
    for step in steps:
        yield from _prose(width, f"{step.why}{':' if step.command else '.'}", indent=2)
        lines = [f"    {'  ' * (k > 0)}{each}" for k, each in enumerate(_wrapped(step.command, width - 8))]
        ends = [*[" \\"] * (len(lines) - 1), ""]
        if step.command:
            yield from (_unbroken_line((f"{line}{end}", "cyan")) for line, end in zip(lines, ends, strict=True))


def _wrapped(words: str, width: int) -> list[str]:
    return textwrap.wrap(words, max(1, width), break_long_words=False, break_on_hyphens=False) or [""]


def _unbroken_line(*words: Any) -> Line:
    return Line.assemble(*words, no_wrap=True, overflow="ignore")


def _width(line: Line) -> int:
    return max(map(cell_len, line.plain.split("\n")))
