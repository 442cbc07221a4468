"""Every control is measured, stored and read, as any kind of model.

Compiled with XLA's optimisations, as users compile it: without them JAX 0.10.2 gives a NaN gradient of a batch of
convolutions on a CPU, where the optimised program and the same operations one by one agree.
"""

import numpy as np
import pytest

import headcount as hc
from headcount.models.controls import CONTROLS

every_control = pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.kind)


@pytest.mark.slow
@every_control
def test_they_are_measured_stored_and_read(control, tmp_path):
    task = hc.find_task("max-plus-min", length=4)
    sizes = {"length": task.length, "dim": task.dim, "outputs": task.outputs}
    train = hc.TrainSpec(steps=5, batch=4, train_examples=16, validation_examples=20)
    measured = hc.measure(
        task,
        heads=[2],
        lengths=[4],
        seeds=1,
        model=lambda heads: control.matched(hc.ClassTokenSpec(heads=heads, head_dim=2), **sizes, hidden=4),
        train=train,
        out=tmp_path,
    )
    assert [record.outcome.value for record in measured.records] == ["finished"]
    model = hc.load(tmp_path)[0].model(heads=2)
    assert (type(model.spec), model.spec.heads) == (control, 2)
    assert np.all(np.isfinite(model(np.ones((4, 1), np.float32))))
