"""Orders of removal against exhaustive search on small problems."""

from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.errors import InputError
from headcount.pretrained.removal import refit as refit_module
from headcount.pretrained.removal.descent import Descent, descend
from headcount.pretrained.removal.elimination import Elimination, layer_curve, order_within_layer
from headcount.pretrained.removal.importance import fisher_order
from headcount.pretrained.removal.refit import heads_left, refit, refitted_in_order

from ..helpers.fake_evaluation import FakeEvaluation
from ..helpers.layered import LayeredEvaluation, correlated, random_weights, statistics_of

SEEDS = st.integers(0, 2**31)


@contextmanager
def ridge_of(ridge, tokens):
    """Every refit to so many tokens is pulled by this ridge."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refit_module, "PRIOR_TOKENS", ridge * tokens)
        yield


def weighted_error(weights, outputs, targets, fisher, changed, ridge):
    """The objective of the refit, with the coordinates of the output weighted."""
    features = weights.heads * weights.value_dim
    output = changed.output.reshape(-1, features)
    bias = 0 if changed.output_bias is None else changed.output_bias - weights.output_bias
    error = outputs @ output.T + bias - targets
    pull = (output - weights.output.reshape(-1, features)) * np.sqrt(ridge * np.mean(outputs**2))
    return np.sum((error @ fisher) * error) / len(outputs) + np.sum((fisher @ pull) * pull)


@given(seed=SEEDS, biased=st.booleans())
@settings(max_examples=20)
def test_costs_after_updates_are_those_of_a_fit_from_scratch(seed, biased):
    generator = np.random.default_rng(seed)
    weights = random_weights(generator, biased=biased)
    outputs, ridge = correlated(generator, 40, 8), 1e-3
    targets = generator.normal(size=(40, 5))
    root = generator.normal(size=(5, 5))
    statistics = statistics_of(outputs, targets, fisher=root @ root.T)

    def error(kept):
        return weighted_error(
            weights, outputs, targets, statistics.fisher, refit(weights, statistics, kept, ridge=ridge), ridge
        )

    kept, order = [0, 1, 2, 3], []
    with ridge_of(ridge, statistics.tokens):
        left = Elimination(weights, statistics, kept)
        while kept:
            costs = left.costs()
            brute = {head: error([other for other in kept if other != head]) - error(kept) for head in kept}
            np.testing.assert_allclose([costs[i] for i in kept], [brute[i] for i in kept], rtol=1e-6, atol=1e-7)
            order.append(min(costs, key=costs.__getitem__))
            left.remove(order[-1])
            kept.remove(order[-1])
        assert order_within_layer(weights, statistics) == tuple(order)


@given(seed=SEEDS, uniform=st.booleans())
@settings(max_examples=20)
def test_the_fisher_order_takes_the_least_felt_head_that_may_go(seed, uniform):
    generator = np.random.default_rng(seed)
    layers = [random_weights(generator, heads=6, key_heads=3) for _ in range(2)]
    gradients = [generator.normal(size=(5, 6)) for _ in layers]
    order = fisher_order(layers, gradients, uniform=uniform)
    scores = {(layer, head): np.mean(gradients[layer][:, head] ** 2) for layer in range(2) for head in range(6)}
    if uniform:
        assert {(layer, layers[layer].key_head_of(head)) for layer, head in order} == {
            (layer, group) for layer in range(2) for group in range(3)
        }
        assert len(order) == 6
    else:
        assert len(order) == 10
        assert order[0] == min(scores, key=scores.__getitem__)
    assert fisher_order(layers, [None, None]) == ()


def test_a_search_that_is_worse_than_the_fisher_order_gives_way_to_it(monkeypatch):
    evaluation = FakeEvaluation(layers_count=2, heads=4)
    statistics = evaluation.statistics()
    assert descend(evaluation, 3, statistics=statistics).order == "search"
    # Heads have ever smaller outputs: a search that proposes the first two removes the largest.
    monkeypatch.setattr(Elimination, "costs", lambda left: {head: 1.0 + head for head in left.heads})
    misled = descend(evaluation, 3, statistics=statistics)
    assert misled.order == "Fisher"
    assert set(misled.removed) == set(fisher_order(evaluation.original, [one.gradients for one in statistics])[:3])
    np.testing.assert_allclose(evaluation.losses(misled.changes), misled.losses[-1])


EXACT = 1e-12
"""A ridge so small that a layer's local costs are the loss itself, up to the layer's weight."""


def full_greedy(evaluation, remove, least=1):
    """Every head of every layer scored in every round."""
    kept = [list(range(weights.heads)) for weights in evaluation.original]
    statistics = evaluation.statistics()
    changes, removed = {}, []
    for _ in range(remove):
        scores = {}
        for layer, heads in enumerate(kept):
            for head in heads if len(heads) > least else ():
                rest = [other for other in heads if other != head]
                changed = refit(evaluation.original[layer], statistics[layer], rest, ridge=EXACT)
                scores[layer, head] = evaluation.losses({**changes, layer: changed}, part="calibration").mean()
        layer, head = min(scores, key=scores.__getitem__)
        kept[layer].remove(head)
        changes[layer] = refit(evaluation.original[layer], statistics[layer], kept[layer], ridge=EXACT)
        removed.append((layer, head))
    return tuple(removed)


@given(seed=SEEDS)
@settings(max_examples=10, deadline=None)
def test_lazy_descent_removes_what_a_full_greedy_search_removes(seed):
    evaluation = LayeredEvaluation(np.random.default_rng(seed))
    with ridge_of(EXACT, evaluation.layer_statistics(0).tokens):
        expected = full_greedy(evaluation, 6)
        descent = descend(evaluation, 6, points=range(7))
    assert descent.removed == expected
    assert evaluation.settled == {}
    assert descent.kept == tuple(range(12, 5, -1))
    assert len(descent.losses) == 7


def test_lazy_descent_scores_a_fraction_of_the_heads():
    evaluation = LayeredEvaluation(np.random.default_rng(3), layers=12)
    descend(evaluation, 10)
    assert evaluation.calls < 0.25 * sum(range(39, 49))


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_descent_goes_on_from_another(elsewhere):
    evaluation = LayeredEvaluation(np.random.default_rng(5))
    if elsewhere:
        fitted_elsewhere(evaluation, 5)
    whole, half = descend(evaluation, 6, points=range(6)), descend(evaluation, 3, points=range(3))
    stored = Descent(removed=half.removed, kept=half.kept, losses=half.losses)
    resumed = descend(evaluation, 6, points=range(6), start=stored)
    assert resumed.removed == whole.removed
    assert resumed.kept == whole.kept
    np.testing.assert_allclose(resumed.losses, whole.losses, rtol=1e-6)
    assert sum(map(len, heads_left(evaluation.original, whole.removed))) == 6


def fitted_elsewhere(evaluation, seed, **shape):
    """Let a search fit layers on other examples than it scores, and return the evaluation of these."""
    other = LayeredEvaluation(np.random.default_rng(seed), **shape)
    other.outputs["calibration"] = [outputs[::2] for outputs in evaluation.outputs["held_out"]]
    evaluation.unscored = lambda: other
    return other


@pytest.mark.parametrize(("key_heads", "remove"), [(6, 4), (3, 6)])
def test_a_uniform_descent_leaves_every_layer_and_key_head_the_same_number(key_heads, remove):
    evaluation = LayeredEvaluation(np.random.default_rng(7), layers=2, heads=6, key_heads=key_heads, length=30)
    descent = descend(evaluation, remove, uniform=True)
    for weights, kept in zip(evaluation.original, heads_left(evaluation.original, descent.removed), strict=True):
        small = weights.kept(kept)
        assert small.heads == 6 - remove // 2
        assert small.key_heads == (3 if key_heads == 3 else small.heads)


def test_numbers_that_cannot_be_removed_are_named():
    evaluation = LayeredEvaluation(np.random.default_rng(7))
    with pytest.raises(InputError, match="10"):
        descend(evaluation, 10)
    with pytest.raises(InputError, match="4"):
        descend(evaluation, 4, uniform=True)


def test_a_layer_curve_grows_from_the_original_to_no_head():
    evaluation = LayeredEvaluation(np.random.default_rng(8), biased=True)
    evaluation.outputs["held_out"] = evaluation.outputs["calibration"]
    order, losses = layer_curve(evaluation, 1, evaluation.layer_statistics(1))
    assert sorted(order) == [0, 1, 2, 3]
    means = losses.mean(axis=1)
    assert means[0] == 0
    assert np.all(np.diff(means) > 0)


def test_layers_can_be_fitted_on_other_examples_than_are_scored():
    evaluation = LayeredEvaluation(np.random.default_rng(9), length=60)
    other = fitted_elsewhere(evaluation, 9, length=60)
    descent = descend(evaluation, 4, points=range(4))
    np.testing.assert_allclose(evaluation.losses(descent.changes), descent.losses[-1])
    for place, kept in enumerate(descent.kept):
        refitted = refitted_in_order(evaluation, heads_left(evaluation.original, descent.removed[: 12 - kept]))
        np.testing.assert_allclose(evaluation.losses(refitted), descent.losses[place], atol=1e-12)
    evaluation.settle({})
    assert other.settled == {}
