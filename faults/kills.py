"""kill -9 at every phase of a run, and with two processes that compete for one folder."""

import threading
import time

import numpy as np

from .checks import Problem, Trials
from .processes import Ended, Warm, ended, plain
from .trial import Bench, Trial

KILLS = 5
"""Of one folder, before the command is left in peace to complete it."""


def start(bench: Bench, draw: np.random.Generator) -> Trials:
    """From the first instruction of the interpreter until the sweep has begun."""
    while True:
        trial = Trial(bench)
        for _ in range(3):
            with plain(bench.scratch, *trial.command, environment=trial.environment()) as process:
                time.sleep(draw.uniform(0, 3))
                process.kill()
                yield trial.killed(ended(process))
        yield trial.complete()


def compile(bench: Bench, draw: np.random.Generator) -> Trials:
    """While programs are compiled and written to a cache that is empty at first: a torn entry must do no harm."""
    while True:
        trial = Trial(bench)
        cold = trial.place / "cache"
        for number in (1, 1, 2):
            yield trial.killed(
                trial.run(FAULTS_KILL=f"compile:{number}:{draw.uniform(0, 2):.6f}", HEADCOUNT_CACHE=cold)
            )
        yield trial.killed(trial.run(HEADCOUNT_CACHE=cold)) + trial.complete()


def train(bench: Bench, draw: np.random.Generator) -> Trials:
    """While models are trained."""
    yield from _at(bench, draw, "train", 4, 0.05)


def commit(bench: Bench, draw: np.random.Generator) -> Trials:
    """While a bucket is committed."""
    yield from _at(bench, draw, "commit", 3, 0.02)


def _at(bench: Bench, draw: np.random.Generator, event: str, most: int, seconds: float) -> Trials:
    while True:
        trial = Trial(bench)
        for _ in range(KILLS):
            killed = trial.run(FAULTS_KILL=f"{event}:{draw.integers(1, most + 1)}:{draw.uniform(0, seconds):.6f}")
            yield trial.killed(killed, surely=not trial.settled)
            if killed.code == 0:
                break
        yield trial.complete()


def export(bench: Bench, draw: np.random.Generator) -> Trials:
    """A page or a table is written where an older one is: afterwards either the old one or the new one is there."""
    verbs, whole = {"export": "--out", "report": "-o"}, {}
    for verb, option in verbs.items():
        target = bench.scratch.new() / "whole"
        bench.warm.run(verb, bench.sweep.folder, option, target)
        whole[verb] = target.read_bytes()
    while True:
        for verb, option in verbs.items():
            trial = Trial(bench, folder=bench.sweep.folder)
            target = trial.place / "written"
            target.write_bytes(b"old")
            variables = trial.environment(FAULTS_KILL=f"export:1:{draw.uniform(0, 0.003):.6f}")
            problems = trial.killed(bench.warm.run(verb, trial.folder, option, target, environment=variables))
            if target.read_bytes() not in (b"old", whole[verb]):
                problems += trial.noted([Problem("not intact", f"{verb} left a torn file")])
            trial.let_go()
            yield problems


def two_writers(bench: Bench, draw: np.random.Generator) -> Trials:
    """Two processes run the same command on one folder; one of them, or both, are killed on the way."""
    other = Warm(bench.scratch)
    try:
        while True:
            trial = Trial(bench)
            for _ in range(3):
                kills = [f"commit:{draw.integers(1, 4)}:{draw.uniform(0, 0.02):.6f}" for _ in range(2)]
                kills[1] = kills[1] if draw.random() < 0.5 else ""
                runs = _compete(trial, other, kills, draw.uniform(0, 1.5))
                yield trial.check(*runs) + trial.killed(*(run for run in runs if not _in_use(run)))
                if 0 in [run.code for run in runs]:
                    break
            yield trial.complete()
    finally:
        other.close()


def _compete(trial: Trial, other: Warm, kills: list[str], later: float) -> list[Ended]:
    """How both ended; the second begins some seconds later."""
    second = []

    def run_second() -> None:
        time.sleep(later)
        second.append(other.run(*trial.command, environment=trial.environment(FAULTS_KILL=kills[1])))

    competing = threading.Thread(target=run_second)
    competing.start()
    first = trial.run(FAULTS_KILL=kills[0])
    competing.join()
    return [first, *second]


def _in_use(run: Ended) -> bool:
    return run.code == 1 and "in use" in run.sentence
