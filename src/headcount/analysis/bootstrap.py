"""Resamples of the seeds, all at once, and the interval that what they give lies in."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from .table import middle_of

RESAMPLES = 400
COVERAGE = 0.9
TAIL = (1 - COVERAGE) / 2
MIN_SEEDS = 2
"""Finished seeds that a cell must have: one seed is not evidence."""


class Resampled(NamedTuple):
    """The smallest and the median error of every cell, for every resample."""

    best: Float[np.ndarray, "resamples *cells"]
    median: Float[np.ndarray, "resamples *cells"]


def bootstrap(errors: Float[np.ndarray, "*cells seeds"], resamples: int = RESAMPLES, seed: int = 0) -> Resampled:
    """The seeds of every cell drawn again with replacement. Every cell has a finished seed; NaN marks the others."""
    drawn = np.random.default_rng(seed).integers(0, errors.shape[-1], (resamples, *errors.shape))
    # Sorted before they are gathered: a draw's order within its cell does not matter.
    order = np.argsort(errors, axis=-1, kind="stable")  # NaN comes last
    place = np.argsort(order, axis=-1).astype(np.int8 if errors.shape[-1] < 128 else np.int64)
    ranked = np.sort(_gathered(place, drawn), axis=-1)
    values = _gathered(np.take_along_axis(errors, order, axis=-1), ranked)
    best, median = values[..., 0], middle_of(values)
    # A cell all of whose draws are lost seeds keeps its own best: a lost seed is not an error of any size.
    lost = np.isnan(best)
    if lost.any():
        own_best = np.broadcast_to(np.fmin.reduce(errors, axis=-1), best.shape)
        best, median = np.where(lost, own_best, best), np.where(lost, own_best, median)
    return Resampled(best, median)


def _gathered(values: np.ndarray, places: Int[np.ndarray, "resamples *cells draws"]) -> np.ndarray:
    """`values[cell, places[resample, cell, draw]]`."""
    offsets = np.arange(values.size // values.shape[-1]).reshape(*values.shape[:-1], 1) * values.shape[-1]
    return values.ravel()[places + offsets]


def interval_of(tried: tuple[int, ...], index: int, drawn: Int[np.ndarray, " resamples"]) -> tuple[int, int]:
    """The values that hold what was drawn in 90 % of resamples, and those between the tried ones that may be it too.

    `index` and `drawn` are places in `tried`: of the table itself, and of its resamples.
    """
    first, last = np.quantile(drawn, [TAIL, 1 - TAIL], method="inverted_cdf").astype(int)
    first, last = min(first, index), max(last, index)
    # Between the last value that fails and the first that is enough, those not tried may be enough too.
    return (tried[first - 1] + 1 if first > 0 else 1), tried[last]
