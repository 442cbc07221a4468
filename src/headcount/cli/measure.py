"""`headcount measure`: a task to an answer."""

import functools
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from .._cache import cache_folder, keep_compiled_programs
from ..api import default_folder
from ..api import measure as measure_task
from ..engine import Sweep, check_where, plan_sweep
from ..measurement import Measurement
from ..registry import live_page
from ..report.cells import error_cells
from ..report.provenance import backends_of
from ..report.render import check_ending
from ..report.render.terminal import section_view
from ..request import Request
from ..search import DEFAULT_EFFORT, effort_of
from ..search.costs import costs
from ..store import Outcome, Record
from ..tasks import PRESETS
from ..tasks.find import find_task, planned_task
from .app import Json, messages, print_json, say, show_view
from .options import On, TrainingBackend, Workers, given, with_options
from .plans import print_costs, print_plan
from .running import settled, shown, this_command, training_on

TASKS = "A task's name, a file (.npz, .npy, .csv, .parquet, .pt, .jsonl ...), FILE.py:NAME, or a folder."
OUT = "Results folder (default: results/TASK); a local disk is fastest."
LIVE = "Show the run as a live page; it stays until Ctrl-C after the answer."


@with_options
def measure(
    task: Annotated[str, typer.Argument(metavar="TASK|FILE|DIR", help=TASKS, autocompletion=lambda: list(PRESETS))],
    out: Annotated[Path | None, typer.Option(help=OUT)] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw the result into a .svg, .pdf or .png file.")] = None,
    live: Annotated[bool, typer.Option("--live", help=LIVE)] = False,
    on: On = None,
    workers: Workers = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and stop.")] = False,
    as_json: Json = False,
    backend: TrainingBackend = None,
    **options: Any,
) -> None:
    """Say how many heads a task needs, from models trained on it. The same command again continues."""
    keep_compiled_programs()
    check_where(on, workers)
    if figure is not None:
        check_ending(figure)
    find = planned_task if dry_run else functools.partial(find_task, cache=cache_folder())
    request = Request.of(task, find=find, **given(options))
    asked, folder = request.planned, out or default_folder(request)
    if dry_run:
        _print_plan(request, folder, on, workers, as_json)
        return
    page = live_page(folder) if live else None
    if page is not None:
        say(f"live page: {page.address}")
    # A sweep that is stored needs no cluster.
    needed = on is None or not isinstance(asked, Sweep) or not settled(folder).issuperset(c.key for c in asked.cells)
    with training_on(on, workers, needed=needed, folder=folder) as executor, shown(folder) as (events, stop):
        measurement = measure_task(request, out=folder, on=executor, events=events, stop=stop, command=this_command())
    _print(measurement, figure, as_json)
    if page is not None:
        sys.stdout.flush()  # who reads the answer from a pipe has it now
        say(f"the page stays at {page.address} until Ctrl-C")
        page.wait()
    if code := 3 if _failed(measurement) else 4 if measurement.ended == "budget" else 0:
        raise typer.Exit(code)


def _print_plan(request: Request, folder: Path, on: str | None, workers: int | None, as_json: bool) -> None:
    for note in (*request.task.notes, *request.notes):
        say(note)
    with training_on(on, workers) as executor:
        machine = executor.machine
    if isinstance(request.planned, Sweep):
        print_plan(plan_sweep(request.planned, settled(folder), machine), folder, as_json)
    else:
        print_costs(costs(request.planned, effort_of(request.effort or DEFAULT_EFFORT), machine), folder, as_json)


def _print(measurement: Measurement, figure: Path | None, as_json: bool) -> None:
    """The answer alone on stdout, and everything else as messages."""
    show_view(section_view(measurement.section), messages)
    if failed := _failed(measurement):
        say(f"{len(failed)} cells failed; the first: {failed[0].message}", style="red")
    if as_json:
        print_json(_as_json(measurement))
    else:
        print(measurement.answer().sentence)
    if figure is not None:
        measurement.plot(figure)
        say(f"drawn in {figure}")
    if measurement.ended == "budget":
        say("The time given is over: more training may change the answer. To go on, run it again, with more --minutes:")
        say(f"  {this_command()}")


def _failed(measurement: Measurement) -> list[Record]:
    return [record for record in measurement.records if record.outcome is Outcome.FAILED]


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
            "errors": error_cells(measurement.section),
        }
        | measurement.coverage.as_dict()
    )
