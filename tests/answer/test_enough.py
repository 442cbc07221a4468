"""The fewest heads that are enough: found on known curves, never in place of a drop, and no surer than the data."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from headcount.answer import ERROR_RATE, NMSE, ErrorTable, answer
from headcount.answer.enough import WITHIN, effective_draws, never_rising, sampling_errors

HEADS = (1, 2, 3, 4, 6, 8, 12)
GRADUAL = np.array([0.056, 0.042, 0.03, 0.025, 0.022, 0.021, 0.02])
FLAT = np.full(7, 0.1)
SHARP = np.array([0.5, 0.45, 0.4, 0.004, 0.004, 0.004, 0.004])
FALLING = 0.6 * 0.6 ** np.arange(7.0)


def measured(curve, *, examples, seed=0, seeds=4, metric=ERROR_RATE, scatter=0.1, draws=1):
    """Errors of a known curve: on validation examples that all models share, of starts that end somewhat above it."""
    random = np.random.default_rng(seed)
    deviation = deviation_of(curve, examples, metric)
    errors = np.empty((len(curve), draws, seeds))
    for draw in range(draws):
        shared, own = random.normal(), random.normal(size=len(curve))
        sampled = curve + deviation * (np.sqrt(0.6) * shared + np.sqrt(0.4) * own)
        starts = 1 + scatter * np.abs(random.normal(size=(len(curve), seeds)))
        errors[:, draw] = np.maximum(sampled[:, None] * starts, 1e-6)
    axes = {"heads": HEADS, "data_seed": tuple(range(draws)), "seed": tuple(range(seeds))}
    if metric is NMSE:
        return ErrorTable(axes=axes, errors=errors, metric=metric)
    share = np.full(errors.shape, 0.9)
    noise = np.sqrt(share * (1 - share) / examples)
    return ErrorTable(axes=axes, errors=errors, metric=metric, baseline=share, noise=noise)


def deviation_of(curve, examples, metric):
    return np.sqrt(curve * (1 - curve) / examples) if metric is ERROR_RATE else curve * np.sqrt(2 / examples)


def truth(curve):
    """The fewest heads that leave a tenth of what heads gain, or five per cent of the error, by the curve itself."""
    gains = curve - curve.min()
    return HEADS[int(np.argmax(gains <= max(WITHIN * gains[0], 0.05 * curve.min())))]


@pytest.mark.parametrize("examples", [360, 2000, 20_000])
@pytest.mark.parametrize("curve", [GRADUAL, FLAT, 0.3 / np.sqrt(HEADS)], ids=["gradual", "flat", "slow"])
def test_the_interval_holds_the_true_count(curve, examples):
    found = [answer(measured(curve, examples=examples, seed=seed), examples=examples) for seed in range(40)]
    assert all(each.kind in ("enough", "none", "floor") for each in found)
    holding = [each.low <= truth(curve) <= each.high for each in found if each.needs]
    assert np.mean(holding) >= 0.85
    assert len(holding) >= 20


@pytest.mark.parametrize(("metric", "examples"), [(ERROR_RATE, 5000), (NMSE, 500)], ids=["labels", "numbers"])
def test_a_gradual_curve_is_answered_with_what_more_heads_gain(metric, examples):
    table = measured(GRADUAL, examples=examples, metric=metric, scatter=0.01)
    assert answer(table).kind == "none"
    found = answer(table, examples=examples)
    assert (found.kind, found.limit) == ("enough", "heads")
    assert truth(GRADUAL) in range(found.low, found.high + 1)
    assert set(found.gains) == {count for count in HEADS if count > found.heads}
    for count, (gain, margin) in found.gains.items():
        true = GRADUAL[HEADS.index(found.heads)] - GRADUAL[HEADS.index(count)]
        assert gain == pytest.approx(true, abs=2 * margin)


def test_heads_that_make_no_difference_are_not_asked_for():
    found = answer(measured(FLAT, examples=300, scatter=0.2), examples=300)
    assert found.kind == "floor" or (found.kind, found.heads, found.limit) == ("enough", 1, "neither")


@pytest.mark.parametrize("examples", [100, 100_000])
def test_a_sharp_drop_is_needed_and_nothing_else(examples):
    table = measured(SHARP, examples=examples, metric=NMSE)
    assert answer(table, examples=examples) == answer(table)
    assert answer(table, examples=examples).kind == "needs"


def test_nothing_is_enough_where_nothing_is_learned():
    assert answer(measured(np.full(7, 0.99), examples=500, metric=NMSE), examples=500).kind == "none"


def test_where_the_last_head_still_helps_no_fewer_are_enough():
    found = answer(measured(FALLING, examples=50_000, metric=NMSE, scatter=0.01), examples=50_000)
    assert (found.kind, found.heads, found.gains) == ("enough", 12, {})
    assert "more may gain" in found.sentence


def test_an_error_of_exactly_nothing_is_answered_too():
    table = measured(np.array([0.3, 0.2, 0.14, 0.1, 0.06, 0.03, 0.0]), examples=500, metric=NMSE)
    table.errors[-1] = 0.0
    assert np.all(
        sampling_errors(table.select(data_seed=0).with_axes("heads", "length", "seed").reduced("seed"), 500) > 0
    )
    found = answer(table, examples=500)
    assert (found.kind, found.heads) == ("enough", 12)


def test_few_examples_leave_more_head_counts_open_and_say_how_many_would_tell():
    few, many = (answer(measured(GRADUAL, examples=n, scatter=0.01), examples=n) for n in (200, 50_000))
    assert few.high - few.low > many.high - many.low
    assert any("would show" in note for note in few.notes)
    assert not any("would show" in note for note in many.notes)


def paired_entries(examples, *, draws=1, metric=ERROR_RATE, share=0.2, shared=0.6):
    """What would be stored of models that share most of what chance does to their errors."""
    variance = (1 - shared) * deviation_of(GRADUAL, examples, metric) ** 2
    errors = np.sqrt((variance[:, None] + variance) * (1 - np.eye(len(HEADS))))
    entry = {"length": 8, "heads": list(HEADS), "share": share, "errors": errors.tolist()}
    return [entry | {"data_seed": draw} for draw in range(draws)]


def test_pairs_narrow_the_interval_and_still_hold_the_true_count():
    tables = [measured(GRADUAL, examples=3000, seed=seed, scatter=0.02) for seed in range(30)]
    alone = [answer(table, examples=3000) for table in tables]
    paired = [answer(table, examples=3000, paired=paired_entries(3000)) for table in tables]
    width = lambda found: np.mean([each.high - each.low for each in found])  # noqa: E731
    assert width(paired) < width(alone)
    assert np.mean([each.low <= truth(GRADUAL) <= each.high for each in paired]) >= 0.85


def test_more_draws_of_the_data_narrow_the_interval():
    few, many = (
        [
            answer(
                measured(GRADUAL, examples=1000, draws=draws, seed=seed, scatter=0.02),
                examples=1000,
                paired=paired_entries(1000, draws=draws),
            )
            for seed in range(10)
        ]
        for draws in (1, 5)
    )
    assert np.mean([each.high - each.low for each in many]) < np.mean([each.high - each.low for each in few])


@given(st.integers(0, 1000), st.integers(1, 12))
def test_the_fit_that_never_rises_is_the_isotonic_regression(seed, heads):
    random = np.random.default_rng(seed)
    errors, weights = random.normal(size=(2, 3, heads)), random.uniform(0.1, 10, size=heads)
    fitted = never_rising(errors, weights)
    for place in np.ndindex(2, 3):
        slow = isotonic_regression(errors[place], weights=weights, increasing=False).x
        np.testing.assert_allclose(fitted[place], slow, atol=1e-9)


def test_draws_that_validate_the_same_examples_count_for_less():
    assert effective_draws(4, 0.0) == 4
    assert effective_draws(1, 0.3) == pytest.approx(1)
    assert 2 < effective_draws(5, 0.2) < 5
    assert effective_draws(100, 0.2) == pytest.approx(5)


def test_of_pairs_that_were_stored_those_of_other_head_counts_are_left_out():
    table = measured(GRADUAL, examples=1000)
    others = [entry | {"heads": [1, 2, 3], "errors": np.zeros((3, 3)).tolist()} for entry in paired_entries(1000)]
    assert answer(table, examples=1000, paired=others) == answer(table, examples=1000)


@given(st.floats(0.0, 0.9), st.floats(0.0, 0.9), st.integers(0, 20))
def test_a_larger_tolerance_asks_for_no_more_heads(first, second, seed):
    table = measured(GRADUAL, examples=5000, seed=seed)
    less, more = sorted((first, second))
    strict, lenient = (answer(table, examples=5000, within=within, resamples=20) for within in (less, more))
    if strict.needs and lenient.needs:
        assert lenient.heads <= strict.heads


def test_the_standard_error_of_a_share_is_the_binomial_one():
    table = measured(GRADUAL, examples=1000, seeds=1).select(data_seed=0)
    best = table.with_axes("heads", "length", "seed").reduced("seed")
    drawn = np.random.default_rng(1).binomial(1000, best.errors[:, 0], size=(4000, 7)) / 1000
    np.testing.assert_allclose(sampling_errors(best, 1000), drawn.std(axis=0), rtol=0.1)
