"""Loss increases over the original with their intervals: the one rule for pages, model cards and JSON.

An interval holds 90 % of resamples of the held-out examples, widened where they are few.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from jaxtyping import Float, Int

from ..._draws import named_generator
from ...answer.answer_base import Interval
from ...answer.bootstrap import RESAMPLES, TAIL, interval_of

_Z = 1.6448536269514722
"""The normal quantile at 1 - `TAIL`."""


@dataclass(frozen=True, eq=False)
class Increases:
    """Mean held-out loss increases, of all examples and of every resample.

    A curve has the places that were tried in `at`, fewest first; the last is the original, whose increase is 0.
    """

    mean: Float[np.ndarray, " places"]
    drawn: Float[np.ndarray, "resamples places"]
    at: tuple[int, ...] = ()

    @cached_property
    def bounds(self) -> Float[np.ndarray, "2 places"]:
        """The ends of the intervals."""
        return np.quantile(self.drawn, [TAIL, 1 - TAIL], axis=0)

    def needed(self, budget: float) -> Interval:
        """The fewest that are enough: there, and with more, the increase is at most `budget`."""
        index, drawn = int(_first_enough(self.mean, budget)), _first_enough(self.drawn, budget)
        low, high = interval_of(self.at, index, drawn)
        if self.at[0] == 0 and min(index, np.quantile(drawn, TAIL, method="inverted_cdf")) == 0:
            low = 0  # none at all was tried, and may do
        return Interval(self.at[index], low, high)

    def without_original(self) -> "Increases":
        """The curve without its last place."""
        return Increases(self.mean[:-1], self.drawn[:, :-1], self.at[:-1])

    def as_dict(self) -> dict[str, list[float]]:
        """As JSON."""
        low, high = self.bounds
        return {"at": list(self.at), "mean": self.mean.tolist(), "low": low.tolist(), "high": high.tolist()}


def _first_enough(mean: Float[np.ndarray, "*resamples places"], budget: float) -> Int[np.ndarray, "*resamples"]:
    """The first place from which on no increase is above the budget; the last place is always enough."""
    within = mean <= budget
    within[..., -1] = True
    stays = np.logical_and.accumulate(within[..., ::-1], axis=-1)[..., ::-1]
    return np.asarray(np.argmax(stays, axis=-1))


def resampled(increases: Float[np.ndarray, "rows examples"]) -> Increases:
    """The mean increase of every row; all rows of the same number of examples share their draws.

    Example:
        >>> resampled(np.array([[0.0, 1.0, 2.0, 3.0]])).bounds.round(1).ravel().tolist()
        [0.3, 3.1]
    """
    mean, count = increases.mean(axis=1), increases.shape[1]
    return Increases(mean, mean + widening(count) * (_shares(count) @ increases.T - mean))


@lru_cache(1)
def _shares(count: int) -> Float[np.ndarray, "resamples examples"]:
    """The weight of each held-out example in every resample."""
    drawn = named_generator(0, "held-out examples").integers(count, size=(RESAMPLES, count))
    return np.stack([np.bincount(row, minlength=count) for row in drawn]) / count


def widening(count: int) -> float:
    """The factor on the spread of resamples of `count` examples that makes intervals those of Student's t.

    Resamples of few examples spread too little: 8 with normal losses give 83 % coverage instead of 90 %, with this
    factor 90 %. The quantile of t is its expansion in 1 / degrees of freedom.

    Example:
        >>> round(widening(8), 2), round(widening(1000), 2)
        (1.23, 1.0)
    """
    if count < 2:
        return 1.0
    z, freedom = _Z, count - 1
    quantile = z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    quantile += (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    return math.sqrt(count / freedom) * quantile / z
