"""`headcount export`: every cell of a results folder as a table."""

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ..errors import require
from ..registry import reader_of
from ..report.export import csv_of, to_csv, to_json, to_summary
from ..report.files import write_whole
from ..store import Store
from .app import Folder, Json, say


class Format(StrEnum):
    csv = "csv"
    json = "json"


def export(
    folder: Folder,
    form: Annotated[Format, typer.Option("--format", help="csv or json.")] = Format.csv,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A file instead of stdout.")] = None,
    timing: Annotated[bool, typer.Option("--timing", help="Add seconds, device, back end and date.")] = False,
    summary: Annotated[
        bool, typer.Option("--summary", help="A CSV row per place, over seeds; # lines say how it was made.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Every cell of a results folder as a table. Without --timing, equal results make equal bytes.

    A folder that holds inspections of trained models only gives a row per head."""
    with Store.open_for_reading(folder) as store:
        experiments, records = store.experiments(), store.records()
        runs = {each.experiment: each.runs for each in store.progress()}
        readers = {each.name: reader for each in experiments if (reader := reader_of(each.study)) is not None}
        without_cells = {name: reader for name, reader in readers.items() if not reader.has_cells}
        facts = {name: store.facts(name) for name in without_cells}
    as_rows = as_json or form is Format.json
    require(
        not summary or not (as_rows or timing or without_cells),
        "--summary is CSV of trained cells and their origin; leave out --format json, --json and --timing, and name a "
        "folder without inspections.",
    )
    if summary:
        text = to_summary(experiments, records, runs)
    elif without_cells and len(without_cells) == len(experiments):
        rows = [row for name, reader in without_cells.items() for row in reader.rows(name, facts[name])]
        text = json.dumps(rows, indent=1) + "\n" if as_rows else csv_of(rows)
    else:
        text = (to_json if as_rows else to_csv)(experiments, records, timing=timing)
        for name, reader in without_cells.items():
            say(f"{name} is an {reader.name} and has no cells; `headcount show {folder} --json` has its numbers.")
    if out is None:
        sys.stdout.write(text)
        return
    write_whole(out, text.encode())
