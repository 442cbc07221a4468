"""Laws of losing heads, for class-token models of one layer.

The heads' values, their removal and the answers are compared with NumPy written out in double precision.
"""

import functools
from dataclasses import replace

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import erf

from headcount._choices import POSITIONS
from headcount.errors import InputError
from headcount.models import ClassTokenSpec, EncoderSpec, from_arrays
from headcount.models.class_token.removal import HeadRemoval

from ..helpers.compiling import compile_quickly  # noqa: F401
from ..helpers.tolerance import assert_close

LENGTH, DIM, HEADS, HEAD_DIM, HIDDEN = 5, 2, 3, 5, 4
"""Two heads of 5 values are as wide as anything an embedding of HIDDEN units and LENGTH positions can hold."""
seeds = st.integers(0, 10_000)


def drawn(seed: int, heads: int = HEADS, outputs: int = 1, positions="none", head_dim: int = HEAD_DIM):
    """A model whose heads attend sharply, each to other tokens, and biases that are not zero."""
    model, generator = initial(heads, outputs, positions, head_dim), np.random.default_rng(seed)
    return jax.tree.map(lambda leaf: leaf + generator.normal(0, 0.3, leaf.shape).astype(np.float32), model)


@functools.cache
def initial(heads: int, outputs: int, positions, head_dim: int):
    spec = ClassTokenSpec(heads=heads, head_dim=head_dim, hidden=HIDDEN, positions=positions, beta=8.0)
    return spec.init(0, length=LENGTH, dim=DIM, outputs=outputs)


def some_tokens(seed: int, examples: int = 60) -> np.ndarray:
    return np.random.default_rng((seed, 1)).normal(size=(examples, LENGTH, DIM)).astype(np.float32)


def answers(model, tokens: np.ndarray) -> np.ndarray:
    """The textbook model in NumPy, in double precision."""

    def linear(layer, values):
        return values @ np.asarray(layer.weight, np.float64).T + np.asarray(layer.bias, np.float64)

    tokens, table = tokens.astype(np.float64), model.position_table
    if model.position_codes is not None:
        places = np.broadcast_to(np.asarray(table, np.float64), (len(tokens), *table.shape))
        tokens = np.concatenate([tokens, places], axis=-1)
    embedded = linear(model.encoder_out, np.maximum(linear(model.encoder_in, tokens), 0))
    embedded = embedded if model.added_positions is None else embedded + np.asarray(table, np.float64)
    (layer,) = model.attention
    query, key, value, output = (
        np.asarray(part, np.float64) for part in (layer.query, layer.key, layer.value, layer.output)
    )
    scores = model.spec.beta * np.einsum("hre,e,hrf,xtf->xht", query, model.class_token, key, embedded, optimize=True)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    values = np.einsum("xht,hne,xte->xhn", weights, value, embedded, optimize=True)
    before = linear(model.readout_in, model.class_token + np.einsum("ehn,xhn->xe", output, values))
    return linear(model.readout_out, 0.5 * before * (1 + erf(before / np.sqrt(2))))


def spread(of: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.var(of, axis=0))))


def distance_without(removal: HeadRemoval, kept) -> float:
    """The mean squared change of the answers without the other heads, over the variance of the answers."""
    return float(np.mean((removal.answers_of(kept) - removal.whole) ** 2)) / removal.variance


def with_bias(removal: HeadRemoval, kept) -> np.ndarray:
    return removal.answers_of(kept) + np.asarray(removal.model.readout_out.bias, np.float64)


def with_copy(model, of: int = 0, to: int = 2):
    """The model with one head replaced by a copy of another, each writing half of what the one wrote."""
    arrays = {name: array.copy() for name, array in model.to_arrays().items()}
    for name in ("query", "key", "value"):
        arrays[f"attention.0.{name}"][to] = arrays[f"attention.0.{name}"][of]
    output = arrays["attention.0.output"]
    output[:, of] /= 2
    output[:, to] = output[:, of]
    return from_arrays(model.spec, arrays)


@pytest.mark.parametrize(("positions", "outputs"), [("none", 1), ("additive", 2), ("concatenated", 1)])
def test_with_all_heads_the_answers_are_the_models(positions, outputs):
    model, tokens = drawn(0, outputs=outputs, positions=positions), some_tokens(0)
    removal, want = model.head_removal(tokens), answers(model, tokens)
    assert np.max(np.abs(with_bias(removal, range(HEADS)) - want)) <= 1e-8 * spread(want)
    assert distance_without(removal, range(HEADS)) == 0
    assert_close(np.asarray(jax.jit(jax.vmap(model))(tokens)), want, "the model itself, in single precision")


@pytest.mark.parametrize(
    ("positions", "options"),
    [
        ("none", {"masks_padding": True}),
        ("concatenated", {"vocabulary": 3}),
        ("additive", {"masks_padding": True, "vocabulary": 3}),
        ("additive", {"kv_heads": 1, "window": 2, "masks_padding": True}),
    ],
)
def test_absent_tokens_and_ids_are_what_they_are_to_the_model(positions, options):
    """Against the model itself, in single precision: what heads carry, and what is left without one of them."""
    spec = replace(initial(HEADS, 1, positions, HEAD_DIM).spec, beta=2.0, **options)
    model = spec.init(0, length=LENGTH, dim=1 if spec.vocabulary else DIM, outputs=1)
    tokens = some_tokens(0)
    if spec.vocabulary:
        tokens = np.random.default_rng(0).integers(0, 3, (60, LENGTH, 1)).astype(np.float32)
    if spec.masks_padding:
        tokens[np.arange(LENGTH) > np.arange(60)[:, None] % LENGTH] = np.nan
    removal, respond = model.head_removal(tokens), jax.jit(jax.vmap(lambda model, x: model(x), in_axes=(None, 0)))
    want = with_bias(removal, range(HEADS))
    assert_close(np.asarray(respond(model, tokens)), want)
    smaller = removal.without([1])
    assert smaller.spec == replace(spec, heads=HEADS - 1)
    assert np.max(np.abs(np.asarray(respond(smaller, tokens)) - with_bias(removal, [0, 2]))) <= 5e-3 * spread(want)


@given(seed=seeds, positions=st.sampled_from(POSITIONS), outputs=st.integers(1, 2))
def test_the_model_without_a_head_answers_as_predicted(seed, positions, outputs):
    """Where the narrower embedding still holds everything that is read of it."""
    model, tokens = drawn(seed, outputs=outputs, positions=positions), some_tokens(seed)
    removal = model.head_removal(tokens)
    smaller = removal.without([seed % HEADS])
    want = with_bias(removal, [head for head in range(HEADS) if head != seed % HEADS])
    assert smaller.spec == replace(model.spec, heads=HEADS - 1)
    assert np.max(np.abs(answers(smaller, tokens) - want)) <= 2e-3 * spread(want)
    again = from_arrays(smaller.spec, smaller.to_arrays())
    assert {array.dtype for array in again.to_arrays().values()} == {np.dtype(np.float32)}
    padded = smaller.with_heads(4)
    assert padded.spec.heads == 4
    assert np.max(np.abs(answers(padded, tokens) - answers(smaller, tokens))) <= 1e-9 * max(1, spread(want))


@given(seed=seeds)
def test_a_head_that_repeats_another_is_removed_at_no_cost(seed):
    model, tokens = with_copy(drawn(seed)), some_tokens(seed)
    removal = model.head_removal(tokens)
    first = removal.eliminated()
    assert first.order[0] in (0, 2)
    assert first.distances[0] < 1e-6
    want = answers(model, tokens)
    for copy in (0, 2):
        assert np.max(np.abs(answers(removal.without([copy]), tokens) - want)) <= 5e-3 * spread(want)


@given(seed=seeds, heads=st.integers(1, 4))
def test_elimination_removes_the_head_that_is_missed_least_until_one_is_left(seed, heads):
    removal = drawn(seed, heads, head_dim=2).head_removal(some_tokens(seed, 40))
    elimination = removal.eliminated()
    assert len(elimination.order) == len(set(elimination.order)) == len(elimination.distances) == heads - 1
    assert set(elimination.order) <= set(range(heads))
    kept = set(range(heads))
    for head, distance in zip(elimination.order, elimination.distances, strict=True):
        costs = {other: distance_without(removal, sorted(kept - {other})) for other in kept}
        assert distance == pytest.approx(costs[head], rel=1e-4, abs=1e-9)
        assert 0 <= distance <= min(costs.values()) * (1 + 1e-4) + 1e-9
        kept.remove(head)


@given(seed=seeds)
def test_what_a_head_carried_is_predicted_by_least_squares(seed):
    """As well as `np.linalg.lstsq` does, but for what the ridge costs at most: its weight times the fit's square."""
    removal = drawn(seed, head_dim=2).head_removal(some_tokens(seed))
    kept, places, gone = [0, 2], [0, 1, 4, 5], [2, 3]
    predictors, wanted = removal.centred[:, places], removal.centred[:, gone]
    fit = np.linalg.lstsq(predictors, wanted, rcond=None)[0]
    prediction = removal.prediction(kept)
    best, ours = (np.mean((predictors @ each - wanted) ** 2) for each in (fit, prediction[gone].T))
    plain = removal.centred.T @ removal.centred / len(removal.centred)
    ridge = removal.covariance[0, 0] - plain[0, 0]
    assert best * (1 - 1e-9) <= ours <= best + ridge * np.sum(fit**2) + 1e-12
    np.testing.assert_allclose(prediction[places], np.eye(4), atol=1e-6)


def test_several_heads_may_go_at_once():
    model, tokens = drawn(3, heads=4), some_tokens(3)
    removal = model.head_removal(tokens)
    smaller = removal.without([0, 3])
    want = with_bias(removal, [1, 2])
    assert smaller.spec.heads == 2
    assert np.max(np.abs(answers(smaller, tokens) - want)) <= 2e-3 * spread(want)


def test_models_whose_heads_meet_elsewhere_do_not_lose_them():
    assert ClassTokenSpec(heads=2).removes_heads
    assert ClassTokenSpec(heads=4, kv_heads=1, window=2).removes_heads
    refusing = (ClassTokenSpec(heads=2, layers=2), EncoderSpec(heads=2, rank=1, width=3, hidden=4))
    sharing = (ClassTokenSpec(heads=4, kv_heads=2), ClassTokenSpec(heads=2, attention="linear"))
    for spec in (*refusing, *sharing):
        assert not spec.removes_heads
    with pytest.raises(InputError, match="heads=2"):
        EncoderSpec(heads=2, rank=1, width=3, hidden=4).init(0, length=4, dim=3, outputs=1).head_removal(some_tokens(0))
