"""`headcount doctor`: whether this machine can run headcount."""

import typer
from rich.markup import escape

from .. import doctor as checks
from .app import Json, data, print_json


def doctor(as_json: Json = False) -> None:
    """Check that this machine can run headcount: versions, device, memory, two models really trained."""
    findings = checks.examine()
    if as_json:
        print_json([{"check": each.check, "fine": each.fine, "found": each.found} for each in findings])
    else:
        for each in findings:
            mark = "[green]ok[/green]" if each.fine else "[red]no[/red]"
            data.print(f"{mark}  {each.check}: {escape(each.found)}", highlight=False)
    if not all(each.fine for each in findings):
        raise typer.Exit(1)
