"""The folded model is the textbook model, in value and in gradient, for every option."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount._choices import POSITIONS
from headcount.models import ClassTokenSpec, folded

from ..helpers import textbook
from ..helpers.compiling import compile_quickly  # noqa: F401
from ..helpers.tolerance import assert_close, assert_trees_close, in_double

LENGTH, DIM, OUTPUTS = 4, 3, 2


def value_and_gradient(predict, model, tokens):
    """The answer, and the derivative of a combination of its numbers by every weight and token."""

    def combined(model, tokens):
        answer = predict(model, tokens)
        return jnp.sum(answer * jnp.arange(1, answer.shape[0] + 1)), answer

    (_, answer), gradient = jax.value_and_grad(combined, argnums=(0, 1), has_aux=True)(model, tokens)
    return answer, gradient


@jax.jit
def both_ways(model, tokens):
    return tuple(value_and_gradient(predict, model, tokens) for predict in (textbook.predict, folded.predict))


@jax.jit
def answers(model, tokens):
    return textbook.predict(model, tokens), folded.predict(model, tokens), model(tokens)


def assert_same_function(*seeds: int, **options) -> None:
    spec = ClassTokenSpec(**({"heads": 2, "head_dim": 3, "rank": 4, "hidden": 5} | options))
    for seed in seeds:
        tokens = np.random.default_rng(seed).normal(size=(LENGTH, DIM))
        with jax.enable_x64(True):
            model = in_double(spec.init(seed, length=LENGTH, dim=DIM, outputs=OUTPUTS))
            (want, want_gradient), (got, got_gradient) = both_ways(model, tokens)
        assert got.dtype == want.dtype == np.float64
        assert want.shape == (OUTPUTS,)
        assert_close(got, want)
        assert_trees_close(got_gradient, want_gradient)
        assert min(float(np.max(np.abs(leaf))) for leaf in jax.tree.leaves(want_gradient)) > 0, "nothing was compared"


@pytest.mark.parametrize(("layers", "beta"), [(1, 20.0), (2, 0.1), pytest.param(3, 50.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("positions", POSITIONS)
def test_every_option(positions, layers, beta):
    assert_same_function(*range(5), positions=positions, layers=layers, beta=beta)


def test_nets_between_layers_and_a_norm_before_the_readout():
    assert_same_function(0, 1, layers=2, inner_hidden=4, final_norm=True)


WAYS = (
    {"kv_heads": 1, "window": 3, "positions": "additive", "attention": "top-k", "top_k": 2, "beta": 9.0},
    {"kv_heads": 2, "heads": 4, "layers": 2, "causal": True, "window": 3},
    {"attention": "linear", "positions": "additive", "kv_heads": 1},
)
ONE_BY_ONE = (
    {"kv_heads": 1},
    {"window": 2, "layers": 2},
    {"causal": True, "layers": 2, "positions": "concatenated"},
    {"attention": "linear"},
    {"attention": "linear", "kv_heads": 1, "layers": 2, "window": 2},
    {"attention": "top-k", "top_k": 2, "kv_heads": 1},
    {"attention": "top-k", "top_k": 2, "layers": 2, "causal": True},
)


@pytest.mark.parametrize("way", [*WAYS, *(pytest.param(way, marks=pytest.mark.slow) for way in ONE_BY_ONE)], ids=str)
def test_every_way_of_reading(way):
    assert_same_function(0, **way)


OPTIONS = {
    "layers": st.integers(1, 3),
    "positions": st.sampled_from(POSITIONS),
    "beta": st.floats(0.1, 50.0),
    "seed": st.integers(0, 2**16),
}


@pytest.mark.slow
@settings(deadline=None, max_examples=100)
@given(heads=st.sampled_from([1, 2]), rank=st.sampled_from([1, 3, 6]), **OPTIONS)
def test_any_shape_and_weights(heads, seed, **options):
    assert_same_function(seed, heads=heads, head_dim=6 // heads, **options)


@pytest.mark.parametrize("positions", POSITIONS)
def test_one_token_of_one_number(positions):
    spec = ClassTokenSpec(heads=2, head_dim=1, hidden=1, positions=positions)
    with jax.enable_x64(True):
        model = in_double(spec.init(0, length=1, dim=1, outputs=1))
        tokens = np.array([[0.7]])
        want, *others = answers(model, tokens)
    for got in others:
        assert_close(got, want)


def test_two_tokens_by_hand():
    """All weights 1, all biases 0, class token 0.5: the scores of tokens 1 and 3 are 0.5 and 1.5."""
    spec = ClassTokenSpec(heads=1, head_dim=1, hidden=1)
    model = jax.tree.map(np.zeros_like, spec.init(0, length=2, dim=1, outputs=1))
    for net in (model.encoder_in, model.encoder_out, model.readout_in, model.readout_out):
        net.weight[...] = 1
    for weights in jax.tree.leaves(model.attention):
        weights[...] = 1
    model.class_token[...] = 0.5
    tokens = np.array([[1.0], [3.0]], np.float32)
    weight = 1 / (1 + np.exp(1.5 - 0.5))
    read = 0.5 + weight * 1 + (1 - weight) * 3
    want = np.array([read * (1 + math.erf(read / 2**0.5)) / 2])
    for got in answers(model, tokens):
        assert_close(got, want)


@pytest.mark.parametrize("positions", POSITIONS)
def test_order_matters_only_with_positions(positions):
    spec = ClassTokenSpec(heads=2, head_dim=3, hidden=5, positions=positions, beta=20.0)
    tokens = np.random.default_rng(0).normal(size=(LENGTH, DIM))
    with jax.enable_x64(True):
        model = in_double(spec.init(0, length=LENGTH, dim=DIM, outputs=OUTPUTS))
        forwards, backwards = (np.asarray(answers(model, order)[1]) for order in (tokens, tokens[::-1]))
    gap = float(np.max(np.abs(forwards - backwards)))
    assert (gap > 1e-4) == (positions != "none"), f"reversing the tokens moved the answer by {gap:.1e}"
