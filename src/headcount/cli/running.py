"""Run a sweep for a person: the plan in a line, a progress bar, and a stop that keeps what is done."""

import contextlib
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import typer

from ..engine import Plan, Sweep, plan_sweep
from ..report.progress import training_progress
from ..store import FILE_NAME, Store
from .app import talk

Result = TypeVar("Result")


def this_command() -> str:
    """What was typed, as it can be typed again."""
    return shlex.join(["headcount", *sys.argv[1:]])


def run(sweep: Sweep, root: Path, work: Callable[..., Result]) -> Result:
    """`work` (`run_sweep` or `measure_sweep`) done on a sweep in the folder `root`, watched and stoppable."""
    command = this_command()
    with Store.open_for_writing(root) as store:
        plan = plan_sweep(sweep, store.settled_keys())
        talk.print(describe_plan(plan, root), highlight=False, markup=False)
        try:
            with training_progress(talk, plan.model_steps) as on_steps, stop_on_signals() as stop:
                return work(sweep, store, command=command, on_steps=on_steps, stop=stop)
        except KeyboardInterrupt:
            kept = len({cell.key for cell in sweep.cells} & store.settled_keys())
            talk.print(
                f"Stopped. {kept} of {len(sweep.cells)} cells are kept in {root}. To go on, run the same command:",
                markup=False,
            )
            talk.print(f"  {command}", highlight=False, markup=False, soft_wrap=True)
            raise typer.Exit(130) from None


@contextlib.contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
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


def settled(root: Path) -> set[str]:
    if not root.exists() or (root.is_dir() and not (root / FILE_NAME).exists()):
        return set()
    with Store.open_for_reading(root) as store:
        return store.settled_keys()
