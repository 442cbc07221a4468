"""A model is plain named arrays and back, and arrays that do not fit the spec are refused."""

import numpy as np
import pytest

from headcount.models import POSITIONS, ModelSpec, folded, from_arrays, init, to_arrays

from ..tasks.laws import refused
from ..tolerance import assert_trees_equal


def make(spec: ModelSpec):
    return init(spec, 3, length=4, dim=3, outputs=2)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("positions", POSITIONS)
def test_there_and_back(positions, layers):
    spec = ModelSpec(heads=2, head_dim=3, hidden=5, positions=positions, layers=layers, beta=2.5)
    model = make(spec)
    back = from_arrays(spec, to_arrays(model))
    assert_trees_equal(back, model)
    assert (back.beta, back.concatenated) == (2.5, positions == "concatenated")
    tokens = np.ones((4, 3), np.float32)
    assert_trees_equal(folded.predict(back, tokens), folded.predict(model, tokens))


def test_names_are_paths():
    names = set(to_arrays(make(ModelSpec(heads=2, positions="additive", layers=2))))
    nets = {f"{net}.{part}" for net in _NETS for part in ("weight", "bias")}
    attention = {f"attention.{layer}.{part}" for layer in (0, 1) for part in ("query", "key", "value", "output")}
    assert names == nets | attention | {"class_token", "position_table"}


_NETS = ("encoder_in", "encoder_out", "readout_in", "readout_out")


@pytest.mark.parametrize("changes", [{"heads": 3}, {"head_dim": 4}, {"hidden": 6}], ids=str)
@pytest.mark.parametrize("positions", POSITIONS)
def test_arrays_of_another_size_are_refused(positions, changes):
    spec = ModelSpec(**({"heads": 2, "head_dim": 3, "hidden": 5, "positions": positions} | changes))
    arrays = to_arrays(make(ModelSpec(heads=2, head_dim=3, hidden=5, positions=positions)))
    with refused("shape"):
        from_arrays(spec, arrays)


@pytest.mark.parametrize("name", ["attention.0.key", "class_token", "readout_in.bias"])
def test_one_array_of_another_shape_is_refused_by_name(name):
    spec = ModelSpec(heads=2, head_dim=3, hidden=5)
    arrays = to_arrays(make(spec))
    arrays[name] = arrays[name][:-1]
    with refused(name, str(arrays[name].shape)):
        from_arrays(spec, arrays)


@pytest.mark.parametrize("name", ["attention.0.key", "class_token", "readout_out.bias", "encoder_in.weight"])
def test_a_missing_array_is_refused_by_name(name):
    spec = ModelSpec(heads=2, head_dim=3, hidden=5)
    arrays = to_arrays(make(spec))
    del arrays[name]
    with refused(name):
        from_arrays(spec, arrays)


@pytest.mark.parametrize(
    ("held", "asked", "name"),
    [
        ({"positions": "additive"}, {"positions": "none"}, "position_table"),
        ({"positions": "concatenated"}, {"positions": "none"}, "position_table"),
        ({"positions": "none"}, {"positions": "additive"}, "position_table"),
        ({"positions": "none"}, {"positions": "concatenated"}, "position_table"),
        ({"layers": 2}, {"layers": 1}, "attention.1"),
        ({"layers": 1}, {"layers": 2}, "attention.1"),
    ],
    ids=str,
)
def test_arrays_of_another_kind_of_model_are_refused(held, asked, name):
    arrays = to_arrays(make(ModelSpec(heads=2, head_dim=3, **held)))
    with refused(name):
        from_arrays(ModelSpec(heads=2, head_dim=3, **asked), arrays)
