"""On a CPU a cell's numbers are its own to the last bit, whatever is trained beside it.

Compiled as for a user, in a process without the tests' flags: what the compiler does to a bucket of one is the point.
"""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from headcount.engine import plan_sweep, run_sweep
from headcount.recipes import IMAGE_DROPOUT, IMAGE_HEAD_DIM
from headcount.store import Store
from tests.helpers.sweeps import CPU, TASK, TRAIN, Numbers, class_token, labelled_model, swept

STEPS = replace(TRAIN, steps=20)
NUMBERS = Numbers()
KINDS = {
    "class token": (TASK, class_token),
    # Only models as deep as the published ones showed a difference, and those take long to compile.
    "deep encoder": (NUMBERS, labelled_model(NUMBERS, head_dim=IMAGE_HEAD_DIM, layers=4, dropout=IMAGE_DROPOUT)),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["class token", "deep encoder"])
def test_a_seed_learns_the_same_alone_and_beside_another(tmp_path, kind):
    script = "import sys; from tests.engine.test_alone import check; check(*sys.argv[1:])"
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    command = [sys.executable, "-c", script, kind, str(tmp_path)]
    root = Path(__file__).parents[2]
    ended = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def check(kind: str, folder: str) -> None:
    """Train a seed alone in a program for one, and beside another in one for eight; compare every stored byte."""
    task, model = KINDS[kind]
    results = []
    for seeds in (1, 2):
        sweep = swept(task, model, STEPS, heads=[2], length=[4], seed=range(seeds))
        with Store.open_for_writing(f"{folder}/{seeds}") as store:
            plan = plan_sweep(sweep, machine=CPU)
            if seeds == 1:  # a bucket that was split for memory has no empty slots
                plan = replace(plan, buckets=tuple(replace(bucket, slots=1) for bucket in plan.buckets))
            run_sweep(sweep, store, plan=plan)
            (record,) = [record for record in store.records() if record.cell.seed == 0]
            weights = {name: array.tobytes() for name, array in store.weights(record.cell.key).items()}
        results.append((record.outcome, record.metrics, record.curve, weights))
    assert results[0] == results[1]
