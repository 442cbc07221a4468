"""`headcount tasks`: the named tasks, and the papers' assumptions tested on one of them."""

from typing import Annotated

import typer
from rich.table import Table

from .._errors import InputError
from ..tasks import PRESETS, AssumptionReport, Retrieval, check_assumptions, preset_options
from ..tasks.find import find_task
from .app import Json, data, print_json


def tasks(
    name: Annotated[str | None, typer.Argument(help="A preset, to test Assumption 2 on it.")] = None,
    as_json: Json = False,
) -> None:
    """The named tasks with their options, or one of them tested against the papers' assumptions."""
    if name is None:
        presets = {
            known: {"summary": make.__doc__, "options": preset_options(known)} for known, make in PRESETS.items()
        }
        if as_json:
            print_json(presets)
        else:
            data.print(_presets_view())
        return
    task = find_task(name)
    if not isinstance(task, Retrieval):
        raise InputError(f'Assumption 2 is about retrieval tasks, and "{name}" is none.', what="name", given=name)
    report = check_assumptions(task)
    if as_json:
        clauses = [{"clause": c.name, "holds": c.holds, "evidence": c.evidence} for c in report.clauses]
        print_json({"task": task.spec(), "intrinsic_dim": task.intrinsic_dim, "clauses": clauses})
    else:
        data.print(_assumptions_view(task.name, report))


def _presets_view() -> Table:
    view = Table(box=None)
    for column in ("task", "options", "what it asks"):
        view.add_column(column)
    for name, make in PRESETS.items():
        options = ", ".join(f"{option}={value}" for option, value in preset_options(name).items() if value is not None)
        view.add_row(name, options, make.__doc__)
    return view


def _assumptions_view(name: str, report: AssumptionReport) -> Table:
    view = Table(title=f"{name}: Assumption 2 on the cube", title_justify="left", box=None)
    for column in ("clause", "holds", "evidence"):
        view.add_column(column)
    for clause in report.clauses:
        view.add_row(clause.name, "[green]yes[/green]" if clause.holds else "[red]no[/red]", clause.evidence)
    return view
