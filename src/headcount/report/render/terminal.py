"""Sections as text for a terminal; a view of one verb is beside that verb in `cli/`."""

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ...analysis import Verdict
from ..section import Grid, Section
from .rows import ErrorCell, ErrorRows, error_rows, evidence_rows
from .words import number, settings_line, spoken_time

__all__ = ["section_view", "spoken_time"]

_MARKS = {
    Verdict.HOLDS: "[green]holds[/green]",
    Verdict.DIFFERS: "[red]differs[/red]",
    Verdict.UNDECIDED: "[yellow]undecided[/yellow]",
}


def section_view(section: Section) -> RenderableType:
    """A section: its settings, its errors beside the published ones, its evidence, grids and claims, its headline."""
    parts: list[RenderableType] = []
    if section.settings is not None:
        name, rest = settings_line(section.settings)
        parts += [f"[bold]{escape(name)}[/bold]: {escape(rest)}", ""]
    errors = error_rows(section)
    if errors is not None and errors.source:
        heading = f"{errors.label}, and in parentheses the published {errors.statistic} over seeds"
        parts += [heading, comparison_view(errors), ""]
    elif errors is not None:
        parts += [f"{errors.label}: {errors.judged}", errors_view(errors), ""]
    if section.settings is not None and section.answer is not None:
        sentence = f"[bold]{escape(section.answer.sentence)}[/bold]"
        return Group(*parts, facts(evidence_rows(section)), "", sentence)
    for grid in section.grids:
        parts += [escape(grid.title), grid_view(grid), ""]
    claims = Table(box=None, show_header=False)
    for claim in section.claims:
        claims.add_row(_MARKS[claim.verdict], escape(claim.statement))
        claims.add_row("", f"[dim]{escape(claim.evidence)}[/dim]")
    return Group(*parts, claims, f"[bold]{escape(section.headline)}[/bold]", "")


def errors_view(errors: ErrorRows) -> Table:
    """Errors by head count. The row of the answer, or the cells that count as solved, are green."""
    view = _by_heads(errors)
    for row in errors.rows:
        style = "bold green" if row.enough else None
        view.add_row(str(row.value), *(_error(cell, detailed=errors.detailed) for cell in row.cells), style=style)
    return view


def comparison_view(errors: ErrorRows) -> Table:
    """Errors by head count with the published number under each."""
    of_means = errors.statistic == "mean"
    labels = "best\nmean\n  \u00b1\n(paper)\n(  \u00b1)" if of_means else "best\n(paper)"
    view = _by_heads(errors, "")
    for row in errors.rows:
        cells = []
        for cell in row.cells:
            measured = [cell.best, cell.mean, cell.std] if of_means else [cell.best]
            published = [cell.published, cell.published_std] if of_means else [cell.published]
            cells.append("\n".join([*map(number, measured), *(f"({number(value)})" for value in published)]))
        view.add_row(str(row.value), labels, *cells, style="bold green" if row.enough else None)
    return view


def grid_view(grid: Grid) -> Table:
    """A grid of words and numbers; the first column names the rows."""
    view = Table(box=None)
    for place, column in enumerate(grid.columns):
        view.add_column(escape(column), justify="right" if place else "left")
    for row in grid.rows:
        view.add_row(*map(escape, row))
    return view


def facts(rows: Iterable[tuple[str, str]]) -> Table:
    """Names and what is said of them, two columns."""
    view = Table(box=None, show_header=False)
    view.add_column(justify="right", style="dim")
    view.add_column()
    for row in rows:
        view.add_row(*map(escape, row))
    return view


def _by_heads(errors: ErrorRows, *more: str) -> Table:
    view = Table(box=None)
    view.add_column(errors.axis, justify="right")
    for column in more:
        view.add_column(column)
    for column in errors.columns:
        view.add_column(column, justify="right")
    return view


def _error(cell: ErrorCell, *, detailed: bool) -> RenderableType:
    if detailed:
        return f"{number(cell.best)} ({number(cell.median)}){f' {cell.lost} lost' if cell.lost else ''}"
    return Text(number(cell.best), "bold green" if cell.smallest else "green" if cell.solved else "")
