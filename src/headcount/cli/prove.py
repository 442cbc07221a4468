"""`headcount prove`: whether the papers' claims hold when they are run; on a terminal, and as docs/claims.md."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.markup import escape

from .._cache import keep_compiled_programs
from ..report.files import write_whole
from ..report.progress import counted_progress
from ..theory.claims import CLAIMS, Entry, Verdict
from ..theory.claims import prove as run_claims
from .app import Json, data, messages, print_json, say

_COLOURS = {
    "holds": "green",
    "estimated": "yellow",
    "undecided": "magenta",
    "conjecture": "cyan",
    "contradicted": "bold yellow",
    "fails": "bold red",
}


def prove(
    write: Annotated[Path | None, typer.Option(help="Write the ledger as a Markdown page.")] = None,
    as_json: Json = False,
) -> None:
    """Run every claim of both papers at small size: claim, program, evidence, verdict.

    Exits with 1 if a claim fails.
    """
    keep_compiled_programs()
    entries: list[Entry] = []
    with counted_progress(messages, "proving", len(CLAIMS), "claims") as on_done:
        for entry in run_claims():
            entries.append(entry)
            on_done(1)
    if as_json:
        print_json([dataclasses.asdict(entry) for entry in entries])
    else:
        data.print(_view(entries))
    if write is not None:
        write_whole(write, _page(entries, f"headcount prove --write {write}").encode())
        say(f"written to {write}")
    if any(entry.verdict is Verdict.FAILS for entry in entries):
        raise typer.Exit(1)


def _view(entries: Sequence[Entry]) -> RenderableType:
    """Claim, program, evidence, verdict, one under the other."""
    lines = []
    for entry in entries:
        colour = _COLOURS[entry.verdict.value]
        lines.append(
            f"[{colour}]{entry.verdict.value:<12}[/{colour}] [bold]{escape(entry.source)}[/bold]  {escape(entry.claim)}"
        )
        lines.append(f"             [dim]{escape(entry.program)}[/dim]  {escape(entry.evidence)}")
        if entry.control:
            lines.append(f"             [dim]control:[/dim] {escape(entry.control)}")
        if entry.repair:
            lines.append(f"             [dim]repaired:[/dim] {escape(entry.repair)}")
    counts = {name: sum(entry.verdict.value == name for entry in entries) for name in _COLOURS}
    said = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    return Group(*lines, "", f"[bold]{len(entries)} claims: {said}[/bold]")


def _page(entries: Sequence[Entry], command: str) -> str:
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
