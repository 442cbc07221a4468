"""`headcount inspect`: which heads of a trained model are needed, of which rank, and what can go."""

import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...cli.app import Json, messages, print_json, say, show_view
from ...cli.running import this_command
from ...report.render.terminal import section_view
from ...report.render.words import spoken_time
from ...search.levels import DEFAULT_EFFORT, EFFORTS
from ...store import Store
from ..reading.facts import measured_facts
from ..reading.read import TOLERANCE

if TYPE_CHECKING:
    from ..inspection.inspecting import Prepared
    from ..inspection.result import Inspection

MODEL = "A folder with config.json and safetensors, or a name on the Hugging Face hub."
DATA = "What it is judged on: text lines (.txt, .jsonl), scored pairs (.tsv, .csv), a folder of images, FILE.py:loss."
EXAMPLES = "Examples read at most, calibration and held-out together (default: by the model's size)."
TOLERATED = f"Loss increase that is allowed, as a share of the loss's scale (default: {TOLERANCE})."
EFFORT = f"How much is measured: {', '.join(EFFORTS)} (default: {DEFAULT_EFFORT})."


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
    as_json: Json = False,
) -> None:
    """Which heads of a trained model are needed, of which rank, and what can go.

    Every fact is kept in the results folder as soon as it is measured; the same command goes on where it was ended.
    Needs the extra: pip install 'headcount\\[hf]'.
    """
    from ..inspection.inspecting import prepare
    from ..loading.describing import short_name

    with messages.status(f"loading {model}") if messages.is_terminal else contextlib.nullcontext():
        prepared = prepare(
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
    say(_what(prepared))
    longest = prepared.longest
    if length is not None and longest is not None and longest < length:
        say(f"--length {length}: the longest example has {longest} tokens; the data or the model have no longer ones.")
    if dry_run:
        _dry_run(prepared, as_json)
        return
    _show(_run(prepared, folder), as_json)


def _what(prepared: "Prepared") -> str:
    """The model and the data in a line."""
    layers, examples = prepared.evaluation.layers, prepared.examples
    heads = sum(layer.heads for layer in layers)
    counts = examples.counts()["tokens"]
    model = f"{prepared.experiment.name}: {prepared.loaded.family}, {len(layers)} layers, {heads} heads"
    tokens = f"({counts['held_out']:,} held-out tokens, {counts['calibration']:,} for calibration)."
    line = f"{model}; {examples.words.rstrip('.')} {tokens}"
    return f"{line} {examples.cannot}" if examples.cannot else line


def _dry_run(prepared: "Prepared", as_json: bool) -> None:
    """How many passes there are, and how long they would take by one that is timed."""
    began = time.perf_counter()
    prepared.evaluation.losses()
    seconds = time.perf_counter() - began
    passes = prepared.schedule.passes
    total = sum(passes.values())
    if as_json:
        rounded = {name: round(count, 1) for name, count in passes.items()}
        print_json({"passes": rounded, "seconds_per_pass": round(seconds, 3), "seconds": round(total * seconds)})
        return
    say(f"{total:,.0f} passes over the held-out examples, {seconds:.2f} s each: about {spoken_time(total * seconds)}")
    for name, count in passes.items():
        if count:
            say(f"  {name}: {count:,.1f} passes, about {spoken_time(count * seconds)}")
    schedule = prepared.schedule
    if not schedule.effort.leave_one_out:
        say("  effort quick omits ranks, leaving heads out one by one (importance is estimated) and other orders")
    elif not schedule.leave_one_out:
        say("  importance is estimated: each head left out in turn is more work than this effort allows")


def _run(prepared: "Prepared", folder: Path) -> "Inspection":
    command = this_command()
    with Store.open_for_writing(folder) as store:
        inspected = {each.task for each in store.experiments() if each.study == prepared.experiment.study}
        others = inspected - {prepared.experiment.task}
        if others:
            say(f"{folder} also holds an inspection of {', '.join(sorted(others))}.")
        try:
            return prepared.run(store, command=command)
        except KeyboardInterrupt:
            own = [each.facts for each in store.progress() if each.task == prepared.experiment.task]
            kept = max(map(measured_facts, own), default=0)
            say(f"Stopped. {kept} facts are kept in {folder}. To go on, run the same command:")
            say(f"  {command}")
            raise typer.Exit(130) from None


def _show(inspection: "Inspection", as_json: bool) -> None:
    cost = inspection.facts["cost"]
    memory = f"at most {cost['peak_bytes'] / 1e9:.1f} GB of memory"
    say(f"measured in {spoken_time(cost['seconds'])}, {memory}; kept in {inspection.folder}")
    if as_json:
        print_json({"folder": str(inspection.folder), **inspection.reading.as_dict()})
        return
    show_view(section_view(inspection.section))
    say(f"Everything with figures: headcount report {inspection.folder}")
    recommended = inspection.reading.recommended
    if recommended is not None and recommended.command:
        say(f"The recommended model: {recommended.command}")
