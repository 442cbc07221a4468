"""What a local Ray cluster costs over threads: the same sweep, command by command, in turns.

python benchmarks/cluster_ratio.py [--workers 4] [--turns 3] [--steps 3000]

Each turn is a whole command in a process of its own, with an empty results folder. In the first turn of each the cache
of compiled programs is empty; it is printed by itself. *Training* is what `measure --json` calls `seconds`: from the
plan to the last commit. *Start-up* is all the rest: Python, JAX, Ray and its workers, the answer, letting go.

Only on a quiet machine: where others want the cores too, four workers get a larger share of them than two threads, and
the ratio flatters Ray.
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
from typing import NamedTuple

TARGET = 1.10
"""Training with Ray over training with threads, for a sweep of a minute or more."""
RUN = "import sys; from headcount.cli import main; sys.argv = ['headcount', *sys.argv[1:]]; main()"


class Turn(NamedTuple):
    """Seconds of a command."""

    whole: float
    training: float

    @property
    def start_up(self) -> float:
        return self.whole - self.training


def measured(sweep: list[str], where: list[str], cache: Path) -> tuple[Turn, str]:
    """The seconds of a command that trains a sweep into a new folder, and its exported table."""
    environment = os.environ | {"HEADCOUNT_CACHE": str(cache)}
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "results")
        began = time.perf_counter()
        command = [sys.executable, "-c", RUN, "measure", *sweep, "--out", out, *where, "--json"]
        ended = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        whole = time.perf_counter() - began
        export = subprocess.run(
            [sys.executable, "-c", RUN, "export", out], env=environment, check=True, capture_output=True, text=True
        )
    return Turn(whole, json.loads(ended.stdout)["seconds"]), export.stdout


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--workers", type=int, default=4)
    asked.add_argument("--turns", type=int, default=3, help="with compiled programs, after the first")
    asked.add_argument("--steps", type=int, default=11_000, help="enough for a minute of training on two cores")
    asked.add_argument("--seeds", type=int, default=8)
    options = asked.parse_args()
    sweep = f"sum-of-maxima --heads 1:6 --lengths 8,16,32 --seeds {options.seeds} --steps {options.steps}".split()
    places = {"threads": [], "ray": ["--on", "ray", "--workers", str(options.workers)]}
    turns: dict[str, list[Turn]] = {name: [] for name in places}
    tables = set()
    with tempfile.TemporaryDirectory() as caches:
        for number in range(1 + options.turns):
            for name, where in places.items():
                turn, table = measured(sweep, where, Path(caches) / name)
                tables.add(table)
                turns[name].append(turn)
                print(f"turn {number}, {name}: training {turn.training:.1f} s, {turn.whole:.1f} s in all", flush=True)
    print(f"\n`headcount measure {' '.join(sweep)}`, {options.workers} workers, {len(os.sched_getaffinity(0))} cores\n")
    print("| | threads, s | Ray, s | ratio |\n|---|---|---|---|")
    for part in ("training", "start_up", "whole"):
        for words, chosen in (("programs to be compiled", slice(0, 1)), ("programs compiled before", slice(1, None))):
            threads, ray = (statistics.median(getattr(turn, part) for turn in each[chosen]) for each in turns.values())
            print(f"| {part.replace('_', '-')}, {words} | {threads:.1f} | {ray:.1f} | {ray / threads:.2f} |")
    pairs = zip(turns["threads"][1:], turns["ray"][1:], strict=True)
    ratio = statistics.median(ray.training / threads.training for threads, ray in pairs)
    print(f"\nthe same exported table, byte for byte: {'yes' if len(tables) == 1 else 'NO'}")
    print(f"training with compiled programs, median of the turns' ratios: {ratio:.3f} (target: at most {TARGET:.2f})")
    return 0 if ratio <= TARGET and len(tables) == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
