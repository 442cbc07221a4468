"""A smaller head_dim for the whole model: low-rank scores and values, written small, as a stock class stores them.

Stock classes have one head_dim for scores and values and scale scores by 1 / sqrt(head_dim); the change of that factor
is folded into the queries. With rotary positions every head of every layer keeps the same rotary pairs, because a model
has one set of frequencies; `rotary_config` says how stock classes store a subset of them.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from ..._errors import require
from ..evaluation.layer_statistics import LayerStatistics
from ..layers.rotary import Rotary
from ..layers.weights import HeadWeights
from ..sharing.alignment import rotary_pairs
from ..sharing.shared import mean_rotation
from .low_rank import (
    choose_units,
    fitted_to_dims,
    low_rank_values,
    mapped_keys,
    rotated_moments,
    score_factors,
    value_factors,
)


def shrink(
    layers: Sequence[HeadWeights],
    statistics: Sequence[LayerStatistics],
    head_dim: int,
    rotary: Rotary | None = None,
    normed: bool = False,
    *,
    frequencies: Float[np.ndarray, " pairs"] | None = None,
) -> tuple[tuple[HeadWeights, ...], tuple[int, ...] | None]:
    """All layers with a smaller head_dim, and the rotary pairs that were kept, in order; None without rotary positions.

    Args:
        layers: Of the original model.
        statistics: Of each layer.
        head_dim: The new one, below the old; even with rotary positions.
        rotary: The rotary positions, the same in all layers.
        normed: Whether queries and keys are normalised after the projection.
        frequencies: Radians per position of each rotary pair, where known.

    Raises:
        InputError: Normed queries and keys, rotary positions in a part of the head, or a head_dim that does not fit.
    """
    old = layers[0].head_dim
    require(
        not normed,
        "queries and keys are normalised after the projection: the norm runs over the whole head_dim, so a smaller "
        "one is another function; lower the head count or the key heads instead (headcount prune, headcount group).",
    )
    require(0 < head_dim < old, what="head_dim", given=head_dim, needed=f"at least 1 and below the model's {old}")
    require(
        all(layer.value_dim == layer.head_dim == old for layer in layers),
        "layers with several head_dims, or with values of another width than keys, have no smaller stock form.",
    )
    pairs = None if rotary is None else kept_pairs(layers, statistics, head_dim, rotary, frequencies)
    small = tuple(
        shrink_layer(weights, moments, head_dim, rotary, pairs, frequencies)
        for weights, moments in zip(layers, statistics, strict=True)
    )
    return small, pairs


def kept_pairs(
    layers: Sequence[HeadWeights],
    statistics: Sequence[LayerStatistics],
    head_dim: int,
    rotary: Rotary,
    frequencies: Float[np.ndarray, " pairs"] | None = None,
) -> tuple[int, ...]:
    """The rotary pairs that tell most of the scores of all layers and heads; each head counts the same."""
    require(head_dim % 2 == 0, what="head_dim", given=head_dim, needed="even, since rotary positions turn pairs")
    require(
        rotary.dims == layers[0].head_dim,
        f"only {rotary.dims} of {layers[0].head_dim} dimensions are rotated; a smaller head_dim would rotate others.",
    )
    rotation = mean_rotation(rotary.dims, rotary, frequencies)
    moments = [
        pair
        for weights, layer in zip(layers, statistics, strict=True)
        for pair in rotated_moments(weights, layer, rotation)
    ]
    return choose_units(moments, rotation.pairs, head_dim // 2)


def full_shape(
    weights: HeadWeights,
    statistics: LayerStatistics,
    head_dim: int,
    rotary: Rotary | None = None,
    pairs: Sequence[int] | None = None,
    frequencies: Float[np.ndarray, " pairs"] | None = None,
) -> HeadWeights:
    """What `shrink` makes of one layer, in the original shapes: the same function, measured by swapping weights."""
    values = low_rank_values(weights, statistics, head_dim, shared=True)
    if rotary is None:
        left, right = score_factors(weights, statistics, head_dim)
        return mapped_keys(values, left.transpose(0, 2, 1) @ right)
    kept = rotary_pairs(rotary)[list(pairs or ())].ravel()
    return fitted_to_dims(values, statistics, [kept] * weights.key_heads, rotary, frequencies)


def shrink_layer(
    weights: HeadWeights,
    statistics: LayerStatistics,
    head_dim: int,
    rotary: Rotary | None = None,
    pairs: Sequence[int] | None = None,
    frequencies: Float[np.ndarray, " pairs"] | None = None,
) -> HeadWeights:
    """One layer with a smaller head_dim; with rotary positions, the pairs that all layers keep."""
    full = full_shape(weights, statistics, head_dim, rotary, pairs, frequencies)
    if rotary is None:
        full, (left, right) = weights, score_factors(weights, statistics, head_dim)
    else:
        kept = rotary_pairs(rotary)[list(pairs or ())]
        # Pairs are laid out as before: neighbours where interleaved, halves otherwise.
        rows = kept.ravel() if rotary.interleaved else kept.T.ravel()
        left = right = np.broadcast_to(np.eye(weights.head_dim)[rows], (weights.key_heads, head_dim, weights.head_dim))
    scale = np.sqrt(head_dim / weights.head_dim)
    groups = [weights.key_head_of(head) for head in range(weights.heads)]
    lift, reduce = value_factors(weights, statistics, head_dim)
    return HeadWeights(
        query=scale * left[groups] @ full.query,
        key=right @ full.key,
        value=reduce @ weights.value,
        output=lift,
        query_bias=None if full.query_bias is None else scale * _mapped(left[groups], full.query_bias),
        key_bias=None if full.key_bias is None else _mapped(right, full.key_bias),
        value_bias=None if weights.value_bias is None else _mapped(reduce, weights.value_bias),
        output_bias=low_rank_values(weights, statistics, head_dim, shared=True).output_bias,
    )


def _mapped(maps: Float[np.ndarray, "heads rows dim"], bias: Float[np.ndarray, "heads dim"]) -> np.ndarray:
    return np.einsum("hrd,hd->hr", maps, bias)


def rotary_config(frequencies: Sequence[float], theta: float, max_positions: int) -> dict[str, Any]:
    """`rope_parameters` with which stock Llama, Mistral and Qwen 2 classes rotate by any frequencies.

    The kind "longrope" divides the default frequencies theta^(-2i/head_dim) by a factor per pair; here the factors are
    those that give the wanted frequencies. Both lists are the same and the attention factor is 1, so nothing changes
    at any length.

    Args:
        frequencies: Radians per position of each pair, in the order of the pairs; head_dim is twice their number.
        theta: `rope_theta` of the config, which stays.
        max_positions: `max_position_embeddings` of the config, which stays.

    >>> rotary_config([1.0, 0.001], theta=100.0, max_positions=64)["short_factor"]
    [1.0, 100.0]
    """
    wanted = np.asarray(frequencies, float)
    require(bool((wanted > 0).all()), what="frequencies", given=list(frequencies), needed="all above 0")
    default = theta ** (-np.arange(len(wanted)) / len(wanted))
    factors = [float(factor) for factor in default / wanted]
    return {
        "rope_type": "longrope",
        "rope_theta": theta,
        "short_factor": factors,
        "long_factor": factors,
        "factor": 1.0,
        "attention_factor": 1.0,
        "original_max_position_embeddings": max_positions,
    }
