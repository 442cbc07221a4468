"""Ratios of errors, the best of seeds, with the interval that other seeds leave."""

import numpy as np
from jaxtyping import Float

from ...answer import ErrorTable
from ...answer.bootstrap import MIN_SEEDS, TAIL, bootstrap

Decades = tuple[float, float, float]
"""log10 of a ratio: the lower end of its interval, the ratio itself, the upper end."""


def log_ratios(above: ErrorTable | None, heads: int, below: ErrorTable | None, other: int) -> Decades | None:
    """log10 of the error of `heads` in one table over that of `other` heads in another: the mean over shared lengths.

    The interval holds 90 % of resamples of the seeds. None where no length has enough seeds of both.
    """
    if above is None or below is None or heads not in above.values("heads") or other not in below.values("heads"):
        return None
    rows = [_by_length(above, heads), _by_length(below, other)]
    shared = [length for length in rows[0] if length in rows[1]]
    if not shared:
        return None
    logs, drawn = [], []
    for place, row in enumerate(rows):
        seeds = max(len(row[length]) for length in shared)
        errors = np.full((len(shared), seeds), np.nan)
        for i, length in enumerate(shared):
            errors[i, : len(row[length])] = np.maximum(row[length], 1e-30)  # an error of zero has no logarithm
        logs.append(np.log10(np.nanmin(errors, axis=1)).mean())
        drawn.append(np.log10(bootstrap(errors, seed=place).best).mean(axis=1))
    low, high = np.quantile(drawn[0] - drawn[1], [TAIL, 1 - TAIL])
    return float(low), float(logs[0] - logs[1]), float(high)


def _by_length(table: ErrorTable, heads: int) -> dict[int, Float[np.ndarray, " seeds"]]:
    """The errors of a head count at every length with enough finished seeds."""
    rows = table.select(heads=heads).ordered("length", "seed").errors
    finished = {length: row[np.isfinite(row)] for length, row in zip(table.values("length"), rows, strict=True)}
    return {length: row for length, row in finished.items() if len(row) >= MIN_SEEDS}


def folds(decades: Decades) -> str:
    low, middle, high = (10**each for each in decades)
    return f"{middle:.3g}-fold [{low:.3g}, {high:.3g}]"
