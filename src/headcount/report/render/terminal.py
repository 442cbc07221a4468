"""Sections as text for a terminal; a view of one verb is beside that verb in `cli/`."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import wrap

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.markup import escape
from rich.text import Text

from ...answer import Verdict
from ..chart import HeatMap
from ..section import Grid, Section
from .evidence import evidence_rows
from .fitted import FittedTable, Prose, facts
from .rows import ErrorCell, ErrorRows, error_rows
from .words import number, settings_line

_BLOCKS = " \u2591\u2592\u2593\u2588"
"""From nothing to the largest."""
_MARKS = {
    Verdict.HOLDS: "[green]holds[/green]",
    Verdict.DIFFERS: "[red]differs[/red]",
    Verdict.UNDECIDED: "[yellow]undecided[/yellow]",
}


def section_view(section: Section) -> RenderableType:
    """A study: its errors beside the published ones, grids, claims, headline. An own experiment: all but its answer."""
    if section.trained_model is not None:
        return _trained_model_view(section)
    parts: list[RenderableType] = _warning(section)
    if section.settings is not None:
        parts += [Prose(f"[bold]{escape(section.title)}[/bold]: {escape(settings_line(section.settings))}"), ""]
    errors = error_rows(section)
    if errors is not None:
        published = f", and in parentheses the published {errors.statistic} over seeds"
        judged = Prose(errors.label + (published if errors.source else f": {errors.judged}"))
        parts += [judged, errors_view(errors), ""]
    parts += _grids(section)
    if section.settings is not None:
        return Group(*parts, facts(evidence_rows(section) + _computed_by(section)), "", *_in_words(section))
    for claim in section.claims:
        beside = "" if claim.reference is None else f" (published numbers: {_MARKS[claim.reference.verdict]})"
        parts.append(Prose(f"{_MARKS[claim.verdict]}{beside}  {escape(claim.statement)}", indent=1))
        parts.append(Prose(f"[dim]{escape(claim.evidence)}[/dim]", indent=4))
        if claim.reference is not None:
            parts.append(Prose(f"[dim]published numbers: {escape(claim.reference.evidence)}[/dim]", indent=4))
    computed_by = [Prose(f"[dim]{name}: {escape(words)}[/dim]") for name, words in _computed_by(section)]
    return Group(*parts, Prose(f"[bold]{escape(section.headline)}[/bold]"), *computed_by, "")


def _grids(section: Section) -> list[RenderableType]:
    """The grids that a page does not fold."""
    shown = [grid for grid in section.grids if not grid.folded]
    return [part for grid in shown for part in (Prose(escape(grid.title)), grid_view(grid), "")]


def _trained_model_view(section: Section) -> RenderableType:
    """A trained model: what is missing, heads by importance, its grids, evidence, the answer in words, what to do."""
    parts: list[RenderableType] = [Prose(f"[bold]{escape(section.title)}[/bold]"), "", *_warning(section)]
    for chart in section.charts:
        if isinstance(chart, HeatMap) and not chart.counts:
            parts += [Prose(escape(f"{chart.title}: {chart.caption}")), _shades(chart), ""]
    parts += _grids(section)
    notes = [("does not say", note) for note in section.notes]
    parts += [facts([*evidence_rows(section), *notes]), "", *_in_words(section)]
    return Group(*parts, Prose(f"[bold]{escape(section.headline)}[/bold]"), "")


def _warning(section: Section) -> list[RenderableType]:
    """Why not to trust the section yet; nothing where there is no reason."""
    return [Prose(f"[yellow]{escape(section.warning)}[/yellow]"), ""] if section.warning else []


def _shades(chart: HeatMap) -> FittedTable:
    """A heat map as words and blocks, the darker the larger, a row per line."""
    view = FittedTable()
    view.add_column(f"{chart.row_label}, {chart.column_label}", justify="right")
    for column in chart.columns:
        view.add_column(str(column), justify="right")
    shares = chart.colour_shares()
    for i, row in enumerate(chart.rows):
        cells = [f"{_block(shares[i, j])}{chart.words[i][j]}" for j in range(len(chart.columns))]
        view.add_row(str(row), *map(escape, cells))
    return view


def _block(share: float) -> str:
    if not math.isfinite(share):
        return ""
    return _BLOCKS[min(len(_BLOCKS) - 1, int(share * len(_BLOCKS)))]


def _computed_by(section: Section) -> list[tuple[str, str]]:
    """The back ends of the stored models, as a row of words."""
    backend = "" if section.provenance is None else section.provenance.backend
    return [("back end", backend)] if backend else []


def _in_words(section: Section) -> list[RenderableType]:
    """The answer in words, and what to do next with the commands, which are never broken."""
    parts: list[RenderableType] = [Prose(escape(" ".join(section.prose))), ""] if section.prose else []
    if section.next_steps:
        parts.append("[bold]Next[/bold]")
    for step in section.next_steps:
        parts.append(Prose(escape(f"{step.why}{':' if step.command else '.'}"), indent=2))
        if step.command:
            parts.append(_Command(step.command))
    return [*parts, ""] if section.next_steps else parts


@dataclass(frozen=True)
class _Command:
    """A command to be copied: where it is wider than the terminal, lines end in a backslash between its words."""

    command: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        lines = wrap(
            self.command, options.max_width - 2, initial_indent="    ", subsequent_indent="      ",
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
        for place, line in enumerate(lines):
            yield Text(line if place == len(lines) - 1 else f"{line} \\", "cyan", no_wrap=True, overflow="ignore")


def errors_view(errors: ErrorRows) -> FittedTable:
    """Errors along the main axis, with the published number under each where there is one.

    The row of the answer, or the cells that count as solved, are green.
    """
    of_means = errors.statistic == "mean"
    labels = ["best\nmean\n  \u00b1\n(paper)\n(  \u00b1)" if of_means else "best\n(paper)"] if errors.source else []
    view = FittedTable(keys=1 + len(labels))
    view.add_column(escape(errors.axis), justify="right")
    for _ in labels:
        view.add_column("")
    for column in errors.columns:
        view.add_column(column, justify="right")
    for row in errors.rows:
        cells = (_compared(cell, of_means) if errors.source else _error(cell, errors) for cell in row.cells)
        view.add_row(escape(str(row.value)), *labels, *cells, style="bold green" if row.enough else None)
    return view


def _compared(cell: ErrorCell, of_means: bool) -> str:
    measured = [cell.best, cell.mean, cell.std] if of_means else [cell.best]
    published = [cell.published, cell.published_std] if of_means else [cell.published]
    return "\n".join([*map(number, measured), *(f"({number(value)})" for value in published)])


def _error(cell: ErrorCell, errors: ErrorRows) -> Text | str:
    missing = f"{cell.lost} missing" if cell.lost else ""
    if errors.apart:  # two columns per length leave no room for the median
        return "\n".join(filter(None, [number(cell.best), missing]))
    if errors.detailed:
        return " ".join(filter(None, [f"{number(cell.best)} ({number(cell.median)})", missing]))
    return Text(number(cell.best), "bold green" if cell.smallest else "green" if cell.solved else "")


def grid_view(grid: Grid) -> FittedTable:
    """A grid of words and numbers; the first column names the rows."""
    view = FittedTable()
    for place, column in enumerate(grid.columns):
        view.add_column(escape(column), justify="right" if place else "left")
    for row in grid.rows:
        view.add_row(*map(escape, row))
    return view
