"""On a CPU a cell's numbers are its own to the last bit, whoever is trained beside it.

Compiled as for a user: what the compiler would do to a bucket of one is the point.
"""

from dataclasses import replace

from headcount.engine import grid, plan_sweep, run_sweep
from headcount.engine.hardware import Hardware
from headcount.engine.labelled import LABELLED_TRAIN, labelled_encoder
from headcount.store import Store
from headcount.tasks import ImageTask

from ..tasks.labelled import some_images

CPU = Hardware("cpu", "pretend CPU", 2**33, 1, side_by_side=False)
TRAIN = replace(LABELLED_TRAIN, steps=20, batch=16, validation_examples=40)


def test_images_learned_alone_and_beside_another_seed(tmp_path):
    task = ImageTask(some_images())

    def two_layers(heads: int):
        return labelled_encoder(task.form, heads, layers=2)

    def first_of(seeds: int):
        sweep = grid(task, heads=[2], seeds=range(seeds), model=two_layers, train=TRAIN)
        with Store.open_for_writing(tmp_path / f"{seeds}") as store:
            run_sweep(sweep, store, plan=plan_sweep(sweep, machine=CPU))
            (record,) = [record for record in store.records() if record.cell.seed == 0]
        return record.metrics, record.curve

    assert first_of(1) == first_of(2)
