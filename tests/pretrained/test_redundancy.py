"""Copies of heads lose nothing when they stand in for each other; strangers do."""

import numpy as np
import pytest

from headcount.keys import named_generator
from headcount.pretrained.layers.weights import Rotary
from headcount.pretrained.sharing.moments import LayerMoments
from headcount.pretrained.sharing.shared import (
    lost_with_keys_of_others,
    same_reading,
)
from tests.pretrained.test_grouping import ROTARY, hidden_copies


@pytest.mark.parametrize("rotary", [None, ROTARY, Rotary(dims=4, interleaved=True)], ids=["free", "halves", "pairs"])
def test_copies_behind_maps_are_seen(rotary):
    weights, _, statistics = hidden_copies(rotary)
    layer = LayerMoments(weights, statistics, rotary)
    copies = np.equal.outer([0, 1, 1, 0, 0, 1], [0, 1, 1, 0, 0, 1])
    lost = lost_with_keys_of_others(layer)
    assert lost[copies].max() < 1e-4
    assert lost[~copies].min() > 1e-3
    assert lost.max() <= 1 + 1e-9


def test_normed_keys_are_compared_as_they_are():
    weights, _, statistics = hidden_copies(ROTARY)
    lost = lost_with_keys_of_others(LayerMoments(weights, statistics, ROTARY, normed=True))
    assert np.all(np.diag(lost) == 0)
    assert lost[0, 3] > 0.01


def test_heads_that_read_the_same_tokens():
    attention = named_generator(0, "attention").dirichlet(np.ones(5), size=(2, 3, 4))
    attention[:, 2] = attention[:, 0]
    reading = same_reading(attention)
    assert reading[0, 2] == pytest.approx(1)
    assert 0 < reading[0, 1] == reading[1, 0] < 1
    padded = np.concatenate([attention, np.zeros_like(attention)], axis=2)
    np.testing.assert_allclose(same_reading(padded), reading)
