"""Documents as a terminal prints them."""

import io

from rich.console import Console

from headcount.report.document import Document, Entry, Grid, NamedFacts
from headcount.report.render.terminal import print_document


def printed(document: Document, *, colour: bool = False, width: int = 160) -> str:
    """The whole document, on a terminal of this width."""
    text = io.StringIO()
    console = Console(file=text, width=width, force_terminal=colour, highlight=False)
    print_document(document, console, console)
    return text.getvalue()


def error_grids(document: Document) -> list[Grid]:
    """The grids of errors, one per draw of the data."""
    return [grid for grid in document.blocks_of(Grid) if grid.errors]


def bests(grid: Grid) -> list[list[str]]:
    """The first words of every entry, but the names of the rows."""
    return [[each.words for each in row[1:] if isinstance(each, Entry)] for row in grid.rows]


def evidence(document: Document) -> dict[str, str]:
    """What is said under each name."""
    return dict(row for block in document.blocks_of(NamedFacts) for row in block.rows)
