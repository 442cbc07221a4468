"""Heads of a layer that do each other's work: they read the same tokens, or could share keys or values."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ..evaluation.layer_statistics import LayerStatistics
from ..layers.rotary import Rotary
from ..layers.weights import HeadWeights
from .alignment import symmetric_solve
from .grouping import Layer
from .shared import attended_inputs, fitted_query_maps, mean_rotation, score_variance


@dataclass(frozen=True, eq=False)
class Redundancy:
    """How far heads of one layer can stand in for each other.

    `reading[h, i]` is 1 less the mean total variation distance of the attention of two heads: 1 where they read the
    same tokens; None where attention could not be seen. `keys[g, i]` is the share of the score variance that the heads
    of key head g lose when they read the keys of i, with the best map of their queries; `values[g, i]` is the share of
    their output's mean square that is lost when they read the values of i. 0: nothing is lost.
    """

    reading: Float[np.ndarray, "heads heads"] | None
    keys: Float[np.ndarray, "key_heads key_heads"]
    values: Float[np.ndarray, "key_heads key_heads"]


def redundancy(
    weights: HeadWeights,
    statistics: LayerStatistics,
    rotary: Rotary | None = None,
    normed: bool = False,
    *,
    frequencies: Float[np.ndarray, " pairs"] | None = None,
    reading: Float[np.ndarray, "heads heads"] | None = None,
) -> Redundancy:
    """Compare all pairs of heads of one layer.

    Args:
        weights: The layer.
        statistics: Of that layer.
        rotary: Its rotary positions, if any.
        normed: Whether queries and keys are normalised after the projection: queries are then not mapped.
        frequencies: Radians per position of each rotary pair, where known.
        reading: `same_reading` of the layer's attention, where it could be seen.
    """
    layer = Layer(weights, statistics, rotary, normed)
    return Redundancy(
        reading=reading,
        keys=_keys_lost(layer, frequencies),
        values=_values_lost(layer),
    )


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


def _keys_lost(layer: Layer, frequencies: np.ndarray | None) -> Float[np.ndarray, "key_heads key_heads"]:
    count = layer.weights.key_heads
    rotation = mean_rotation(layer.weights.head_dim, layer.rotary, frequencies)
    inputs = layer.key_inputs
    variance = np.maximum(score_variance(layer.keys, layer.queries, inputs, rotation), np.finfo(float).tiny)
    keys = layer.keys
    if layer.normed:
        sizes = np.sqrt(np.einsum("gdw,wv,gdv->g", keys, layer.inputs, keys, optimize=True))
        keys = keys / np.maximum(sizes, np.finfo(float).tiny)[:, None, None]
        variance = np.maximum(score_variance(keys, layer.queries, inputs, rotation), np.finfo(float).tiny)
    lost = np.zeros((count, count))
    for other in range(count):
        if layer.normed:
            column = score_variance(keys - keys[other], layer.queries, inputs, rotation)
        else:
            _, column = fitted_query_maps(keys, layer.queries, inputs, keys[other], rotation)
        lost[:, other] = column / variance
        lost[other, other] = 0.0
    return np.maximum(lost, 0.0)


def _values_lost(layer: Layer) -> Float[np.ndarray, "key_heads key_heads"]:
    count = layer.weights.key_heads
    lost = np.zeros((count, count))
    for one in range(count):
        heads = layer.heads_of((one,))
        total = 0.0
        for head in heads:
            metric = layer.weights.output[:, head].T @ layer.weights.output[:, head]
            seen = attended_inputs(layer.inputs, layer.values[one], layer.head_moments[head])
            total += np.sum(metric * layer.head_moments[head])
            for other in range(count):
                cross = layer.values[one] @ seen @ layer.values[other].T
                map_ = symmetric_solve(cross, layer.values[other] @ seen @ layer.values[other].T)
                rest = layer.head_moments[head] - map_ @ cross.T
                lost[one, other] += 0.0 if other == one else np.sum(metric * rest)
        lost[one] /= max(total, np.finfo(float).tiny)
    return np.clip(lost, 0.0, None)
