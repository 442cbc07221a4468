"""`headcount export`: every cell of a results folder as a table."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ..errors import require
from ..registry import reader_of
from ..report.document import Document
from ..report.export import CSV_ALONE, exported_rows, summary_csv
from ..store import FILE_NAME, Store
from ..store.database import readable
from .app import Folder, say


class ExportFormat(StrEnum):
    csv = "csv"
    json = "json"


def export(
    folder: Folder,
    form: Annotated[ExportFormat, typer.Option("--format", help="csv or json.")] = ExportFormat.csv,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A file instead of stdout.")] = None,
    timing: Annotated[bool, typer.Option("--timing", help="Add seconds, device, back end and date.")] = False,
    summary: Annotated[
        bool, typer.Option("--summary", help="A CSV row per place, over seeds; # lines say how it was made.")
    ] = False,
) -> Document:
    """Every cell of a results folder as a table. Without --timing, equal results make equal bytes.

    A folder that holds only inspections of trained models gives a row per head."""
    with Store.open_for_reading(folder) as store:
        experiments, records = store.experiments(), store.records()
        runs = {each.experiment: each.runs for each in store.progress()}
        readers = {each.name: reader for each in experiments if (reader := reader_of(each.study)) is not None}
        without_cells = {name: reader for name, reader in readers.items() if not reader.has_cells}
        facts = {name: store.facts(name) for name in without_cells}
    require(not summary or not (form is ExportFormat.json or timing or without_cells), CSV_ALONE)
    if summary:
        content = summary_csv(experiments, records, runs)
    elif without_cells and len(without_cells) == len(experiments):
        with readable(folder / FILE_NAME):
            content = [row for name, reader in without_cells.items() for row in reader.rows(name, facts[name])]
    else:
        content = exported_rows(experiments, records, timing=timing)
        for name in without_cells:
            say(f"{name} has no cells; `headcount show {folder} --json` has its numbers.")
    return Document(content=lambda: content, form=form.value, out=out)
