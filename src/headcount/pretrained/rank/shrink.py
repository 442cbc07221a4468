"""A smaller head_dim for the whole model: low-rank scores and values, written small, as a stock class stores them.

Stock classes have one head_dim for scores and values and scale scores by 1 / sqrt(head_dim); the change of that factor
is folded into the queries. With rotary positions every head of every layer keeps the same rotary pairs, because a model
has one set of frequencies; `storing.hosts.rope_of_pairs` says how stock classes store a subset of them.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from ...errors import require
from ..evaluation.layer_statistics import LayerStatistics
from ..layers.rotary import Rotary
from ..layers.weights import HeadWeights
from ..sharing.alignment import rotary_pairs
from ..sharing.grouping import refit_output
from ..sharing.shared import mean_rotation, rotary_frequencies
from .low_rank import (
    choose_units,
    fitted_to_dims,
    low_rank_values,
    mapped_keys,
    rotated_moments,
    score_factors,
    value_factors,
)

if TYPE_CHECKING:
    from ..evaluation.evaluate import Evaluation


def shrink_model(
    evaluation: "Evaluation", head_dim: int
) -> tuple[tuple[HeadWeights, ...], tuple[HeadWeights, ...], tuple[int, ...] | None]:
    """Every layer with a smaller head_dim, in order: each is fitted to what the layers before it have become.

    Returns:
        The layers in their smaller shapes; the same in the original's; the rotary pairs that stay.
    """
    layers, original = evaluation.layers, evaluation.original
    rotated = [layer.index for layer in layers if layer.rotary is not None]
    rotary = next((layer.rotary for layer in layers if layer.rotary is not None), None)
    pairs = frequencies = None
    if rotary is not None:
        frequencies = rotary_frequencies(evaluation.model, rotary)
        statistics = [evaluation.layer_statistics(index) for index in rotated]
        pairs = kept_pairs([original[index] for index in rotated], statistics, head_dim, rotary, frequencies)
    changes: dict[int, HeadWeights] = {}
    small = []
    try:
        for layer, weights in zip(layers, original, strict=True):
            evaluation.settle(changes)
            how = (evaluation.layer_statistics(layer.index), head_dim, layer.rotary)
            some = (pairs, frequencies) if layer.rotary is not None else (None, None)
            narrow, full = shrink_layer(weights, *how, *some), full_shape(weights, *how, *some)
            evaluation.settle({**changes, layer.index: full})
            narrow, full = _refitted(weights, narrow, full, evaluation.layer_statistics(layer.index))
            changes[layer.index] = full
            small.append(narrow)
    finally:
        evaluation.settle({})
    return tuple(small), tuple(changes[layer.index] for layer in layers), pairs


def _refitted(
    weights: HeadWeights, narrow: HeadWeights, full: HeadWeights, statistics: LayerStatistics
) -> tuple[HeadWeights, HeadWeights]:
    """The output projection of a layer of smaller head_dim fitted again, in its small and in its full shapes.

    Args:
        weights: The layer of the original.
        narrow: The layer in its small shapes.
        full: The same function in the original's shapes, whose head outputs z the small ones are R z of.
        statistics: Of `full` in its place.
    """
    maps = [np.linalg.pinv(narrow.output[:, head]) @ full.output[:, head] for head in range(narrow.heads)]
    (small, large), heads = maps[0].shape, narrow.heads
    rows = np.zeros((heads * small + 1, heads * large + 1))
    rows[-1, -1] = 1.0
    for head, each in enumerate(maps):
        rows[head * small : (head + 1) * small, head * large : (head + 1) * large] = each
    reduced = replace(statistics, moments=rows @ statistics.moments @ rows.T, cross=statistics.cross @ rows.T)
    narrow = refit_output(replace(narrow, output_bias=weights.output_bias), reduced)
    output = np.stack([narrow.output[:, head] @ maps[head] for head in range(narrow.heads)], axis=1)
    return narrow, full.with_output(output, narrow.output_bias)


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
    """What `shrink_layer` computes, in the original shapes, so that it is measured by swapping weights."""
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
    full = weights
    if rotary is None:
        left, right = score_factors(weights, statistics, head_dim)
    else:
        kept = rotary_pairs(rotary)[list(pairs or ())]
        full = fitted_to_dims(weights, statistics, [kept.ravel()] * weights.key_heads, rotary, frequencies)
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
