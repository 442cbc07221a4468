"""Results as text for a terminal."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ..analysis import Answer, Bottleneck, ErrorTable, RankTable, summaries
from ..analysis.bottleneck import size_of
from ..analysis.comparison import Verdict
from ..tasks import AssumptionReport
from .charts import judged_by
from .section import Grid, Section


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


def evidence_rows(answer: Answer) -> list[tuple[str, str]]:
    """What each signal says, and why."""
    rows = [("drop", f"{_said(answer.signals['drop'])}; {answer.reason}")]
    if len(answer.by_length) > 1:
        rows.append(("slope in length", _said(answer.signals["slope"])))
        rows.append(("reversal score", _said(answer.signals["reversal"])))
        rows.append(("each length alone", ", ".join(f"T = {t}: {_said(h)}" for t, h in answer.by_length.items())))
    if answer.heads is not None:
        rows.append(("seeds", f"{answer.support:.0%} of resamples give {answer.heads}"))
    return rows + [("note", note) for note in answer.notes]


def evidence(rows: Iterable[tuple[str, str]]) -> Table:
    view = Table(box=None, show_header=False)
    view.add_column(justify="right", style="dim")
    view.add_column()
    for row in rows:
        view.add_row(*row)
    return view


def experiment_view(settings: dict[str, Any], table: ErrorTable, answer: Answer) -> RenderableType:
    """One experiment: what it was, its errors, its evidence."""
    heading = f"{table.unit}: best of seeds (median)"
    return Group(describe(settings), "", heading, error_rows(table, answer), "", evidence(evidence_rows(answer)), "")


def rank_rows(table: RankTable, bottleneck: Bottleneck) -> Table:
    """The errors that the verdict judges by heads and rank; solved ones are green, the smallest solved model bold."""
    view = Table(box=None)
    view.add_column("heads", justify="right")
    for rank in table.ranks:
        view.add_column(f"rank {rank}", justify="right")
    for heads, row in zip(table.heads, table.worst, strict=True):
        styles = [
            "bold green" if (heads, rank) == bottleneck.at else "green" if bottleneck.solves(heads, rank) else ""
            for rank in table.ranks
        ]
        texts = [Text(number(value), style) for value, style in zip(row, styles, strict=True)]
        view.add_row(str(heads), *texts)
    return view


def bottleneck_rows(bottleneck: Bottleneck) -> list[tuple[str, str]]:
    """What the verdict on heads and rank rests on."""
    rows = [("bottleneck", bottleneck.limit)]
    if bottleneck.fold is not None:
        rows.append(("drop", f"the error falls {bottleneck.fold:.3g}-fold where it is solved"))
    if bottleneck.at is not None:
        heads, rank = bottleneck.at
        rows.append(("smallest solved", f"{size_of(heads, rank)}, heads x rank = {heads * rank}"))
    if len(bottleneck.frontier) > 1:
        rows.append(("frontier", ", ".join(size_of(*size) for size in bottleneck.frontier)))
    if bottleneck.limit != "unknown":
        rows.append(("seeds", f"{bottleneck.support:.0%} of resamples agree"))
    return rows + [("note", note) for note in bottleneck.notes]


def rank_view(settings: dict[str, Any], table: RankTable, bottleneck: Bottleneck) -> RenderableType:
    """One sweep over heads and rank: what it was, its errors, what its verdict rests on."""
    heading = f"{table.unit}: {judged_by(table)}"
    rows = evidence(bottleneck_rows(bottleneck))
    return Group(describe(settings), "", heading, rank_rows(table, bottleneck), "", rows, "")


def finding_view(settings: dict[str, Any], section: Section) -> RenderableType:
    """An experiment's section for a terminal, over heads alone or over heads and rank."""
    if section.rank_table is not None and section.bottleneck is not None:
        return rank_view(settings, section.rank_table, section.bottleneck)
    assert section.table is not None
    assert section.answer is not None
    return experiment_view(settings, section.table, section.answer)


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


def study_costs_view(rows: list[tuple[str, str, str, dict[str, Any]]], footnote: str) -> RenderableType:
    """The studies, and the time each scale of them is expected to take on this machine."""
    view = Table(box=None)
    view.add_column("study", style="bold")
    scales = list(rows[0][3])
    for scale in scales:
        view.add_column(scale, justify="right")
    view.add_column("what it shows")
    for name, title, asks, plans in rows:
        view.add_row(name, *(spoken_time(plans[scale].seconds) for scale in scales), f"{title}. {asks}")
    return Group(view, "", footnote)


def spoken_time(seconds: float) -> str:
    """About how long, as one would say it."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    hours = seconds / 3600
    if hours < 72:
        return f"{hours:.1f} h"
    return f"{hours / 24:.0f} days" if hours < 24 * 700 else f"{hours / 24 / 365:.0f} years"


def section_view(section: Section) -> RenderableType:
    """A study's finding: the numbers beside the published ones, then its claims one by one."""
    parts: list[RenderableType] = []
    if section.table is not None and section.published is not None:
        heading = f"{section.table.unit}, and in parentheses the published {section.published.statistic} over seeds"
        parts += [heading, _comparison_rows(section), ""]
    for grid in section.grids:
        parts += [escape(grid.title), _grid_rows(grid), ""]
    marks = {Verdict.HOLDS: "[green]holds[/green]", Verdict.DIFFERS: "[red]differs[/red]"}
    view = Table(box=None, show_header=False)
    for claim in section.claims:
        view.add_row(marks.get(claim.verdict, "[yellow]undecided[/yellow]"), claim.statement)
        view.add_row("", f"[dim]{escape(claim.evidence)}[/dim]")
    return Group(*parts, view, f"[bold]{escape(section.headline)}[/bold]", "")


def _grid_rows(grid: Grid) -> Table:
    view = Table(box=None)
    for place, column in enumerate(grid.columns):
        view.add_column(escape(column), justify="right" if place else "left")
    for row in grid.rows:
        view.add_row(*map(escape, row))
    return view


def _comparison_rows(section: Section) -> Table:
    table, published = section.table, section.published
    assert table is not None
    assert published is not None
    labels = "best\nmean\n  \u00b1\n(paper)\n(  \u00b1)" if published.statistic == "mean" else "best\n(paper)"
    rows = {(row.heads, row.length): row for row in summaries(table)}
    view = Table(box=None)
    view.add_column("heads", justify="right")
    view.add_column("")
    for length in table.lengths:
        view.add_column(f"T = {length}", justify="right")
    for heads in table.heads:
        cells = []
        for length in table.lengths:
            row, (value, deviation) = rows[heads, length], published.at(heads, length)
            lines = [number(row.minimum)]
            if published.statistic == "mean":
                lines += [number(row.mean), number(row.std)]
            lines += [f"({number(value)})"] + [f"({number(deviation)})"] * (published.statistic == "mean")
            cells.append("\n".join(lines))
        enough = section.answer is not None and heads == section.answer.heads
        view.add_row(str(heads), labels, *cells, style="bold green" if enough else None)
    return view


def number(value: float) -> str:
    """An error in the papers' form; a dash where there is none."""
    return "-" if np.isnan(value) else f"{value:.1e}"


def recheck_view(found: list[Any]) -> RenderableType:
    """Cell by cell, then one sentence."""
    view = Table(box=None)
    for column in ("heads", "T", "seed", "stored error", "error now"):
        view.add_column(column, justify="right")
    view.add_column("")
    colours = {"same": "green", "close": "yellow", "different": "red"}
    for recheck in found:
        cell = recheck.stored.cell
        errors = [r.outcome.value if math.isnan(r.error) else f"{r.error:.6e}" for r in (recheck.stored, recheck.again)]
        style = colours[recheck.agreement]
        view.add_row(
            str(cell.model.heads), str(cell.length), str(cell.seed), *errors, f"[{style}]{recheck.agreement}[/{style}]"
        )
    counts = {name: sum(recheck.agreement == name for recheck in found) for name in colours}
    said = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    words = {
        "same": "the same to the last bit",
        "close": "within a factor of five of the stored error, or of the median of its seeds",
        "different": "trust neither until it is known why",
    }
    meanings = [f"  {name}: {meaning}" for name, meaning in words.items() if counts[name]]
    moved = list(dict.fromkeys(line for recheck in found for line in recheck.moved))
    moved += list(dict.fromkeys(recheck.again.message for recheck in found if recheck.again.message))
    return Group(view, "", f"[bold]{said}[/bold]", *meanings, *(escape(f"  {line}") for line in moved))


def bounds_view(found: Sequence[Any]) -> RenderableType:
    """Bounds one under the other: what each is worth here, what it claims, and what it rests on."""
    marks = {True: "[green]yes[/green]", False: "[red]no[/red]", None: "assumed"}
    lines = []
    for bound in found:
        value = "says nothing" if bound.value is None else f"{bound.value:.4g}"
        kind = "" if bound.kind == "theorem" else f" [yellow]{bound.kind}[/yellow]"
        style = "bold" if bound.applies else "dim"
        lines.append(f"[{style}]{escape(bound.name)}: {value}[/{style}]  {escape(bound.source)}{kind}")
        lines.append(f"  {escape(bound.why or bound.claim)}")
        if bound.conditions:
            conditions = "; ".join(f"{escape(c.text)}: {marks[c.holds]}" for c in bound.conditions)
            lines.append(f"  [dim]needs[/dim] {conditions}")
    return Group(*lines)


def floors_view(found: Sequence[Any], where: Sequence[str]) -> RenderableType:
    """Model by model: its measured error, and the floor that is certified for each question."""
    view = Table(box=None)
    for column in ("model", "T", "heads", "seed", "NMSE", *(f"floor, {question}" for question in where)):
        view.add_column(column, justify="right")
    for floors in found:
        cell = floors.record.cell
        cells = []
        for question in where:
            certificate = floors.near_data if question == "near data" else floors.anywhere
            kind = "none found" if certificate is None else "any readout" if certificate.exact else "bounded slope"
            if certificate is not None and certificate.estimated:
                kind += ", gap estimated"
            cells.append(f"{floors.floor(question):.2g} [dim]{kind}[/dim]")
        numbers = (cell.length, cell.model.heads, cell.seed)
        view.add_row(cell.key[:6], *map(str, numbers), f"{floors.record.metrics['nmse']:.1e}", *cells)
    reasons = dict.fromkeys(
        certificate.estimated
        for floors in found
        for certificate in (floors.anywhere, floors.near_data)
        if certificate is not None and certificate.estimated
    )
    slope = f"{found[0].slope:g}" if found else "-"
    return Group(
        view,
        "",
        "a floor is the error, in standard deviations of the target, that a readout must make on one of two sequences",
        "  any readout: an exact collision is proved, so it holds whatever the readout's size",
        f"  bounded slope: it holds for every readout of slope at most {slope}",
        *(f"  gap estimated: {escape(reason)}" for reason in reasons),
    )
