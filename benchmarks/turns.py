"""Programs take turns, so that what else the machine does hits all of them alike."""

import sys
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

Name = TypeVar("Name")
TURNS = 7
QUIET = 0.97
"""A program alone on its core is busy all the time; a turn with less process time per wall time was disturbed."""


def take_turns(programs: Mapping[Name, Callable[[], float]], watch_core: bool) -> dict[Name, list[float]]:
    """The milliseconds of every program in each of `TURNS` turns; a program is a function that gives its seconds.

    With `watch_core`, a turn in which another process had a part of the core is taken again, `TURNS` times at most in
    all; what is disturbed after that is kept and said.
    """
    turns: dict[Name, list[float]] = {name: [] for name in programs}
    kept, spare = 0, TURNS
    while kept < TURNS:
        wall, process = time.perf_counter(), time.process_time()
        timed = {name: 1e3 * run() for name, run in programs.items()}
        busy = (time.process_time() - process) / (time.perf_counter() - wall)
        if watch_core and busy < QUIET and spare:
            spare -= 1
            continue
        if watch_core and busy < QUIET:
            print(f"Disturbed: only {busy:.2f} of the core was free. Measure again when it is quiet.", file=sys.stderr)
        kept += 1
        for name, milliseconds in timed.items():
            turns[name].append(milliseconds)
    return turns
