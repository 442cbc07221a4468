"""`headcount status`: what a results folder holds, what is missing, and how to go on."""

import datetime
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from ..pretrained.inspection.stored import ASKED, is_complete, measured_facts
from ..pretrained.inspection.stored import STUDY as INSPECTION
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
        wanted = {each.experiment: _wanted(store, each) for each in progress}
    if as_json:
        experiments = [
            {
                "experiment": each.experiment,
                "cells": each.cells,
                "done": each.done,
                "missing": each.missing,
                **_inspection(each),
                "runs": [{"command": command, "started": started} for command, started in each.runs],
            }
            for each in progress
        ]
        print_json({"folder": str(folder), "cells": outcomes, "backends": backends, "experiments": experiments})
        return
    trains = [each for each in progress if each.study != INSPECTION]
    counted = ", ".join(f"{count} {name}" for name, count in outcomes.items())
    lines = [f"{folder}: {counted}" if trains or not progress else f"{folder}:"]
    if backends:
        lines.append(f"  back end: {backend_words(backends)}")
    if not progress:
        lines.append(f"  no experiment yet; `headcount measure TASK --out {folder}` makes one")
    for each in progress:
        if each.study == INSPECTION:
            of = f" of {wanted[each.experiment]}" if wanted[each.experiment] else ""
            count = measured_facts(each.attached)
            lines.append(f"  {each.experiment}: inspection of {each.task}, {count}{of} facts measured")
        else:
            lines.append(f"  {each.experiment}: {each.done} of {each.cells} cells")
        lines += [f"    {command or 'run from Python'}" for command, _ in each.runs]
        if each.study == INSPECTION and not is_complete(each.attached):
            lines.append("    not complete; run the command again to go on")
        if each.missing:
            lines.append(f"    {each.missing} missing; run the command again to go on")
    for line in lines:
        data.print(line, markup=False, highlight=False)


def _wanted(store: Store, progress: Progress) -> int:
    """How many facts an inspection measures; 0 where it does not say."""
    if progress.study != INSPECTION or ASKED not in progress.attached:
        return 0
    asked = store.attachments(progress.experiment)[ASKED]
    return len(asked["facts"]) if isinstance(asked, dict) and isinstance(asked.get("facts"), list) else 0


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
            inspects = experiment.study == INSPECTION
            ended = is_complete(experiment.attached) if inspects else not experiment.missing
            there = state or ("done" if ended else "stopped")
            cells = "-" if inspects else f"{experiment.done}/{experiment.cells}"
            view.add_row("" if place else name, escape(experiment.task), cells, there, changed)
    return view


def _inspection(progress: Progress) -> dict[str, Any]:
    """What JSON has of an inspection, which has no cells: its facts by name, and whether it has ended."""
    if progress.study != INSPECTION:
        return {}
    return {"facts": list(progress.attached), "complete": is_complete(progress.attached)}


def _as_json(each: FolderStatus) -> dict[str, Any]:
    experiments = [
        {"experiment": one.experiment, "task": one.task, "cells": one.cells, "done": one.done} | _inspection(one)
        for one in each.experiments
    ]
    return {
        "folder": str(each.folder),
        "running": each.running,
        "changed": each.changed.replace(tzinfo=datetime.UTC).isoformat(timespec="seconds"),
        "problem": each.problem,
        "experiments": experiments,
    }
