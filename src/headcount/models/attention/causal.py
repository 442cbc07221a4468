"""Causal attention: a token sees itself and what came before. The class token comes last and sees everything."""

from typing import Any


def later(queries: Any, keys: Any) -> Any:
    """Which keys come after each query, from the places of both along their last axes: (.., queries, keys)."""
    return keys[..., None, :] > queries[..., :, None]
