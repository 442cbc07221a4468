"""`headcount export`: every cell of a results folder as a table."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ..report.export import to_csv, to_json
from ..report.files import write_whole
from ..store import Store
from .app import Folder, Json


class Format(StrEnum):
    csv = "csv"
    json = "json"


def export(
    folder: Folder,
    form: Annotated[Format, typer.Option("--format", help="csv or json.")] = Format.csv,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A file instead of stdout.")] = None,
    timing: Annotated[bool, typer.Option("--timing", help="Add seconds, device, back end and date.")] = False,
    as_json: Json = False,
) -> None:
    """Every cell of a results folder as a table. Without --timing, equal results make equal bytes."""
    with Store.open_for_reading(folder) as store:
        experiments, records = store.experiments(), store.records()
    write = to_json if as_json or form is Format.json else to_csv
    text = write(experiments, records, timing=timing)
    if out is None:
        sys.stdout.write(text)
        return
    write_whole(out, text.encode())
