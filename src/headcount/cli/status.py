"""`headcount status`: what a results folder holds, what is missing, and how to go on."""

import datetime
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from ..registry import StudyReader, reader_of
from ..store import FILE_NAME, Progress, Store, backend_words
from ..store.folders import FolderStatus, folder_status, results_below
from .app import Json, data, print_json, show_view

if TYPE_CHECKING:
    from ..report.render.fitted import FittedTable


def status(
    folder: Annotated[Path, typer.Argument(metavar="DIR|PARENT", help="A results folder, or a folder of them.")],
    as_json: Json = False,
) -> None:
    """What a results folder holds, what is missing, and how to go on; or every results folder below a parent."""
    below = [] if os.path.exists(folder / FILE_NAME) else results_below(folder)
    if not below:
        _one(folder, as_json)
        return
    folders = [folder_status(each) for each in below]
    if as_json:
        print_json({"parent": str(folder), "folders": [_as_json(each) for each in folders]})
        return
    show_view(_table(folders, folder))


def _one(folder: Path, as_json: bool) -> None:
    with Store.open_for_reading(folder) as store:
        outcomes, backends, progress = store.outcomes(), store.backends(), store.progress()
        words = {
            each.experiment: reader.progress_words(each.task, store.facts(each.experiment))
            for each in progress
            if (reader := _reader(each)) is not None
        }
    if as_json:
        experiments = [
            {
                "experiment": each.experiment,
                "cells": each.cells,
                "done": each.done,
                "missing": each.missing,
                **_facts(each),
                "runs": [{"command": command, "started": started} for command, started in each.runs],
            }
            for each in progress
        ]
        print_json({"folder": str(folder), "cells": outcomes, "backends": backends, "experiments": experiments})
        return
    counted = ", ".join(f"{count} {name}" for name, count in outcomes.items())
    lines = [f"{folder}: {counted}" if len(words) < len(progress) or not progress else f"{folder}:"]
    if backends:
        lines.append(f"  back end: {backend_words(backends)}")
    if not progress:
        lines.append(f"  no experiment yet; `headcount measure TASK --out {folder}` makes one")
    for each in progress:
        lines.append(f"  {each.experiment}: {words.get(each.experiment, f'{each.done} of {each.cells} cells')}")
        lines += [f"    {command or 'run from Python'}" for command, _ in each.runs]
        if (reader := _reader(each)) is not None and not reader.is_complete(each.facts):
            lines.append("    not complete; run the command again to go on")
        if each.missing:
            lines.append(f"    {each.missing} missing; run the command again to go on")
    for line in lines:
        data.print(line, markup=False, highlight=False)


def _reader(progress: Progress) -> StudyReader | None:
    """The reader of an experiment without cells; None of one that trains."""
    reader = reader_of(progress.study)
    return None if reader is None or reader.has_cells else reader


def _table(folders: list[FolderStatus], parent: Path) -> "FittedTable":
    """A row per experiment, the folder named once."""
    from ..report.render.fitted import FittedTable  # with all of the report, which one folder's status does not need

    view = FittedTable()
    for column in ("folder", "task", "cells", "state", "last change"):
        view.add_column(column, justify="right" if column == "cells" else "left")
    for each in folders:
        name = escape(str(each.folder.relative_to(parent)))
        state = each.state if each.running else "unreadable" if each.problem else ""
        changed = each.changed.astimezone().strftime("%Y-%m-%d %H:%M")
        if not each.experiments:
            view.add_row(name, "-", "-", state or "empty", changed)
        for place, experiment in enumerate(each.experiments):
            reader = _reader(experiment)
            ended = not experiment.missing if reader is None else reader.is_complete(experiment.facts)
            there = state or ("done" if ended else "stopped")
            cells = "-" if reader is not None else f"{experiment.done}/{experiment.cells}"
            view.add_row("" if place else name, escape(experiment.task), cells, there, changed)
    return view


def _facts(progress: Progress) -> dict[str, Any]:
    """What JSON has of an experiment without cells: its facts by name, and whether it has ended."""
    reader = _reader(progress)
    if reader is None:
        return {}
    return {"facts": list(progress.facts), "complete": reader.is_complete(progress.facts)}


def _as_json(each: FolderStatus) -> dict[str, Any]:
    experiments = [
        {"experiment": one.experiment, "task": one.task, "cells": one.cells, "done": one.done} | _facts(one)
        for one in each.experiments
    ]
    return {
        "folder": str(each.folder),
        "running": each.running,
        "changed": each.changed.replace(tzinfo=datetime.UTC).isoformat(timespec="seconds"),
        "problem": each.problem,
        "experiments": experiments,
    }
