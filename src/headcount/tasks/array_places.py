"""The positions of tokens in sequences with absent tokens, and which are kept in shorter ones."""

from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from .._shapes import AnyArray

ShorterRule = Literal["given", "leading", "trailing"]
"""Which tokens are kept of a shorter sequence; "given": there is none."""


def ending_together(x: Float[np.ndarray, "examples length dim"]) -> Float[np.ndarray, "examples length dim"]:
    """The sequences moved so that each ends at the last place."""
    length = x.shape[1]
    behind = np.argmax(~np.all(np.isnan(x), axis=-1)[:, ::-1], axis=1)  # absent tokens after the last
    places = (np.arange(length) - behind[:, None]) % length
    return np.take_along_axis(x, places[..., None], axis=1)


def kept_places(
    absent: Bool[AnyArray, "examples longest"], length: int, shorter: ShorterRule, asks: bool
) -> Int[AnyArray, "examples length"]:
    """Where the tokens of the shortened sequences come from, -1 for none.

    They are placed at the end where the last one is the query, else at the start.
    """
    xp = absent.__array_namespace__()
    places = xp.argsort(absent, axis=1, stable=True)  # those that are there first, in their order
    there = xp.sum(~absent, axis=1)[:, None]
    kept = xp.minimum(there, length)
    number = xp.arange(length)[None] - (length - kept if asks else 0)  # of the kept token that goes there
    source = number + there - kept if shorter == "trailing" else number
    if asks:
        source = xp.where(number == kept - 1, there - 1, source)
    taken = xp.take_along_axis(places, xp.clip(source, 0, places.shape[1] - 1), axis=1)
    return xp.where((number >= 0) & (number < kept), taken, -1)
