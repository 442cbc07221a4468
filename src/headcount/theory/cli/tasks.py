"""`headcount tasks`: the named tasks; of one of them, its support dimension and the papers' assumptions."""

import inspect
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from ...cli.app import Json, print_json, show_view
from ...report.render.fitted import FittedTable, Prose, facts
from ...tasks import PRESETS, Retrieval, preset_options
from ...tasks.find import find_task
from ..assumptions import AssumptionReport, check_assumptions
from ..support import Support, support_dim
from ..support.dimension import RELATIVE

SHOWN = 8
"""Tokens of a witness that are named."""


def tasks(
    name: Annotated[str | None, typer.Argument(help="A preset or a task of yours, to test it.")] = None,
    support: Annotated[
        bool, typer.Option("--support", help="The support dimension of every named task; takes seconds.")
    ] = False,
    as_json: Json = False,
) -> None:
    """The named tasks with their options, or one task: its support dimension, and the papers' assumptions."""
    if name is not None:
        _one_task(name, as_json)
    elif support:
        supports = {known: support_dim(find_task(known)) for known in PRESETS}
        if as_json:
            print_json({known: each.as_dict() for known, each in supports.items()})
        else:
            show_view(_supports_view(supports))
    elif as_json:
        print_json(
            {known: {"summary": make.__doc__, "options": preset_options(known)} for known, make in PRESETS.items()}
        )
    else:
        show_view(_presets_view())


def _one_task(name: str, as_json: bool) -> None:
    task = find_task(name)
    support = support_dim(task)
    report = check_assumptions(task) if isinstance(task, Retrieval) else None
    if as_json:
        content = {"task": task.spec(), "intrinsic_dim": task.intrinsic_dim, "support": support.as_dict()}
        if report is not None:
            content["clauses"] = [{"clause": c.name, "holds": c.holds, "evidence": c.evidence} for c in report.clauses]
        print_json(content)
        return
    parts: list[RenderableType] = [_support_view(support)]
    if report is not None:
        parts += ["", _assumptions_view(task.name, report)]
    show_view(Group(*parts))


def _support_view(support: Support) -> RenderableType:
    """The support dimension with its witness: where the tokens lie that matter, and their gradients."""
    counted = [t for t, size in enumerate(support.gradients) if size > RELATIVE * support.gradients.max()]
    shown = [f"{t + 1} ({support.gradients[t]:.2g})" for t in counted[:SHOWN]]
    more = f" and {len(counted) - SHOWN} more" if len(counted) > SHOWN else ""
    rows = [
        ("witness", f"gradients at token {', '.join(shown)}{more}"),
        ("certificate", f"{support.proved} enclosed gradients exclude 0, on a box of half width {support.radius:g}"),
        ("drawn sequences", f"tokens that matter, median: {support.typical:g}"),
    ]
    if not support.proved:
        rows[1] = ("certificate", f"none: {support.unproved}")
    rows += [("means", support.consequence)] if support.consequence else []
    rows += [("not covered", words) for words in support.not_covered]
    return Group(Prose(f"[bold]{escape(support.task)}[/bold]: {escape(support.sentence)}"), facts(rows))


def _supports_view(supports: dict[str, Support]) -> FittedTable:
    view = FittedTable()
    view.add_column("task")
    for column in ("tokens", "T", "components", "proved"):
        view.add_column(column, justify="right")
    view.add_column("means")
    for known, each in supports.items():
        components = "" if each.components is None else f"{each.components}"
        view.add_row(known, f"{each.value}", f"{each.length}", components, f"{each.proved}", escape(_in_short(each)))
    return view


def _in_short(support: Support) -> str:
    if support.every_token or support.grows:
        return "every token matters, at all lengths tried" if support.every_token else "more in longer sequences"
    if support.answered_at != "sequence":
        return "the token that is read; the choice has no gradient"
    if support.exact and support.components is not None:
        return f"D = {support.value}, exact"
    return f"D is at least {support.proved}" if support.proved else "nothing is proved"


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
