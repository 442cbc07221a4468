"""The closed form of the refit against least squares on samples."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headcount.pretrained.removal.refit import refit, refitted_in_order, removed_plainly

from ..helpers.layered import LayeredEvaluation, correlated, random_weights, statistics_of

SEEDS = st.integers(0, 2**31)


@given(seed=SEEDS, biased=st.booleans(), ridge=st.sampled_from([1e-6, 1e-3, 0.3]), kept=st.sets(st.integers(0, 3)))
def test_refit_is_least_squares_on_the_samples_with_ridge_rows(seed, biased, ridge, kept):
    generator = np.random.default_rng(seed)
    weights = random_weights(generator, biased=biased)
    outputs = correlated(generator, 60, 8)
    targets = generator.normal(size=(60, 5))
    changed = refit(weights, statistics_of(outputs, targets), kept, ridge=ridge)
    columns = [head * 2 + place for head in sorted(kept) for place in range(2)]
    penalty = np.sqrt(ridge * np.mean(outputs**2))
    design = np.concatenate([outputs[:, columns], np.ones((60, 1))][: 1 + biased], axis=1) / np.sqrt(60)
    pull = np.eye(len(columns), design.shape[1]) * penalty
    goal = weights.output.reshape(5, 8)[:, columns].T * penalty
    expected = np.linalg.lstsq(
        np.concatenate([design, pull]), np.concatenate([targets / np.sqrt(60), goal]), rcond=None
    )[0]
    output = changed.output.reshape(5, 8)
    np.testing.assert_allclose(output[:, columns].T, expected[: len(columns)], rtol=1e-6, atol=1e-8)
    assert np.all(np.delete(output, columns, axis=1) == 0)
    if biased:
        np.testing.assert_allclose(changed.output_bias - weights.output_bias, expected[-1], rtol=1e-6, atol=1e-8)
    else:
        assert changed.output_bias is None


@given(seed=SEEDS)
def test_refit_of_all_heads_to_their_own_output_is_the_original(seed):
    generator = np.random.default_rng(seed)
    weights = random_weights(generator)
    outputs = correlated(generator, 60, 8)
    changed = refit(weights, statistics_of(outputs, outputs @ weights.output.reshape(5, 8).T), range(4))
    np.testing.assert_allclose(changed.output, weights.output, rtol=1e-5, atol=1e-7)


def test_without_data_the_refit_is_plain_removal():
    generator = np.random.default_rng(0)
    weights = random_weights(generator, biased=True)
    outputs = correlated(generator, 3, 8)
    changed = refit(weights, statistics_of(outputs, np.zeros((3, 5))), [0, 2], ridge=1e12)
    np.testing.assert_allclose(changed.output, weights.without([1, 3]).output, rtol=1e-6, atol=1e-6)


def test_refitting_in_order_lowers_the_calibration_loss_and_settles_on_the_result():
    evaluation = LayeredEvaluation(np.random.default_rng(1), biased=True)
    kept = [(0, 1), (0, 1, 2, 3), ()]
    changes = refitted_in_order(evaluation, kept)
    plain = removed_plainly(evaluation.original, kept)
    assert set(plain) == {0, 2}
    assert evaluation.losses(changes, part="calibration").sum() < evaluation.losses(plain, part="calibration").sum()
    assert evaluation.settled.keys() == changes.keys()
    assert np.all(changes[2].output == 0)
