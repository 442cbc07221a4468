"""Which keys a query does not read: absent ones, those beyond its window, later ones."""

import jax.numpy as jnp
from jaxtyping import Bool, Int

from ..._shapes import AnyArray
from .causal import later
from .options import Attends
from .window import beyond


def places_of(absent: Bool[AnyArray, " places"] | None, count: int) -> Int[AnyArray, " places"]:
    """The place of every token among those that are there; of an absent one, that of the token before it."""
    return jnp.arange(count) if absent is None else jnp.maximum(jnp.cumsum(~absent) - 1, 0)


def unread(
    spec: Attends,
    absent: Bool[AnyArray, " keys"] | None,
    queries: Int[AnyArray, " queries"],
    keys: Int[AnyArray, " keys"],
    after: Int[AnyArray, " queries"] | int = 0,
) -> Bool[AnyArray, "*queries keys"] | None:
    """The keys that queries at these places do not read; the absent ones, or None, where all queries read the same.

    `after`: see `window.beyond`.
    """
    hidden = absent
    masks = [] if spec.window is None else [beyond(queries, keys, spec.window, jnp.reshape(after, (-1, 1)))]
    for mask in masks + ([later(queries, keys)] if spec.causal else []):
        hidden = mask if hidden is None else hidden | mask
    return hidden
