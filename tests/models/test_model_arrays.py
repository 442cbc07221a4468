"""A model is plain named arrays and back, and arrays that do not fit the spec are refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.models import POSITIONS, ClassTokenSpec, EncoderSpec, folded, from_arrays, init, init_encoder, to_arrays

from ..tasks.laws import refused
from ..tolerance import assert_trees_equal
from .encoders import a_spec, options


def make(spec: ClassTokenSpec):
    return init(spec, 3, length=4, dim=3, outputs=2)


@pytest.mark.parametrize(("layers", "rank"), [(1, 3), (2, 3), (1, 1), (2, 5)])
@pytest.mark.parametrize("positions", POSITIONS)
def test_there_and_back(positions, layers, rank):
    spec = ClassTokenSpec(heads=2, head_dim=3, rank=rank, hidden=5, positions=positions, layers=layers, beta=2.5)
    model = make(spec)
    back = from_arrays(spec, to_arrays(model))
    assert_trees_equal(back, model)
    assert (back.beta, back.concatenated) == (2.5, positions == "concatenated")
    tokens = np.ones((4, 3), np.float32)
    assert_trees_equal(folded.predict(back, tokens), folded.predict(model, tokens))


def test_names_are_paths():
    names = set(to_arrays(make(ClassTokenSpec(heads=2, positions="additive", layers=2))))
    nets = {f"{net}.{part}" for net in _NETS for part in ("weight", "bias")}
    attention = {f"attention.{layer}.{part}" for layer in (0, 1) for part in ("query", "key", "value", "output")}
    assert names == nets | attention | {"class_token", "position_table"}


_NETS = ("encoder_in", "encoder_out", "readout_in", "readout_out")


@pytest.mark.parametrize("changes", [{"heads": 3}, {"head_dim": 4}, {"hidden": 6}, {"rank": 2}], ids=str)
@pytest.mark.parametrize("positions", POSITIONS)
def test_arrays_of_another_size_are_refused(positions, changes):
    spec = ClassTokenSpec(**({"heads": 2, "head_dim": 3, "hidden": 5, "positions": positions} | changes))
    arrays = to_arrays(make(ClassTokenSpec(heads=2, head_dim=3, hidden=5, positions=positions)))
    with refused("shape"):
        from_arrays(spec, arrays)


@pytest.mark.parametrize("name", ["attention.0.key", "class_token", "readout_in.bias"])
def test_one_array_of_another_shape_is_refused_by_name(name):
    spec = ClassTokenSpec(heads=2, head_dim=3, hidden=5)
    arrays = to_arrays(make(spec))
    arrays[name] = arrays[name][:-1]
    with refused(name, str(arrays[name].shape)):
        from_arrays(spec, arrays)


@pytest.mark.parametrize("name", ["attention.0.key", "class_token", "readout_out.bias", "encoder_in.weight"])
def test_a_missing_array_is_refused_by_name(name):
    spec = ClassTokenSpec(heads=2, head_dim=3, hidden=5)
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
    arrays = to_arrays(make(ClassTokenSpec(heads=2, head_dim=3, **held)))
    with refused(name):
        from_arrays(ClassTokenSpec(heads=2, head_dim=3, **asked), arrays)


@settings(deadline=None, max_examples=60)
@given(options, st.integers(1, 5), st.integers(1, 5), st.integers(1, 5))
def test_an_encoder_there_and_back(chosen, length, dim, outputs):
    spec = EncoderSpec(**chosen)
    model = init_encoder(spec, 3, length=length, dim=dim, outputs=outputs)
    arrays = to_arrays(model)
    assert {type(array) for array in arrays.values()} == {np.ndarray}
    back = from_arrays(spec, arrays)
    assert_trees_equal(back, model)
    assert back.spec == spec


def an_encoder(spec: EncoderSpec):
    return to_arrays(init_encoder(spec, 3, length=4, dim=3, outputs=2))


def test_names_of_an_encoder_are_paths():
    names = set(an_encoder(a_spec(positions="additive", answered_at="sequence")))
    heads = {f"layers.0.heads.{part}{bias}" for part in ("query", "key", "value", "output") for bias in ("", "_bias")}
    heads.remove("layers.0.heads.key_bias")
    nets = {f"{net}.{part}" for net in ("layers.0.feed_in", "layers.0.feed_out", "embed", "read") for part in _PARTS}
    assert names == heads | nets | {"class_token", "position_table", "layers.0.attention_scale", "layers.0.feed_scale"}


_PARTS = ("weight", "bias")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"heads": 3}, "layers.0.heads.query has shape (4, 3, 4); the spec says (3, 3, 4)"),
        ({"rank": 2, "head_dim": 3}, "layers.0.heads.query has shape (4, 3, 4); the spec says (4, 2, 4)"),
        ({"head_dim": 2}, "layers.0.heads.value has shape (4, 3, 4); the spec says (4, 2, 4)"),
        ({"hidden": 5}, "layers.0.feed_in.weight has shape (3, 4); the spec says (5, 4)"),
        ({"multiplier": 2}, "layers.0.heads.query has shape (4, 3, 4); the spec says (8, 3, 4)"),
        ({"hidden": 0}, "no place for the arrays layers.0.feed_in.bias"),
        ({"layers": 2}, "not there: layers.1.attention_scale"),
        ({"bias": False}, "no place for the arrays embed.bias"),
        ({"positions": "additive"}, "not there: position_table"),
        ({"answered_at": "sequence"}, "not there: class_token"),
    ],
    ids=str,
)
def test_arrays_of_another_encoder_are_refused(changes, words):
    with refused(words):
        from_arrays(a_spec(**changes), an_encoder(a_spec()))


@pytest.mark.parametrize("name", ["layers.0.heads.key", "layers.0.feed_out.bias", "embed.bias"])
def test_a_missing_array_of_an_encoder_is_refused_by_name(name):
    arrays = an_encoder(a_spec())
    del arrays[name]
    with refused(name):
        from_arrays(a_spec(), arrays)
