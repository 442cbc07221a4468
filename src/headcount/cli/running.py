"""Show a run to a person: the plan in a line, a progress bar, and a stop that keeps what is done."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import typer

from ..engine import Executor, Sweep, TrainingPlan, executor_of, plan_sweep
from ..engine.executors import THREADS, starts_cluster
from ..events import Event, Events, heard_by
from ..report.progress import terminal_bar
from ..store import FILE_NAME, Store
from ..store.database import holds_tables
from ..store.live import LiveWriter
from .app import messages, say, this_command
from .plans import describe_costs, describe_plan
from .stopping import stop_on_signals

Result = TypeVar("Result")


@contextlib.contextmanager
def training_on(
    on: str | None, workers: int | None, *, needed: bool = True, folder: Path | None = None
) -> Iterator[Executor]:
    """Yield what trains into a folder, as `executor_of` gives it; threads where nothing is to be trained.

    Starting a cluster takes seconds, and is said.
    """
    if not needed:
        on = workers = None
    if on not in (None, THREADS):
        say("starting a local Ray cluster" if starts_cluster(on) else "connecting to the Ray cluster")
    with executor_of(on, workers, folder=folder) as executor:
        yield executor


@contextlib.contextmanager
def shown(folder: Path) -> Iterator[tuple[Events, threading.Event]]:
    """Yield a listener with a bar, and the event that Ctrl-C sets. Stopped, say what is kept and exit with 130."""

    def log(event: Event) -> None:
        if event.kind in ("note", "early"):
            say(event.words)
        elif event.kind == "plan" and isinstance(event.detail, TrainingPlan):
            say(describe_plan(event.detail, folder))
        elif event.kind == "plan":
            say(describe_costs(event.detail(), folder, event.done))

    try:
        with (
            terminal_bar(messages) as bar,
            stop_on_signals(lambda: bar(Event("stop"))) as stop,
        ):
            yield heard_by(bar, log), stop
    except KeyboardInterrupt as stopped:
        say(f"Stopped. {stopped} are kept in {folder}. To continue, run the same command:")
        say(f"  {this_command()}")
        raise typer.Exit(130) from None


def run_shown(sweep: Sweep, folder: Path, work: Callable[..., Result], executor: Executor) -> Result:
    """Run `work` (`run_sweep`) on a sweep in a results folder, shown and stoppable."""
    with shown(folder) as (events, stop), Store.open_for_writing(folder) as store:
        plan = plan_sweep(sweep, store.settled_keys(), executor.machine)
        events(Event("plan", done=plan.settled, detail=plan))
        try:
            with LiveWriter(folder, this_command()) as live:
                hear = heard_by(events, live)
                hear(Event("round", total=plan.model_steps))
                return work(sweep, store, command=this_command(), events=hear, plan=plan, stop=stop, executor=executor)
        except KeyboardInterrupt:
            kept = len({cell.key for cell in sweep.cells} & store.settled_keys())
            raise KeyboardInterrupt(f"{kept} of {len(sweep.cells)} cells") from None


def settled(folder: Path) -> set[str]:
    """Return the keys that a folder holds; none where there is no such folder yet, or nothing in it."""
    if not folder.exists() or (folder.is_dir() and not holds_tables(folder / FILE_NAME)):
        return set()
    with Store.open_for_reading(folder) as store:
        return store.settled_keys()
