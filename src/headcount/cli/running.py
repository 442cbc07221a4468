"""Run a sweep for a person: the plan in a line, a progress bar, and a stop that keeps what is done."""

import contextlib
import os
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import TypeVar

import typer
from rich.console import Group
from rich.markup import escape
from rich.table import Table

from ..analysis import count_of_heads
from ..effort import DEFAULT_EFFORT, Question, effort_of
from ..effort.costs import Costs, costs
from ..engine import Early, Plan, Sweep, plan_sweep, shown_live, spec_of
from ..measurement import Measurement
from ..measuring import measure_question, shown_by
from ..report.progress import training_progress
from ..store import FILE_NAME, Store
from .app import data, messages, print_json, say

Result = TypeVar("Result")


def this_command() -> str:
    """What was typed, as it can be typed again."""
    return shlex.join(["headcount", *sys.argv[1:]])


def run(sweep: Sweep, folder: Path, work: Callable[..., Result]) -> Result:
    """`work` (`run_sweep` or `measure_sweep`) on a sweep in a results folder, with a progress bar, stoppable."""
    command = this_command()
    with Store.open_for_writing(folder) as store:
        plan = plan_sweep(sweep, store.settled_keys())
        say(describe_plan(plan, folder))
        try:
            with (
                training_progress(messages, plan.model_steps) as bar,
                stop_on_signals() as stop,
                shown_live(folder, command, shown_by(bar), plan.model_steps) as (listener, _),
            ):
                return work(sweep, store, command=command, listener=listener, stop=stop)
        except KeyboardInterrupt:
            kept = len({cell.key for cell in sweep.cells} & store.settled_keys())
            _say_stopped(f"{kept} of {len(sweep.cells)} cells", folder, command)
            raise typer.Exit(130) from None


def ask(question: Question, folder: Path, effort: str | None, minutes: float | None) -> Measurement:
    """Ask a question in a results folder, with a progress bar that grows with it, stoppable."""
    command = this_command()
    with Store.open_for_writing(folder) as store:
        say(describe_costs(costs(question, effort_of(effort or DEFAULT_EFFORT)), folder))
        try:
            with (
                training_progress(messages) as bar,
                stop_on_signals() as stop,
                shown_live(folder, command, shown_by(bar, _say_early)) as (listener, live),
            ):
                measurement = measure_question(
                    question, store, effort=effort, minutes=minutes, command=command, listener=listener, stop=stop
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


@contextlib.contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """An event that Ctrl-C and a polite kill set.

    An exception in their place could be swallowed by whatever the main thread is doing just then (a garbage collector's
    callback swallows it), or could cut a commit in two.
    """
    stop = threading.Event()

    def ask(number: int, _frame: FrameType | None) -> None:
        if stop.is_set() and number == signal.SIGINT:
            os._exit(130)  # what is committed is safe from any kill
        if not stop.is_set():
            say("Stopping at the next checkpoint; Ctrl-C again stops at once.")
        stop.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def describe_plan(plan: Plan, folder: Path) -> str:
    """One line before the work begins."""
    if plan.settled == plan.cells:
        return f"all {plan.cells} models are already in {folder}; nothing to train"
    kept = f", {plan.settled} of them already in {folder}" if plan.settled else f" into {folder}"
    return f"{plan.cells} models{kept}; about {max(1, round(plan.seconds))} s on {plan.machine.description}"


def describe_costs(range_of: Costs, folder: Path) -> str:
    """One line before a question is asked."""
    plan, least = range_of.least, max(1, round(range_of.least.seconds))
    largest = max(spec_of(cell).heads for bucket in plan.buckets for cell in bucket.cells)
    return f"up to {count_of_heads(largest)} into {folder}; usually at least {least} s on {plan.machine.description}"


def print_costs(range_of: Costs, folder: Path, as_json: bool) -> None:
    """What asking a question would cost for an easy task, and for a hard one."""
    if as_json:
        print_json(
            {
                "out": str(folder),
                "device": range_of.least.machine.description,
                **{
                    name: {
                        "cells": plan.cells,
                        "model_steps": plan.model_steps,
                        "expected_seconds": round(plan.seconds, 1),
                        "expected_bytes": plan.bytes,
                    }
                    for name, plan in range_of._asdict().items()
                },
            }
        )
        return
    view = Table(title=escape(f"the plan for {folder}"), title_justify="left", box=None)
    for column in ("", "models", "model-steps", "seconds", "MiB"):
        view.add_column(column, justify="right")
    for words, plan in zip(("an easy task", "a hard task"), range_of, strict=True):
        view.add_row(
            words, str(plan.cells), f"{plan.model_steps:,}", f"{plan.seconds:.0f}", f"{plan.bytes / 2**20:.0f}"
        )
    data.print(Group(view, f"on {range_of.least.machine.description}; what is stored already is not trained again"))


def settled(folder: Path) -> set[str]:
    """The keys that a folder holds; none where there is no such folder yet."""
    if not folder.exists() or (folder.is_dir() and not (folder / FILE_NAME).exists()):
        return set()
    with Store.open_for_reading(folder) as store:
        return store.settled_keys()


def print_plan(plan: Plan, folder: Path, as_json: bool) -> None:
    """What a run would do, bucket by bucket."""
    rows = [
        (bucket.shape.length, sorted({spec_of(cell).heads for cell in bucket.cells}), len(bucket.cells), bucket.shape)
        for bucket in plan.buckets
    ]
    if as_json:
        print_json(
            {
                "out": str(folder),
                "cells": plan.cells,
                "already_done": plan.settled,
                "buckets": [{"length": length, "heads": heads, "members": count} for length, heads, count, _ in rows],
                "programs": plan.programs,
                "model_steps": plan.model_steps,
                "expected_seconds": round(plan.seconds, 1),
                "expected_bytes": plan.bytes,
                "device": plan.machine.description,
            }
        )
        return
    view = Table(title=escape(f"the plan for {folder}"), title_justify="left", box=None)
    for column in ("length", "heads", "members", "steps"):
        view.add_column(column, justify="right")
    for length, heads, count, shape in rows:
        view.add_row(str(length), ", ".join(map(str, heads)), str(count), str(shape.train.steps))
    lines = [
        f"{plan.cells} cells, {plan.settled} already done",
        f"{len(plan.buckets)} buckets, {plan.programs} programs to compile",
        f"about {plan.seconds:.0f} s and {plan.bytes / 2**20:.0f} MiB on {plan.machine.description}",
    ]
    data.print(Group(view, *lines))
