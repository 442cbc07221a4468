"""Resamples drawn together are those of a loop, digit for digit, and their interval holds what it promises."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount._draws import named_generator
from headcount.answer.bootstrap import bootstrap, interval_of


def one_by_one(errors: np.ndarray, resamples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The slow, obvious way: of every cell's finished seeds, in rising order, as many draws as there are."""
    generator = named_generator(seed, "resampled seeds")
    best, median = (np.empty((resamples, *errors.shape[:-1])) for _ in range(2))
    for resample in range(resamples):
        uniform = generator.random(errors.shape)
        for cell in np.ndindex(errors.shape[:-1]):
            finished = np.sort(errors[cell][~np.isnan(errors[cell])])
            drawn = [finished[int(number * len(finished))] for number in uniform[cell][: len(finished)]]
            best[(resample, *cell)], median[(resample, *cell)] = min(drawn), np.median(drawn)
    return best, median


@settings(max_examples=40, deadline=None)
@given(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    seeds=st.integers(1, 7),
    missing=st.floats(0, 0.7),
    seed=st.integers(0, 2**32 - 1),
)
def test_resamples_are_those_of_a_loop(shape, seeds, missing, seed):
    generator = np.random.default_rng(seed)
    errors = generator.lognormal(size=(*shape, seeds))
    lost = generator.uniform(size=errors.shape) < missing
    lost[..., 0] = False  # every cell has a finished seed
    errors[lost] = np.nan
    drawn = bootstrap(errors, 5, seed)
    best, median = one_by_one(errors, 5, seed)
    np.testing.assert_array_equal(drawn.best, best)
    np.testing.assert_array_equal(drawn.median, median)


@pytest.mark.parametrize("finished", [65, 66, 3, 2, 1])
def test_resamples_of_many_seeds_have_the_same_law(finished):
    """The first two moments agree with those of the loop within five standard errors; seeds may be missing."""
    generator = np.random.default_rng(0)
    errors = np.full((2, 66), np.nan)
    errors[0], errors[1, :finished] = generator.lognormal(size=66), generator.lognormal(size=finished)
    many = bootstrap(errors, 4000)
    few = bootstrap(np.sort(errors)[1:, :finished][:, :64], 4000) if finished < 64 else None
    best, median = one_by_one(errors, 1000, 1) if few is None else (few.best, few.median)
    for ours, theirs in ((many.best[:, -1], best[:, -1]), (many.median[:, -1], median[:, -1])):
        assert set(np.unique(many.best)) <= set(errors[~np.isnan(errors)])
        for power in (1, 2):
            spread = max(np.std(ours**power), np.std(theirs**power))
            assert (
                abs(np.mean(ours**power) - np.mean(theirs**power)) <= 5 * spread * (1 / 4000 + 1 / len(theirs)) ** 0.5
            )


def test_one_seed_is_drawn_again_and_again():
    errors = np.array([[0.5], [0.25]])
    drawn = bootstrap(errors, 3)
    assert drawn.best.tolist() == drawn.median.tolist() == [[0.5, 0.25]] * 3


@pytest.mark.parametrize(
    ("index", "drawn", "interval"),
    [
        (2, [2] * 100, (3, 4)),
        (0, [0] * 100, (1, 1)),
        (2, [1] * 6 + [2] * 94, (2, 4)),
        (2, [1] * 4 + [2] * 96, (3, 4)),
        (2, [3] * 50, (3, 8)),
        (1, [2], (2, 4)),
    ],
)
def test_an_interval_holds_nine_in_ten_and_the_counts_not_tried(index, drawn, interval):
    assert interval_of((1, 2, 4, 8), index, np.array(drawn)) == interval
