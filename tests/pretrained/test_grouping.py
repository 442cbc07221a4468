"""Groups of equal heads lose nothing, hidden maps between heads are undone, and sharing is better than averaging."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from headcount.keys import named_generator
from headcount.pretrained.layers.weights import Rotary
from headcount.pretrained.sharing import grouping
from headcount.pretrained.sharing.grouping import choose_groups, group_layer, group_model
from headcount.pretrained.sharing.moments import REACH, LayerMoments, mean_rotation
from headcount.pretrained.sharing.shared import share_keys
from tests.helpers.textbook_attention import attend, rotated
from tests.pretrained.drawn_layers import drawn, statistics_of

LENGTH = 5
ROTARY = Rotary(dims=4)
FREQUENCIES = np.array([1.0, 0.3])
COPIES = ((0, 3, 4), (1, 2, 5))


def attended(weights, x, rotary=None):
    def turn(rows):
        angles = np.arange(LENGTH)[:, None] * FREQUENCIES
        return rotated(rows, np.cos(angles), np.sin(angles), interleaved=rotary.interleaved) if rotary else rows

    return attend(weights, x[:LENGTH], turn_query=turn, turn_key=turn)


def hidden_copies(kind, biased=False):
    """A layer of six heads whose key heads 0, 3, 4 and 1, 2, 5 are one each, seen through maps that undo each other."""
    weights, x, outputs, _ = drawn(heads=6, key_heads=6, biased=biased)
    generator = named_generator(0, "maps", str(kind))
    names = {name: array.copy() for name, array in vars(weights).items() if array is not None}
    for head, source in enumerate((0, 1, 1, 0, 0, 1)):
        inner, outer = _commuting(generator, kind), generator.normal(size=(4, 4))
        names["key"][head] = inner @ weights.key[source]
        names["value"][head] = outer @ weights.value[source]
        if biased:
            names["key_bias"][head] = inner @ weights.key_bias[source]
            names["value_bias"][head] = outer @ weights.value_bias[source]
    weights = replace(weights, **names)
    return weights, x, statistics_of(weights, x, _outputs(weights, x, outputs))


def _outputs(weights, x, outputs):
    bias = 0.0 if weights.value_bias is None else weights.value_bias[None]
    return np.einsum("hvw,tw->thv", weights.value, x) + bias + 0 * outputs


def _commuting(generator, rotary):
    if rotary is None:
        return np.eye(4) + 0.3 * generator.normal(size=(4, 4))
    first, second = ([0, 2], [1, 3]) if rotary.interleaved else ([0, 1], [2, 3])
    cosines, sines = generator.normal(size=(2, 2))
    matrix = np.zeros((4, 4))
    matrix[first, first] = matrix[second, second] = cosines
    matrix[second, first], matrix[first, second] = sines, -sines
    return matrix


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("rotary", [None, ROTARY, Rotary(dims=4, interleaved=True)], ids=["free", "halves", "pairs"])
def test_hidden_copies_are_found_and_nothing_is_lost(rotary, biased):
    weights, x, statistics = hidden_copies(rotary, biased)
    layer = LayerMoments(weights, statistics, rotary)
    assert choose_groups(layer, 2) == COPIES
    small = group_layer(layer, COPIES)
    assert (small.key_heads, small.heads) == (2, 6)
    for shape in (small, small.repeated(6)):
        np.testing.assert_allclose(attended(shape, x, rotary), attended(weights, x, rotary), atol=2e-4)
    strangers = group_layer(layer, ((0, 1, 2), (3, 4, 5)))
    assert np.abs(attended(strangers, x, rotary) - attended(weights, x, rotary)).max() > 0.01


def test_grouped_layers_are_grouped_further():
    weights, x, _, _ = drawn(heads=6, key_heads=3)
    weights = replace(weights, key=weights.key[[0, 0, 0]], value=weights.value[[1, 1, 1]])
    statistics = statistics_of(weights, x, np.repeat(np.einsum("hvw,tw->thv", weights.value, x), 2, axis=1))
    small = group_layer(LayerMoments(weights, statistics, ROTARY, frequencies=FREQUENCIES), ((0, 1, 2),))
    np.testing.assert_allclose(attended(small, x, ROTARY), attended(weights, x, ROTARY), atol=2e-4)


@pytest.mark.parametrize("frequencies", [None, FREQUENCIES], ids=["unknown", "known"])
def test_the_mean_over_distances_is_that_of_sampled_rotations(frequencies):
    matrix = named_generator(0, "matrix").normal(size=(6, 6))
    rotation = mean_rotation(6, ROTARY, frequencies)
    if frequencies is None:
        # Eight angles each, spread evenly: exact for products of two rotations.
        steps = 2 * np.pi * np.arange(8) / 8
        draws = [(np.array([one, other]), 1.0) for one in steps for other in steps]
    else:
        draws = [(-frequencies * distance, 1 / (1 + distance)) for distance in range(REACH)]
    total, backwards, weight = np.zeros((6, 6)), np.zeros((6, 6)), 0.0
    for angles, share in draws:
        turn = np.eye(6)
        turn[[0, 1], [0, 1]] = turn[[2, 3], [2, 3]] = np.cos(angles)
        turn[[2, 3], [0, 1]], turn[[0, 1], [2, 3]] = np.sin(angles), -np.sin(angles)
        total += share * turn @ matrix @ turn.T
        backwards += share * turn.T @ matrix @ turn
        weight += share
    np.testing.assert_allclose(rotation.averaged(matrix), total / weight, atol=1e-12)
    np.testing.assert_allclose(rotation.averaged(matrix, backwards=True), backwards / weight, atol=1e-12)


def test_fitting_in_turns_loses_less_than_its_start(monkeypatch):
    weights, _, _, statistics = drawn(heads=4, key_heads=4, head_dim=4)
    layer = LayerMoments(weights, statistics, ROTARY, frequencies=FREQUENCIES)
    lost = {}
    for turns in (0, 1, 10):
        monkeypatch.setattr("headcount.pretrained.sharing.shared.TURNS", turns)
        lost[turns] = share_keys(layer, [0, 1, 2, 3])[2]
    assert lost[10] < lost[1] < lost[0]


def test_normed_keys_are_averaged_and_queries_stay():
    weights, _, _, statistics = drawn(heads=4, key_heads=4)
    small = group_layer(LayerMoments(weights, statistics, ROTARY, normed=True), ((0, 1, 2, 3),))
    np.testing.assert_array_equal(small.query, weights.query)


def test_many_heads_are_grouped_by_swaps(monkeypatch):
    weights, _, statistics = hidden_copies(ROTARY)
    monkeypatch.setattr(grouping, "ALL_PARTITIONS", 3)
    assert choose_groups(LayerMoments(weights, statistics, ROTARY), 2) == COPIES


def test_every_layer_is_fitted_on_top_of_those_before_it():
    weights, _, _, statistics = drawn(heads=4, key_heads=4)
    settled = []
    evaluation = SimpleNamespace(
        layers=tuple(SimpleNamespace(index=index, rotary=None, normed=False) for index in range(2)),
        original=(weights, weights),
        model=None,
        settle=lambda changes: settled.append(set(changes)),
        layer_statistics=lambda index: statistics,
    )
    layers = group_model(evaluation, 2)
    assert [(layer.small.key_heads, layer.masked.key_heads) for layer in layers] == [(2, 4), (2, 4)]
    assert settled == [set(), {0}, {0}, {0, 1}, set()]
