"""Where an axis has its ticks, and how they are written."""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

MAX_TICKS = 8
_SUPERSCRIPTS = str.maketrans("-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")


def log_ticks(low: float, high: float) -> tuple[float, float, list[float]]:
    """Limits and ticks of a logarithmic axis over values from `low` to `high`.

    Whole decades; where fewer than three fit, 1, 2 and 5 of each.
    """
    decades = [power for power in range(-323, 309) if low / 1.4 <= 10.0**power <= high * 1.4]
    if len(decades) >= 3:
        return low / 1.4, high * 1.4, [10.0**power for power in decades[:: -(-len(decades) // MAX_TICKS)]]
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
    steps = [float(f"{factor}e{power}") for power in powers for factor in (1, 2, 5)]
    first = max(i for i, step in enumerate(steps) if step < low / 1.04 or i == 0)
    last = min(i for i, step in enumerate(steps) if step > high * 1.04 or i == len(steps) - 1)
    return steps[first], steps[last], steps[first : last + 1]


def linear_ticks(low: float, high: float) -> tuple[float, float, list[float]]:
    """Limits and ticks of a linear axis that shows zero and the values from `low` to `high`, at round steps."""
    low, high = min(0.0, low), max(0.0, high)
    high = high if high > low else 1.0
    rough = (high - low) / 5
    scale = 10.0 ** math.floor(math.log10(rough))
    step = next(scale * factor for factor in (1, 2, 5, 10) if scale * factor >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return first * step, last * step, [i * step for i in range(first, last + 1)]


def tick_text(value: float, ticks: Sequence[float], *, log: bool) -> str:
    """How a tick is written: 10 to a power where all ticks of a logarithmic axis are, else the number."""
    powers = [math.log10(tick) for tick in ticks] if log else []
    if log and all(abs(power - round(power)) < 1e-9 for power in powers) and len(ticks) > 1:
        return f"10{str(round(math.log10(value))).translate(_SUPERSCRIPTS)}"
    return f"{value:.3g}".replace("-", "\u2212")


def far_enough(places: Float[np.ndarray, " ticks"], widths: Sequence[float]) -> list[int]:
    """The indices of ticks whose labels, this wide and centred at these places, do not run into each other."""
    kept: list[int] = []
    for i, place in enumerate(places):
        if not kept or place - places[kept[-1]] >= (widths[i] + widths[kept[-1]]) / 2:
            kept.append(i)
    return kept
