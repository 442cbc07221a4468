"""`headcount compare`: the answers and the errors of several results folders side by side."""

import os
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from ..errors import require
from ..report.compare import ComparedCell, ComparedErrors, Comparison, compared, comparison_chart, named_sections
from ..report.reading import sections_of
from ..report.render import check_ending, save_chart
from ..report.render.fitted import FittedTable, Prose, facts
from ..report.render.words import number
from ..report.section import Section
from .app import Json, print_json, say, show_view

Folders = Annotated[list[Path], typer.Argument(metavar="DIR DIR...", help="Two or more results folders.")]


def compare(
    folders: Folders,
    figure: Annotated[Path | None, typer.Option(help="Draw all errors into one .svg, .pdf or .png file.")] = None,
    as_json: Json = False,
) -> None:
    """The answers and the errors of several results folders side by side, and what they do not share."""
    if figure is not None:
        check_ending(figure)
    sections, warnings = _sections(folders)
    for warning in warnings:
        say(warning, style="yellow")
    require(len(sections) > 1, _too_few(folders, len(sections)))
    comparison = compared(sections)
    if as_json:
        print_json(comparison.as_dict())
    else:
        _show(comparison)
    if figure is not None:
        require(
            len(comparison.tables) == 1,
            f"one figure shows one kind of errors, these are {len(comparison.tables)}: "
            f"{'; '.join(table.metric for table in comparison.tables) or 'no table at all'}.",
        )
        (table,) = comparison.tables
        words = [row.value for row in table.rows if isinstance(row.value, str)]
        require(not words, f"words have no places on a line; {table.axis} has {', '.join(dict.fromkeys(words))}.")
        save_chart(comparison_chart(table), figure)
        say(f"drawn in {figure}")


def _too_few(folders: list[Path], results: int) -> str:
    """Why there is nothing to compare, and what to do."""
    given = ", ".join(map(str, folders))
    if results == 1 and len(folders) > 1 and len(_different(folders)) == 1:
        return f"{given} are the same folder, with one result; give another one too, or `headcount show {folders[0]}`."
    return f"to compare takes two results, got {results}: {given}; give another results folder."


def _different(folders: list[Path]) -> list[Path]:
    """Without those that are an earlier one under another path."""
    first: dict[str, Path] = {}
    for folder in folders:
        first.setdefault(os.path.realpath(folder), folder)
    return list(first.values())


def _sections(folders: list[Path]) -> tuple[dict[str, Section], list[str]]:
    """The results of all folders by name, and what is to be warned of; the last part of a path names it if it can."""
    by_name: dict[str, list[Section]] = {}
    warnings = []
    different = _different(folders)
    short = Counter(folder.name for folder in different)
    for folder in different:
        name = folder.name if short[folder.name] == 1 and folder.name else str(folder)
        by_name[name], problems = sections_of(folder)
        warnings += problems
    return named_sections(by_name), warnings


def _show(comparison: Comparison) -> None:
    parts = [(name, section.warning) for name, section in comparison.sections.items() if section.warning]
    for name, warning in parts:
        show_view(Prose(f"[yellow]{escape(f'{name}: {warning}')}[/yellow]"))
    if parts:
        show_view("")
    for table in comparison.tables:
        for length in table.lengths:
            show_view(Prose(f"{escape(table.metric)}, T = {length}: best of all seeds and starts"))
            show_view(_table(table, length))
            show_view("")
    if any(cell.differs for table in comparison.tables for row in table.rows for cell in row.cells):
        first = next(iter(comparison.sections))
        show_view(Prose(f"* all seeds are better, or all worse, than those of {escape(first)}", indent=1))
    show_view(facts(("note", note) for note in comparison.notes))
    show_view("")
    show_view(facts((name, _sentence(section)) for name, section in comparison.sections.items()))


def _table(table: ComparedErrors, length: object) -> FittedTable:
    view = FittedTable()
    view.add_column(escape(table.axis.replace("_", " ")), justify="right")
    for name in table.names:
        view.add_column(escape(name), justify="right")
    for row in table.rows:
        if row.length == length:
            view.add_row(escape(str(row.value)), *map(_cell, row.cells))
    return view


def _cell(cell: ComparedCell) -> str:
    return f"[bold]{number(cell.best)}[/bold]*" if cell.differs else f"{number(cell.best)} "


def _sentence(section: Section) -> str:
    return section.headline if section.answer is None else section.answer.sentence
