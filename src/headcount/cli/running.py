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

from ..engine import Plan, Sweep, plan_sweep, spec_of
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
            with training_progress(messages, plan.model_steps) as on_steps, stop_on_signals() as stop:
                return work(sweep, store, command=command, on_steps=on_steps, stop=stop)
        except KeyboardInterrupt:
            kept = len({cell.key for cell in sweep.cells} & store.settled_keys())
            say(f"Stopped. {kept} of {len(sweep.cells)} cells are kept in {folder}. To go on, run the same command:")
            say(f"  {command}")
            raise typer.Exit(130) from None


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
