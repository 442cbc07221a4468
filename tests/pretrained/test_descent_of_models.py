"""The descent on tiny transformers: what it reports is what its changes do, and the model is left as it was."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from headcount.pretrained.loading.load import fingerprint_of
from headcount.pretrained.removal.descent import descend
from headcount.pretrained.removal.elimination import layer_curve
from headcount.pretrained.removal.refit import heads_left, refit
from tests.pretrained.judging import evaluation_of


@pytest.mark.parametrize("family", ["llama", "bert"])
def test_reported_losses_are_those_of_the_changes_and_the_model_is_untouched(family):
    evaluation = evaluation_of(family, layers=2)
    before = fingerprint_of(evaluation.model)
    heads = [weights.heads for weights in evaluation.original]
    descent = descend(evaluation, 3)
    assert sum(map(len, heads_left(evaluation.original, descent.removed))) == sum(heads) - 3
    np.testing.assert_allclose(evaluation.losses(descent.changes), descent.losses[-1], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(evaluation.losses(), descent.losses[0], rtol=1e-6)
    for index, weights in descent.changes.items():
        gone = [head for layer, head in descent.removed if layer == index]
        assert np.all(weights.output[:, gone] == 0)
    assert fingerprint_of(evaluation.model) == before


def test_a_layer_refitted_with_all_its_heads_stays_the_original():
    evaluation = evaluation_of("llama", layers=2)
    weights = evaluation.original[1]
    changed = refit(weights, evaluation.layer_statistics(1), range(weights.heads))
    np.testing.assert_allclose(evaluation.losses({1: changed}), evaluation.losses(), atol=1e-4)


def test_uniform_descents_leave_models_that_stock_classes_store():
    evaluation = evaluation_of("llama", layers=2)
    step = evaluation.original[0].key_heads
    descent = descend(evaluation, 2 * step, uniform=True)
    for weights, kept in zip(evaluation.original, heads_left(evaluation.original, descent.removed), strict=True):
        small = weights.kept(kept)
        assert (small.heads, small.key_heads) == (weights.heads - step, weights.key_heads)


def test_a_layer_curve_starts_at_the_original_and_ends_without_heads():
    evaluation = evaluation_of("bert", layers=2)
    order, losses = layer_curve(evaluation, 0, evaluation.layer_statistics(0))
    assert sorted(order) == list(range(evaluation.original[0].heads))
    np.testing.assert_allclose(losses[0], evaluation.losses())
    assert len(losses) == len(order) + 1


def test_a_search_fits_on_what_it_does_not_score():
    evaluation = evaluation_of("llama", layers=2)
    batches = [replace(batch) for batch in evaluation.examples.calibration for _ in range(2)]
    evaluation.examples = replace(evaluation.examples, calibration=batches, scored=len(batches) // 2)
    fitting = evaluation.unscored()
    assert fitting is not None
    assert fitting.original[0] is evaluation.original[0]
    assert fitting.examples.calibration == batches[len(batches) // 2 :]
    descent = descend(evaluation, 2)
    np.testing.assert_allclose(evaluation.losses(descent.changes), descent.losses[-1], rtol=1e-5, atol=1e-6)
    evaluation.examples = replace(evaluation.examples, scored=len(batches))
    assert evaluation.unscored() is None
