"""What `headcount tasks` prints."""

from collections.abc import Mapping
from typing import TypedDict

from rich.table import Table

from ...tasks import AssumptionReport


class Preset(TypedDict):
    """A named task: what it asks, and its options with their defaults."""

    summary: str | None
    options: Mapping[str, object]


def preset_view(presets: Mapping[str, Preset]) -> Table:
    """The named tasks and their options."""
    view = Table(box=None)
    for column in ("task", "options", "what it asks"):
        view.add_column(column)
    for name, preset in presets.items():
        options = ", ".join(f"{option}={value}" for option, value in preset["options"].items() if value is not None)
        view.add_row(name, options, preset["summary"])
    return view


def assumption_view(name: str, report: AssumptionReport) -> Table:
    """Assumption 2 clause by clause."""
    view = Table(title=f"{name}: Assumption 2 on the cube", title_justify="left", box=None)
    for column in ("clause", "holds", "evidence"):
        view.add_column(column)
    for clause in report.clauses:
        view.add_row(clause.name, "[green]yes[/green]" if clause.holds else "[red]no[/red]", clause.evidence)
    return view
