"""Programs take turns, so that what else the machine does hits all of them alike."""

import sys
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

Name = TypeVar("Name")
TURNS = 7
QUIET = 0.97
"""A program alone on its core is busy all the time; a turn with less process time per wall time was disturbed."""
PATIENCE = 300.0
"""Seconds spent on waiting for undisturbed turns."""


def take_turns(
    programs: Mapping[Name, Callable[[], float]], watch_core: bool, count: int = TURNS, patience: float = PATIENCE
) -> dict[Name, list[float]]:
    """The milliseconds of every program in each of `count` turns; a program is a function that gives its seconds.

    With `watch_core`, a turn in which another process had a part of the core is thrown away and taken again; after
    `patience` seconds such turns are kept, and it is said.
    """
    turns: dict[Name, list[float]] = {name: [] for name in programs}
    began = time.perf_counter()
    kept = 0
    while kept < count:
        wall, process = time.perf_counter(), time.process_time()
        timed = {name: 1e3 * run() for name, run in programs.items()}
        now = time.perf_counter()
        busy = (time.process_time() - process) / (now - wall)
        disturbed = watch_core and busy < QUIET
        if disturbed and now - began < patience:
            continue
        if disturbed:
            print(f"Disturbed: only {busy:.2f} of the core was free. Measure again when it is quiet.", file=sys.stderr)
        kept += 1
        for name, milliseconds in timed.items():
            turns[name].append(milliseconds)
    return turns
