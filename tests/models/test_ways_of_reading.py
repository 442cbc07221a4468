"""Laws between the ways in which heads read: where one is another, and what each promises alone."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.models import ClassTokenSpec, EncoderSpec, from_arrays
from headcount.models.attention import elu_features, share_groups, weights_of_scores

from ..helpers.compiling import compile_quickly  # noqa: F401
from ..helpers.refusals import refused
from ..helpers.tolerance import assert_close, in_double

LENGTH, DIM = 4, 3
SHAPE = {"heads": 4, "head_dim": 3, "hidden": 5}
TOKENS = np.random.default_rng(0).normal(size=(LENGTH, DIM))


def a_model(**options):
    return ClassTokenSpec(**(SHAPE | options)).init(0, length=LENGTH, dim=DIM, outputs=2)


def read_by(model, **options):
    """The same weights, read in another way."""
    return dataclasses.replace(model, spec=dataclasses.replace(model.spec, **options))


@jax.jit
def all_answers(models, tokens):
    return [model(tokens) for model in models]


def copied(model):
    """The model in which every head has a copy of the keys and values that it shares."""
    arrays = model.to_arrays()
    for name in ("key", "value"):
        arrays[f"attention.0.{name}"] = share_groups(arrays[f"attention.0.{name}"], model.spec.heads)
    return from_arrays(dataclasses.replace(model.spec, kv_heads=None), arrays)


def test_where_one_way_is_another():
    """Copies of shared keys; a window, or a k, as long as the sequence; the largest score alone."""
    one, two, plain = a_model(kv_heads=1), a_model(kv_heads=2), a_model()
    pairs = [
        (one, copied(one)),
        (two, copied(two)),
        (read_by(plain, window=LENGTH), plain),
        (read_by(plain, causal=True), plain),
        (read_by(plain, attention="top-k", top_k=LENGTH), plain),
        (read_by(plain, attention="top-k", top_k=9), plain),
        (read_by(plain, attention="top-k", top_k=1), read_by(plain, attention="hard")),
    ]
    with jax.enable_x64(True):
        answers = all_answers([in_double(model) for pair in pairs for model in pair], TOKENS)
        shorter = all_answers([in_double(read_by(plain, window=2)), in_double(plain)], TOKENS)
        last_two = all_answers([in_double(plain)], TOKENS[2:])
    for got, want in zip(answers[::2], answers[1::2], strict=True):
        assert_close(got, want)
    assert_close(shorter[0], last_two[0])
    assert not np.allclose(shorter[0], shorter[1])


def test_as_many_groups_as_heads_is_no_grouping():
    assert ClassTokenSpec(heads=4, kv_heads=4) == ClassTokenSpec(heads=4)
    assert EncoderSpec(heads=2, rank=1, width=2, kv_heads=2) == EncoderSpec(heads=2, rank=1, width=2)
    assert ClassTokenSpec(heads=4, kv_heads=4).as_dict() == ClassTokenSpec(heads=4).as_dict()


def test_shared_keys_are_fewer_numbers_and_share_a_program():
    own, grouped = ClassTokenSpec(heads=4), ClassTokenSpec(heads=4, kv_heads=1)
    sizes = {"length": 8, "dim": 3, "outputs": 1}
    assert own.parameters(**sizes) - grouped.parameters(**sizes) == 3 * 2 * 8 * 32
    assert grouped.flops(**sizes) == own.flops(**sizes)
    assert {ClassTokenSpec(heads=heads, kv_heads=1).padded().heads for heads in (2, 3, 4)} == {4}
    assert ClassTokenSpec(heads=6, kv_heads=3).padded().heads == 6


@pytest.mark.parametrize("spec", [ClassTokenSpec(heads=1, window=5), EncoderSpec(heads=1, rank=1, width=3, window=5)])
def test_a_window_longer_than_the_sequence_is_refused(spec):
    with refused("window", "5", "4"):
        spec.init(0, length=4, dim=3, outputs=1)


def test_a_factor_of_a_kernel_is_refused():
    with refused("beta", "2.0"):
        ClassTokenSpec(heads=1, attention="linear", beta=2)


def test_a_token_knows_nothing_of_later_ones_where_order_is_causal():
    model = in_double(EncoderSpec(heads=2, rank=1, width=3, hidden=3, causal=True).init(0, length=4, dim=3, outputs=3))
    changed = TOKENS.copy()
    changed[2] += 1
    with jax.enable_x64(True):
        one, other = jax.jit(jax.vmap(model))(np.stack([TOKENS, changed]))
    assert_close(one[:2], other[:2])
    assert np.all(np.abs(np.asarray(one - other))[2:].max(axis=1) > 1e-6)


numbers = st.lists(st.floats(-9, 9), min_size=LENGTH * 2, max_size=LENGTH * 2)


@settings(deadline=None, max_examples=30)
@given(keys=numbers, query=st.tuples(st.floats(-9, 9), st.floats(-9, 9)), order=st.permutations(range(LENGTH)))
def test_linear_weights_are_positive_shares_that_move_with_their_tokens(keys, query, order):
    """In NumPy's order of things: what holds of the functions holds of every model that uses them."""
    held, order = np.reshape(keys, (LENGTH, 2)), np.array(order)

    def weights(held):
        kernel = elu_features(jnp.asarray(held)) @ elu_features(jnp.asarray(query))
        return np.asarray(weights_of_scores(kernel, ClassTokenSpec(heads=1, attention="linear"), axis=0))

    got = weights(held)
    assert np.all(got > 0)
    assert got.sum() == pytest.approx(1, rel=1e-5)
    np.testing.assert_allclose(weights(held[order]), got[order], rtol=1e-5)


@settings(deadline=None, max_examples=30)
@given(scores=st.lists(st.sampled_from([-1.0, 0.0, 0.5, 2.0]), min_size=LENGTH, max_size=LENGTH))
def test_top_k_keeps_the_largest_scores_and_of_equal_ones_the_first(scores):
    spec = ClassTokenSpec(heads=1, attention="top-k", top_k=2)
    weights = np.asarray(weights_of_scores(jnp.asarray(scores), spec, axis=0))
    first = sorted(range(LENGTH), key=lambda place: (-scores[place], place))[:2]
    raised = np.array([np.exp(score) if place in first else 0 for place, score in enumerate(scores)])
    np.testing.assert_allclose(weights, raised / raised.sum(), rtol=1e-5)
    assert np.count_nonzero(weights) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"kv_heads": 1},
        {"attention": "linear"},
        {"attention": "top-k", "top_k": 2},
        {"layers": 2, "causal": True, "window": 2},
    ],
    ids=str,
)
def test_the_same_seed_gives_the_same_bits(options, tmp_path):
    """Also of models that are padded to share a program with others."""
    import headcount as hc

    small = {"lengths": [4], "seeds": 1, "steps": 20, "train_examples": 100, "validation_examples": 50}
    both = [
        hc.measure("max-plus-min", heads=heads, out=tmp_path / str(place), progress=False, **small, **options)
        for place, heads in enumerate(([2], [2, 3]))
    ]
    one, other = (measured.model(heads=2).to_arrays() for measured in both)
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name])


@pytest.mark.parametrize("options", [{"attention": "top-k", "top_k": 3}, {"window": 3}], ids=str)
def test_a_stored_model_that_asks_for_several_tokens_is_read_back(options):
    """Arrays without positions do not tell the length; the fewest tokens that will do stand for it."""
    model = ClassTokenSpec(heads=2, head_dim=3, hidden=5, **options).init(0, length=4, dim=3, outputs=1)
    assert from_arrays(model.spec, model.to_arrays()).spec == model.spec
