"""Parameters counted are the numbers trained, and operations counted are the matrix products performed."""

import math

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.extend.core import jaxprs_in_params

from headcount.models import (
    POSITIONS,
    ClassTokenSpec,
    EncoderSpec,
    feed_forward_parameters,
    forward_flops,
    init,
    init_encoder,
    init_model,
    predict,
    textbook_flops,
    total_parameters,
)
from headcount.models.encoder import encoder_flops, encoder_parameters

from .encoders import options

PUBLISHED = {"length": 128, "dim": 4}


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("rank", [1, 5])
@pytest.mark.parametrize("positions", POSITIONS)
def test_parameters_are_the_numbers_of_a_model(positions, rank, heads, layers, outputs):
    spec = ClassTokenSpec(heads=heads, head_dim=5, rank=rank, hidden=7, layers=layers, positions=positions)
    model = init(spec, 0, length=6, dim=2, outputs=outputs)
    numbers = sum(leaf.size for leaf in jax.tree.leaves(model))
    assert total_parameters(spec, length=6, dim=2, outputs=outputs) == numbers
    nets = (model.encoder_in, model.encoder_out, model.readout_in, model.readout_out)
    counted = sum(net.weight.size + net.bias.size for net in nets)
    assert feed_forward_parameters(spec, dim=2, outputs=outputs) == counted


@settings(deadline=None, max_examples=60)
@given(options, st.integers(1, 5), st.integers(1, 5), st.integers(1, 5))
def test_parameters_are_the_numbers_of_an_encoder(chosen, length, dim, outputs):
    spec, sizes = EncoderSpec(**chosen), {"length": length, "dim": dim, "outputs": outputs}
    numbers = sum(leaf.size for leaf in jax.tree.leaves(init_encoder(spec, 0, **sizes)))
    assert encoder_parameters(spec, **sizes) == numbers


def test_m_of_the_published_model():
    spec = ClassTokenSpec(heads=4)  # N = 32, d = 4, E = 32
    w1, w2, w3, w4 = 32 * 4 + 32, 32 * 32 + 32, 32 * 32 + 32, 32 + 1
    assert feed_forward_parameters(spec, dim=4) == w1 + w2 + w3 + w4 == 2305
    assert total_parameters(spec, length=128, dim=4) == 2305 + 4 * 32 * 32 + 32


def test_folding_saves_what_it_says():
    """Per sample at h = 4, T = 128: 3.48 million operations for the textbook layer, 0.10 million folded."""
    spec = ClassTokenSpec(heads=4, head_dim=8, hidden=32)
    assert textbook_flops(spec, **PUBLISHED) / 1e6 == pytest.approx(3.48, abs=0.02)
    assert forward_flops(spec, **PUBLISHED) / 1e6 == pytest.approx(0.10, abs=0.01)


@pytest.mark.parametrize("positions", POSITIONS)
def test_one_layer_is_linear_in_length_and_more_are_not(positions):
    def curvature(layers):
        spec = ClassTokenSpec(heads=4, positions=positions, layers=layers)
        costs = [forward_flops(spec, length=length, dim=4) for length in (32, 64, 96)]
        assert costs[0] < costs[1] < costs[2]
        return costs[2] - 2 * costs[1] + costs[0]

    assert curvature(1) == 0
    assert curvature(2) > 0


def performed(spec: ClassTokenSpec | EncoderSpec, *, length: int, dim: int, outputs: int) -> int:
    """Operations of the matrix products that one more example adds to a batch of the program that is trained."""
    model = init_model(spec, 0, length=length, dim=dim, outputs=outputs)

    def of_batch(batch: int) -> int:
        tokens = np.zeros((batch, length, dim), np.float32)
        return _products(jax.make_jaxpr(jax.vmap(predict, in_axes=(None, 0)))(model, tokens).jaxpr)

    return of_batch(3) - of_batch(2)


def _products(jaxpr) -> int:
    total = 0
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            left, result = equation.invars[0].aval.shape, equation.outvars[0].aval.shape
            total += 2 * math.prod(result) * math.prod(left[axis] for axis in contracted)
        total += sum(_products(inner) for inner in jaxprs_in_params(equation.params))
    return total


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("rank", [2, 4, 7])
@pytest.mark.parametrize("positions", POSITIONS)
def test_operations_are_the_products_performed(positions, rank, layers):
    spec = ClassTokenSpec(heads=3, head_dim=4, rank=rank, hidden=5, layers=layers, positions=positions)
    sizes = {"length": 6, "dim": 2, "outputs": 2}
    assert forward_flops(spec, **sizes) == performed(spec, **sizes)


@pytest.mark.parametrize(("dim", "outputs"), [(5, 5), (2, 3)])
@pytest.mark.parametrize("changes", [{}, {"layers": 2, "hidden": 0}, {"positions": "concatenated", "multiplier": 2}])
def test_operations_are_the_products_an_encoder_performs(changes, dim, outputs):
    """Ranks above those whose products are sums."""
    spec = EncoderSpec(**({"heads": 2, "rank": 3, "width": 5, "head_dim": 4, "hidden": 7} | changes))
    sizes = {"length": 6, "dim": dim, "outputs": outputs}
    assert encoder_flops(spec, **sizes) == performed(spec, **sizes)
