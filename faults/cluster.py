"""Ray workers, the process that owns the store, or both are killed while a sweep runs on a local cluster."""

import contextlib
import importlib.util
import os
import signal
import tempfile
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
"""Within so many seconds of the end of a run, nothing of its cluster is left."""
WORKER = b"ray::RayWorker"
GCS = b"gcs_server"
RAY = (GCS, b"raylet/raylet")


def kill_workers(bench: Bench, draw: np.random.Generator) -> Trials:
    """Workers are killed at random, most of them while they train; the run goes on by itself to its end."""
    _need_ray()
    while True:
        trial = Trial(bench)
        killed: list[int] = []

        def during(process: int, trial: Trial = trial, killed: list[int] = killed) -> None:
            killed += _kill_workers(trial, process, draw)

        run = _run(trial, draw, during=during)
        yield trial.check(run) + _completed(trial, run) + _nothing_left(trial) + trial.complete()
        yield from ([] for _ in killed[1:])  # every kill is a trial; what was wrong is counted once


def kill_driver(bench: Bench, draw: np.random.Generator) -> Trials:
    """The process that owns the store is killed; its cluster goes, and the same command goes on."""
    _need_ray()
    while True:
        trial = Trial(bench)
        for _ in range(2):
            run = _run(trial, draw, FAULTS_KILL=f"commit:{draw.integers(1, 4)}:{draw.uniform(0, 0.05):.6f}")
            yield trial.killed(run) + _nothing_left(trial)
            if run.code == 0:
                break
        yield trial.complete()


def kill_both(bench: Bench, draw: np.random.Generator) -> Trials:
    """A worker is killed, then the process that owns the store; a run on the cluster completes the sweep."""
    _need_ray()
    while True:
        trial = Trial(bench)

        def during(process: int, trial: Trial = trial) -> None:
            _kill_workers(trial, process, draw, 1)
            time.sleep(draw.uniform(0, 1))
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

        yield trial.killed(_run(trial, draw, during=during)) + _nothing_left(trial)
        run = _run(trial, draw)
        yield trial.check(run) + _completed(trial, run) + _nothing_left(trial) + trial.complete()


def interrupted(bench: Bench, draw: np.random.Generator) -> Trials:
    """Ctrl-C: what is finished is kept, and no worker is left behind."""
    _need_ray()
    while True:
        trial, commits = Trial(bench), int(draw.integers(0, 4))

        def during(process: int, trial: Trial = trial, commits: int = commits) -> None:
            wait_for(lambda: trial.events().count("committed") >= commits or not Path(f"/proc/{process}").exists())
            time.sleep(draw.uniform(0, 0.5))
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGINT)

        run = _run(trial, draw, during=during)
        problems = trial.check(run) + _nothing_left(trial)
        if run.code not in (0, 130):
            problems += trial.noted([Problem("no sentence", f"exit code {run.code}: {run.err[-1000:]}")])
        yield problems + trial.complete()


def signalled_group(bench: Bench, draw: np.random.Generator) -> Trials:
    """Ctrl-C in a terminal, `timeout`: the signal goes to all processes of the group, and it ends as without Ray."""
    _need_ray()
    while True:
        trial, commits = Trial(bench), int(draw.integers(0, 4))
        number = (signal.SIGINT, signal.SIGTERM)[draw.integers(2)]
        begun: list[int] = []

        def during(process: int, trial: Trial = trial, commits=commits, number=number, begun=begun) -> None:
            begun.append(process)
            wait_for(lambda: trial.events().count("committed") >= commits or not lives(process))
            wait_for(lambda: trial.events().count("begin") > 0 or not lives(process))
            time.sleep(draw.uniform(0, 0.5))
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process, number)

        run = _run(trial, draw, during=during)
        problems = trial.check(run) + _nothing_left(trial)
        if run.code not in (0, 130) or (run.code == 130 and "run the same command" not in run.err):
            problems += trial.noted([Problem("no sentence", f"exit code {run.code}: {run.err[-1000:]}")])
        left = [str(path) for path in Path(tempfile.gettempdir()).glob(f"headcount-ray-{begun[0]}-*")]
        if left:
            problems += trial.noted([Problem("not completed", f"{left[0]} was left behind")])
        yield problems + trial.complete()


def lose_ray(bench: Bench, draw: np.random.Generator) -> Trials:
    """Ray's own processes are killed: the same command goes on.

    A sentence says so, unless Ray ends this process itself, which it may do where its raylet is gone.
    """
    _need_ray()
    while True:
        trial, name = Trial(bench), RAY[draw.integers(len(RAY))]

        def during(process: int, trial: Trial = trial, name: bytes = name) -> None:
            wait_for(lambda: trial.events().count("begin") > 0 or not lives(process))
            time.sleep(draw.uniform(0, 0.5))
            for pid, command in processes_of(trial.log):
                if name in command.split(b"\0")[0]:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)

        run = _run(trial, draw, during=during)
        problems = trial.refused(run, 0, 1) if name == GCS else trial.check(run)
        yield problems + _nothing_left(trial) + trial.complete()


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
            workers = [pid for pid, name in processes_of(trial.log) if name.startswith(WORKER)]
            chosen = [workers[draw.integers(len(workers))]] if workers else []
        for pid in chosen:
            if pid != driver and lives(driver):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)
    return killed


def processes_of(log: Path) -> list[tuple[int, bytes]]:
    """Number and name of every process that was started by a run with this log."""
    mark, processes = f"FAULTS_LOG={log}".encode(), []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                processes.append((int(entry.name), (entry / "cmdline").read_bytes()))
    return [(pid, name) for pid, name in processes if lives(pid)]


def _completed(trial: Trial, run: Ended) -> list[Problem]:
    if run.code == 0 and trial.settled == trial.subject.contents.keys:
        return []
    return trial.noted([Problem("not completed", f"{len(trial.settled)} cells, code {run.code}: {run.err[-1500:]}")])


def _nothing_left(trial: Trial) -> list[Problem]:
    """No process of the run's cluster lives on; what does is killed here."""
    if wait_for(lambda: not processes_of(trial.log), GONE_SECONDS):
        return []
    left = processes_of(trial.log)
    for pid, _ in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    names = ", ".join(sorted({name.split(b"\0")[0].decode(errors="replace") for _, name in left}))
    return trial.noted([Problem("not completed", f"{len(left)} processes were left behind: {names}")])
