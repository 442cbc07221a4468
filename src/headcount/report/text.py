"""Results as text for a terminal."""

from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from ..analysis import Answer, ErrorTable, summaries
from ..tasks import AssumptionReport


def error_rows(table: ErrorTable, answer: Answer) -> Table:
    """Least error over seeds by heads and length; the transition's row stands out."""
    view = Table(box=None)
    view.add_column("heads", justify="right")
    for length in table.lengths:
        view.add_column(f"T = {length}", justify="right")
    rows = {(row.heads, row.length): row for row in summaries(table)}
    for heads in table.heads:
        cells = [rows[heads, length] for length in table.lengths]
        texts = [f"{c.minimum:.1e} ({c.median:.1e}){f' {c.lost} lost' if c.lost else ''}" for c in cells]
        view.add_row(str(heads), *texts, style="bold green" if heads == answer.heads else None)
    return view


def evidence(answer: Answer) -> Table:
    """What each signal says, and why."""
    view = Table(box=None, show_header=False)
    view.add_column(justify="right", style="dim")
    view.add_column()
    view.add_row("drop", f"{_said(answer.signals['drop'])}; {answer.reason}")
    if len(answer.by_length) > 1:
        view.add_row("slope in length", _said(answer.signals["slope"]))
        view.add_row("reversal score", _said(answer.signals["reversal"]))
        view.add_row("each length alone", ", ".join(f"T = {t}: {_said(h)}" for t, h in answer.by_length.items()))
    if answer.heads is not None:
        view.add_row("seeds", f"{answer.support:.0%} of resamples give {answer.heads}")
    for note in answer.notes:
        view.add_row("note", note)
    return view


def experiment_view(settings: dict[str, Any], table: ErrorTable, answer: Answer) -> RenderableType:
    """One experiment: what it was, its errors, its evidence."""
    heading = "validation error / variance of target: best of seeds (median)"
    return Group(describe(settings), "", heading, error_rows(table, answer), "", evidence(answer), "")


def describe(settings: dict[str, Any]) -> str:
    """The settings in one line: the task with its options, the model, the training."""
    task = {name: value for name, value in settings["task"].items() if value is not None}
    name = task.pop("task")
    parts = [f"{key} {value}" for key, value in (*task.items(), *settings["model"].items())]
    return f"[bold]{escape(name)}[/bold]: {escape(', '.join(parts))}, steps {settings['train']['steps']}"


def _said(heads: int | None) -> str:
    return "silent" if heads is None else f"{heads}"


def plan_view(plan: Any, root: str) -> RenderableType:
    """What a run would do."""
    view = Table(title=f"the plan for {root}", title_justify="left", box=None)
    for column in ("length", "heads", "members", "steps"):
        view.add_column(column, justify="right")
    for bucket in plan.buckets:
        heads = ", ".join(str(count) for count in sorted({cell.model.heads for cell in bucket.cells}))
        view.add_row(str(bucket.shape.length), heads, str(len(bucket.cells)), str(bucket.shape.train.steps))
    lines = [
        f"{plan.cells} cells, {plan.settled} already done",
        f"{len(plan.buckets)} buckets, {plan.programs} programs to compile",
        f"about {plan.seconds:.0f} s and {plan.bytes / 2**20:.0f} MiB on {plan.machine.description}",
    ]
    return Group(view, *lines)


def status_view(root: Path, counts: dict[str, int], sweeps: list[dict[str, Any]]) -> RenderableType:
    """What is stored, and for each command how far it is."""
    lines = [f"{root}: " + ", ".join(f"{count} {name}" for name, count in counts.items())]
    for sweep in sweeps:
        missing = sweep["cells"] - sweep["done"]
        lines.append(f"  {sweep['done']} of {sweep['cells']} cells: {sweep['command'] or 'a sweep from Python'}")
        if missing:
            lines.append(f"    {missing} missing; run that command again to go on")
    return Group(*lines)


def preset_view(presets: dict[str, dict[str, Any]]) -> Table:
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
