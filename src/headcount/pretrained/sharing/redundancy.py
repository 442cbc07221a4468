"""Heads of a layer that do each other's work: they read the same tokens, or could share keys or values."""

import numpy as np
from jaxtyping import Float

from .moments import LayerMoments, symmetric_solve
from .shared import attended_inputs, fitted_query_maps


def same_reading(attention: Float[np.ndarray, "*examples heads queries keys"]) -> Float[np.ndarray, "heads heads"]:
    """1 less the mean total variation distance between the attention of every two heads, over queries and examples.

    >>> same_reading(np.array([[[1.0, 0.0]], [[0.0, 1.0]], [[0.5, 0.5]]]))
    array([[1. , 0. , 0.5],
           [0. , 1. , 0.5],
           [0.5, 0.5, 1. ]])
    """
    heads = attention.shape[-3]
    rows = np.moveaxis(attention, -3, 0).reshape(heads, -1, attention.shape[-1])
    # Queries without any attention are padding.
    rows = rows[:, rows.sum(axis=(0, 2)) > 0]
    return np.array([[1 - np.abs(one - other).sum(axis=-1).mean() / 2 for other in rows] for one in rows])


def lost_with_keys_of_others(layer: LayerMoments) -> Float[np.ndarray, "key_heads key_heads"]:
    """The share of the score variance that the readers of a key head lose when they read the keys of another.

    With the best map of their queries; where queries and keys are normalised, with their queries as they are. Row: the
    key head; column: the one that is read. 0: nothing is lost.
    """
    members = list(range(layer.weights.key_heads))
    keys = layer.unit_keys if layer.normed else layer.keys
    variance = np.maximum(layer.score_squares(keys, members), np.finfo(float).tiny)
    lost = np.zeros((len(members), len(members)))
    for other in members:
        if layer.normed:
            column = layer.score_squares(keys - keys[other], members)
        else:
            _, column = fitted_query_maps(layer, members, keys[other])
        lost[:, other] = column / variance
        lost[other, other] = 0.0
    return np.maximum(lost, 0.0)


def lost_with_values_of_others(layer: LayerMoments) -> Float[np.ndarray, "key_heads key_heads"]:
    """The share of their outputs' mean square that the readers of a key head lose when they read the values of another.

    Row: the key head; column: the one that is read. 0: nothing is lost.
    """
    weights, count = layer.weights, layer.weights.key_heads
    lost = np.zeros((count, count))
    for one in range(count):
        heads = layer.readers([one])
        for head in heads:
            metric = weights.output[:, head].T @ weights.output[:, head]
            moments = layer.head_moments[head]
            seen = attended_inputs(layer.statistics.inputs, layer.values[one], moments)
            for other, value in enumerate(layer.values):
                if other != one:
                    cross = layer.values[one] @ seen @ value.T
                    map_ = symmetric_solve(cross, value @ seen @ value.T)
                    lost[one, other] += np.sum(metric * (moments - map_ @ cross.T))
        lost[one] /= max(sum(layer.output_squares[head] for head in heads), np.finfo(float).tiny)
    return np.clip(lost, 0.0, None)
