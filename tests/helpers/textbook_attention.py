"""The equations of an attention layer in float64, written from `HeadWeights` alone."""

from collections.abc import Callable

import numpy as np

from headcount.pretrained.layers.weights import HeadWeights


def attend(
    weights: HeadWeights,
    x: np.ndarray,
    *,
    scale: float | None = None,
    visible: np.ndarray | None = None,
    turn_query: Callable[[np.ndarray], np.ndarray] = lambda query: query,
    turn_key: Callable[[np.ndarray], np.ndarray] = lambda key: key,
    cap: float | None = None,
) -> np.ndarray:
    """The output [length, out_width] for the input `x` [length, width].

    Args:
        visible: True where a query (row) sees a key (column); None where all do.
        turn_query, turn_key: What happens to one head's queries or keys [length, head_dim] after the projection.
        cap: Scores s become cap tanh(s / cap).
    """
    total = np.zeros((len(x), len(weights.output)))
    for head in range(weights.heads):
        group = weights.key_head_of(head)
        query = turn_query(_projected(x, weights.query[head], weights.query_bias, head))
        key = turn_key(_projected(x, weights.key[group], weights.key_bias, group))
        value = _projected(x, weights.value[group], weights.value_bias, group)
        scores = (weights.head_dim**-0.5 if scale is None else scale) * query @ key.T
        if cap is not None:
            scores = cap * np.tanh(scores / cap)
        if visible is not None:
            scores = np.where(visible, scores, -np.inf)
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        total += shares @ value @ weights.output[:, head].T
    return total if weights.output_bias is None else total + weights.output_bias


def rotated(x: np.ndarray, cos: np.ndarray, sin: np.ndarray, *, interleaved: bool = False) -> np.ndarray:
    """Pairs of numbers turned by the angle of their position; `cos` and `sin` [length, pairs]."""
    dims = 2 * cos.shape[1]
    if interleaved:
        first, second = np.arange(0, dims, 2), np.arange(1, dims, 2)
    else:
        first, second = np.arange(dims // 2), np.arange(dims // 2, dims)
    turned = x.copy()
    turned[:, first] = x[:, first] * cos - x[:, second] * sin
    turned[:, second] = x[:, second] * cos + x[:, first] * sin
    return turned


def _projected(x: np.ndarray, matrix: np.ndarray, bias: np.ndarray | None, head: int) -> np.ndarray:
    return x @ matrix.T + (0.0 if bias is None else bias[head])
