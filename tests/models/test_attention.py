"""What models say of their heads: weights over the tokens that are there, and the model without one of them."""

import dataclasses

import jax
import numpy as np
import pytest

from headcount.models import ClassTokenSpec

from ..helpers import textbook
from ..helpers.compiling import compile_quickly  # noqa: F401
from ..helpers.refusals import refused
from ..helpers.tolerance import assert_close, in_double
from .encoders import a_spec, slowly
from .laws import sizes_for, tokens_for
from .mean_pool import MeanPoolSpec

SHAPE = {"heads": 3, "head_dim": 2, "rank": 2}
SPECS = (
    ClassTokenSpec(**SHAPE, hidden=3, positions="additive", masks_padding=True),
    ClassTokenSpec(**SHAPE, hidden=3, layers=2, masks_padding=True, beta=2.0),
    a_spec(**SHAPE, layers=2, answered_at="sequence", masks_padding=True, padding="nan", always_maps=True),
    a_spec(**SHAPE, layers=2, answered_at="tokens", norm="layer", norm_first=True, always_maps=True),
    a_spec(**SHAPE, answered_at="query", query_is_key=False, always_maps=True),
    a_spec(**SHAPE, layers=2, answered_at="tokens", causal=True, kv_heads=1, always_maps=True),
)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_weights_are_shares_of_the_tokens_and_a_head_without_output_is_no_head(spec):
    head = 1
    with jax.enable_x64(True):
        model, tokens = in_double(spec.init(1, **sizes_for(spec))), tokens_for(spec)[0]

        @jax.jit
        def seen(model):
            without = model
            for layer in range(spec.layers):
                without = without.without_head(layer, head)
            return model.attention_weights(tokens), without(tokens)

        weights, answer = seen(model)
        assert np.shape(weights) == (spec.layers, spec.heads, len(tokens))
        assert_close(np.sum(weights, axis=-1), np.ones((spec.layers, spec.heads)))
        assert not np.any(np.asarray(weights)[..., np.isnan(tokens).all(axis=-1)])
        assert np.all(np.ptp(np.asarray(weights)[..., [0, 2]], axis=-1) > 0)
        if spec.answered_at == "query":
            assert not np.any(np.asarray(weights)[..., -1])
        predict = textbook.predict if isinstance(spec, ClassTokenSpec) else slowly
        assert_close(answer, predict(deleted(model, head), tokens))


OF_HEADS = ("query", "query_bias", "output")
"""What every head has, also where they share keys and values."""


def deleted(model, head):
    """The model whose arrays do not have the head, in any layer."""
    name = "attention" if isinstance(model.spec, ClassTokenSpec) else "layers"

    def less(heads):
        axes = {"output": 1} if name == "attention" else {}
        fields = {field.name: getattr(heads, field.name) for field in dataclasses.fields(heads)}
        kept = {
            part: np.delete(array, head, axis=axes.get(part, 0))
            for part, array in fields.items()
            if array is not None and part != "output_bias" and (part in OF_HEADS or not model.spec.kv_heads)
        }
        return dataclasses.replace(heads, **kept)

    layers = getattr(model, name)
    if name == "attention":
        return dataclasses.replace(model, attention=tuple(less(layer) for layer in layers))
    fewer = dataclasses.replace(model.spec, heads=model.spec.heads - 1)
    layers = tuple(dataclasses.replace(layer, heads=less(layer.heads)) for layer in layers)
    return dataclasses.replace(model, layers=layers, spec=fewer)


def test_a_kind_that_says_nothing_is_refused_by_name():
    model = MeanPoolSpec(heads=1).init(0, length=2, dim=1, outputs=1)
    with refused(MeanPoolSpec.kind):
        model.attention_weights(np.zeros((2, 1)))
    with refused(MeanPoolSpec.kind):
        model.without_head(0, 0)
