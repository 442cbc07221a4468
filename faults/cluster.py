"""Ray workers, or the process that owns the store, are killed while a sweep runs on a local cluster."""

import contextlib
import importlib.util
import os
import signal
import time
from pathlib import Path

import numpy as np

from .checks import Problem, Trials
from .processes import Ended, lives, wait_for
from .syscalls import Skipped
from .trial import Bench, Trial

WORKERS = 2
KILLS = 10
"""Of workers, in one run."""
HANGS_SECONDS = 900.0
"""A worker that is killed takes some seconds to start again, and there are many kills."""
GONE_SECONDS = 60.0
"""Within this time after the end of the process that started them, workers end."""
WORKER = b"ray::train_buckets"


def kill_workers(bench: Bench, draw: np.random.Generator) -> Trials:
    """Workers are killed at random, most of them while they train; the run continues by itself to its end."""
    _need_ray()
    while True:
        trial = Trial(bench)
        killed: list[int] = []

        def during(process: int, trial: Trial = trial, killed: list[int] = killed) -> None:
            killed += _kill_workers(trial, process, draw)

        run = _run(trial, draw, during=during)
        yield trial.check(run) + _completed(trial, run) + trial.complete()
        yield from ([] for _ in killed[1:])  # every kill is a trial; what was wrong is counted once


def kill_driver(bench: Bench, draw: np.random.Generator) -> Trials:
    """The process that owns the store is killed; the same command continues."""
    _need_ray()
    while True:
        trial = Trial(bench)
        for _ in range(2):
            run = _run(trial, draw, FAULTS_KILL=f"commit:{draw.integers(1, 4)}:{draw.uniform(0, 0.05):.6f}")
            yield trial.killed(run) + _workers_ended(trial)
            if run.code == 0:
                break
        yield trial.complete()


def interrupted(bench: Bench, draw: np.random.Generator) -> Trials:
    """Ctrl-C: what is finished is kept, and the exit code is 130."""
    _need_ray()
    while True:
        trial, commits = Trial(bench), int(draw.integers(0, 4))

        def during(process: int, trial: Trial = trial, commits: int = commits) -> None:
            wait_for(lambda: trial.events().count("committed") >= commits or not Path(f"/proc/{process}").exists())
            time.sleep(draw.uniform(0, 0.5))
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGINT)

        run = _run(trial, draw, during=during)
        problems = trial.check(run)
        if run.code not in (0, 130):
            problems += trial.noted([Problem("no sentence", f"exit code {run.code}: {run.err[-1000:]}")])
        yield problems + trial.complete()


def _need_ray() -> None:
    if importlib.util.find_spec("ray") is None:
        raise Skipped("Ray is not installed: pip install 'headcount[ray]'")


def _run(trial: Trial, draw: np.random.Generator, *, during=None, **variables: object) -> Ended:
    """The sweep on a local cluster of this trial's own."""
    arguments = (*trial.command, "--on", "ray", "--workers", WORKERS)
    environment = trial.environment(**variables) | {"RAY_ADDRESS": ""}
    return trial.bench.warm.run(*arguments, environment=environment, during=during, seconds=HANGS_SECONDS)


def _kill_workers(trial: Trial, driver: int, draw: np.random.Generator, most: int = KILLS) -> list[int]:
    """Kill workers until there were `most`, or the run is over: while they train, or at any time."""
    killed: list[int] = []
    while len(killed) < most and lives(driver):
        if draw.random() < 0.8:
            trained = trial.events().count("train")
            wait_for(lambda trained=trained: trial.events().count("train") > trained or not lives(driver), 20)
            chosen = [pid for pid, event, _ in trial.events().lines[-1:] if event == "train"]
            time.sleep(draw.uniform(0, 0.05))
        else:
            time.sleep(draw.uniform(0.2, 3))
            workers = workers_of(trial.log)
            chosen = [workers[draw.integers(len(workers))]] if workers else []
        for pid in chosen:
            if pid != driver and lives(driver):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)
    return killed


def workers_of(log: Path) -> list[int]:
    """The numbers of all workers that were started by a run with this log."""
    mark, found = f"FAULTS_LOG={log}".encode(), []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            is_worker = (entry / "cmdline").read_bytes().startswith(WORKER)
            if is_worker and mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return [pid for pid in found if lives(pid)]


def _completed(trial: Trial, run: Ended) -> list[Problem]:
    if run.code == 0 and trial.settled == trial.subject.contents.keys:
        return []
    return trial.noted([Problem("not completed", f"{len(trial.settled)} cells, code {run.code}: {run.err[-1500:]}")])


def _workers_ended(trial: Trial) -> list[Problem]:
    if wait_for(lambda: not workers_of(trial.log), GONE_SECONDS):
        return []
    return trial.noted([Problem("not completed", f"{len(workers_of(trial.log))} workers were left behind")])
