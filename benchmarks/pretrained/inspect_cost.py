"""Seconds and memory of `headcount inspect`, into an empty folder and again, where nothing is left to measure.

python benchmarks/pretrained/inspect_cost.py [MODEL DATA ...] [--effort normal] [--examples N] [--device cpu] [--out D]

Without models: the three that `fetch.py` makes (MiniLM-L6, stories15M, SmolLM2-135M) on text. Every run is a process
of its own, timed from its start, so that imports and loading count. Prints a table, and seconds by kind of fact below.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from headcount.pretrained.inspection.facts import SPENT
from headcount.store import Store

WEIGHTS = Path("results/pretrained")
"""Where `fetch.py` puts them."""
MODELS = (("minilm", "wiki.txt"), ("stories15m", "stories.txt"), ("smollm2-135m", "wiki.txt"))
BARS = {"minilm": 180, "smollm2-135m": 900}
"""Seconds on two quiet cores that an inspection should stay under."""


def seconds_by_kind(spent: Mapping[str, Any]) -> dict[str, float]:
    """Seconds of each kind of fact: "curve" for all of "curve/0", "curve/1", .."""
    seconds: dict[str, float] = {}
    for name, value in spent.get("facts", {}).items():
        kind = name.split("/")[0]
        seconds[kind] = round(seconds.get(kind, 0.0) + value, 3)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help="folders of models, each followed by its data")
    parser.add_argument("--effort", default="normal")
    parser.add_argument("--examples", type=int)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, help="keep the results folders here")
    given = parser.parse_args()
    default = [str(part) for model, data in MODELS for part in (WEIGHTS / model, WEIGHTS / "data" / data)]
    listed = given.models or default
    pairs = list(zip(listed[::2], listed[1::2], strict=True))
    root = given.out or Path(tempfile.mkdtemp(prefix="inspect-cost-"))
    table = Table("model", "empty folder, s", "again, s", "peak memory, GB", "facts", "bar, s", box=None)
    phases = []
    for model, data in pairs:
        name = Path(model).name
        folder = root / name
        command = [sys.executable, "-m", "headcount", "inspect", model, "--data", data, "--out", str(folder)]
        command += ["--effort", given.effort, "--device", given.device]
        command += [] if given.examples is None else ["--examples", str(given.examples)]
        first, again = run(command), run(command)
        spent, facts = read(folder)
        memory = f"{spent['peak_bytes'] / 1e9:.2f}"
        table.add_row(name, f"{first:.1f}", f"{again:.1f}", memory, str(facts), str(BARS.get(name, "-")))
        phases.append((name, seconds_by_kind(spent)))
    console = Console(soft_wrap=True)
    console.print(table)
    for name, seconds in phases:
        console.print(
            f"{name}: " + ", ".join(f"{kind} {value:.1f} s" for kind, value in seconds.items() if value >= 0.1)
        )
    if given.out is None:
        shutil.rmtree(root)


def run(command: list[str]) -> float:
    """Wall seconds of a command; what it says goes to stderr."""
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def read(folder: Path) -> tuple[dict, int]:
    """What was spent, and how many facts there are."""
    with Store.open_for_reading(folder) as store:
        (experiment,) = store.experiments()
        facts = store.facts(experiment.name)
    return facts[SPENT], len(facts)


if __name__ == "__main__":
    main()
