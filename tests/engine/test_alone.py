"""On a CPU a cell's numbers are its own to the last bit, whoever is trained beside it.

Compiled as for a user: what the compiler would do to a bucket of one is the point.
"""

from dataclasses import replace

import pytest

from headcount.engine import plan_sweep, run_sweep
from headcount.recipes import IMAGE_DROPOUT, IMAGE_HEAD_DIM
from headcount.store import Store

from ..helpers.sweeps import CPU, TASK, TRAIN, Numbers, class_token, labelled_model, swept

STEPS = replace(TRAIN, steps=20)
NUMBERS = Numbers()
DEEP = labelled_model(NUMBERS, head_dim=IMAGE_HEAD_DIM, layers=4, dropout=IMAGE_DROPOUT)


@pytest.fixture(autouse=True, scope="module")
def jit_quickly():
    """Not here."""


@pytest.mark.parametrize(
    ("task", "model"),
    [
        pytest.param(TASK, class_token, id="class token"),
        # Only models as deep as the published ones showed a difference, and those take long to compile.
        pytest.param(NUMBERS, DEEP, id="deep encoder", marks=pytest.mark.slow),
    ],
)
def test_a_seed_learns_the_same_alone_and_beside_another(tmp_path, task, model):
    def first_of(seeds: int):
        sweep = swept(task, model, STEPS, heads=[2], length=[4], seed=range(seeds))
        with Store.open_for_writing(tmp_path / f"{seeds}") as store:
            run_sweep(sweep, store, plan=plan_sweep(sweep, machine=CPU))
            (record,) = [record for record in store.records() if record.cell.seed == 0]
            weights = store.weights(record.cell.key)
        return record.outcome, record.metrics, record.curve, {name: array.tobytes() for name, array in weights.items()}

    assert first_of(1) == first_of(2)
