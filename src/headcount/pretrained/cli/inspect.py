"""`headcount inspect`: which heads of a trained model are needed, of which rank, and what can go."""

import contextlib
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...cli.app import messages, say, this_command
from ...report.document import Document
from ...report.render.words import spoken_time
from ...store import Store
from ..inspection.effort import DEFAULT_EFFORT, LEVELS
from ..inspection.facts import TOLERANCE, measured_facts

if TYPE_CHECKING:
    from ..inspection.measuring import Subject
    from ..inspection.result import Inspection

MODEL = "A folder with config.json and safetensors, or a name on the Hugging Face hub."
DATA = "What it is judged on: text lines (.txt, .jsonl), scored pairs (.tsv, .csv), a folder of images, FILE.py:loss."
EXAMPLES = "Examples read at most, calibration and held-out together (default: by the model's size)."
TOLERATED = f"Loss increase that is allowed, as a share of the loss's scale (default: {TOLERANCE})."
EFFORT = f"How much is measured: {', '.join(LEVELS)} (default: {DEFAULT_EFFORT})."


def inspect(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=MODEL)],
    data: Annotated[str | None, typer.Option(metavar="FILE|DIR", help=DATA)] = None,
    out: Annotated[Path | None, typer.Option(help="Results folder (default: results/MODEL).")] = None,
    length: Annotated[int | None, typer.Option(help="Tokens per example (default: by the model's size).")] = None,
    examples: Annotated[int | None, typer.Option(help=EXAMPLES)] = None,
    effort: Annotated[str, typer.Option(help=EFFORT, show_default=False)] = DEFAULT_EFFORT,
    tolerance: Annotated[float, typer.Option(help=TOLERATED, show_default=False)] = TOLERANCE,
    seed: Annotated[int, typer.Option(help="Of everything that is drawn.")] = 0,
    device: Annotated[str, typer.Option(help="Where torch runs: cpu, cuda.")] = "cpu",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the work and its time, and stop.")] = False,
) -> Document:
    """Which heads of a trained model are needed, of which rank, and what can go.

    Every fact is stored in the results folder as soon as it is measured; the same command continues where it was ended.
    Needs the extra: pip install 'headcount\\[hf]'.
    """
    from ..inspection.inspecting import longest_of, prepare
    from ..loading.describing import short_name

    with messages.status(f"loading {model}") if messages.is_terminal else contextlib.nullcontext():
        subject = prepare(
            model,
            data,
            effort=effort,
            length=length,
            examples=examples,
            seed=seed,
            device=device,
            tolerance=tolerance,
        )
    folder = out or Path("results") / short_name(model)
    say(_what(subject))
    longest = longest_of(subject.examples)
    if length is not None and longest is not None and longest < length:
        say(f"--length {length}: the longest example has {longest} tokens; the data or the model have no longer ones.")
    if dry_run:
        return _dry_run(subject)
    return _result_document(_measure_with_store(subject, folder))


def _what(subject: "Subject") -> str:
    """Describe the model and the data in a line."""
    layers, examples = subject.evaluation.layers, subject.examples
    heads = sum(layer.heads for layer in layers)
    counts = examples.counts()["tokens"]
    model = f"{subject.experiment.name}: {subject.loaded.family}, {len(layers)} layers, {heads} heads"
    tokens = f"({counts['held_out']:,} held-out tokens, {counts['calibration']:,} for calibration)."
    line = f"{model}; {examples.words.rstrip('.')} {tokens}"
    return f"{line} {examples.cannot}" if examples.cannot else line


def _dry_run(subject: "Subject") -> Document:
    """Count the passes, and estimate their time by one that is timed."""
    began = time.perf_counter()
    subject.evaluation.losses()
    seconds = time.perf_counter() - began
    passes = subject.schedule.passes
    total = sum(passes.values())
    spoken = spoken_time(total * seconds)
    lines = [f"{total:,.0f} passes over the held-out examples, {seconds:.2f} s each: about {spoken}"]
    lines += [
        f"  {name}: {count:,.1f} passes, about {spoken_time(count * seconds)}"
        for name, count in passes.items()
        if count
    ]
    schedule = subject.schedule
    if not schedule.effort.leave_one_out:
        lines.append(
            "  effort quick omits ranks, leaving heads out one by one (importance is estimated) and other orders"
        )
    elif not schedule.leave_one_out:
        lines.append("  importance is estimated: each head left out in turn is more work than this effort allows")
    rounded = {name: round(count, 1) for name, count in passes.items()}
    content = {"passes": rounded, "seconds_per_pass": round(seconds, 3), "seconds": round(total * seconds)}
    return Document(content=lambda: content, messages=tuple(lines))


def _measure_with_store(subject: "Subject", folder: Path) -> "Inspection":
    from ..inspection.inspecting import measure_into

    command = this_command()
    with Store.open_for_writing(folder) as store:
        inspected = {each.task for each in store.experiments() if each.study == subject.experiment.study}
        others = inspected - {subject.experiment.task}
        if others:
            say(f"{folder} also holds an inspection of {', '.join(sorted(others))}.")
        try:
            return measure_into(subject, store, command=command)
        except KeyboardInterrupt:
            own = [each.facts for each in store.progress() if each.task == subject.experiment.task]
            kept = max(map(measured_facts, own), default=0)
            say(f"Stopped. {kept} facts are kept in {folder}. To continue, run the same command:")
            say(f"  {command}")
            raise typer.Exit(130) from None


def _result_document(inspection: "Inspection") -> Document:
    cost = inspection.facts["cost"]
    memory = f"at most {cost['peak_bytes'] / 1e9:.1f} GB of memory"
    say(f"measured in {spoken_time(cost['seconds'])}, {memory}; kept in {inspection.folder}")
    messages = [f"Everything with figures: headcount report {inspection.folder}"]
    recommended = inspection.reading.recommended
    if recommended is not None and recommended.command:
        messages.append(f"The recommended model: {recommended.command}")
    return replace(
        inspection.document,
        name="",
        content=lambda: {"folder": str(inspection.folder), **inspection.reading.as_dict()},
        messages=tuple(messages),
    )
