"""Polite ends: SIGTERM, SIGINT once and twice, streams that are closed or full."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .checks import Problem, Trials
from .processes import Ended, ended, lives, plain, wait_for
from .trial import Bench, Trial, sweep_command

STOPPED = 130
EVENTS = (("begin", 1), ("compile", 1), ("train", 2), ("commit", 1), ("commit", 3), ("committed", 5))


def sigterm(bench: Bench, draw: np.random.Generator) -> Trials:
    """A polite kill: what is finished is kept, and the command to continue is said."""
    yield from _signalled(bench, draw, (signal.SIGTERM,))


def sigint(bench: Bench, draw: np.random.Generator) -> Trials:
    """Ctrl-C."""
    yield from _signalled(bench, draw, (signal.SIGINT,))


def sigint_twice(bench: Bench, draw: np.random.Generator) -> Trials:
    """Ctrl-C, and again before the first has been obeyed: it ends at once, and nothing is lost."""
    yield from _signalled(bench, draw, (signal.SIGINT, signal.SIGINT))


def _signalled(bench: Bench, draw: np.random.Generator, numbers: tuple[signal.Signals, ...]) -> Trials:
    while True:
        trial = Trial(bench)
        for _ in range(2):
            event, count = EVENTS[draw.integers(len(EVENTS))]
            ended_so = trial.run(during=_sending(trial, numbers, event, count, draw.uniform(0, 0.03, 2)))
            problems = trial.check(ended_so)
            if ended_so.code not in (0, STOPPED):
                problems += trial.noted([Problem("no sentence", f"exit code {ended_so.code}: {ended_so.err[-500:]}")])
            if ended_so.code == STOPPED and len(numbers) == 1 and "run the same command" not in ended_so.err:
                problems += trial.noted([Problem("no sentence", f"not how to go on: {ended_so.err[-500:]}")])
            yield problems
            if ended_so.code == 0:
                break
        yield trial.complete()


def _sending(trial: Trial, numbers: tuple[signal.Signals, ...], event: str, count: int, delays: np.ndarray):
    already = trial.events().count(event)

    def send(process: int) -> None:
        wait_for(lambda: trial.events().count(event) - already >= count or not lives(process), 20)
        for number, delay in zip(numbers, delays, strict=False):
            time.sleep(delay)
            try:
                os.kill(process, number)
            except ProcessLookupError:
                return

    return send


def early(bench: Bench, draw: np.random.Generator) -> Trials:
    """A signal while the program is still being imported: no traceback, nothing damaged."""
    while True:
        trial, number = Trial(bench), (signal.SIGINT, signal.SIGTERM)[draw.integers(2)]
        with plain(bench.scratch, *trial.command, environment=trial.environment()) as process:
            time.sleep(draw.uniform(0.3, 3))
            process.send_signal(number)
            yield trial.check(ended(process))
        yield trial.complete()


VERBS: dict[str, Callable[[Any], tuple[object, ...]]] = {
    "show": lambda folder: ("show", folder),
    "show --json": lambda folder: ("show", folder, "--json"),
    "status": lambda folder: ("status", folder),
    "export": lambda folder: ("export", folder),
    "report": lambda folder: ("report", folder, "-o", "/dev/stdout"),
    "tasks": lambda folder: ("tasks",),
    "measure": sweep_command,
}


def full_stdout(bench: Bench, draw: np.random.Generator) -> Trials:
    """Every verb with its output on /dev/full: exit code 1 and a sentence."""
    for arguments in VERBS.values():
        trial = Trial(bench, folder=bench.sweep.folder)
        with open("/dev/full", "w") as full:
            run = _run(bench, trial, arguments(trial.folder), stdout=full)
        problems = trial.refused(run, 1)
        trial.let_go()
        yield problems


def closed_streams(bench: Bench, draw: np.random.Generator) -> Trials:
    """stdout, stderr or both are closed before the start; a sweep is completed all the same."""
    for closed in ((1,), (2,), (1, 2)):
        trial = Trial(bench)
        run = _run(bench, trial, trial.command, closed=closed)
        problems = trial.check(run)
        if trial.settled != trial.subject.contents.keys:
            problems += trial.noted([Problem("not completed", f"{len(trial.settled)} cells with {closed} closed")])
        yield problems + trial.complete()
    for name in ("show", "status", "export"):
        trial = Trial(bench, folder=bench.sweep.folder)
        run = _run(bench, trial, VERBS[name](trial.folder), closed=(1,))
        yield trial.check(run)
        trial.let_go()


def reader_gone(bench: Bench, draw: np.random.Generator) -> Trials:
    """Whoever reads the output has gone (`| head -1`): no complaint."""
    for arguments in VERBS.values():
        trial = Trial(bench, folder=bench.sweep.folder)
        reader, writer = os.pipe()
        os.close(reader)
        run = _run(bench, trial, arguments(trial.folder), stdout=writer, after=lambda writer=writer: os.close(writer))
        yield trial.check(run)
        trial.let_go()


def _run(bench: Bench, trial: Trial, arguments: tuple[object, ...], after: Any = None, **options: Any) -> Ended:
    with plain(
        bench.scratch, *arguments, environment=trial.environment(), stderr=subprocess.PIPE, **options
    ) as process:
        if after:
            after()
        return ended(process)
