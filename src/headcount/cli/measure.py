"""`headcount measure`: a task to an answer."""

import functools
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from .._cache import cache_folder, keep_compiled_programs
from ..api import default_folder
from ..api import measure as measure_task
from ..engine import Sweep, check_where, plan_sweep
from ..measurement import Measurement
from ..registry import LivePage, first_of
from ..report.document import Document
from ..report.error_grid import error_rows
from ..report.experiment import STOCK_MODELS
from ..report.provenance import backends_of
from ..request import Request
from ..search import DEFAULT_EFFORT, effort_of
from ..search.costs import costs
from ..store import Outcome
from ..tasks import PRESETS
from ..tasks.find import find_task, planned_task
from .app import say
from .options import On, TrainingBackend, Workers, given, with_options
from .plans import costs_document, plan_document
from .running import settled, shown, this_command, training_on

TASKS = "A task's name, a file (.npz, .npy, .csv, .parquet, .pt, .jsonl ...), FILE.py:NAME, or a folder."
OUT = "Results folder (default: results/TASK); a local disk is fastest."
LIVE = "Show the run as a live page; it stays until Ctrl-C after the answer."


@with_options
def measure(
    task: Annotated[str, typer.Argument(metavar="TASK|FILE|DIR", help=TASKS, autocompletion=lambda: list(PRESETS))],
    out: Annotated[Path | None, typer.Option(help=OUT)] = None,
    live: Annotated[bool, typer.Option("--live", help=LIVE)] = False,
    on: On = None,
    workers: Workers = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and stop.")] = False,
    backend: TrainingBackend = None,
    **options: Any,
) -> Document:
    """Say how many heads a task needs, from models trained on it. The same command again continues."""
    context = options.pop("context", None)
    keep_compiled_programs()
    check_where(on, workers)
    find = planned_task if dry_run else functools.partial(find_task, cache=cache_folder())
    request = Request.from_arguments(task, find=find, **given(options))
    asked, folder = request.planned, out or default_folder(request)
    if dry_run:
        return _plan(request, folder, on, workers)
    page = first_of(lambda each: each.live_page(folder)) if live else None
    if page is not None:
        say(f"live page: {page.address}")
    # A sweep that is stored needs no cluster.
    needed = on is None or not isinstance(asked, Sweep) or not settled(folder).issuperset(c.key for c in asked.cells)
    with training_on(on, workers, needed=needed, folder=folder) as executor, shown(folder) as (events, stop):
        measurement = measure_task(request, out=folder, on=executor, events=events, stop=stop, command=this_command())
    if page is not None:
        context.call_on_close(functools.partial(_stay_open, page))
    return _answer_document(measurement)


def _stay_open(page: LivePage) -> None:
    """Keep the live page after the answer is printed, until Ctrl-C."""
    sys.stdout.flush()  # who reads the answer from a pipe has it now
    say(f"the page stays at {page.address} until Ctrl-C")
    page.wait()


def _plan(request: Request, folder: Path, on: str | None, workers: int | None) -> Document:
    for note in (*request.task.notes, *request.notes):
        say(note)
    with training_on(on, workers) as executor:
        machine = executor.machine
    if isinstance(request.planned, Sweep):
        return plan_document(plan_sweep(request.planned, settled(folder), machine), folder)
    return costs_document(costs(request.planned, effort_of(request.effort or DEFAULT_EFFORT), machine), folder)


def _answer_document(measurement: Measurement) -> Document:
    """Show the answer alone as data, and everything else as messages."""
    failed = [record for record in measurement.records if record.outcome is Outcome.FAILED]
    messages: list[str | tuple[str, str]] = []
    if failed:
        messages.append((f"{len(failed)} cells failed; the first: {failed[0].message}", "red"))
    if measurement.ended == "budget":
        messages.append(
            "The time given is over: more training may change the answer. To continue, run it with more --minutes:"
        )
        messages.append(f"  {this_command()}")
    return replace(
        measurement.document,
        name="",
        content=lambda: _as_json(measurement),
        only_closing=True,
        messages=tuple(messages),
        code=3 if failed else 4 if measurement.ended == "budget" else 0,
    )


def _as_json(measurement: Measurement) -> dict[str, Any]:
    run = measurement.run
    assert run is not None
    return (
        measurement.answer().as_dict()
        | {
            "experiment": measurement.experiment.name,
            "out": str(measurement.folder),
            "already_done": run.already_done,
            "trained": {outcome.value: count for outcome, count in run.outcomes.items()},
            "seconds": round(run.seconds, 2),
            "ended": measurement.ended,
            "early": measurement.early,
            "backends": backends_of(measurement.records),
            "errors": error_rows(measurement.table),
        }
        | {name: each for name, each in measurement.facts.items() if name == STOCK_MODELS}
        | measurement.coverage.as_dict()
    )
