"""Theorem 2(2) with constants: the error of every model of s < D heads with bounded values and bounded readout slope.

The class and both proofs are in docs/floors.md; V is the largest value, K the slope of the readout. Either proof has a
pair of sequences, and the floor is the better of the two: (gap - K distance) / 2. One token among N heavier ones:

    N           places of each head's heaviest token, about (T - D) / s, or T (1 / s - 1 / D) / s with positions
    distance    2 V sqrt(n s) / (N + 1), and the gap is the whole rise: any head width, but linear in T

Two choices of many tokens, better for narrow heads and small errors:

    Q           points per component, equally far apart in f_i on [z_i*, z_i* + r]
    t <= T0     free places of S_i; T0 = |S_i| - s - D + 1 are not taken by fixed tokens
    choices     C(t + Q - 1, t) multisets without positions; with them (Q / t)^t, as every place has its own points
    k           parts of every side of the box of the m = (n + 1) s moments: k^m cells, fewer than choices
    distance    sqrt(n s) 3 V t / k: two choices in one cell have outputs no farther apart
    gap         rise / (Q - 1), where rise / r is the least slope of the target in z_i

Source: Yu et al. (arXiv 2510.06662), Theorem 2(2), whose constants are not given; these are ours, and so is the first.
"""

import dataclasses
import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln

from ...errors import require
from ..bounds import Bound, Condition
from ..doors import require_below_one, require_counts, require_positive

MAX_LENGTH = 2**100
"""Lengths above are not searched for the least one at which the floor is above eps."""
_POINTS = np.unique(np.round(np.concatenate([np.arange(2, 128), np.geomspace(128, 1e9, 200)])))
_FREE = np.unique(np.round(np.concatenate([np.arange(1, 129), np.geomspace(129, 2.0**41, 260)])))
"""Grids over which Q (points per component, or per place) and t (free places) are chosen."""
_FEW = 129
"""Points or free places below which the logarithm of the number of choices is a sum of as many terms."""
_SAFETY = 1e-9
"""Share of log k, and of a distance, given away, so that rounding cannot make a bound too good."""


@dataclass(frozen=True, kw_only=True)
class BoundedClass:
    """All models of some heads with values of at most `values` and a readout of slope at most `slope`, and a task.

    Attributes:
        heads: s.
        intrinsic_dim: D.
        length: T.
        head_dim: n, numbers per head output.
        values: V, the largest value in magnitude.
        slope: K, the Lipschitz constant of the readout on the heads' outputs.
        rise: r times the least slope of the target in one minimum, where r is the level up to which the sets
            {f_i < z_i* + r} are disjoint. 1/2 for max + min on [0, 1].
        share: Share of the places that the smallest S_i has; the paper asks for a quarter.
        positions: Whether models see the place of a token.
    """

    heads: int
    intrinsic_dim: int
    length: int
    head_dim: int = 2
    values: float = 1.0
    slope: float = 1e3
    rise: float = 0.5
    share: float = 1.0
    positions: bool = False

    def __post_init__(self):
        require_counts(**{name: getattr(self, name) for name in ("heads", "intrinsic_dim", "length", "head_dim")})
        require_positive(values=self.values, slope=self.slope, rise=self.rise)
        require(0.25 <= self.share <= 1, what="share", given=self.share, needed="between 0.25 and 1")

    @property
    def moments(self) -> int:
        """m = (n + 1) s."""
        return (self.head_dim + 1) * self.heads

    @property
    def free_places(self) -> int:
        """T0: places of the smallest S_i left by the fixed tokens; 0 where there are none."""
        return max(0, self._smallest_set - self.heads - self.intrinsic_dim + 1)

    @property
    def heavier_places(self) -> int:
        """N: places per head that can hold a token it weighs at least as much as a minimiser at one other place."""
        if not self.positions:
            return max(0, (self.length - self.intrinsic_dim) // self.heads)
        # Of all heads' heaviest tokens at most a share s / D lies in the basin chosen; those places are lost.
        usable = (Fraction(self.share) - Fraction(self.heads, self.intrinsic_dim)) * self.length - 1
        most = min(math.floor(usable / self.heads), self._smallest_set - self.intrinsic_dim)
        return max(0, most // self.heads)

    @property
    def _smallest_set(self) -> int:
        return math.floor(Fraction(self.share) * self.length)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        places = "the place of a token is seen" if self.positions else "models do not see the place of a token"
        return (
            Condition("h < D", self.heads < self.intrinsic_dim),
            Condition("one attention layer, one query", None),
            Condition(places, None),
            Condition(f"values at most {self.values:g}, readout slope at most {self.slope:g}", None),
            Condition("f_i continuous, the sets {f_i < z_i* + r} disjoint, F0 of slope rise / r or more in each", None),
        )


def promised_distance(setting: BoundedClass, free: Any, log_choices: Any) -> Any:
    """Upper bound on the distance of the heads' outputs for two of exp(log_choices) choices on `free` places."""
    return 10.0 ** _log10_distance(setting, free, log_choices)


def one_token_distance(setting: BoundedClass) -> float:
    """Upper bound on the distance of the heads' outputs for two sequences that differ in one token.

    It is 2 V sqrt(n s) / (N + 1): every head weighs the tokens at N other places at least as much as either of the two.
    """
    return (1 + _SAFETY) * 2 * _output_width(setting) / (setting.heavier_places + 1)


class Pair(NamedTuple):
    """A pair of sequences that every model of a class has: how far apart its outputs are at most, and its targets."""

    distance: float
    gap: float
    words: str

    def floor(self, slope: float) -> float:
        return (self.gap - slope * self.distance) / 2


def promised_pair(setting: BoundedClass) -> Pair:
    """Return the pair with the highest floor at this slope, of a setting with free places."""
    points, free, choices = np.broadcast_arrays(*_grids(setting))
    gaps, distances = setting.rise / (points - 1), promised_distance(setting, free, choices)
    best = np.unravel_index(np.argmax(gaps - setting.slope * distances), gaps.shape)
    many = Pair(float(distances[best]), float(gaps[best]), f"two of 10^{choices[best] / math.log(10):.3g} choices")
    one = Pair(
        one_token_distance(setting),
        setting.rise,
        f"two sequences with one token among {setting.heavier_places} heavier",
    )
    return max(one, many, key=lambda pair: pair.floor(setting.slope))


def class_floor(setting: BoundedClass) -> Bound:
    """Return the least error that every model of the class has on some sequence; the value None says nothing.

    Example:
        >>> from headcount.theory import BoundedClass, class_floor
        >>> one_head = BoundedClass(heads=1, intrinsic_dim=2, length=128, slope=1e3)
        >>> class_floor(one_head).value > 0.01
        True
    """
    heads = "1 head" if setting.heads == 1 else f"{setting.heads} heads"
    claim = f"every model of {heads} of {setting.head_dim} numbers errs by at least this on some sequence"
    if setting.heads < setting.intrinsic_dim and setting.free_places:
        pair = promised_pair(setting)
        if pair.floor(setting.slope) > 0:
            claim += f": {pair.words} are {pair.distance:.2g} apart, their targets {pair.gap:.3g}"
            return _class_bound(setting, "least error", pair.floor(setting.slope), claim, "")
    return _class_bound(setting, "least error", None, claim, _why_silent(setting))


def slope_needed(setting: BoundedClass, eps: float) -> float:
    """Return log10 of the slope below which every model of the class errs by more than `eps` somewhere; -inf for none.

    `setting.slope` is not used.
    """
    require_below_one(eps=eps)
    if setting.heads >= setting.intrinsic_dim or not setting.free_places:
        return -math.inf
    points, free, choices = _grids(setting)
    spare = setting.rise / (points - 1) - 2 * eps
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(spare > 0, np.log10(np.maximum(spare, 1e-300)), -np.inf)
        many = float(np.max(logs - _log10_distance(setting, free, choices)))
    if setting.rise <= 2 * eps:
        return -math.inf
    return max(many, math.log10((setting.rise - 2 * eps) / one_token_distance(setting)))


def least_length(setting: BoundedClass, eps: float) -> int | None:
    """Return the least T from which the floor is above `eps`; None where no length up to 2^100 is enough."""
    require_below_one(eps=eps)

    def speaks(length: int) -> bool:
        return slope_needed(dataclasses.replace(setting, length=length), eps) > math.log10(setting.slope)

    high = _min_length(setting)
    while not speaks(high):
        high *= 2
        if high > MAX_LENGTH:
            return None
    low = max(_min_length(setting), high // 2) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if speaks(middle) else (middle, high)
    return high


def class_bounds(setting: BoundedClass, eps: float) -> tuple[Bound, Bound, Bound]:
    """`class_floor`, `slope_needed` and `least_length` as bounds."""
    decades, length = slope_needed(setting, eps), least_length(setting, eps)
    errs = f"every model errs by more than eps = {eps:g} on some sequence"
    return (
        class_floor(setting),
        _class_bound(
            setting,
            "decades of slope needed",
            decades if math.isfinite(decades) else None,
            f"with a readout slope below 10^this {errs}",
            f"says nothing: eps must be below {setting.rise / 2:g}, half of the rise",
        ),
        _class_bound(
            setting,
            "least length",
            None if length is None else float(length),
            f"from this length on {errs}",
            f"says nothing: no length up to 2^100 puts the floor above eps = {eps:g}",
        ),
    )


def _class_bound(setting: BoundedClass, name: str, value: float | None, claim: str, why: str) -> Bound:
    """Return one bound of the class; `why` says why it is silent, where it is and there are fewer heads than D."""
    if setting.heads >= setting.intrinsic_dim:
        why = "says nothing: it is about fewer heads than D, at any length and slope"
    return Bound(
        name=f"bounded heads: {name}",
        value=value,
        claim=claim,
        source="ours, after Theorem 2(2), arXiv 2510.06662",
        conditions=setting.conditions,
        kind="repaired",
        why="" if value is not None else why,
    )


def _min_length(setting: BoundedClass) -> int:
    return math.ceil((setting.heads + setting.intrinsic_dim) / setting.share)


def _why_silent(setting: BoundedClass) -> str:
    length = least_length(setting, 1e-9)
    if length is None:
        return "says nothing at any length up to 2^100"
    return f"says nothing at length {setting.length}; it takes length {length} or more at this slope"


def _grids(setting: BoundedClass) -> tuple[Float[np.ndarray, "points one"], ...]:
    """Return points per component Q, free places t, and log of the number of choices; broadcast against each other."""
    free = _FREE[setting.free_places >= _FREE][None, :]
    if setting.positions:
        # Every place has its own points: Q = (points per place) t.
        per_place = _POINTS[:, None]
        return per_place * free, free, free * np.log(per_place)
    return _POINTS[:, None], free, _all_multisets()[:, : free.shape[1]]


@functools.cache
def _all_multisets() -> Float[np.ndarray, "points free"]:
    return log_multisets(_POINTS, _FREE)


def log_multisets(points: Float[np.ndarray, " points"], free: Float[np.ndarray, " free"]) -> np.ndarray:
    """log C(t + Q - 1, t) for every Q of `points` and t of `free`, never more than it is by above 1e-13 of itself.

    The difference of log-gammas loses all digits where one of the two is small: there factors are added up.
    """
    above = gammaln(free + points[:, None])
    # What rounding of three log-gammas can add is taken away.
    logs = (above - gammaln(free + 1) - gammaln(points)[:, None]) - 8 * np.finfo(float).eps * above
    factors = np.arange(1.0, _FEW)
    few = points < _FEW
    by_points = np.cumsum(np.log1p(free / factors[:, None]), axis=0)
    logs[few] = by_points[points[few].astype(int) - 2]
    few = free < _FEW
    by_free = np.cumsum(np.log1p((points[:, None] - 1) / factors), axis=1)
    logs[:, few] = by_free[:, free[few].astype(int) - 1]
    return logs


def _log10_distance(setting: BoundedClass, free: Any, log_choices: Any) -> Any:
    width = _output_width(setting)
    sides = log_choices / setting.moments * (1 - _SAFETY)
    # k is the largest whole number with k^m below the number of choices.
    parts = np.where(sides < 30, np.log(np.maximum(np.ceil(np.exp(np.minimum(sides, 30.0))) - 1, 1.0)), sides)
    return np.minimum(math.log10(2 * width), np.log10(3 * width * free) - parts / math.log(10))


def _output_width(setting: BoundedClass) -> float:
    """V sqrt(n s): no output is longer."""
    return math.sqrt(setting.head_dim * setting.heads) * setting.values
