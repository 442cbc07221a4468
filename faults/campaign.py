"""Cause every kind of fault, check what must hold after each, print counts; exit code 1 if anything was wrong.

python -m faults.campaign [--long] [--seed N] [--only KIND,KIND] [--seconds N] [--keep FOLDER]
"""

import argparse
import contextlib
import queue
import shutil
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from headcount._draws import named_generator

from . import cluster, disks, kills, signals, syscalls
from .checks import COUNTED, Problem, Trials
from .processes import Scratch, Warm, build_library
from .scripts import script
from .syscalls import Skipped
from .trial import LOOP_CELLS, SWEEP_CELLS, Bench, loop_command, sweep_command, undisturbed

Fault = Callable[[Bench, np.random.Generator], Trials]


@dataclass(frozen=True)
class Kind:
    """A kind of fault: its trials, the seconds it is given in the short form, and the fewest trials in each form."""

    trials: Fault
    seconds: float
    least: int = 1
    least_long: int = 0


KINDS: dict[str, Kind] = {
    "kill at start": Kind(kills.start, 20),
    "kill while compiling": Kind(kills.compile, 15),
    "kill while training": Kind(kills.train, 15),
    "kill while committing": Kind(kills.commit, 15),
    "kill while exporting": Kind(kills.export, 8),
    "two writers, killed": Kind(kills.two_writers, 15),
    "kill at a system call, commits only": Kind(syscalls.commit_loop, 25),
    "kill at a system call, sweep": Kind(syscalls.sweep, 20),
    "system calls fail": Kind(syscalls.errors, 20),
    "SIGTERM": Kind(signals.sigterm, 12),
    "SIGINT": Kind(signals.sigint, 12),
    "SIGINT twice": Kind(signals.sigint_twice, 12),
    "signal at start": Kind(signals.early, 12),
    "stdout on /dev/full": Kind(signals.full_stdout, 15, least=7),
    "closed streams": Kind(signals.closed_streams, 15, least=6),
    "reader gone": Kind(signals.reader_gone, 12, least=7),
    "file size limit": Kind(disks.size_limit, 12),
    "full disk": Kind(disks.full_disk, 12),
    "read-only disk": Kind(disks.read_only, 8, least=6),
    "files deleted, cut or replaced": Kind(disks.meddled, 20, least=9),
    "flipped bits": Kind(disks.flipped_bits, 20),
    "kill Ray workers": Kind(cluster.kill_workers, 30, least=5, least_long=60),
    "kill the driver of Ray workers": Kind(cluster.kill_driver, 25, least_long=20),
    "SIGINT with Ray workers": Kind(cluster.interrupted, 15),
    "bad inputs": Kind(script("inputs.py", ("--count", "300"), ("--count", "3000")), 25),
    "200 tasks in one process": Kind(script("soak.py", ("--tasks", "20"), ("--tasks", "200")), 25),
}
LONG = 7
"""So many times that in the long form."""
THREADS = 2


@dataclass
class Counts:
    """What came of a kind of fault."""

    trials: int = 0
    problems: list[Problem] = field(default_factory=list)
    seconds: float = 0.0
    skipped: str = ""

    def row(self) -> list[str]:
        counted = [sum(problem.what == what for problem in self.problems) for what in COUNTED]
        return [str(self.trials), *map(str, counted), f"{self.seconds:.0f}"]


def run_kind(kind: Fault, bench: Bench, draw: np.random.Generator, seconds: float, least: int = 1) -> Counts:
    """Trials of one kind until its time is over, or there are no more."""
    counts, began = Counts(), time.monotonic()
    try:
        with contextlib.closing(kind(bench, draw)) as trials:  # type: ignore[type-var]
            for problems in trials:
                counts.trials += 1
                counts.problems += problems
                if time.monotonic() - began > seconds and counts.trials >= least:
                    break
    except Skipped as reason:
        counts.skipped = str(reason)
    except Exception:  # the campaign itself is at fault, which must not look like success
        counts.problems.append(Problem("not completed", f"the campaign failed: {traceback.format_exc()}"))
    counts.seconds = time.monotonic() - began
    return counts


def run_kinds(names: list[str], scratch: Scratch, seed: int, factor: float, long: bool) -> dict[str, Counts]:
    """All these kinds, two at a time, the long ones first."""
    first = Warm(scratch)
    loop = undisturbed(first, loop_command, LOOP_CELLS)
    sweep = undisturbed(first, sweep_command, SWEEP_CELLS)
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    for name in sorted(names, key=lambda name: -KINDS[name].seconds):
        waiting.put(name)
    results: dict[str, Counts] = {}

    def work(warm: Warm) -> None:
        bench = Bench(scratch, warm, sweep, loop, long=long)
        with contextlib.suppress(queue.Empty):
            while True:
                name = waiting.get_nowait()
                kind, draw = KINDS[name], named_generator(seed, name)
                least = max(kind.least, kind.least_long if long else 0)
                results[name] = run_kind(kind.trials, bench, draw, kind.seconds * factor, least)
                print(f"{name}: {results[name].trials} trials, {len(results[name].problems)} problems", file=sys.stderr)

    warm = [first, *(Warm(scratch) for _ in range(min(THREADS, len(names)) - 1))]
    threads = [threading.Thread(target=work, args=(each,)) for each in warm]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for each in warm:
        each.close()
    return {name: results[name] for name in names}


def table(results: dict[str, Counts]) -> str:
    """Counts per kind of fault, and in all."""
    total = Counts(
        sum(counts.trials for counts in results.values()),
        [problem for counts in results.values() for problem in counts.problems],
        sum(counts.seconds for counts in results.values()),
    )
    rows = [["fault", "trials", *COUNTED, "s"]]
    rows += [[name, *counts.row()] for name, counts in results.items()]
    rows += [["in all", *total.row()]]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    sides = "<" + ">" * len(widths)
    layout = [(side, width) for side, width in zip(sides, widths, strict=False)]
    lines = [
        "  ".join(f"{cell:{side}{width}}" for cell, (side, width) in zip(row, layout, strict=True)) for row in rows
    ]
    lines += [f"{name}: skipped, {counts.skipped}." for name, counts in results.items() if counts.skipped]
    return "\n".join(lines)


def details(results: dict[str, Counts], most: int = 3) -> str:
    """The first few problems of every kind."""
    lines = []
    for name, counts in results.items():
        for problem in counts.problems[:most]:
            lines.append(f"{name}: {problem.what}: {problem.detail.strip()}")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="faults.campaign", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--long", action="store_true", help="half an hour instead of five minutes")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of what is drawn; by default the time")
    parser.add_argument("--only", default="", help=f"kinds, by commas: {', '.join(KINDS)}")
    parser.add_argument("--factor", type=float, help="times the usual seconds")
    parser.add_argument("--keep", type=Path, help="work here, and keep the folders of trials that went wrong")
    given = parser.parse_args(arguments)
    names = [name for part in given.only.split(",") if part for name in KINDS if part.strip() in name] or list(KINDS)
    factor = given.factor or (LONG if given.long else 1)
    root = given.keep or Path(tempfile.mkdtemp(prefix="headcount-faults-"))
    root.mkdir(parents=True, exist_ok=True)
    print(f"seed {given.seed}, in {root}", file=sys.stderr)
    began = time.monotonic()
    try:
        results = run_kinds(names, Scratch(root, root / "cache", build_library(root)), given.seed, factor, given.long)
    finally:
        if not given.keep:
            shutil.rmtree(root, ignore_errors=True)
    print(table(results))
    print(f"{time.monotonic() - began:.0f} s, seed {given.seed}")
    if wrong := details(results):
        print(wrong, file=sys.stderr)
    return 1 if any(counts.problems for counts in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
