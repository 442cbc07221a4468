"""`headcount status`: what a results folder holds, what is missing, and how to continue."""

import datetime
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from ..registry import StudyReader, reader_of
from ..report.document import Document, Grid, line
from ..store import FILE_NAME, Progress, Store, backend_words
from ..store.folders import FolderStatus, folder_status, results_below


def status(
    folder: Annotated[Path, typer.Argument(metavar="DIR|PARENT", help="A results folder, or a folder of them.")],
) -> Document:
    """What a results folder holds, what is missing, and how to continue; or every results folder below a parent."""
    below = [] if os.path.exists(folder / FILE_NAME) else results_below(folder)
    if not below:
        return _one(folder)
    folders = [folder_status(each) for each in below]
    return Document(
        content=lambda: {"parent": str(folder), "folders": [_as_json(each) for each in folders]},
        blocks=(_table(folders, folder),),
    )


def _one(folder: Path) -> Document:
    with Store.open_for_reading(folder) as store:
        outcomes, backends, progress = store.outcomes(), store.backends(), store.progress()
        words = {
            each.experiment: reader.progress_words(each.task, store.facts(each.experiment))
            for each in progress
            if (reader := _reader(each)) is not None
        }
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
            lines.append("    not complete; run the command again to continue")
        if each.missing:
            lines.append(f"    {each.missing} missing; run the command again to continue")
    content = {
        "folder": str(folder),
        "cells": outcomes,
        "backends": backends,
        "experiments": [_experiment(each) for each in progress],
    }
    return Document(content=lambda: content, blocks=tuple(map(line, lines)))


def _experiment(each: Progress) -> dict[str, Any]:
    """Return how far an experiment is, as JSON."""
    return {
        "experiment": each.experiment,
        "cells": each.cells,
        "done": each.done,
        "missing": each.missing,
        **_facts(each),
        "runs": [{"command": command, "started": started} for command, started in each.runs],
    }


def _reader(progress: Progress) -> StudyReader | None:
    """Return the reader of an experiment without cells; None of one that trains."""
    reader = reader_of(progress.study)
    return None if reader is None or reader.has_cells else reader


def _table(folders: list[FolderStatus], parent: Path) -> Grid:
    """Tabulate the experiments, the folder named once."""
    rows = []
    for each in folders:
        name = str(each.folder.relative_to(parent))
        state = each.state if each.running else "unreadable" if each.problem else ""
        changed = each.changed.astimezone().strftime("%Y-%m-%d %H:%M")
        if not each.experiments:
            rows.append((name, "-", "-", state or "empty", changed))
        for place, experiment in enumerate(each.experiments):
            reader = _reader(experiment)
            ended = not experiment.missing if reader is None else reader.is_complete(experiment.facts)
            there = state or ("done" if ended else "stopped")
            cells = "-" if reader is not None else f"{experiment.done}/{experiment.cells}"
            rows.append(("" if place else name, experiment.task, cells, there, changed))
    columns = ("folder", "task", "cells", "state", "last change")
    return Grid(columns=columns, rows=tuple(rows), align="llrll")


def _facts(progress: Progress) -> dict[str, Any]:
    """Return what JSON has of an experiment without cells: its facts by name, and whether it has ended."""
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
