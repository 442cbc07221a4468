"""`headcount compare`: the answers and the errors of several results folders side by side."""

import os
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from ..errors import require
from ..report.compare import comparison_document
from ..report.document import Document
from ..report.reading import documents_of
from .app import say

Folders = Annotated[list[Path], typer.Argument(metavar="DIR DIR...", help="Two or more results folders.")]


def compare(folders: Folders) -> Document:
    """The answers and the errors of several results folders side by side, and what they do not share."""
    by_name: dict[str, list[Document]] = {}
    different = _different(folders)
    short = Counter(folder.name for folder in different)
    for folder in different:  # the last part of a path names it if it can
        name = folder.name if short[folder.name] == 1 and folder.name else str(folder)
        by_name[name], warnings = documents_of(folder)
        for warning in warnings:
            say(warning, style="yellow")
    results = sum(map(len, by_name.values()))
    require(results > 1, _too_few(folders, results))
    return comparison_document(by_name)


def _too_few(folders: list[Path], results: int) -> str:
    """Say why there is nothing to compare, and what to do."""
    given = ", ".join(map(str, folders))
    if results == 1 and len(folders) > 1 and len(_different(folders)) == 1:
        return f"{given} are the same folder, with one result; give another one too, or `headcount show {folders[0]}`."
    return f"to compare takes two results, got {results}: {given}; give another results folder."


def _different(folders: list[Path]) -> list[Path]:
    """Return folders without those that are an earlier one under another path."""
    first: dict[str, Path] = {}
    for folder in folders:
        first.setdefault(os.path.realpath(folder), folder)
    return list(first.values())
