"""The command line: arguments in, data to stdout, talk to stderr.

Exit codes: 0 fine, 1 failed, 2 a request that cannot be right, 3 some cells failed, 130 stopped by Ctrl-C.
"""

import contextlib
import json
import os
import re
import shlex
import signal
import sys
import threading
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import jax
import typer
from rich.console import Console

from . import _arguments
from ._errors import HeadcountError, InputError, require
from ._version import __version__
from .analysis import answer_from_table, error_table, experiments
from .doctor import examine
from .engine import Plan, Sweep, grid, plan_sweep
from .measure import Measurement, measure_sweep
from .models import ModelSpec
from .report.export import to_csv, to_json
from .report.figures import FORMATS, check_ending, error_against_heads, save_figure
from .report.progress import training_progress
from .report.text import assumption_view, experiment_view, plan_view, preset_view, status_view
from .store import Outcome, Store, TrainSpec
from .tasks import PRESETS, AbstractTask, Retrieval, check_assumptions, preset_options
from .tasks.find import find_task

app = typer.Typer(
    help="How many attention heads does a task need?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
talk = Console(stderr=True)
data = Console(soft_wrap=True)

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A results folder.")]


class Format(StrEnum):
    csv = "csv"
    json = "json"


def main() -> NoReturn:
    """Run a command; a mistake or a failure ends in one sentence and an exit code, never in a traceback."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a polite kill is a Ctrl-C
    try:
        app(standalone_mode=True)
    except HeadcountError as error:
        talk.print(f"headcount: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(error.exit_code)
    sys.exit(0)


@app.callback(invoke_without_command=True)
def start(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    if version:
        print(f"headcount {__version__}")
        raise typer.Exit
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headcount" / "compiled"
    except RuntimeError:  # a user without a home
        return
    jax.config.update("jax_compilation_cache_dir", str(cache))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)


@app.command()
def measure(
    task: Annotated[str, typer.Argument(metavar="TASK|FILE", help="A task's name, FILE.npz, X.npy or FILE.py:NAME.")],
    heads: Annotated[str, typer.Option(help="Head counts: 1:6, or 1,2,4,8.")] = "1:6",
    lengths: Annotated[str | None, typer.Option(help="Sequence lengths [default: 8,16,32, or your data's].")] = None,
    seeds: Annotated[int, typer.Option(help="Seeds for every head count and length.")] = 4,
    out: Annotated[Path | None, typer.Option(help="Results folder [default: results/TASK].")] = None,
    steps: Annotated[int, typer.Option(help="Training steps of every model.")] = TrainSpec.steps,
    batch: Annotated[int, typer.Option(help="Examples in a training step.")] = TrainSpec.batch,
    learning_rates: Annotated[str, typer.Option(help="Peak learning rates; a seed's best one counts.")] = "0.01",
    train_examples: Annotated[int, typer.Option(help="Examples to learn from.")] = TrainSpec.train_examples,
    validation_examples: Annotated[int, typer.Option(help="Examples to be judged on.")] = TrainSpec.validation_examples,
    head_dim: Annotated[int | None, typer.Option(help="Numbers in a head [default: 8].")] = None,
    total_dim: Annotated[int | None, typer.Option(help="Numbers shared by all heads, instead of --head-dim.")] = None,
    hidden: Annotated[int, typer.Option(help="Width of both feed-forward nets.")] = ModelSpec.hidden,
    layers: Annotated[int, typer.Option(help="Attention layers.")] = ModelSpec.layers,
    positions: Annotated[str, typer.Option(help="auto, none, additive or concatenated.")] = "auto",
    beta: Annotated[float, typer.Option(help="Factor on every attention score.")] = ModelSpec.beta,
    intrinsic_dim: Annotated[int | None, typer.Option(help="The task's D.", rich_help_panel="Task")] = None,
    dim: Annotated[int | None, typer.Option(help="Numbers in a token.", rich_help_panel="Task")] = None,
    directions: Annotated[str | None, typer.Option(help="random or basis.", rich_help_panel="Task")] = None,
    law: Annotated[str | None, typer.Option(help="gaussian or cube.", rich_help_panel="Task")] = None,
    windows: Annotated[
        str | None, typer.Option(help="Position sets as fractions: 0:0.5,0.5:1.", rich_help_panel="Task")
    ] = None,
    task_seed: Annotated[int | None, typer.Option(help="Draws the task's own numbers.", rich_help_panel="Task")] = None,
    targets: Annotated[
        Path | None, typer.Option(help="y.npy, when the file holds x alone.", rich_help_panel="Your data")
    ] = None,
    shorter: Annotated[
        str | None,
        typer.Option(help="How shorter lengths are made: given, leading, trailing.", rich_help_panel="Your data"),
    ] = None,
    validation_fraction: Annotated[
        float | None, typer.Option(help="Share of the examples kept for validation.", rich_help_panel="Your data")
    ] = None,
    figure: Annotated[Path | None, typer.Option(help=f"Draw the result ({', '.join(FORMATS)}).")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and stop.")] = False,
    as_json: Json = False,
) -> None:
    """Train heads x lengths x seeds on a task and say how many heads it needs. The same command again continues."""
    require(seeds >= 1, f"--seeds must be at least 1, got {seeds}.")
    options = {
        "intrinsic_dim": intrinsic_dim,
        "dim": dim,
        "directions": directions,
        "law": law,
        "windows": None if windows is None else _arguments.windows(windows),
        "task_seed": task_seed,
        "targets": targets,
        "shorter": shorter,
        "validation_fraction": validation_fraction,
    }
    found = find_task(task, **{name: value for name, value in options.items() if value is not None})
    shared = {"hidden": hidden, "layers": layers, "beta": beta, "positions": _positions(positions, found)}
    require(head_dim is None or total_dim is None, "give --head-dim or --total-dim, not both.")

    def model(count: int) -> ModelSpec:
        if total_dim is not None:
            return ModelSpec.with_total_dim(total_dim, heads=count, **shared)
        return ModelSpec(heads=count, head_dim=ModelSpec.head_dim if head_dim is None else head_dim, **shared)

    sweep = grid(
        found,
        heads=_arguments.counts(heads, "--heads"),
        lengths=_default_lengths(found) if lengths is None else _arguments.counts(lengths, "--lengths"),
        seeds=range(seeds),
        learning_rates=_arguments.numbers(learning_rates, "--learning-rates"),
        model=model,
        train=TrainSpec(
            steps=steps, batch=batch, train_examples=train_examples, validation_examples=validation_examples
        ),
    )
    if figure is not None:
        check_ending(figure)
    root = out or Path("results") / re.sub(r"[^\w.-]+", "-", found.name)
    if dry_run:
        _print_plan(plan_sweep(sweep, _settled(root)), root, as_json)
        return
    measurement = _run(sweep, root)
    settings = experiments(measurement.records)[0].settings
    talk.print(experiment_view(settings, measurement.table, measurement.answer))
    for record in measurement.records:
        if record.outcome is Outcome.FAILED:
            talk.print(f"{measurement.run.failed} cells failed; the first: {record.message}", style="red", markup=False)
            break
    _print_answer(measurement, root, as_json)
    if figure is not None:
        save_figure(error_against_heads(measurement.table, measurement.answer, found.name), figure)
        talk.print(f"drawn in {figure}", highlight=False, markup=False)
    if measurement.run.failed:
        raise typer.Exit(3)


@app.command()
def status(folder: Folder, as_json: Json = False) -> None:
    """What a results folder holds, what is missing, and how to go on."""
    with Store.open_for_reading(folder) as store:
        records, sweeps = store.records(), store.sweeps()
    outcomes = {record.cell.key: record.outcome for record in records}
    counts = {outcome.value: sum(found is outcome for found in outcomes.values()) for outcome in Outcome}
    asked = [
        {
            "command": sweep["command"],
            "started": sweep["started"],
            "cells": len(sweep["keys"]),
            "done": sum(outcomes.get(key, Outcome.FAILED) is not Outcome.FAILED for key in sweep["keys"]),
        }
        for sweep in sweeps
    ]
    if as_json:
        _print_json({"folder": str(folder), "cells": counts, "sweeps": asked})
    else:
        data.print(status_view(folder, counts, asked), markup=False, highlight=False)


@app.command()
def show(
    folder: Folder,
    figure: Annotated[Path | None, typer.Option(help=f"Draw the result ({', '.join(FORMATS)}).")] = None,
    as_json: Json = False,
) -> None:
    """The answer and the errors of every experiment in a results folder."""
    with Store.open_for_reading(folder) as store:
        found = experiments(store.records())
    require(len(found) > 0, f"{folder} holds no finished cells yet.")
    require(
        figure is None or len(found) == 1,
        f"{folder} holds {len(found)} experiments; a figure shows one. Measure each in a folder of its own.",
    )
    results = []
    for experiment in found:
        table = error_table(experiment.records)
        answer = answer_from_table(table)
        results.append({"settings": experiment.settings, **answer.as_dict()})
        if figure is not None:
            save_figure(error_against_heads(table, answer, experiment.settings["task"]["task"]), figure)
            talk.print(f"drawn in {figure}", highlight=False, markup=False)
        if not as_json:
            data.print(experiment_view(experiment.settings, table, answer))
            data.print(answer.sentence, style="bold", highlight=False)
    if as_json:
        _print_json(results)


@app.command()
def export(
    folder: Folder,
    form: Annotated[Format, typer.Option("--format", help="csv or json.")] = Format.csv,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A file instead of stdout.")] = None,
    timing: Annotated[bool, typer.Option("--timing", help="Add seconds, device and date.")] = False,
    as_json: Json = False,
) -> None:
    """Every cell of a results folder as a table. Without --timing, equal results make equal bytes."""
    with Store.open_for_reading(folder) as store:
        records = store.records()
    text = to_json(records, timing=timing) if as_json or form is Format.json else to_csv(records, timing=timing)
    if out is None:
        sys.stdout.write(text)
        return
    try:
        out.write_text(text)
    except OSError as error:
        raise HeadcountError(f"{out} cannot be written: {error.strerror or error}.") from error


@app.command()
def tasks(
    name: Annotated[str | None, typer.Argument(help="A preset, to test Assumption 2 on it.")] = None,
    as_json: Json = False,
) -> None:
    """The tasks that have a name, with their options; or one of them tested against the papers' assumptions."""
    if name is None:
        presets = {
            known: {"summary": make.__doc__, "options": preset_options(known)} for known, make in PRESETS.items()
        }
        if as_json:
            _print_json(presets)
        else:
            data.print(preset_view(presets))
        return
    task = find_task(name)
    require(isinstance(task, Retrieval), f'Assumption 2 speaks of retrieval tasks only, and "{name}" is not one.')
    assert isinstance(task, Retrieval)
    report = check_assumptions(task)
    if as_json:
        clauses = [{"clause": c.name, "holds": c.holds, "evidence": c.evidence} for c in report.clauses]
        _print_json({"task": task.spec(), "intrinsic_dim": task.intrinsic_dim, "clauses": clauses})
    else:
        data.print(assumption_view(task.name, report))


@app.command()
def doctor(as_json: Json = False) -> None:
    """Whether this machine is fit for headcount: versions, devices, memory, a trained model."""
    findings = examine()
    if as_json:
        _print_json([{"check": f.check, "fine": f.fine, "found": f.found} for f in findings])
    else:
        for finding in findings:
            mark = "[green]ok[/green]" if finding.fine else "[red]no[/red]"
            data.print(f"{mark}  {finding.check}: {finding.found}", highlight=False)
    if not all(finding.fine for finding in findings):
        raise typer.Exit(1)


def _run(sweep: Sweep, root: Path) -> Measurement:
    command = shlex.join(["headcount", *sys.argv[1:]])
    with Store.open_for_writing(root) as store:
        plan = plan_sweep(sweep, store.settled_keys())
        talk.print(describe_plan(plan, root), highlight=False, markup=False)
        try:
            with training_progress(talk, plan.model_steps) as on_steps, _stop_on_signals() as stop:
                return measure_sweep(sweep, store, command=command, on_steps=on_steps, stop=stop)
        except KeyboardInterrupt:
            kept = len({cell.key for cell in sweep.cells} & store.settled_keys())
            talk.print(
                f"Stopped. {kept} of {len(sweep.cells)} cells are kept in {root}. To go on, run the same command:",
                markup=False,
            )
            talk.print(f"  {command}", highlight=False, markup=False, soft_wrap=True)
            raise typer.Exit(130) from None


@contextlib.contextmanager
def _stop_on_signals() -> Iterator[threading.Event]:
    """An event that Ctrl-C and a polite kill set. An exception in their place could be swallowed by whatever the main
    thread is in just then (a garbage collector's callback swallows it), or could cut a commit in two."""
    stop = threading.Event()
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def describe_plan(plan: Plan, root: Path) -> str:
    """One line before the work begins."""
    kept = f", {plan.settled} of them already in {root}" if plan.settled else f" into {root}"
    return f"{plan.cells} models{kept}; about {max(1, round(plan.seconds))} s on {plan.machine.description}"


def _settled(root: Path) -> set[str]:
    if not root.exists():
        return set()
    with Store.open_for_reading(root) as store:
        return store.settled_keys()


def _print_plan(plan: Plan, root: Path, as_json: bool) -> None:
    if not as_json:
        data.print(plan_view(plan, str(root)))
        return
    buckets = [
        {"length": b.shape.length, "heads": sorted({c.model.heads for c in b.cells}), "members": len(b.cells)}
        for b in plan.buckets
    ]
    _print_json(
        {
            "out": str(root),
            "cells": plan.cells,
            "already_done": plan.settled,
            "buckets": buckets,
            "programs": plan.programs,
            "model_steps": plan.model_steps,
            "expected_seconds": round(plan.seconds, 1),
            "expected_bytes": plan.bytes,
            "device": plan.machine.description,
        }
    )


def _print_answer(measurement: Measurement, root: Path, as_json: bool) -> None:
    if not as_json:
        print(measurement.answer.sentence)
        return
    run = measurement.run
    outcomes = {outcome.value: count for outcome, count in run.outcomes.items()}
    _print_json(
        measurement.answer.as_dict()
        | {"out": str(root), "already_done": run.already_done, "trained": outcomes, "seconds": round(run.seconds, 2)}
    )


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=1))


def _positions(given: str, task: AbstractTask) -> Any:
    return ("additive" if task.uses_positions else "none") if given == "auto" else given


def _default_lengths(task: AbstractTask) -> list[int]:
    """8, 16 and 32 where the task has every length; its own where it has one only."""
    try:
        return [task.at(length).length for length in (8, 16, 32)]
    except InputError:
        return [task.length]
