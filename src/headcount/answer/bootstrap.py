"""Resamples of the seeds, all at once, and the interval that what they give lies in."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from .._draws import named_generator
from .table import middle_of

RESAMPLES = 400
COVERAGE = 0.9
TAIL = (1 - COVERAGE) / 2
MANY_SEEDS = 64
"""With more seeds than this only the draws that count are drawn: resampling each of them took seconds and gigabytes."""
MIN_SEEDS = 2
"""Finished seeds that a cell must have: one seed is not evidence."""


class Resampled(NamedTuple):
    """The smallest and the median error of every cell, for every resample."""

    best: Float[np.ndarray, "resamples *cells"]
    median: Float[np.ndarray, "resamples *cells"]


def bootstrap(errors: Float[np.ndarray, "*cells seeds"], resamples: int = RESAMPLES, seed: int = 0) -> Resampled:
    """Draw the finished seeds of every cell again with replacement, as many as it has.

    Every cell has a finished seed; NaN marks the others, which are errors of no size and are never drawn.
    """
    finished = np.sum(~np.isnan(errors), axis=-1, keepdims=True)
    ranked, seeds, generator = np.sort(errors, axis=-1), errors.shape[-1], named_generator(seed, "resampled seeds")
    if seeds > MANY_SEEDS:
        return _of_many(ranked, finished, resamples, generator)
    drawn = (generator.random((resamples, *errors.shape)) * finished).astype(np.int64)
    # Places among the sorted errors, NaN last: the smallest place drawn is the smallest error.
    drawn = np.where(np.arange(seeds) < finished, drawn, seeds - 1) if (finished < seeds).any() else drawn
    values = np.take_along_axis(ranked[None], np.sort(drawn, axis=-1), axis=-1)
    return Resampled(values[..., 0], middle_of(values))


def _of_many(
    ranked: Float[np.ndarray, "*cells seeds"],
    finished: Int[np.ndarray, "*cells 1"],
    resamples: int,
    generator: np.random.Generator,
) -> Resampled:
    """Draw from the same law without its other draws: the smallest and the middle of n uniform numbers in turn.

    The smallest of n numbers above x is x + (1 - x) (1 - u^(1/n)) with u uniform; the i-th smallest of n - 1 more above
    it is that far up again by a number of the law Beta(i, n - i).
    """
    count = finished[..., 0]
    shape = (resamples, *count.shape)
    low, high = (count - 1) // 2, count // 2
    first = 1 - generator.random(shape) ** (1 / count)
    middle = first + np.where(low > 0, (1 - first) * generator.beta(np.maximum(low, 1), count - low, shape), 0.0)
    above = 1 - generator.random(shape) ** (1 / np.maximum(count - 1 - low, 1))
    upper = middle + np.where(high > low, (1 - middle) * above, 0.0)
    places = [np.minimum((number * count).astype(np.int64), count - 1)[..., None] for number in (first, middle, upper)]
    best, lower_middle, upper_middle = (np.take_along_axis(ranked[None], place, axis=-1)[..., 0] for place in places)
    return Resampled(best, (lower_middle + upper_middle) / 2)


def interval_of(tried: tuple[int, ...], index: int, drawn: Int[np.ndarray, " resamples"]) -> tuple[int, int]:
    """Return the ends of the values that 90 % of resamples give, with those between the tried ones that may be it too.

    `index` and `drawn` are places in `tried`: of the table itself, and of its resamples.
    """
    first, last = np.quantile(drawn, [TAIL, 1 - TAIL], method="inverted_cdf").astype(int)
    first, last = min(first, index), max(last, index)
    # Between the last value that fails and the first that is enough, those not tried may be enough too.
    return (tried[first - 1] + 1 if first > 0 else 1), tried[last]
