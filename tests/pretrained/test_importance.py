"""Importances against their definitions, and orders made from them."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headcount.pretrained.removal.importance import (
    ascending,
    layer_importance,
    output_norms,
    peer_orders,
    random_order,
)
from headcount.pretrained.removal.refit import losses_along

from ..helpers.layered import LayeredEvaluation, correlated, random_weights, statistics_of


@given(seed=st.integers(0, 2**31))
def test_output_norms_are_those_of_the_samples(seed):
    generator = np.random.default_rng(seed)
    weights = random_weights(generator)
    outputs = correlated(generator, 30, 8)
    added = np.einsum("ohi,thi->tho", weights.output, outputs.reshape(30, 4, 2))
    expected = np.sqrt(np.mean(np.sum(added**2, axis=2), axis=0))
    np.testing.assert_allclose(output_norms(weights, statistics_of(outputs, outputs[:, :5])), expected, rtol=1e-8)


def test_leave_one_out_compares_the_same_examples():
    evaluation = LayeredEvaluation(np.random.default_rng(0))
    statistics = evaluation.statistics()
    layer = layer_importance(evaluation, 1, statistics[1])
    rise = evaluation.losses({1: evaluation.original[1].without([2])}, part="calibration")
    np.testing.assert_allclose(layer["leave_one_out"][2], rise.mean())
    np.testing.assert_allclose(layer["leave_one_out_error"][2], rise.std(ddof=1) / 2)
    assert set(layer_importance(evaluation, 1, statistics[1], leave_one_out=False)) == {"magnitude", "output_norm"}


def test_gradients_give_the_mean_size_and_the_mean_square():
    evaluation = LayeredEvaluation(np.random.default_rng(0))
    gradients = np.random.default_rng(1).normal(size=(6, 4))
    statistics = replace(evaluation.layer_statistics(0), gradients=gradients)
    layer = layer_importance(evaluation, 0, statistics, leave_one_out=False)
    np.testing.assert_allclose(layer["gradient"], np.abs(gradients).mean(axis=0))
    np.testing.assert_allclose(layer["fisher"], (gradients**2).mean(axis=0))


def test_orders_hold_every_head_once_and_start_with_the_least():
    assert ascending([np.array([3.0, 1.0]), np.array([2.0, 9.0])]) == ((0, 1), (1, 0), (0, 0), (1, 1))
    assert ascending([np.array([3.0, 4.0]), np.array([0.1, 0.0])], per_layer=True)[0] == (1, 1)
    assert sorted(random_order([2, 3], 0)) == [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)]
    evaluation = LayeredEvaluation(np.random.default_rng(0))
    orders = peer_orders([layer_importance(evaluation, i, one) for i, one in enumerate(evaluation.statistics())])
    assert "leave-one-out" in orders
    assert "Fisher" not in orders
    assert all(len(set(order)) == 12 for order in orders.values())


def test_losses_along_an_order_are_of_the_heads_removed_so_far():
    evaluation = LayeredEvaluation(np.random.default_rng(2), length=60)
    order = random_order([4, 4, 4], 0)
    plain = losses_along(evaluation, order, (0, 3), with_refit=False)
    assert np.all(plain[0] == 0)
    assert losses_along(evaluation, order, (3,), with_refit=True).mean() < plain[1].mean()
    assert evaluation.settled == {}
