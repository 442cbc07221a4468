"""Each signal against its definition, and against the first paper's published tables."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.answer.signals import (
    NONE,
    drop_indices,
    drop_transition,
    length_slopes,
    reversal_scores,
    reversal_transition,
    slope_transition,
)

LENGTHS = (8, 16, 32, 64, 128)
# Yu et al. (arXiv 2510.06662), Tables 2 and 4: least validation NMSE by heads and length.
TABLE_2 = np.array(
    [
        [0.0701, 0.109, 0.11, 0.114, 0.145],
        [0.00731, 0.00841, 0.00942, 0.0131, 0.0147],
        [0.000694, 0.00064, 0.000909, 0.00131, 0.00158],
        [6.1e-05, 4.36e-05, 4.8e-05, 8.75e-06, 5.23e-06],
        [3.35e-05, 1.1e-05, 4.91e-06, 4.19e-06, 3.99e-06],
    ]
)
TABLE_4 = np.array(
    [
        [0.0138, 0.0163, 0.0184, 0.0217, 0.0231],
        [0.00109, 0.000708, 0.000724, 0.000776, 0.00111],
        [4.18e-07, 1.72e-07, 1.17e-07, 3.58e-07, 2.11e-07],
        [5.56e-07, 1.22e-07, 6.89e-08, 1.85e-07, 3.48e-07],
    ]
)


@pytest.mark.parametrize(("published", "heads"), [(TABLE_2, 4), (TABLE_4, 3)])
def test_the_drop_of_the_published_tables_is_at_their_transition(published, heads):
    assert drop_transition(published, published).index == heads - 1


def test_slope_and_reversal_of_table_2_turn_at_four_heads():
    slopes, scores = length_slopes(TABLE_2, LENGTHS), reversal_scores(TABLE_2)
    assert slope_transition(slopes > 0) == 3
    assert reversal_transition(scores) == 3
    assert np.all(slopes[:3] > 0.2)
    assert np.all(slopes[3:] < -0.5)


@settings(max_examples=30, deadline=None)
@given(slope=st.floats(-2, 2), level=st.floats(1e-6, 1))
def test_the_slope_of_a_power_law_is_its_power(slope, level):
    errors = level * np.array(LENGTHS, float)[None] ** slope
    assert length_slopes(errors, LENGTHS)[0] == pytest.approx(slope, abs=1e-9)


def test_reversal_score_against_the_slow_obvious_sum():
    generator = np.random.default_rng(0)
    errors = generator.uniform(size=(7, 5))
    for row, score in zip(errors, reversal_scores(errors), strict=True):
        slow = sum(max(row[i] - row[j], 0) for i in range(5) for j in range(5) if i < j) / (max(row) - min(row))
        assert score == pytest.approx(slow)


def test_an_error_that_grows_with_length_has_no_reversal():
    assert reversal_scores(np.array([[1.0, 2.0, 3.0], [1.0, 1.0, 1.0]])).tolist() == [0.0, 0.0]


def test_one_length_silences_both_witnesses():
    one = TABLE_2[:, :1]
    assert np.isnan(length_slopes(one, (8,))).all()
    assert np.isnan(reversal_scores(one)).all()
    assert reversal_transition(reversal_scores(one)) is None


def test_a_signal_that_never_turns_is_silent():
    assert slope_transition(np.array([True, True, True])) is None
    assert slope_transition(np.array([False, False, False])) is None
    assert slope_transition(np.array([True, False, True])) is None
    assert slope_transition(np.array([True, False, False])) == 1


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1000), heads=st.integers(2, 6), lengths=st.integers(1, 4), spread=st.floats(0, 2))
def test_resamples_are_judged_together_as_one_by_one(seed, heads, lengths, spread):
    generator = np.random.default_rng(seed)
    best = 10 ** (-spread * np.cumsum(generator.uniform(size=(30, heads, lengths)), axis=1))
    median = best * generator.uniform(1, 1.5, size=best.shape)
    alone = [drop_transition(*pair).index for pair in zip(best, median, strict=True)]
    assert drop_indices(best, median).tolist() == [NONE if index is None else index for index in alone]
    np.testing.assert_array_equal(reversal_scores(best), [reversal_scores(one) for one in best])
    slopes = [length_slopes(one, LENGTHS[:lengths]) for one in best]
    np.testing.assert_allclose(length_slopes(best, LENGTHS[:lengths]), slopes, rtol=1e-9, atol=1e-12)
