"""How a trained model rotates queries and keys by position."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Rotary:
    """Queries and keys are rotated by position in their first `dims` numbers.

    The pairs are (2i, 2i + 1) where interleaved, (i, i + dims/2) otherwise.
    """

    dims: int
    interleaved: bool = False
