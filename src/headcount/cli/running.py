"""Run a sweep for a person: the plan in a line, a progress bar, and a stop that keeps what is done."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import typer

from ..answer import count_of_heads
from ..api import measure_question, shown_by
from ..engine import Early, Executor, Sweep, executor_of, plan_sweep, shown_live
from ..engine.where import THREADS, starts_cluster
from ..measurement import Measurement
from ..report.progress import training_progress
from ..search import DEFAULT_EFFORT, Question, effort_of
from ..search.costs import costs
from ..store import FILE_NAME, Store
from ..store.database import holds_tables
from .app import messages, say, this_command
from .plans import describe_costs, describe_plan
from .stopping import stop_on_signals

Result = TypeVar("Result")


@contextlib.contextmanager
def training_on(
    on: str | None, workers: int | None, *, needed: bool = True, folder: Path | None = None
) -> Iterator[Executor]:
    """What trains into a folder, as `executor_of` gives it; threads where nothing is to be trained.

    Starting a cluster takes seconds, and is said.
    """
    if not needed:
        on = workers = None
    if on not in (None, THREADS):
        say("starting a local Ray cluster" if starts_cluster(on) else "connecting to the Ray cluster")
    with executor_of(on, workers, folder=folder) as executor:
        yield executor


def run(sweep: Sweep, folder: Path, work: Callable[..., Result], executor: Executor) -> Result:
    """`work` (`run_sweep` or `measure_sweep`) on a sweep in a results folder, with a progress bar, stoppable."""
    command = this_command()
    with Store.open_for_writing(folder) as store:
        plan = plan_sweep(sweep, store.settled_keys(), executor.machine)
        say(describe_plan(plan, folder))
        try:
            with (
                training_progress(messages, plan.model_steps) as bar,
                stop_on_signals(bar.stop) as stop,
                shown_live(folder, command, shown_by(bar), plan.model_steps) as (listener, _),
            ):
                return work(sweep, store, command=command, listener=listener, stop=stop, executor=executor)
        except KeyboardInterrupt:
            kept = len({cell.key for cell in sweep.cells} & store.settled_keys())
            _say_stopped(f"{kept} of {len(sweep.cells)} cells", folder, command)
            raise typer.Exit(130) from None


def ask(
    question: Question, folder: Path, executor: Executor, *, effort: str | None, minutes: float | None
) -> Measurement:
    """Ask a question in a results folder, with a progress bar that grows with it, stoppable."""
    command = this_command()
    with Store.open_for_writing(folder) as store:
        stored = sum(each.done for each in store.progress() if each.experiment == question.experiment.name)
        range_of = costs(question, effort_of(effort or DEFAULT_EFFORT), executor.machine)
        say(describe_costs(range_of, folder, stored))
        try:
            with (
                training_progress(messages) as bar,
                stop_on_signals(bar.stop) as stop,
                shown_live(folder, command, shown_by(bar, _say_early)) as (listener, live),
            ):
                measurement = measure_question(
                    question,
                    store,
                    effort=effort,
                    minutes=minutes,
                    command=command,
                    listener=listener,
                    stop=stop,
                    executor=executor,
                )
                live.ended = measurement.ended
                return measurement
        except KeyboardInterrupt:
            kept = len(question.cells.keys() & store.settled_keys())
            _say_stopped(f"{kept} of the {len(question.cells)} cells asked for so far", folder, command)
            raise typer.Exit(130) from None


def _say_stopped(kept: str, folder: Path, command: str) -> None:
    say(f"Stopped. {kept} are kept in {folder}. To go on, run the same command:")
    say(f"  {command}")


def _say_early(early: Early) -> None:
    where = f"early estimate at length {early.length}; docs/calibration.md has its record"
    say(f"looks like {count_of_heads(early.heads)} after {early.seconds:.0f} s ({where})")


def settled(folder: Path) -> set[str]:
    """The keys that a folder holds; none where there is no such folder yet, or nothing in it."""
    if not folder.exists() or (folder.is_dir() and not holds_tables(folder / FILE_NAME)):
        return set()
    with Store.open_for_reading(folder) as store:
        return store.settled_keys()
