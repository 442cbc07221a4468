"""Checks of the numbers that a caller gives: at exported functions and settings, and nowhere inside."""

import math

from ..errors import require, require_count


def require_counts(**counts: int) -> None:
    """Raise `InputError` unless each is a whole number of at least 1."""
    for name, count in counts.items():
        require_count(name, count)


def require_positive(**numbers: float) -> None:
    """Raise `InputError` unless each is positive and finite."""
    for name, number in numbers.items():
        require(0 < number < math.inf, what=name, given=number, needed="positive and finite")


def require_below_one(**numbers: float) -> None:
    """Raise `InputError` unless each lies between 0 and 1."""
    for name, number in numbers.items():
        require(0 < number < 1, what=name, given=number, needed="between 0 and 1")


def require_rank(heads: float, rank: int, dim: int) -> None:
    """Raise `InputError` unless some heads of this rank see points of R^dim, which has two orthogonal ones."""
    require(heads >= 1, what="heads", given=heads, needed="at least 1")
    require_dim(dim)
    require_count("rank", rank)
    require(rank <= dim, what="rank", given=rank, needed=f"at most dim = {dim}")


def require_dim(dim: int) -> None:
    """Raise `InputError` unless R^dim has two orthogonal points."""
    require_count("dim", dim)
    require(dim >= 2, what="dim", given=dim, needed="at least 2, for orthogonal points")
