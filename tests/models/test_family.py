"""Whichever kind a model is, the engine asks the same of it and gets that kind's own answer."""

import dataclasses
import json

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.models import (
    POSITIONS,
    ClassTokenSpec,
    EncoderSpec,
    activations,
    flops,
    folded,
    init,
    init_encoder,
    init_model,
    parameters,
    predict,
    reads_raw_units,
    resize_heads,
    spec_from_dict,
    with_heads,
)
from headcount.models.encoder import answer

from ..tasks.laws import compile_quickly  # noqa: F401
from ..tolerance import assert_trees_equal
from .encoders import a_spec, options

SIZES = {"length": 4, "dim": 4, "outputs": 4}
CLASS_TOKEN, ENCODER = ClassTokenSpec(heads=2, head_dim=2, hidden=3), a_spec()
quick = settings(deadline=None, max_examples=40)
both = pytest.mark.parametrize("spec", [CLASS_TOKEN, ENCODER], ids=["class token", "encoder"])


@quick
@given(options)
def test_an_encoder_comes_back_from_its_content(chosen):
    spec = EncoderSpec(**chosen)
    assert spec_from_dict(json.loads(json.dumps(spec.as_dict()))) == spec


@quick
@given(
    st.fixed_dictionaries(
        {"heads": st.integers(1, 4), "head_dim": st.integers(4, 8), "positions": st.sampled_from(POSITIONS)},
        optional={"rank": st.integers(1, 4)},
    )
)
def test_a_class_token_transformer_comes_back_from_its_content(chosen):
    spec = ClassTokenSpec(**chosen)
    assert spec_from_dict(json.loads(json.dumps(spec.as_dict()))) == spec


def test_initial_weights_are_those_of_their_kind():
    assert_trees_equal(init_model(CLASS_TOKEN, 3, **SIZES), init(CLASS_TOKEN, 3, **SIZES))
    assert_trees_equal(init_model(ENCODER, 3, **SIZES), init_encoder(ENCODER, 3, **SIZES))


def test_answers_are_those_of_their_kind():
    tokens = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
    for spec, of_kind in ((CLASS_TOKEN, folded.predict), (ENCODER, answer)):
        model = init_model(spec, 0, **SIZES)
        assert_trees_equal(predict(model, tokens), of_kind(model, tokens))


@both
def test_parameters_are_the_numbers_of_a_model(spec):
    assert parameters(spec, **SIZES) == sum(leaf.size for leaf in jax.tree.leaves(init_model(spec, 0, **SIZES)))


@both
@pytest.mark.parametrize("cost", [parameters, flops, activations])
def test_more_costs_more(spec, cost):
    def at(spec, length=4, dim=4):
        sizes = {"length": length, "dim": dim}
        return cost(spec, **(sizes if cost is activations else sizes | {"outputs": 4}))

    for name in ("heads", "hidden", "layers"):
        assert at(dataclasses.replace(spec, **{name: getattr(spec, name) + 1})) > at(spec), name
    longer = at(spec, length=5) - at(spec)
    assert longer == 0 if cost is parameters else longer > 0


@quick
@given(options)
def test_activations_hold_at_least_the_attention_weights_and_the_hidden_units(chosen):
    spec = EncoderSpec(**chosen)
    assert activations(spec, length=6, dim=4) >= spec.layers * 6 * (6 * spec.total_heads + spec.hidden)


def test_only_a_class_token_transformer_is_padded():
    model, encoder = init_model(CLASS_TOKEN, 0, **SIZES), init_model(ENCODER, 0, **SIZES)
    assert_trees_equal(with_heads(model, 4), resize_heads(model, 4))
    assert with_heads(encoder, 4) is encoder


def test_only_an_encoder_reads_the_task_s_own_units():
    assert reads_raw_units(ENCODER)
    assert not reads_raw_units(CLASS_TOKEN)
