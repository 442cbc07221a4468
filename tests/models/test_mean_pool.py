"""A kind of model that headcount does not know keeps the laws and is trained, for the price of one file."""

import numpy as np
from hypothesis import strategies as st

import headcount as hc

from ..helpers.compiling import compile_quickly  # noqa: F401
from .laws import ModelLaws
from .mean_pool import MeanPoolSpec


class TestMeanPool(ModelLaws):
    spec_class = MeanPoolSpec
    options = st.fixed_dictionaries({"heads": st.integers(1, 9), "head_dim": st.integers(1, 4)})
    examples = ({"heads": 3},)
    bad = (("heads", 0), ("head_dim", 1.5), ("rank", None))


def test_it_is_measured_stored_and_read(tmp_path):
    task = hc.find_task("average", dim=2, length=4)
    train = hc.TrainSpec(steps=5, batch=4, train_examples=16, validation_examples=20)
    measured = hc.measure(
        task, heads=[2], lengths=[4], seeds=1, model=lambda heads: MeanPoolSpec(heads=heads), train=train, out=tmp_path
    )
    assert [record.outcome.value for record in measured.records] == ["finished"]
    model = hc.load(tmp_path)[0].model(heads=2)
    assert model.spec == MeanPoolSpec(heads=2)
    assert np.all(np.isfinite(model(np.ones((4, 2), np.float32))))
