"""`headcount tasks` and `headcount doctor`: what can be asked, and whether this machine can answer."""

from typing import Annotated

import typer

from .._errors import require
from ..doctor import examine
from ..tasks import PRESETS, Retrieval, check_assumptions, preset_options
from ..tasks.find import find_task
from .app import Json, app, data, print_json
from .views.tasks import Preset, assumption_view, preset_view


@app.command()
def tasks(
    name: Annotated[str | None, typer.Argument(help="A preset, to test Assumption 2 on it.")] = None,
    as_json: Json = False,
) -> None:
    """The tasks that have a name, with their options; or one of them tested against the papers' assumptions."""
    if name is None:
        presets: dict[str, Preset] = {
            known: {"summary": make.__doc__, "options": preset_options(known)} for known, make in PRESETS.items()
        }
        if as_json:
            print_json(presets)
        else:
            data.print(preset_view(presets))
        return
    task = find_task(name)
    require(isinstance(task, Retrieval), f'Assumption 2 speaks of retrieval tasks only, and "{name}" is not one.')
    assert isinstance(task, Retrieval)
    report = check_assumptions(task)
    if as_json:
        clauses = [{"clause": c.name, "holds": c.holds, "evidence": c.evidence} for c in report.clauses]
        print_json({"task": task.spec(), "intrinsic_dim": task.intrinsic_dim, "clauses": clauses})
    else:
        data.print(assumption_view(task.name, report))


@app.command()
def doctor(as_json: Json = False) -> None:
    """Whether this machine is fit for headcount: versions, devices, memory, a trained model."""
    findings = examine()
    if as_json:
        print_json([{"check": f.check, "fine": f.fine, "found": f.found} for f in findings])
    else:
        for finding in findings:
            mark = "[green]ok[/green]" if finding.fine else "[red]no[/red]"
            data.print(f"{mark}  {finding.check}: {finding.found}", highlight=False)
    if not all(finding.fine for finding in findings):
        raise typer.Exit(1)
