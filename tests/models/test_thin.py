"""Thin heads, by sums of products: what a softmax of all pairs gives, in value and in gradient, wherever it is used."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount._precision import in_double
from headcount.models.encoder import attention, thin

from ..helpers.compiling import compile_quickly  # noqa: F401
from ..helpers.tolerance import assert_close, assert_trees_close
from .encoders import a_spec, some_tokens

HEADS = 2


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def plainly(queries, keys, values, unread):
    scores = jnp.einsum("qrh,krh->hqk", queries, keys)
    weights = jax.nn.softmax(scores if unread is None else jnp.where(unread, -jnp.inf, scores), axis=-1)
    return jnp.einsum("hqk,knh->qnh", weights, values)


def value_and_gradient(mixed, parts, unread, direction):
    value, pull = jax.vjp(lambda *parts: mixed(*parts, unread), *parts)
    return value, pull(direction)


@settings(max_examples=6, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    rank=st.integers(1, 2),
    masked=st.sampled_from(["nothing", "some keys", "some pairs"]),
    scale=st.sampled_from([1e-3, 1.0, 30.0]),
    unrolled=st.booleans(),
)
def test_sums_of_products_are_softmax_attention(seed, rank, masked, scale, unrolled):
    keys, head_dim = 3, 3 - rank
    generator = np.random.default_rng(seed)
    draw = lambda *shape: jnp.asarray(generator.normal(size=(*shape, HEADS)))  # noqa: E731
    parts = (scale * draw(2, rank), draw(keys, rank), draw(keys, head_dim))
    shape = {"nothing": None, "some keys": (keys,), "some pairs": (2, keys)}[masked]
    unread = None if shape is None else jnp.asarray(generator.random(shape) < 0.5).at[..., 0].set(False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(thin, "UNROLLED", 16 if unrolled else 0)
        direction = draw(2, head_dim)
        got = value_and_gradient(thin.mix, parts, unread, direction)
    want = value_and_gradient(plainly, parts, unread, direction)
    assert_trees_close(got, want)


@pytest.mark.parametrize("options", [{}, {"causal": True, "bias": False}], ids=str)
def test_an_encoder_answers_the_same_through_thin_heads(options, monkeypatch):
    spec = a_spec(heads=2, multiplier=2, rank=2, head_dim=1, **options)
    model, tokens = in_double(spec.init(3, length=4, dim=4, outputs=4)), some_tokens(3, length=4, dim=4)
    want = model(tokens)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(attention, "LANES", 1)
    monkeypatch.setattr(attention, "_read", lambda *_: pytest.fail("not by thin heads"))
    assert_close(model(tokens), want)
