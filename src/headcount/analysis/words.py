"""Counts and errors in words, the same in every sentence, table and chart."""

import math

PLAIN_FROM, PLAIN_BELOW = 1e-3, 1e5
"""Errors in this range are written as plain decimals."""


def count_of_heads(heads: int) -> str:
    """`1 head`, `4 heads`."""
    return f"{heads} {'head' if heads == 1 else 'heads'}"


def size_of(heads: int, rank: int) -> str:
    """`4 heads of rank 8`."""
    return f"{count_of_heads(heads)} of rank {rank}"


def number(value: float) -> str:
    """An error to two digits: `0.013`, `1.2`, `120`; `3.2e-05` below a thousandth; a dash where there is none.

    Example:
        >>> [number(value) for value in (0.0134, 0.1, 12.3, 0.00003217, float("nan"))]
        ['0.013', '0.10', '12', '3.2e-05', '-']
    """
    if math.isnan(value):
        return "-"
    rounded = float(f"{value:.1e}")
    if rounded == 0 or not math.isfinite(rounded):
        return f"{rounded:g}"
    if not PLAIN_FROM <= abs(rounded) < PLAIN_BELOW:
        return f"{rounded:.1e}"
    return f"{rounded:.{max(0, 1 - math.floor(math.log10(abs(rounded))))}f}"
