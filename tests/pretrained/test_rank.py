"""No other map of the same rank does better than the closed forms; nothing is lost at full rank."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.keys import named_generator
from headcount.pretrained.layers.weights import Rotary
from headcount.pretrained.rank.low_rank import low_rank_scores, low_rank_values, rank_curve
from headcount.pretrained.sharing.moments import REACH, LayerMoments
from tests.pretrained.drawn_layers import drawn

ROTARY = Rotary(dims=4)
FREQUENCIES = np.array([1.0, 0.01])


def projected(maps, bias, x):
    return np.einsum("hdw,tw->htd", maps, x) + (0.0 if bias is None else bias[:, None])


def value_error(weights, changed, outputs):
    """Mean square per head of the change, biases included in the first head."""
    change = np.einsum("thv,ohv->tho", outputs, changed.output - weights.output)
    if weights.output_bias is not None:
        change = change.sum(axis=1, keepdims=True) + (changed.output_bias - weights.output_bias)
    return np.mean(np.sum(change**2, axis=2), axis=0)


def score_error(weights, changed, x):
    """Mean square of the change of scores over all pairs of tokens, up to a constant per query."""
    total = 0.0
    for head in range(weights.heads):
        group = weights.key_head_of(head)
        scores = [
            projected(layer.query, layer.query_bias, x)[head] @ projected(layer.key, layer.key_bias, x)[group].T
            for layer in (weights, changed)
        ]
        change = scores[1] - scores[0]
        total += np.mean((change - change.mean(axis=1, keepdims=True)) ** 2)
    return total


@settings(max_examples=5)
@given(st.integers(0, 2**31), st.integers(1, 3))
def test_no_projection_of_values_beats_the_closed_form(seed, rank):
    weights, _, outputs, statistics = drawn(seed)
    best = value_error(weights, low_rank_values(LayerMoments(weights, statistics), rank), outputs)
    generator = named_generator(seed, "others")
    for _ in range(5):
        onto = np.linalg.qr(generator.normal(size=(weights.width, rank)))[0]
        other = weights.with_output(np.einsum("op,phv->ohv", onto @ onto.T, weights.output))
        assert np.all(best <= value_error(weights, other, outputs) * (1 + 1e-9))


@settings(max_examples=5)
@given(st.integers(0, 2**31), st.integers(1, 3), st.booleans())
def test_no_map_of_keys_beats_the_closed_form(seed, rank, biased):
    weights, x, _, statistics = drawn(seed, biased=biased)
    low = low_rank_scores(LayerMoments(weights, statistics), rank)
    assert max(np.linalg.matrix_rank(key) for key in low.key) <= rank
    best = score_error(weights, low, x)
    generator = named_generator(seed, "others")
    for _ in range(5):
        left, right = generator.normal(size=(2, weights.key_heads, weights.head_dim, rank))
        # Near the optimum and far from it.
        near = np.linalg.svd(low.key, full_matrices=False)[0][:, :, :rank]
        for map_ in (left @ right.transpose(0, 2, 1), (near + 0.01 * left) @ near.transpose(0, 2, 1)):
            bias = None if weights.key_bias is None else np.einsum("gab,gb->ga", map_, weights.key_bias)
            other = replace(weights, key=map_ @ weights.key, key_bias=bias)
            assert best <= score_error(weights, other, x) * (1 + 1e-9)


@pytest.mark.parametrize("biased", [False, True])
def test_the_mean_output_stays_where_a_bias_is_stored(biased):
    weights, _, outputs, statistics = drawn(biased=biased)
    low = low_rank_values(LayerMoments(weights, statistics), 1)
    change = np.einsum("thv,ohv->o", outputs, low.output - weights.output) / len(outputs)
    if biased:
        np.testing.assert_allclose(change + low.output_bias, weights.output_bias, atol=1e-10)
    else:
        assert low.output_bias is None


@pytest.mark.parametrize("rotary", [None, ROTARY])
def test_full_rank_changes_nothing(rotary):
    weights, _, _, statistics = drawn()
    layer = LayerMoments(weights, statistics, rotary)
    assert low_rank_values(layer, 4) is weights
    assert low_rank_scores(layer, 4) is weights


def rotary_error(weights, changed, x):
    """Mean square of the change of scores, over independent tokens and weighted distances."""
    total, distances = 0.0, np.arange(REACH)
    shares = 1 / (1 + distances)
    for distance, share in zip(distances[:40], shares, strict=False):
        angle = -FREQUENCIES * distance
        turn = np.zeros((4, 4))
        turn[:2, :2] = turn[2:, 2:] = np.diag(np.cos(angle))
        turn[2:, :2], turn[:2, 2:] = np.diag(np.sin(angle)), -np.diag(np.sin(angle))
        for head in range(weights.heads):
            group = weights.key_head_of(head)
            change = sum(
                sign * (layer.query[head] @ x.T).T @ turn @ (layer.key[group] @ x.T)
                for sign, layer in ((1, weights), (-1, changed))
            )
            total += share * np.mean(change**2)
    return total


@pytest.mark.parametrize("interleaved", [False, True])
def test_without_frequencies_the_pair_with_most_energy_stays(interleaved):
    weights, x, _, statistics = drawn(heads=2)
    rotary = Rotary(dims=4, interleaved=interleaved)
    pairs = [(0, 1), (2, 3)] if interleaved else [(0, 2), (1, 3)]
    low = low_rank_scores(LayerMoments(weights, statistics, rotary), 2)
    for head in range(2):
        queries, keys = (np.mean((maps[head] @ x.T) ** 2, axis=1) for maps in (weights.query, weights.key))
        energies = [queries[list(pair)].sum() * keys[list(pair)].sum() for pair in pairs]
        kept = list(pairs[int(np.argmax(energies))])
        dropped = [dim for dim in range(4) if dim not in kept]
        assert not low.key[head][dropped].any()
        # A pair may be scaled in the key and back in the query.
        scores = [layer.query[head][kept].T @ layer.key[head][kept] for layer in (low, weights)]
        np.testing.assert_allclose(*scores, atol=1e-4)


def test_known_frequencies_lose_less_than_dropped_pairs():
    weights, x, _, statistics = drawn(heads=2)
    fitted = low_rank_scores(LayerMoments(weights, statistics, ROTARY, frequencies=FREQUENCIES), 2)
    dropped = [replace(weights, key=weights.key * np.isin(np.arange(4), pair)[:, None]) for pair in ((0, 2), (1, 3))]
    assert rotary_error(weights, fitted, x) < min(rotary_error(weights, other, x) for other in dropped)


def test_normed_keys_only_lose_rows():
    weights, _, _, statistics = drawn()
    low = low_rank_scores(LayerMoments(weights, statistics, ROTARY, normed=True), 2)
    assert np.array_equal(low.query, weights.query)
    for before, after in zip(weights.key, low.key, strict=True):
        changed = np.flatnonzero(np.any(before != after, axis=1))
        assert len(changed) == 2
        assert not after[changed].any()


def test_the_curve_is_bisected_with_few_evaluations():
    weights, x, outputs, statistics = drawn(heads=2, head_dim=8, width=8)
    calls = []

    def losses(changes=None):
        calls.append(changes)
        changed = (changes or {}).get(0, weights)
        return 1.0 + value_error(weights, changed, outputs) + score_error(weights, changed, x)

    layer = SimpleNamespace(rotary=None, normed=False)
    evaluation = SimpleNamespace(layers=(layer,), original=(weights,), model=None, losses=losses)
    evaluation.layer_statistics = lambda index: statistics
    evaluation.examples = SimpleNamespace(loss=SimpleNamespace(scale_of=np.mean))
    curves = rank_curve(evaluation, 0)
    assert len(calls) <= 9
    for ranks, rows in curves.values():
        assert ranks[0] == 8
        assert list(ranks) == sorted(ranks, reverse=True)
        assert rows.shape == (len(ranks), 2)
    assert rank_curve(evaluation, 0, [4, 2])["values"][0] == (8, 4, 2)
