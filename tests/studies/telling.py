"""A section shown in every way there is."""

import io
from dataclasses import replace

from rich.console import Console

from headcount.report.render.html import page
from headcount.report.render.terminal import section_view
from headcount.report.section import Section

from ..report.laws import check_page


def show(section: Section) -> str:
    """What its page says; that and a terminal say the headline, every claim and every number of its grids."""
    # Drawing takes most of the time, and any chart can be drawn: tests/report/test_figure.py.
    said = check_page(page([replace(section, charts=())], folder="results")).said
    terminal = io.StringIO()
    Console(file=terminal, width=400).print(section_view(section))
    words = [section.headline, *(claim.statement for claim in section.claims)]
    for grid in section.grids:
        words += [grid.title, *grid.columns, *(cell for row in grid.rows for cell in row)]
    for each in words:
        assert each in said
        assert each in terminal.getvalue()
    assert all(claim.evidence in said for claim in section.claims)
    assert all(note in said for note in section.notes)
    return said
