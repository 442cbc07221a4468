"""A kill, or an error, at every system call that makes something last in the results folder (`syscalls.c`)."""

import itertools

import numpy as np

from .checks import Trials
from .trial import Bench, Subject, Trial

KILLS = ("before", "after")
ERRORS = ("EIO", "ENOSPC")


class Skipped(Exception):  # noqa: N818 - nothing went wrong
    """This kind of fault cannot be caused here; the message says why."""


def commit_loop(bench: Bench, draw: np.random.Generator) -> Trials:
    """Killed before and after every such call of a run that only commits, each once, in any order."""
    yield from _at_every_call(bench, draw, bench.loop, KILLS)


def sweep(bench: Bench, draw: np.random.Generator) -> Trials:
    """The same for a real sweep."""
    yield from _at_every_call(bench, draw, bench.sweep, KILLS)


def errors(bench: Bench, draw: np.random.Generator) -> Trials:
    """From some call on, all of them fail: a disk that is full or broken. The command says so, and nothing is lost."""
    yield from _at_every_call(bench, draw, bench.loop, ERRORS)


def _at_every_call(bench: Bench, draw: np.random.Generator, subject: Subject, modes: tuple[str, ...]) -> Trials:
    if bench.scratch.library is None:
        raise Skipped("there is no C compiler here, or this is not Linux")
    calls = count_calls(bench, subject)
    order = list(itertools.product(range(1, calls + 1), modes))
    draw.shuffle(order)
    for number, mode in order:
        trial = Trial(bench, subject)
        ended = trial.run(FAULTS_FOLDER=trial.folder, FAULTS_AT=number, FAULTS_MODE=mode)
        # A sweep writes live.json by the clock, so that its last calls are not there every time.
        surely = subject is bench.loop
        problems = trial.killed(ended, surely=surely) if mode in KILLS else trial.refused(ended, 0, 1)
        yield problems + trial.complete()


def count_calls(bench: Bench, subject: Subject) -> int:
    """How many such calls an undisturbed run makes."""
    trial = Trial(bench, subject)
    trace = trial.place / "trace"
    trial.run(FAULTS_FOLDER=trial.folder, FAULTS_TRACE=trace)
    calls = len(trace.read_text().splitlines())
    trial.let_go()
    return calls
