"""`headcount status`: what a results folder holds, what is missing, and how to go on."""

from ..store import Store
from .app import Folder, Json, data, print_json


def status(folder: Folder, as_json: Json = False) -> None:
    """What a results folder holds, what is missing, and how to go on."""
    with Store.open_for_reading(folder) as store:
        outcomes, progress = store.outcomes(), store.progress()
    if as_json:
        experiments = [
            {
                "experiment": each.experiment,
                "cells": each.cells,
                "done": each.done,
                "runs": [{"command": command, "started": started} for command, started in each.runs],
            }
            for each in progress
        ]
        print_json({"folder": str(folder), "cells": outcomes, "experiments": experiments})
        return
    lines = [f"{folder}: " + ", ".join(f"{count} {name}" for name, count in outcomes.items())]
    if not progress:
        lines.append(f"  no experiment yet; `headcount measure TASK --out {folder}` makes one")
    for each in progress:
        lines.append(f"  {each.experiment}: {each.done} of {each.cells} cells")
        lines += [f"    {command or 'run from Python'}" for command, _ in each.runs]
        if each.missing:
            lines.append(f"    {each.missing} missing; run the command again to go on")
    for line in lines:
        data.print(line, markup=False, highlight=False)
