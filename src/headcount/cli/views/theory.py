"""What `headcount bounds` and `headcount prove` print, and the page docs/claims.md."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.markup import escape

from ...theory.bounds import Bound
from ...theory.ledger import Entry

_COLOURS = {"holds": "green", "estimated": "yellow", "conjecture": "cyan", "fails": "bold red"}


def bounds_view(bounds: Sequence[Bound]) -> RenderableType:
    """Bounds one under the other: what each is worth here, what it claims, and what it rests on."""
    marks = {True: "[green]yes[/green]", False: "[red]no[/red]", None: "assumed"}
    lines = []
    for bound in bounds:
        value = "says nothing" if bound.value is None else f"{bound.value:.4g}"
        kind = "" if bound.kind == "theorem" else f" [yellow]{bound.kind}[/yellow]"
        style = "bold" if bound.applies else "dim"
        lines.append(f"[{style}]{escape(bound.name)}: {value}[/{style}]  {escape(bound.source)}{kind}")
        lines.append(f"  {escape(bound.why or bound.claim)}")
        if bound.conditions:
            conditions = "; ".join(f"{escape(c.text)}: {marks[c.holds]}" for c in bound.conditions)
            lines.append(f"  [dim]needs[/dim] {conditions}")
    return Group(*lines)


def ledger_view(entries: Sequence[Entry]) -> RenderableType:
    """Claim, program, evidence, verdict, one under the other."""
    lines = []
    for entry in entries:
        colour = _COLOURS[entry.verdict.value]
        lines.append(
            f"[{colour}]{entry.verdict.value:<10}[/{colour}] [bold]{escape(entry.source)}[/bold]  {escape(entry.claim)}"
        )
        lines.append(f"           [dim]{escape(entry.program)}[/dim]  {escape(entry.evidence)}")
        if entry.repair:
            lines.append(f"           [dim]repaired:[/dim] {escape(entry.repair)}")
    counts = {name: sum(entry.verdict.value == name for entry in entries) for name in _COLOURS}
    said = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    return Group(*lines, "", f"[bold]{len(entries)} claims: {said}[/bold]")


def ledger_page(entries: Sequence[Entry], command: str) -> str:
    """The same as Markdown."""
    lines = [
        "# Claims",
        "",
        f"Written by `{command}`, which runs every claim of the two papers (Yu et al., arXiv 2510.06662;",
        "Amsel et al., arXiv 2407.16153) at small size.",
        "*holds*: seen here, or proved and not contradicted by what was tried; *estimated*: rests on sampling;",
        "*conjecture*: proved by nobody; *fails*: contradicted by the numbers.",
        "",
        "| source | claim | program | evidence | verdict |",
        "|---|---|---|---|---|",
    ]
    for entry in entries:
        cells = (entry.source, entry.claim, f"`{entry.program}`", entry.evidence, f"**{entry.verdict.value}**")
        lines.append("| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |")
    lines += ["", "## Repairs", "", "Where a published step did not run as written, and what stands in its place:", ""]
    lines += [f"* *{entry.source}.* {_sentence(entry.repair)}" for entry in entries if entry.repair]
    return "\n".join(lines) + "\n"


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."
