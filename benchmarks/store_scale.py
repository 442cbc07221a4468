"""What a plan and a results folder of 1,000 to 100,000 cells cost: seconds, memory, files and bytes.

python benchmarks/store_scale.py [--cells 1000 10000 100000] [--turns 2] [--keep DIR]

The cells are those of a real sweep; nothing is trained, their errors, curves and weights are fabricated. The folder is
filled without waiting for the disk; the commits that are timed wait for it as those of a run do. Verbs are run in
processes of their own, so that their seconds include starting Python; the best of some turns is printed, with the CPU
seconds of that turn, which mean something on a busy machine too.
"""

import argparse
import contextlib
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import headcount
from headcount import ClassTokenSpec, TrainSpec, find_task
from headcount._draws import named_generator
from headcount.engine import Sweep, plan_sweep, sweep
from headcount.engine.hardware import hardware
from headcount.store import Record, Store
from tests.helpers.fabricated import PROVENANCE, finished

BUCKET = 50
"""Cells of a commit."""
TIMED = 20
"""Commits that are timed, into the full folder."""
AXES = {
    1_000: {"heads": range(1, 9), "length": range(8, 48, 8), "seed": range(25)},
    10_000: {"heads": range(1, 17), "length": range(8, 208, 8), "seed": range(25)},
    100_000: {"heads": range(1, 17), "length": range(8, 208, 8), "seed": range(250)},
}
VERBS = {
    "status": ["status"],
    "show": ["show"],
    "show --json": ["show", "--json"],
    "report": ["report"],
    "export": ["export", "--out", "export.csv"],
    "export --json": ["export", "--json", "--out", "export.json"],
}
COMMAND = "headcount measure sum-of-maxima --heads 1:16 --out results"
MB = 1e6


def a_sweep(cells: int) -> Sweep:
    """So many cells of the sum of four maxima."""
    axes = {axis: list(values) for axis, values in AXES[cells].items()}
    return sweep(
        find_task("sum-of-maxima"), axes=axes, model=lambda heads: ClassTokenSpec(heads=heads), train=TrainSpec()
    )


def planned(cells: int) -> None:
    """Make the sweep and its plan, and print seconds, the memory they took at their peak, and that of the process."""
    hardware()
    find_task("sum-of-maxima").spec()
    before = _resident_bytes()
    began = time.monotonic()
    plan = plan_sweep(a_sweep(cells))
    seconds = time.monotonic() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(seconds, (peak - before) / MB, peak / MB, len(plan.buckets))


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def records_of(made: Sweep) -> list[Record]:
    """Finished records with curves of 21 points, each bucket with its own seconds and time."""
    generator = named_generator(0, "curves")
    steps = [150 * point for point in range(21)]
    records = []
    for place, record in enumerate(finished(made)):
        number = place // BUCKET
        origin = PROVENANCE | {"backend": "fused 0.1.0, AVX-512", "seconds": round(1.5 + 0.001 * number, 4)}
        origin |= {"finished": f"2026-01-{1 + number // 2000:02}T00:{number // 60 % 60:02}:{number % 60:02}"}
        noise = generator.uniform(0.9, 1.1, len(steps))
        curve = tuple((step, float(record.error * factor)) for step, factor in zip(steps, noise, strict=True))
        metrics = record.metrics | {"baseline_noise": 0.0, "nmse": record.error * float(noise[0])}
        records.append(replace(record, curve=curve, provenance=origin, metrics=metrics))
    return records


def weights_of(record: Record) -> dict[str, np.ndarray]:
    """Arrays of the sizes of a small model, which differ from cell to cell."""
    heads, tag = record.cell.model["heads"], int(record.cell.key[:6], 16)
    shapes = {"scores": (heads, 4), "values": (heads, 4, 4), "outer/0/weight": (16, 4 * heads), "outer/0/bias": (16,)}
    shapes |= {"outer/1/weight": (1, 16), "outer/1/bias": (1,)}
    return {name: np.full(shape, tag, np.float32) for name, shape in shapes.items()}


@contextlib.contextmanager
def no_waiting() -> Iterator[None]:
    """Files are written without waiting for the disk."""
    real, os.fsync = os.fsync, lambda descriptor: None
    try:
        yield
    finally:
        os.fsync = real


def fill(folder: Path, cells: int) -> tuple[float, float]:
    """Store this many cells; the seconds of a commit at the end, the median and the largest."""
    made = a_sweep(cells)
    records = records_of(made)
    buckets = [records[start : start + BUCKET] for start in range(0, len(records), BUCKET)]
    timed = min(TIMED, len(buckets) // 2)

    def commit(store: Store, bucket: list[Record]) -> float:
        weights = {record.cell.key: weights_of(record) for record in bucket}
        began = time.monotonic()
        store.commit(bucket, weights)
        return time.monotonic() - began

    with Store.open_for_writing(folder) as store:
        store.begin(made.experiment, COMMAND)
        with no_waiting():
            store._connection.execute("PRAGMA synchronous = OFF")
            for bucket in buckets[:-timed]:
                commit(store, bucket)
        os.sync()
        store._connection.execute("PRAGMA synchronous = FULL")
        seconds = [commit(store, bucket) for bucket in buckets[-timed:]]
    return statistics.median(seconds), max(seconds)


def verb_seconds(folder: Path, words: list[str], turns: int) -> tuple[float, float]:
    """Wall and CPU seconds of a verb, of the turn that took least."""
    taken = []
    for _ in range(turns):
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        command = [sys.executable, "-m", "headcount", words[0], str(folder), *words[1:]]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder.parent, env=_environment())
        wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append((wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
    return min(taken)


def _environment() -> dict[str, str]:
    """That of this process, in which verbs run this headcount too, from whichever folder."""
    return os.environ | {"PYTHONPATH": os.path.dirname(os.path.dirname(os.path.abspath(headcount.__file__)))}


def measured(cells: int, parent: Path, turns: int) -> dict[str, str]:
    """One row of the table."""
    folder = parent / f"cells-{cells}" / "results"
    folder.parent.mkdir(parents=True)
    command = [sys.executable, __file__, "--plan-only", str(cells)]
    planning = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    seconds, beyond, peak = map(float, planning[:3])
    median, most = fill(folder, cells)
    row = {
        "cells": f"{cells:,}",
        "plan s": f"{seconds:.2f}",
        "plan MB (process)": f"{beyond:.0f} ({peak:.0f})",
        "commit ms (largest)": f"{1e3 * median:.0f} ({1e3 * most:.0f})",
    }
    for name, words in VERBS.items():
        wall, processor = verb_seconds(folder, words, turns)
        row[f"{name} s (CPU)"] = f"{wall:.2f} ({processor:.2f})"
    kept = [path for path in folder.rglob("*") if path.is_file() and path.name != "report.html"]
    row |= {"files": f"{len(kept):,}", "MB": f"{sum(path.stat().st_size for path in kept) / MB:.0f}"}
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, nargs="+", choices=AXES, default=list(AXES))
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="Where the folders are left; they are removed otherwise.")
    parser.add_argument("--plan-only", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.plan_only:
        planned(given.plan_only)
        return
    parent = given.keep or Path(tempfile.mkdtemp())
    try:
        rows = []
        for cells in given.cells:
            rows.append(measured(cells, parent, given.turns))
            print(f"{cells:,} cells: {rows[-1]}", file=sys.stderr, flush=True)
    finally:
        if given.keep is None:
            shutil.rmtree(parent)
    for line in (rows[0].keys(), ["---:"] * len(rows[0]), *(row.values() for row in rows)):
        print(f"| {' | '.join(line)} |")


if __name__ == "__main__":
    main()
