"""What pairs say: measures of importance that agree, heads that read the same tokens, keys that can be shared."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from ..._draws import named_generator
from ...answer.bootstrap import RESAMPLES, TAIL
from .facts import Facts
from .layers import LayerReading

EXACT = "leave_one_out"
"""The importance that others are compared with: the loss increase without the head, measured."""
ESTIMATES = ("fisher", "gradient", "output_norm", "magnitude")
"""The others, the most trusted first."""
SAME = 0.9
"""Similarity of attention from which on two heads read the same tokens."""
SHARED = 0.05
"""Share of the variance of a head's scores that may be lost where it reads the keys of another."""
MIN_PAIRS = 6
"""Fewer values have no correlation worth a number."""
MAX_LISTED = 5


@dataclass(frozen=True)
class Correlation:
    """Spearman's rank correlation and its bounds over resamples; `count` values of each."""

    at: float
    low: float
    high: float
    count: int

    @property
    def words(self) -> str:
        """How strong it is; undecided where the interval holds both signs."""
        if self.low <= 0 <= self.high:
            return "undecided"
        strength = "strong" if abs(self.at) >= 0.8 else "moderate" if abs(self.at) >= 0.5 else "weak"
        return strength if self.at > 0 else f"{strength}, reversed"

    def __str__(self) -> str:
        return f"{self.at:.2f} [{self.low:.2f}, {self.high:.2f}]"


@dataclass(frozen=True)
class Pair:
    """Two heads (or key heads) of a layer that are alike, and their similarity, or the share that is lost."""

    layer: int
    first: int
    second: int
    value: float


def correlation(x: Any, y: Any) -> Correlation | None:
    """The rank correlation of two rows of numbers, with bounds from resampling pairs; None where it has no meaning.

    Example:
        >>> correlation([1, 2, 3, 4, 5, 6], [2, 4, 6, 9, 10, 20]).at
        1.0
    """
    values = np.stack([np.asarray(x, float), np.asarray(y, float)])
    values = values[:, np.isfinite(values).all(axis=0)]
    count = values.shape[1]
    if count < MIN_PAIRS:
        return None
    places = np.stack([np.unique(row, return_inverse=True)[1].ravel() for row in values])
    (at,) = _spearman(places[:, None])
    if np.isnan(at):
        return None
    drawn = _spearman(places[:, named_generator(0, "pairs").integers(count, size=(RESAMPLES, count))])
    drawn = drawn[~np.isnan(drawn)]
    low, high = np.quantile(drawn, [TAIL, 1 - TAIL]) if len(drawn) else (-1.0, 1.0)
    return Correlation(float(at), float(min(low, at)), float(max(high, at)), count)


def _spearman(places: Int[np.ndarray, "2 resamples count"]) -> Float[np.ndarray, " resamples"]:
    """Pearson's correlation of mean ranks; NaN where one of the two is constant."""
    first, second = (ranks - ranks.mean(axis=1, keepdims=True) for ranks in map(_mean_ranks, places))
    sizes = np.sqrt((first**2).sum(axis=1) * (second**2).sum(axis=1))
    return np.divide((first * second).sum(axis=1), sizes, out=np.full(len(sizes), np.nan), where=sizes > 0)


def _mean_ranks(places: Int[np.ndarray, "resamples count"]) -> Float[np.ndarray, "resamples count"]:
    """The rank of every value within its resample, equal values sharing their mean rank; `places` order the values."""
    resamples, values = len(places), int(places.max()) + 1
    flat = (places + values * np.arange(resamples)[:, None]).ravel()
    counts = np.bincount(flat, minlength=resamples * values).reshape(resamples, values)
    return np.take_along_axis(np.cumsum(counts, axis=1) - (counts - 1) / 2, places, axis=1)


def agreement(layers: tuple[LayerReading, ...]) -> dict[str, Correlation]:
    """How each estimate of importance ranks all heads of the model, compared with leaving them out one by one."""
    measured = [layer.importance for layer in layers if EXACT in layer.importance]
    correlations = {}
    for name in ESTIMATES:
        both = [(each[EXACT], each[name]) for each in measured if name in each]
        found = correlation(*(np.concatenate(side) for side in zip(*both, strict=True))) if both else None
        if found is not None:
            correlations[name] = found
    return correlations


def same_tokens(facts: Facts) -> tuple[Pair, ...]:
    """Heads of a layer that read the same tokens, the most similar first."""
    pairs = [pair for layer in facts.layers() for pair in _pairs(facts, layer, "reading") if pair.value >= SAME]
    return tuple(sorted(pairs, key=lambda pair: -pair.value))


def shared_keys(facts: Facts) -> tuple[Pair, ...]:
    """Key heads of a layer one of which can read the other's keys, those that lose least first."""
    pairs = [pair for layer in facts.layers() for pair in _pairs(facts, layer, "keys") if pair.value <= SHARED]
    return tuple(sorted(pairs, key=lambda pair: pair.value))


def _pairs(facts: Facts, layer: int, name: str) -> list[Pair]:
    stored = facts.of(f"redundancy/{layer}").get(name)
    if not stored:
        return []
    matrix = np.asarray(stored, float)
    matrix = np.fmin(matrix, matrix.T)  # whichever of the two reads the other
    rows, columns = np.triu_indices(len(matrix), 1)
    return [
        Pair(layer, int(i), int(j), float(matrix[i, j]))
        for i, j in zip(rows, columns, strict=True)
        if np.isfinite(matrix[i, j])
    ]
