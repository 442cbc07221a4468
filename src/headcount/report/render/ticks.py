"""Where an axis has its ticks, and how they are written."""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.ticker import MaxNLocator

from ...answer.words import PLAIN_FROM

MAX_TICKS = 8
_SUPERSCRIPTS = str.maketrans("-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")
SMALLEST_RANGE = 1e-300
"""Below it a step between ticks would be no number."""


def log_ticks(low: float, high: float) -> tuple[float, float, list[float]]:
    """Return limits and ticks of a logarithmic axis over values from `low` to `high`.

    Whole decades, all of the axis or all that are within; over two decades and less 1, 2 and 5 of each.
    """
    within = [10.0**power for power in range(-323, 309) if low / 1.4 <= 10.0**power <= high * 1.4]
    if len(within) >= 3:
        return low / 1.4, high * 1.4, within[:: -(-len(within) // MAX_TICKS)]
    powers = range(math.floor(math.log10(low / 1.04)), math.ceil(math.log10(high * 1.04)) + 1)
    factors = (1, 2, 5) if len(powers) <= 3 else (1,)
    steps = [float(f"{factor}e{power}") for power in powers for factor in factors]
    first = max(i for i, step in enumerate(steps) if step < low)
    last = min(i for i, step in enumerate(steps) if step > high)
    return steps[first], steps[last], steps[first : last + 1]


def linear_ticks(low: float, high: float) -> tuple[float, float, list[float]]:
    """Return limits and ticks of a linear axis that shows zero and the values from `low` to `high`, at round steps."""
    low, high = min(0.0, low), max(0.0, high)
    locator = MaxNLocator(5, steps=[1, 2, 5, 10])
    ticks = list(map(float, locator.tick_values(low, high if high - low > SMALLEST_RANGE else 1.0)))
    return ticks[0], ticks[-1], ticks


def tick_text(value: float, ticks: Sequence[float], *, log: bool) -> str:
    """Write a tick plainly from a thousandth on; below, as 10 to a power if all ticks of a logarithmic axis are."""
    powers = [math.log10(tick) for tick in ticks] if log else []
    plain = PLAIN_FROM * (1 - 1e-9) <= abs(value) < 1e5
    if log and all(abs(power - round(power)) < 1e-9 for power in powers) and len(ticks) > 1 and not plain:
        return f"10{str(round(math.log10(value))).translate(_SUPERSCRIPTS)}"
    text = f"{value:,.0f}" if plain and abs(value) >= 1000 else f"{value:.3g}"
    return text.replace("-", "\u2212")


def far_enough(places: Float[np.ndarray, " ticks"], widths: Sequence[float]) -> list[int]:
    """Return the indices of ticks whose labels, this wide and centred at these places, do not overlap.

    Where ticks are evenly spaced, so are the ones that are kept.
    """
    count = len(places)
    steps = np.diff(places)
    if count > 1 and np.allclose(steps, steps[0]):
        stride = next((n for n in range(1, count) if n * steps[0] >= max(widths)), count)
        return list(range(0, count, stride))
    kept: list[int] = []
    for i, place in enumerate(places):
        if not kept or place - places[kept[-1]] >= (widths[i] + widths[kept[-1]]) / 2:
            kept.append(i)
    return kept
