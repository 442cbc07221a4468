"""The answer is right where the truth is known, and declines where the data do not show one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.analysis import ErrorTable, answer_from_table

from .tables import sharp, table


@settings(max_examples=40, deadline=None)
@given(
    transition=st.integers(1, 5),
    seeds=st.integers(2, 6),
    noise=st.floats(0.02, 0.25),
    after=st.floats(1e-6, 2e-4),
    lengths=st.sampled_from([(8,), (8, 16), (8, 16, 32)]),
    seed=st.integers(0, 1000),
)
def test_a_sharp_drop_is_found(transition, seeds, noise, after, lengths, seed):
    errors = sharp(transition, after=after)
    found = answer_from_table(table(errors, seeds=seeds, noise=noise, lengths=lengths, seed=seed), resamples=80)
    assert found.heads == transition
    assert found.low <= transition <= found.high
    assert found.sentence.startswith(f"needs {transition} head")


@settings(max_examples=40, deadline=None)
@given(start=st.floats(0.3, 0.9), ratio=st.floats(0.12, 0.85), noise=st.floats(0.0, 0.05), seed=st.integers(0, 1000))
def test_an_error_that_slides_by_a_constant_factor_has_no_transition(start, ratio, noise, seed):
    found = answer_from_table(table([start * ratio**i for i in range(5)], noise=noise, seed=seed), resamples=80)
    assert found.heads is None


def test_an_unsolved_error_that_creeps_down_does_not_need_one_head():
    """Ten maxima seen with one to six heads: 0.10 to 0.07, and most of the way still to go."""
    found = answer_from_table(table([0.10, 0.095, 0.098, 0.092, 0.079, 0.073], noise=0.02))
    assert found.heads is None
    assert "more heads" in found.reason


def test_an_unsolved_error_that_grows_with_length_at_every_head_count_does_not_need_one_head():
    assert answer_from_table(table([0.10] * 4, noise=0.01, growth=0.3)).heads is None
    assert answer_from_table(table([0.10] * 4, noise=0.01, growth=0.0)).heads == 1  # noise in the targets


@pytest.mark.parametrize("power", [1, 2, 3])
def test_an_error_that_slides_as_a_power_of_heads_has_no_transition(power):
    found = answer_from_table(table([0.5 / h**power for h in range(1, 8)], heads=range(1, 8), noise=0.02))
    assert found.heads is None
    assert "no transition found" in found.sentence


@pytest.mark.parametrize("level", [0.97, 1.0, 1.3])
def test_pure_noise_has_no_transition(level):
    found = answer_from_table(table([level] * 6, noise=0.01))
    assert found.heads is None
    assert "learns" in found.reason


@pytest.mark.parametrize(
    ("transition", "floor"), [(1, 0.01), (2, 0.01), (3, 0.01), (1, 0.2), (2, 0.2), (3, 0.05), (1, 0.6)]
)
def test_a_drop_above_a_floor_of_noise_is_found(transition, floor):
    found = answer_from_table(table(sharp(transition), floor=floor, noise=0.05))
    assert found.heads == transition
    assert any("unexplained" in note for note in found.notes) == (floor > 0.1)


def test_a_drop_at_the_largest_head_count_is_not_an_answer():
    found = answer_from_table(table(sharp(4, count=4)))
    assert found.heads is None
    assert "more heads" in found.reason


def test_one_seed_is_never_enough():
    found = answer_from_table(table(sharp(3), seeds=1))
    assert found.heads is None
    assert "seed" in found.reason


def test_a_transition_carried_by_one_seed_widens_the_interval():
    """At four heads one seed of four succeeds; a resample often misses it, and then five is the answer."""
    errors = table(sharp(4), seeds=4, noise=0.05)
    stuck = errors.errors.copy()
    stuck[3, :, 1:] = 4e-3
    found = answer_from_table(ErrorTable(heads=errors.heads, lengths=errors.lengths, seeds=errors.seeds, errors=stuck))
    assert found.heads == 4
    assert found.high == 5
    assert found.support < 0.9


def test_lost_seeds_are_left_out_and_named():
    errors = table(sharp(3))
    lost = errors.errors.copy()
    lost[0, 0, 1:] = np.nan  # one head, one length: a single seed is left
    lost[4, 1, 0] = np.nan
    found = answer_from_table(ErrorTable(heads=errors.heads, lengths=errors.lengths, seeds=errors.seeds, errors=lost))
    assert found.heads == 3
    assert any("1 heads" in note for note in found.notes)


def test_nothing_finished_is_an_answer_without_heads():
    errors = table(sharp(3))
    empty = ErrorTable(
        heads=errors.heads, lengths=errors.lengths, seeds=errors.seeds, errors=np.full_like(errors.errors, np.nan)
    )
    assert answer_from_table(empty).heads is None


def test_head_counts_between_the_tried_ones_belong_to_the_interval():
    found = answer_from_table(table([2e-2, 1e-2, 5e-5, 5e-5], heads=(1, 2, 4, 8)))
    assert (found.low, found.heads, found.high) == (3, 4, 4)
    assert found.sentence == "needs 4 heads [3, 4]"


def test_the_smallest_head_count_tried_may_be_more_than_needed():
    found = answer_from_table(table([5e-5] * 4, heads=(2, 3, 4, 5)))
    assert (found.low, found.heads) == (1, 2)


def test_more_heads_that_undo_the_drop_are_no_plateau():
    found = answer_from_table(table([0.2, 3e-3, 0.2, 0.2, 0.2, 0.2], noise=0.02))
    assert found.heads is None


def test_the_same_table_gives_the_same_answer():
    errors = table(sharp(4), noise=0.3)
    assert answer_from_table(errors) == answer_from_table(errors)


def test_the_witnesses_agree_with_a_textbook_transition():
    """Below four heads the error grows with length; from four on it falls a little."""
    errors = table(sharp(4), noise=0.01, growth=0.3)
    falling = table(sharp(4), noise=0.01, growth=-0.1)
    mixed = np.where((np.array(errors.heads) < 4)[:, None, None], errors.errors, falling.errors)
    found = answer_from_table(ErrorTable(heads=errors.heads, lengths=errors.lengths, seeds=errors.seeds, errors=mixed))
    assert found.signals == {"drop": 4, "slope": 4, "reversal": 4}
    assert found.by_length == {8: 4, 16: 4, 32: 4}
