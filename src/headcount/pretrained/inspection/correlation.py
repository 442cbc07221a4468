"""Spearman's rank correlation, with bounds from resampling pairs."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from ..._draws import named_generator
from ...answer.bootstrap import RESAMPLES, TAIL

MIN_PAIRS = 6
"""Fewer values have no correlation worth a number."""
UNDECIDED = "undecided"


@dataclass(frozen=True)
class Correlation:
    """A rank correlation of `count` pairs, and its bounds over resamples."""

    at: float
    low: float
    high: float
    count: int

    @property
    def strength(self) -> str:
        """The strength in words; undecided where the interval holds both signs."""
        if self.low <= 0 <= self.high:
            return UNDECIDED
        strength = "strong" if abs(self.at) >= 0.8 else "moderate" if abs(self.at) >= 0.5 else "weak"
        return strength if self.at > 0 else f"{strength}, reversed"

    def __str__(self) -> str:
        return f"{self.at:.2f} [{self.low:.2f}, {self.high:.2f}]"


def correlation(x: Any, y: Any) -> Correlation | None:
    """The rank correlation of two rows of numbers; None where it has no meaning.

    Example:
        >>> correlation([1, 2, 3, 4, 5, 6], [2, 4, 6, 9, 10, 20]).at
        1.0
    """
    values = np.stack([np.asarray(x, float), np.asarray(y, float)])
    values = values[:, np.isfinite(values).all(axis=0)]
    count = values.shape[1]
    if count < MIN_PAIRS:
        return None
    (at,) = _spearman(values[:, None])
    if np.isnan(at):
        return None
    drawn = _spearman(values[:, named_generator(0, "pairs").integers(count, size=(RESAMPLES, count))])
    drawn = drawn[~np.isnan(drawn)]
    low, high = np.quantile(drawn, [TAIL, 1 - TAIL]) if len(drawn) else (-1.0, 1.0)
    return Correlation(float(at), float(min(low, at)), float(max(high, at)), count)


def _spearman(values: Float[np.ndarray, "2 resamples count"]) -> Float[np.ndarray, " resamples"]:
    """Pearson's correlation of mean ranks; NaN where one of the two is constant."""
    from scipy.stats import rankdata  # half a second that only inspections need

    first, second = (ranks - ranks.mean(axis=1, keepdims=True) for ranks in rankdata(values, axis=2))
    sizes = np.sqrt((first**2).sum(axis=1) * (second**2).sum(axis=1))
    return np.divide((first * second).sum(axis=1), sizes, out=np.full(len(sizes), np.nan), where=sizes > 0)
