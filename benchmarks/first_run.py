"""The first `make demo` of a new clone: seconds of each part (and of CPU), and what lies on the disk afterwards.

python benchmarks/first_run.py                     this commit, with the kernels and without
python benchmarks/first_run.py --before REVISION   and an earlier commit

Everything is new (clone, virtual environment, compiled programs) but the downloads, which pip has in its cache after a
first run. Minutes. The runs follow one another: on a busy machine compare the seconds of CPU.
"""

import argparse
import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
PARTS = {"install": ".venv/ready", "kernels": "built-kernels", "demo": "demo"}
NO_COMPILER = {"CXX": "/bin/false"}


class Seconds(NamedTuple):
    """Of the clock, and of all processors together."""

    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.wall:.1f} ({self.cpu:.1f})"


@dataclass(frozen=True, kw_only=True)
class FirstRun:
    """What the parts took, those that the revision has, and megabytes of the installed packages and of the kernels."""

    parts: dict[str, Seconds]
    installed: float
    library: float


def first_run(revision: str, environment: dict[str, str]) -> FirstRun:
    """Runs the parts of `make demo` one after the other, in a clone that is removed afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder, "headcount")
        subprocess.run(["git", "clone", "--quiet", "--no-checkout", ROOT, clone], check=True)
        subprocess.run(["git", "checkout", "--quiet", "--detach", revision], cwd=clone, check=True)
        variables = os.environ | {"HEADCOUNT_CACHE": f"{folder}/cache"} | environment
        parts = {}
        for part, target in PARTS.items():
            if f"\n{target}:" not in (clone / "Makefile").read_text():
                continue
            wall, cpu = time.monotonic(), cpu_seconds()
            subprocess.run(["make", target], cwd=clone, env=variables, check=True, stdout=subprocess.DEVNULL)
            parts[part] = Seconds(time.monotonic() - wall, cpu_seconds() - cpu)
        (packages,) = clone.glob(".venv/lib/*/site-packages")
        libraries = clone.glob("kernels/headcount_kernels/lib*")
        return FirstRun(parts=parts, installed=megabytes(packages.rglob("*")), library=megabytes(libraries))


def cpu_seconds() -> float:
    """Of all processes that were started and have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def megabytes(paths: Iterable[Path]) -> float:
    return sum(path.lstat().st_size for path in paths if path.is_file()) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the first `make demo` of a new clone.")
    parser.add_argument("--before", metavar="REVISION", help="an earlier commit to run, too")
    before = parser.parse_args().before
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()
    cases = {"without kernels": (head, NO_COMPILER), "with kernels": (head, {})}
    if before:
        cases = {f"before ({before[:7]})": (before, {})} | cases
    table = Table("seconds (of CPU)", *PARTS, "all", "installed (MB)", "library (MB)")
    for name, (revision, environment) in cases.items():
        run = first_run(revision, environment)
        parts = [str(run.parts.get(part, "-")) for part in PARTS]
        whole = Seconds(*map(sum, zip(*run.parts.values(), strict=True)))
        table.add_row(name, *parts, str(whole), f"{run.installed:.0f}", f"{run.library:.2f}")
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
