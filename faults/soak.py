"""One process that measures many different tasks: its memory and its memory maps must stay bounded.

    python faults/soak.py --tasks 200        the whole soak: minutes, most of it compiling
    python faults/soak.py --tasks 20         the short form, with a lower bound, so that programs are let go in it too

Every task is another function with another number of inputs, length or width of its model, so that each needs programs
of its own. Most models are small ones without attention, compiled with few optimisations; in the whole soak every
twentieth task is measured as a user would. Prints resident memory and memory maps as it goes, and exits with 1 where
either passes its bound.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

import headcount as hc  # noqa: E402
from headcount import _compile  # noqa: E402
from headcount.store import Store  # noqa: E402
from tests.models.mean_pool import MeanPoolSpec  # noqa: E402

SHORT = 100
"""Fewer tasks than this do not reach the usual bound: theirs is lower."""
SHORT_MAPS = 3072
ONE_RUN_MAPS = 1024
"""What one run may add before it is noticed."""
MAX_GROWTH_MB = 1024
"""Of resident memory after the first tasks, whose growth is that of the libraries."""
FIRST = 5
MEASURED_EVERY = 20
TRAIN = hc.TrainSpec(steps=4, batch=4, train_examples=32, validation_examples=20)


def task_of(number: int) -> hc.FunctionTask:
    """A task that no other number gives."""

    def function(tokens):
        return jnp.max(tokens[:, 0]) + number * jnp.min(tokens[:, 1])

    return hc.FunctionTask(function=function, length=3 + number // 5 % 5, dim=2 + number % 5, name=f"task {number}")


def train(number: int) -> int:
    """Train one model on a task, and say how many were trained."""
    with tempfile.TemporaryDirectory() as folder, Store.open_for_writing(folder) as store:
        asked = hc.sweep(
            task_of(number),
            axes={"heads": [1]},
            model=lambda heads: MeanPoolSpec(heads=heads, head_dim=4 + number // 25),
            train=TRAIN,
        )
        summary = hc.run_sweep(asked, store)
        return summary.trained - summary.failed


def measure(number: int) -> int:
    """Ask how many heads a task needs, and say how many models that took."""
    with tempfile.TemporaryDirectory() as folder:
        asked = hc.measure(task_of(number), heads=[1, 2], seeds=1, steps=4, out=folder, progress=False)
        return len(asked.records)


def soak(tasks: int, every: int) -> list[str]:
    """Measure many tasks, and say what grew too far."""
    jax.config.update("jax_disable_most_optimizations", True)
    if tasks < SHORT:
        _compile.MAX_MAPS = SHORT_MAPS
    max_maps = _compile.MAX_MAPS + ONE_RUN_MAPS
    print(f"{'tasks':>5}  {'resident MiB':>12}  {'memory maps':>11}  {'seconds':>7}")
    began, first, worst_mb, worst_maps = time.monotonic(), 0.0, 0.0, 0
    for number in range(tasks):
        is_measured = tasks >= SHORT and number % MEASURED_EVERY == MEASURED_EVERY - 1
        if not (measure if is_measured else train)(number):
            return [f"task {number} was not trained"]
        done, maps, megabytes = number + 1, _compile.memory_maps(), _compile.resident_mb()
        first = megabytes if done <= FIRST else first
        worst_mb, worst_maps = max(worst_mb, megabytes), max(worst_maps, maps)
        if done % every == 0 or done in (1, tasks):
            print(f"{done:5}  {megabytes:12.0f}  {maps:11,}  {time.monotonic() - began:7.0f}", flush=True)
    growth = worst_mb - first
    print(
        f"at most {worst_maps:,} memory maps ({max_maps:,} allowed); resident memory grew by {growth:.0f} MiB ", end=""
    )
    print(f"({MAX_GROWTH_MB} allowed)")
    passed = {"memory maps": worst_maps > max_maps, "resident memory": growth > MAX_GROWTH_MB}
    return [f"{what} grew past the bound" for what, is_past in passed.items() if is_past]


def main() -> int:
    """Run the soak; 1 where a bound was passed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tasks", type=int, default=200, help="different tasks to measure (default 200)")
    parser.add_argument("--every", type=int, default=20, help="print after this many tasks (default 20)")
    options = parser.parse_args()
    faults = soak(options.tasks, options.every)
    for fault in faults:
        print(f"soak: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
