"""How long a measurement takes, against the papers' protocol: both on the same tasks of known D, in this one run.

    python -m benchmarks.calibration.speed [--every 16] [--names A,B] [--effort normal] [--json FILE]

The papers' protocol has random starts only: 4 seeds at 1 to 6 heads, at 1 to 12 where D is above 5. Every measurement
has a process and a results folder of its own, so that neither side finds programs that the other compiled; which side
goes first alternates. Seconds are those of `measure`, compilation included and imports not.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

from .families import KnownTask, calibration_set

SEEDS, HEADS, MORE_HEADS = 4, range(1, 7), range(1, 13)
MEDIAN_TARGET, WORST_TARGET = 1.5, 4.0

talk = Console(stderr=True, highlight=False, soft_wrap=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=16, metavar="N", help="every N-th task of the set (default: 16)")
    parser.add_argument("--names", metavar="A,B", help="these tasks instead, by name")
    parser.add_argument("--effort", default="normal", help="quick, normal or thorough (default: normal)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers here")
    parser.add_argument("--one", nargs=2, metavar=("TASK", "OPTIONS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure_one(*arguments.one)))
        return
    rows = []
    print(f"{'task':26s} {'D':>4s} {'papers s':>9s} {'adaptive s':>11s} {'ratio':>6s}  papers / adaptive")
    names = (arguments.names or "").split(",")
    chosen = [task for task in calibration_set() if task.name in names]
    for place, task in enumerate(chosen or calibration_set()[:: arguments.every]):
        rows.append(compare(task, arguments.effort, papers_first=place % 2 == 0))
        print(line(rows[-1]), flush=True)
    ratios = [row["ratio"] for row in rows]
    print(f"median ratio {statistics.median(ratios):.2f} (target at most {MEDIAN_TARGET:g}), ", end="")
    print(f"worst {max(ratios):.2f} (target at most {WORST_TARGET:g}), over {len(rows)} tasks")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


def compare(task: KnownTask, effort: str, papers_first: bool) -> dict:
    """Both sides on one task."""
    heads = MORE_HEADS if (task.intrinsic_dim or 0) > 5 else HEADS
    sides = {"papers": {"seeds": SEEDS, "heads": list(heads)}, "adaptive": {"effort": effort}}
    measured = {}
    for side in sides if papers_first else reversed(sides):
        talk.print(f"{task.name}: {side}")
        command = [sys.executable, "-m", __spec__.name, "--one", task.name, json.dumps(sides[side])]
        uncached = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
        done = subprocess.run(command, env=uncached, check=True, stdout=subprocess.PIPE, text=True)
        measured[side] = json.loads(done.stdout)
    ratio = measured["adaptive"]["seconds"] / measured["papers"]["seconds"]
    return {"task": task.name, "intrinsic_dim": task.intrinsic_dim, "ratio": ratio, **measured}


def measure_one(name: str, options: str) -> dict:
    """Seconds and answer of one task; in a process of its own."""
    from headcount.api import measure

    (task,) = (each.task() for each in calibration_set() if each.name == name)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        answer = measure(task, out=folder, progress=False, **json.loads(options)).answer()
        return {"seconds": time.perf_counter() - began, "sentence": answer.sentence, "heads": answer.heads}


def line(row: dict) -> str:
    seconds = f"{row['papers']['seconds']:9.1f} {row['adaptive']['seconds']:11.1f} {row['ratio']:6.2f}"
    answers = f"{row['papers']['sentence']} / {row['adaptive']['sentence']}"
    return f"{row['task']:26s} {row['intrinsic_dim'] or '-'!s:>4s} {seconds}  {answers}"


if __name__ == "__main__":
    main()
