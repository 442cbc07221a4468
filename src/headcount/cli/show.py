"""`headcount show`: the answer and the errors of every experiment in a results folder."""

from collections.abc import Iterator
from dataclasses import replace

from ..report.document import Document
from ..report.error_grid import error_rows
from ..report.reading import documents_of
from .app import Folder, say


def show(folder: Folder) -> Iterator[Document]:
    """The answer and the errors of every experiment in a results folder."""
    documents, warnings = documents_of(folder)
    yield from map(_with_errors, documents)
    for warning in warnings:
        say(warning, style="yellow")


def _with_errors(document: Document) -> Document:
    """Return the document with the errors by heads and length in its JSON."""
    table = None if document.source is None else document.source.table
    return replace(document, content=lambda: document.content() | {"errors": error_rows(table)})
