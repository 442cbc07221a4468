"""`headcount tasks`: the named tasks, and the papers' assumptions tested on one of them."""

import inspect
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from .._errors import InputError
from ..report.render.fitted import Prose
from ..tasks import PRESETS, AssumptionReport, Retrieval, check_assumptions, preset_options
from ..tasks.find import find_task
from .app import Json, print_json, show_view


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
            show_view(_presets_view())
        return
    task = find_task(name)
    if not isinstance(task, Retrieval):
        raise InputError(f'Assumption 2 is about retrieval tasks, and "{name}" is none.', what="name", given=name)
    report = check_assumptions(task)
    if as_json:
        clauses = [{"clause": c.name, "holds": c.holds, "evidence": c.evidence} for c in report.clauses]
        print_json({"task": task.spec(), "intrinsic_dim": task.intrinsic_dim, "clauses": clauses})
    else:
        show_view(_assumptions_view(task.name, report))


def _presets_view() -> Group:
    """Each task, what it asks, and the options of `measure` that it takes with their defaults."""
    parts: list[RenderableType] = []
    for name, make in PRESETS.items():
        summary = " ".join(inspect.cleandoc(make.__doc__ or "").split())
        parts.append(Prose(f"[bold]{name}[/bold]  {escape(summary)}"))
        parts.append(Prose(f"[dim]{escape('  '.join(flags_of(name)))}[/dim]", indent=4))
    return Group(*parts, "", Prose("headcount measure TASK with any of its options; every task takes --lengths"))


def flags_of(name: str) -> list[str]:
    """The options of a preset as `measure` spells them, each with its default."""
    options = {option: value for option, value in preset_options(name).items() if option != "length"}
    return [
        f"--{option.replace('_', '-')} {'none' if value is None else value}".replace(" ", "\xa0")
        for option, value in options.items()
    ]


def _assumptions_view(name: str, report: AssumptionReport) -> Table:
    view = Table(title=f"{name}: Assumption 2 on the cube", title_justify="left", box=None)
    for column in ("clause", "holds", "evidence"):
        view.add_column(column)
    for clause in report.clauses:
        view.add_row(clause.name, "[green]yes[/green]" if clause.holds else "[red]no[/red]", clause.evidence)
    return view
