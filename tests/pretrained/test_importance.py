"""Importances against their definitions, and orders made from them."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headcount.pretrained.removal.importance import importance, output_norms
from headcount.pretrained.removal.peers import ascending, losses_along, peer_orders, random_order

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
    layers = importance(evaluation)
    rise = evaluation.losses({1: evaluation.original[1].without([2])}, part="calibration")
    np.testing.assert_allclose(layers[1].leave_one_out[2], rise.mean())
    np.testing.assert_allclose(layers[1].leave_one_out_error[2], rise.std(ddof=1) / 2)
    assert layers[0].gradient is None
    assert importance(evaluation, leave_one_out=False)[0].leave_one_out is None


def test_gradients_give_the_mean_size_and_the_mean_square():
    evaluation = LayeredEvaluation(np.random.default_rng(0))
    gradients = np.random.default_rng(1).normal(size=(6, 4))
    statistics = [replace(one, gradients=gradients) for one in evaluation.statistics()]
    layer = importance(evaluation, statistics=statistics, leave_one_out=False)[0]
    np.testing.assert_allclose(layer.gradient, np.abs(gradients).mean(axis=0))
    np.testing.assert_allclose(layer.fisher, (gradients**2).mean(axis=0))


def test_orders_hold_every_head_once_and_start_with_the_least():
    assert ascending([np.array([3.0, 1.0]), np.array([2.0, 9.0])]) == ((0, 1), (1, 0), (0, 0), (1, 1))
    assert ascending([np.array([3.0, 4.0]), np.array([0.1, 0.0])], per_layer=True)[0] == (1, 1)
    assert sorted(random_order([2, 3], 0)) == [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)]
    evaluation = LayeredEvaluation(np.random.default_rng(0))
    orders = peer_orders(importance(evaluation))
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
