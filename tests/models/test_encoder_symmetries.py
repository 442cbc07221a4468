"""The encoder keeps the symmetries that its shape promises, and its heads read what they say."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount._choices import POSITIONS
from headcount._precision import in_double

from ..helpers.compiling import compile_quickly  # noqa: F401
from ..helpers.tolerance import assert_close
from .encoders import (
    LENGTH,
    a_spec,
    answer,
    double,  # noqa: F401
    gap,
    length_for,
    scrambled,
    some_tokens,
    weights_of,
)

ORDER = np.array([2, 0, 3, 1])


@pytest.mark.parametrize("attention", ["soft", "hard"])
@pytest.mark.parametrize("positions", POSITIONS)
def test_answers_move_with_their_tokens_unless_places_count(positions, attention):
    model, tokens = in_double(scrambled(a_spec(positions=positions, attention=attention, layers=2))), some_tokens()
    moved = gap(answer(model, tokens[ORDER]), answer(model, tokens)[ORDER])
    assert moved > 1e-3 if positions != "none" else moved < 1e-10


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("answered_at", ["query", "sequence"])
def test_the_order_of_points_is_nothing_unless_places_count(positions, answered_at):
    spec = a_spec(positions=positions, answered_at=answered_at, layers=2)
    model, tokens = in_double(scrambled(spec)), some_tokens(length=length_for(spec))
    order = [1, 2, 0, 3][: len(tokens)]
    moved = gap(answer(model, tokens[order]), answer(model, tokens))
    assert moved > 1e-3 if positions != "none" else moved < 1e-10


def test_another_query_has_another_answer():
    model, tokens = in_double(scrambled(a_spec(answered_at="query", layers=2))), some_tokens()
    assert gap(answer(model, tokens[ORDER]), answer(model, tokens)) > 1e-3


def test_the_query_is_nobody_s_key():
    """Two layers for a query are three encoders: the points among themselves, the query of them, and again."""
    spec = a_spec(layers=2, answered_at="query")
    model, tokens = scrambled(spec), some_tokens()

    def one_layer(place: int, answered_at: str):
        part = scrambled(a_spec(answered_at=answered_at))
        for mine, theirs in zip(jax.tree.leaves(part), jax.tree.leaves(model.layers[place]), strict=True):
            mine[...] = theirs
        return part

    points = answer(one_layer(0, "tokens"), tokens[:-1])
    query = answer(one_layer(0, "query"), tokens)
    want = answer(one_layer(1, "query"), jnp.concatenate([points, query[None]]))
    assert_close(answer(model, tokens), want)


@pytest.mark.parametrize("asks", [True, False])
def test_without_residual_the_query_is_heard_through_its_projection_alone(asks):
    model = scrambled(a_spec(answered_at="query", residual=False))
    if not asks:
        model.layers[0].heads.query[...] = 0
    tokens, others = some_tokens(), some_tokens()
    others[-1] = -3 * tokens[-1]
    moved = gap(answer(in_double(model), tokens), answer(in_double(model), others))
    assert moved > 1e-3 if asks else moved < 1e-12


@pytest.mark.parametrize("norm", ["unit", "layer"])
def test_what_a_layer_returns_has_its_norm(norm):
    model = scrambled(a_spec(norm=norm, positions="none"))
    answers = np.asarray(answer(in_double(model), some_tokens()))
    if norm == "unit":
        assert_close(np.linalg.norm(answers, axis=-1), np.full(LENGTH, abs(model.layers[-1].feed_scale)))
    else:
        assert_close(np.mean(answers, axis=-1), np.zeros(LENGTH))
        assert np.std(answers, axis=-1) == pytest.approx(1, abs=1e-2)


# What a head reads.


@pytest.mark.parametrize("attention", ["soft", "hard"])
def test_every_query_spends_all_its_attention(attention):
    spec, tokens = a_spec(heads=2, multiplier=2, attention=attention), some_tokens()
    weights = np.asarray(weights_of(scrambled(spec).layers[0].heads, spec, tokens, tokens[:-1]))
    assert weights.shape == (4, LENGTH, LENGTH - 1)
    assert weights.min() >= 0
    assert_close(weights.sum(axis=-1), np.ones((4, LENGTH)))
    assert np.all((weights == 0) | (weights == 1)) == (attention == "hard")


def test_hard_attention_is_the_limit_of_soft():
    soft, hard, tokens = a_spec(), a_spec(attention="hard"), some_tokens()
    heads = scrambled(soft).layers[0].heads
    want = np.asarray(weights_of(heads, hard, tokens, tokens))  # before its arrays change
    for name in ("query", "query_bias"):
        getattr(heads, name)[...] *= 1e6
    assert_close(weights_of(heads, soft, tokens, tokens), want)


def test_scores_are_divided_by_the_root_of_the_rank():
    """Repeating every number of queries and keys k times, at rank k r, multiplies scores by k / sqrt(k)."""
    tokens, narrow = some_tokens(), scrambled(a_spec(rank=1, bias=False)).layers[0].heads
    wide = scrambled(a_spec(rank=4, head_dim=1, bias=False)).layers[0].heads
    for name in ("query", "key"):
        getattr(wide, name)[...] = getattr(narrow, name) / 2**0.5  # 4 of them, each a half: twice the product
    want = weights_of(narrow, a_spec(rank=1, bias=False), tokens, tokens)
    assert_close(weights_of(wide, a_spec(rank=4, head_dim=1, bias=False), tokens, tokens), want)
