"""Arrays of intervals with outward rounding: the exact result over real numbers always lies inside.

Every operation on float64 ends is followed by a step outwards that covers its rounding: one unit in the last place for
+ - * /, which IEEE 754 rounds correctly, eight for exp and similar functions, which are assumed correct within four,
and the classical bound gamma_k |A| |B| for sums of k terms in any order (Higham, Accuracy and Stability of Numerical
Algorithms, 3.1).
Truth values are intervals too: `low` is certainly true, `high` possibly true.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import HeadcountError

ULPS = 8
_UNIT = 2.0**-52
_LARGEST = float(np.finfo(np.float64).max)
_TINY = 1e-290
"""More than products lose to underflow in any sum that fits into memory."""


class EnclosureError(HeadcountError):
    """An enclosure that cannot be computed: an unknown operation, or a division by an interval that contains zero.

    `operation` is the JAX operation at which a function could not be enclosed; empty where there is none.
    """

    operation: str = ""


@dataclass(frozen=True)
class Box:
    """All arrays between `low` and `high`, entry by entry."""

    low: Any
    high: Any

    def __post_init__(self):
        # NumPy turns arrays without axes into scalars.
        for end in ("low", "high"):
            object.__setattr__(self, end, np.asarray(getattr(self, end)))
        assert self.low.shape == self.high.shape

    @property
    def shape(self) -> tuple[int, ...]:
        return self.low.shape

    @property
    def magnitude(self) -> np.ndarray:
        """The largest |x| inside, entry by entry."""
        return np.maximum(np.abs(self.low), np.abs(self.high))

    @property
    def mignitude(self) -> np.ndarray:
        """The smallest |x| inside, entry by entry."""
        smallest = np.minimum(np.abs(self.low), np.abs(self.high))
        return np.where((self.low <= 0) & (self.high >= 0), 0.0, smallest)

    def map(self, function: Callable[[np.ndarray], np.ndarray]) -> "Box":
        """Apply an increasing exact function, or one that only moves entries, to both ends."""
        return Box(function(self.low), function(self.high))


def point(value: Any) -> Box:
    return Box(value, value)


def ball(centre: np.ndarray, radius: np.ndarray | float) -> Box:
    """Return all arrays within `radius` of `centre`, entry by entry."""
    return outward(Box(centre - radius, centre + radius))


def outward(x: Box, ulps: int = 1) -> Box:
    """`x` with its ends moved apart by at least `ulps` units in the last place; integers are exact."""
    if not np.issubdtype(x.low.dtype, np.floating):
        return x
    if ulps == 1:
        return Box(np.nextafter(x.low, -np.inf), np.nextafter(x.high, np.inf))
    # An infinite lower end (or -inf upper end) is an overflow: a finite number beyond the largest float64.
    low, high = np.minimum(x.low, _LARGEST), np.maximum(x.high, -_LARGEST)
    with np.errstate(over="ignore"):
        return Box(
            low - np.where(np.isfinite(low), ulps * _UNIT * np.abs(low) + _TINY, 0.0),
            high + np.where(np.isfinite(high), ulps * _UNIT * np.abs(high) + _TINY, 0.0),
        )


def add(x: Box, y: Box) -> Box:
    return outward(Box(x.low + y.low, x.high + y.high))


def negative(x: Box) -> Box:
    return Box(-x.high, -x.low)


def subtract(x: Box, y: Box) -> Box:
    return add(x, negative(y))


def multiply(x: Box, y: Box) -> Box:
    corners = (x.low * y.low, x.low * y.high, x.high * y.low, x.high * y.high)
    return outward(Box(np.minimum.reduce(corners), np.maximum.reduce(corners)))


def divide(x: Box, y: Box) -> Box:
    if np.any((y.low <= 0) & (y.high >= 0)):
        raise EnclosureError("a division by an interval that contains zero has no bound.")
    corners = (x.low / y.low, x.low / y.high, x.high / y.low, x.high / y.high)
    return outward(Box(np.minimum.reduce(corners), np.maximum.reduce(corners)))


def increasing(function: Callable[[np.ndarray], np.ndarray], x: Box) -> Box:
    """Enclose an increasing function whose float64 version is correct within ULPS."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        ends = x.map(function)
    if np.any(np.isnan(ends.low) | np.isnan(ends.high)):
        raise EnclosureError(f"{getattr(function, '__name__', 'a function')} is evaluated outside its domain.")
    return outward(ends, ULPS)


def power(x: Box, exponent: int) -> Box:
    if exponent < 0:
        return divide(point(np.ones(x.shape)), power(x, -exponent))
    if exponent % 2 == 1:
        return increasing(lambda a: a**exponent, x)
    raised = increasing(lambda a: a**exponent, Box(x.mignitude, x.magnitude))
    return Box(np.maximum(raised.low, 0.0), raised.high)


def product_over(x: Box, axes: tuple[int, ...]) -> Box:
    if not axes:
        return x
    parts = x.map(lambda a: np.moveaxis(a, axes, range(len(axes))).reshape(-1, *np.delete(a.shape, axes)))
    result = point(np.ones(parts.shape[1:]))
    for low, high in zip(parts.low, parts.high, strict=True):
        result = multiply(result, Box(low, high))
    return result


def sum_over(x: Box, axes: tuple[int, ...]) -> Box:
    if not np.issubdtype(x.low.dtype, np.floating):
        return x.map(lambda a: a.sum(axis=axes))
    count = int(np.prod([x.shape[axis] for axis in axes]))
    slack = (count + 1) * _UNIT * x.magnitude.sum(axis=axes) * (1 + count * _UNIT) + _TINY
    return outward(Box(x.low.sum(axis=axes) - slack, x.high.sum(axis=axes) + slack))


def product(x: Box, y: Box) -> Box:
    """Return the matrix product over the last axis of `x` and the last but one of `y`, by midpoint and radius.

    |AB - mid(A) mid(B)| <= (|mid A| + rad A) rad B + rad A |mid B|, plus the rounding of the product itself.
    """
    terms = x.shape[-1]
    (mid_x, rad_x), (mid_y, rad_y) = _middle(x), _middle(y)
    size_x, size_y = np.abs(mid_x), np.abs(mid_y)
    centre = mid_x @ mid_y
    rounding = (terms + 2) * _UNIT * (size_x @ size_y)
    radius = ((size_x + rad_x) @ rad_y + rad_x @ size_y + rounding) * (1 + 4 * (terms + 4) * _UNIT) + _TINY
    return outward(Box(centre - radius, centre + radius))


def _middle(x: Box) -> tuple[np.ndarray, np.ndarray]:
    """Return a point inside, and a radius around it that covers both ends."""
    middle = x.low + (x.high - x.low) / 2
    reach = np.maximum(x.high - middle, middle - x.low)
    return middle, np.where(reach > 0, np.nextafter(reach, np.inf), 0.0)


def choose(which: Box, otherwise: Box, chosen: Box) -> Box:
    """`chosen` where certainly true, `otherwise` where certainly false, the hull of both where undecided."""
    certain, possible = which.low.astype(bool), which.high.astype(bool)
    low = np.where(certain, chosen.low, np.where(possible, np.minimum(chosen.low, otherwise.low), otherwise.low))
    high = np.where(certain, chosen.high, np.where(possible, np.maximum(chosen.high, otherwise.high), otherwise.high))
    return Box(low, high)


def equals(x: Box, y: Box) -> Box:
    certain = (x.low == x.high) & (y.low == y.high) & (x.low == y.low)
    return Box(certain, (x.low <= y.high) & (y.low <= x.high))
