"""Local attention: a query sees the tokens near it, and the class token the last ones."""

from typing import Any


def beyond(queries: Any, keys: Any, window: int, after: Any = 0) -> Any:
    """Which keys each query does not see, from the places of both along their last axes: (.., queries, keys).

    A token sees itself and `window` - 1 tokens on either side. `after` is 1 for a query that comes after the tokens and
    is none of them: it sees the last `window`.
    """
    apart = queries[..., :, None] - keys[..., None, :]
    return (apart >= window + after) | (apart <= -window)
