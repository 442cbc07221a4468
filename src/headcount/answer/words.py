"""Counts and errors in words, the same in every sentence."""

import math
from collections.abc import Iterable, Sequence

from .metric import Metric

MAX_LISTED = 6
PLAIN_FROM = 1e-3
"""Errors from here on are written as plain decimals."""
EXACT, BELOW_EXACT = 1e-9, "below 1e-9"
"""An error below this is rounding; how large it is says nothing."""


def count_of_heads(heads: int) -> str:
    """Return `1 head`, `4 heads`."""
    return f"{heads} {'head' if heads == 1 else 'heads'}"


def size_of(heads: int, rank: int) -> str:
    """Return `4 heads of rank 8`."""
    return f"{count_of_heads(heads)} of rank {rank}"


def heads_listed(counts: Sequence[int]) -> str:
    """Return `1 head`, `1 to 6 heads`."""
    return count_of_heads(counts[0]) if len(counts) == 1 else f"{listed(counts)} heads"


def listed(counts: Sequence[int]) -> str:
    """Write `5`, `5 and 6`, `5 to 12`, `5, 7 and 12`; a run of three or more, and many, as their ends."""
    counts = list(counts)
    run = len(counts) > 2 and counts == list(range(counts[0], counts[-1] + 1))
    if run or len(counts) > MAX_LISTED:
        return f"{counts[0]} to {counts[-1]}"
    *others, last = map(str, counts)
    return f"{', '.join(others)} and {last}" if others else last


def decimal(value: float) -> str:
    """Write two significant digits, plain from 0.001 on: `0.11`, `0.0013`, `3.2e-05`."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "-"
    rounded = float(f"{value:.1e}")
    if abs(rounded) < PLAIN_FROM:
        return f"{value:.1e}"
    digits = max(0, 1 - math.floor(math.log10(abs(rounded))))
    return f"{rounded:.{digits}f}"


def error_number(error: float) -> str:
    """Write an error as `decimal` does, or only that it is rounding: `0.11`, `below 1e-9`."""
    return BELOW_EXACT if 0 < error < EXACT else decimal(error)


def factor_words(factor: float) -> str:
    """Return `1.3`, `51`, `1,200`."""
    return f"{factor:,.0f}" if factor >= 10 else decimal(factor)


def error_words(metric: Metric, errors: Iterable[float]) -> str:
    """Write an error, or the least and the largest of several: `0.11`, `0.013 to 0.019`; of labels `12 to 18 %`."""
    errors = list(errors)
    shares = metric.baseline is None
    words = [_percent(each) if shares else error_number(each) for each in (min(errors), max(errors))]
    return " to ".join(dict.fromkeys(words)) + (" %" if shares else "")


def difference_words(metric: Metric, difference: float) -> str:
    """Write a difference of errors: `0.11`; of labels `0.5 points`, which are per cent of the examples."""
    return f"{decimal(100 * difference)} points" if metric.baseline is None else error_number(difference)


def _percent(share: float) -> str:
    return f"{100 * share:.0f}" if share >= 0.1 or share == 0 else decimal(100 * share)


def as_sentence(words: str) -> str:
    """Return the words with a capital letter and a full stop."""
    return f"{words[:1].upper()}{words[1:].rstrip('.')}."
