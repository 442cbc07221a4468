"""What the encoder drops in training: a share, by the key it is given, and nothing without one."""

import jax
import jax.random as jr
import numpy as np
import pytest

from headcount._precision import in_double
from headcount.models.encoder.layer import dropped

from ..helpers.compiling import compile_quickly  # noqa: F401
from ..helpers.tolerance import assert_close, assert_trees_equal
from .encoders import (
    a_spec,
    answer,
    double,  # noqa: F401
    gap,
    length_for,
    respond,
    scrambled,
    slowly,
    some_tokens,
)

DROPS = {"dropout": 0.1, "layers": 2, "norm": "layer", "norm_first": True}
MANY = 4000


@pytest.mark.parametrize("answered_at", ["tokens", "query", "sequence"])
def test_without_a_key_nothing_is_dropped(answered_at):
    spec = a_spec(answered_at=answered_at, **DROPS)
    model, tokens = in_double(scrambled(spec)), some_tokens(length=length_for(spec))
    assert_close(answer(model, tokens), slowly(model, tokens))


def test_a_key_without_dropout_is_not_used():
    model, tokens = in_double(scrambled(a_spec(layers=2))), some_tokens()
    assert_trees_equal(answer(model, tokens, jr.key(0)), answer(model, tokens))


def test_another_key_drops_others_and_the_same_key_the_same():
    model, tokens = in_double(scrambled(a_spec(**(DROPS | {"dropout": 0.5})))), some_tokens()
    answers = [np.asarray(answer(model, tokens, jr.key(seed))) for seed in (0, 1, 0)]
    assert np.array_equal(answers[0], answers[2])
    assert gap(answers[0], answers[1]) > 1e-3
    assert gap(answers[0], answer(model, tokens)) > 1e-3


@pytest.mark.parametrize(("dropout", "share"), [(1e-9, 1 / 256), (0.1, 26 / 256), (0.999, 255 / 256)])
def test_a_share_is_dropped_and_the_mean_stays(dropout, share):
    """The nearest multiple of 1/256, and never none or all."""
    spec, stream = a_spec(dropout=dropout), some_tokens()
    drop = jax.jit(jax.vmap(lambda key: dropped(stream, spec, key[None], 0)))
    left = np.asarray(drop(jr.split(jr.key(1), MANY)))
    gone = left == 0
    # Four numbers share a draw, so places are not told apart but each has its own byte.
    error = (share * (1 - share) / gone.size) ** 0.5
    assert np.mean(gone) == pytest.approx(share, abs=5 * error)
    assert np.mean(gone, axis=0) == pytest.approx(share, abs=6 * (share * (1 - share) / MANY) ** 0.5)
    assert_close(left, np.where(gone, 0, stream / (1 - share)))
    spread = np.abs(stream) * (share / (1 - share) / MANY) ** 0.5
    assert np.all(np.abs(np.mean(left, axis=0) - stream) <= 6 * spread)
    assert len(np.unique(gone.reshape(MANY, -1), axis=0)) > (10 if 0.01 < share < 0.99 else 1)


def test_tokens_and_what_is_added_to_them_are_dropped_apart():
    """Heads that put nothing out leave two sums to be dropped: the tokens and the bias that attention adds."""
    model, tokens = scrambled(a_spec(dropout=0.5, hidden=0, norm="none")), some_tokens()
    model.layers[0].heads.output[...] = 0
    bias = model.layers[0].heads.output_bias
    answers = np.asarray(jax.jit(jax.vmap(respond, in_axes=(None, None, 0)))(model, tokens, jr.split(jr.key(2), MANY)))
    sums = [0 * tokens, 2 * tokens, 2 * bias + 0 * tokens, 2 * tokens + 2 * bias]
    found = np.stack([np.abs(answers - one) < 1e-9 for one in sums])
    assert np.all(np.sum(found, axis=0) == 1)
    # A quarter each; 4000 draws know it to 0.007.
    assert np.mean(found, axis=1) == pytest.approx(0.25, abs=0.04)
