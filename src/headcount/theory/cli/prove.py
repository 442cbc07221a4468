"""`headcount prove`: whether the papers' theorems hold when they are run; on a terminal, and as docs/claims.md."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from ..._cache import keep_compiled_programs
from ...answer.claim import Claim, ClaimResult, Verdict
from ...cli.app import messages
from ...report.document import Document, Text, line
from ...report.files import write_whole
from ...report.progress import counted_progress
from ..claims import CLAIMS, NOT_RUN, NotRun

MEANINGS = {
    "holds": ("green", "seen here, or proved and not contradicted by what was tried; the control does not pass"),
    "estimated": ("yellow", "the same, but it rests on samples or searches"),
    "undecided": (
        "magenta",
        "the check cannot tell: its control passes too, or the theorem says nothing at a size that can be run",
    ),
    "contradicted": (
        "bold yellow",
        "a witness refutes what a paper states, for the class of models named in the line",
    ),
    "fails": ("bold red", "our own program does not keep its promise"),
}
"""The colour and the meaning of a verdict."""
CONTROL = (
    "A control is the same check on something broken (gates zeroed, weights shuffled, a wrong exponent, all heads "
    "where one was removed). It must not pass: a check that a broken thing passes too is no evidence."
)
DOES_NOT_PASS = "does not pass, as it must not"

Entry = dict[str, str]


def prove(
    write: Annotated[Path | None, typer.Option(help="Write the ledger as a Markdown page.")] = None,
) -> Document:
    """Run every theorem of both papers that we could run, at small size: claim, program, evidence, control, verdict.

    A control is the same check on something broken, which must not pass. After the claims: what is not run, and why.
    Exits with 1 if a claim fails.
    """
    keep_compiled_programs()
    entries: list[Entry] = []
    with counted_progress(messages, "proving", len(CLAIMS), "claims") as on_done:
        for claim in CLAIMS:
            entries.append(ledger_entry(claim, claim.judge()))
            on_done(1)
    if write is not None:
        write_whole(write, ledger_page(entries, NOT_RUN, f"headcount prove --write {write}").encode())
    return Document(
        content=lambda: {"claims": entries, "not_run": [each._asdict() for each in NOT_RUN]},
        blocks=tuple(_lines(entries, NOT_RUN)),
        messages=() if write is None else (f"written to {write}",),
        code=1 if any(entry["verdict"] is Verdict.FAILS for entry in entries) else 0,
    )


def ledger_entry(claim: Claim, result: ClaimResult) -> Entry:
    """One line of the ledger; its JSON."""
    control, seen = "", result.reference
    if seen is not None:
        control = f"{seen.statement}: {seen.evidence} ({'passes too' if seen.verdict.passed else DOES_NOT_PASS})"
    return {
        "claim": claim.statement,
        "source": claim.source,
        "program": claim.program,
        "evidence": result.evidence,
        "verdict": result.verdict,
        "repair": claim.repair,
        "control": control,
    }


def _lines(entries: Sequence[Entry], not_run: Sequence[NotRun]) -> Iterator[Text]:
    """Claim, program, evidence, control, verdict, one under the other; then what is not run."""
    margin = " " * 13
    for entry in entries:
        verdict = f"{entry['verdict']:<12}", MEANINGS[entry["verdict"]][0]
        yield line(verdict, " ", (entry["source"], "bold"), f"  {entry['claim']}")
        yield line(margin, (entry["program"], "dim"), f"  {entry['evidence']}")
        if entry["control"]:
            yield line(margin, ("control:", "dim"), f" {entry['control']}")
        if entry["repair"]:
            yield line(margin, ("repaired:", "dim"), f" {entry['repair']}")
    counts = {name: sum(entry["verdict"] == name for entry in entries) for name in MEANINGS}
    said = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    yield line("")
    yield line((f"{len(entries)} claims: {said}", "bold"))
    for name in filter(counts.get, counts):
        yield line((f"{name}: {MEANINGS[name][1]}", "dim"))
    if not_run:
        yield line("")
        yield line(("Not run:", "bold"))
    for each in not_run:
        yield line("  ", (each.source, "bold"), f"  {each.statement}")
        yield line(margin, ("why:", "dim"), f" {each.why}")


def ledger_page(entries: Sequence[Entry], not_run: Sequence[NotRun], command: str) -> str:
    """The same as Markdown."""
    lines = [
        "# Claims",
        "",
        f"Written by `{command}`, which runs every theorem of the two papers (Yu et al., arXiv 2510.06662;",
        "Amsel et al., arXiv 2407.16153) that we could run, at small size; [the others](#not-run) are listed below.",
        "",
        *(f"* *{name}*: {meaning}" for name, (_, meaning) in MEANINGS.items()),
        "",
        CONTROL,
        "",
        "| source | claim | program | evidence | control | verdict |",
        "|---|---|---|---|---|---|",
    ]
    for entry in entries:
        program, verdict, control = f"`{entry['program']}`", f"**{entry['verdict']}**", entry["control"] or "none"
        cells = (entry["source"], entry["claim"], program, entry["evidence"], control, verdict)
        lines.append("| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |")
    lines += ["", "## Repairs", "", "Where a published step did not run as written, and what stands in its place:", ""]
    lines += [f"* *{entry['source']}.* {_as_sentence(entry['repair'])}" for entry in entries if entry["repair"]]
    lines += ["", "## Not run", "", "Statements of the papers that no line above reaches, and why:", ""]
    lines += [f"* *{each.source}*: {each.statement}. {_as_sentence(each.why)}" for each in not_run]
    return "\n".join(lines) + "\n"


def _as_sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."
