"""A smaller head_dim for the whole model: low-rank scores and values, written small, as a stock class stores them.

Stock classes have one head_dim for scores and values and scale scores by 1 / sqrt(head_dim); the change of that factor
is folded into the queries. With rotary positions every head of every layer keeps the same rotary pairs, because a model
has one set of frequencies; `storing.hosts.rope_of_pairs` says how stock classes store a subset of them.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from ...errors import require
from ..layers.weights import HeadWeights
from ..sharing.in_order import SmallLayer, small_layers
from ..sharing.moments import LayerMoments
from .low_rank import (
    choose_units,
    fitted_to_dims,
    rotated_moments,
    score_factors,
    value_factors,
    with_mapped_keys,
    with_reduced_values,
)

if TYPE_CHECKING:
    from ..evaluation.evaluate import Evaluation


def shrink_model(evaluation: "Evaluation", head_dim: int) -> tuple[tuple[SmallLayer, ...], tuple[int, ...] | None]:
    """Every layer with a smaller head_dim, and the rotary pairs that stay in all of them."""
    rotated = [layer.index for layer in evaluation.layers if layer.rotary is not None]
    pairs = kept_pairs([LayerMoments.of_layer(evaluation, index) for index in rotated], head_dim) if rotated else None
    return small_layers(evaluation, lambda layer: shrink_layer(layer, head_dim, pairs)), pairs


def kept_pairs(layers: Sequence[LayerMoments], head_dim: int) -> tuple[int, ...]:
    """The rotary pairs that explain most of the scores of all layers and heads; each head counts the same."""
    rotary, before = layers[0].rotary, layers[0].weights.head_dim
    assert rotary is not None
    require(head_dim % 2 == 0, what="head_dim", given=head_dim, needed="even, since rotary positions turn pairs")
    require(
        rotary.dims == before,
        f"only {rotary.dims} of {before} dimensions are rotated; a smaller head_dim would rotate others.",
    )
    moments = [pair for layer in layers for pair in rotated_moments(layer)]
    return choose_units(moments, rotary.pairs, head_dim // 2)


def shrink_layer(layer: LayerMoments, head_dim: int, pairs: Sequence[int] | None = None) -> SmallLayer:
    """One layer with a smaller head_dim; with rotary positions, the pairs that all layers keep."""
    weights = fitted = layer.weights
    lift, reduce = value_factors(layer, head_dim, shared=True)
    masked = with_reduced_values(layer, lift, reduce)
    if layer.rotary is None:
        left, right = score_factors(layer, head_dim)
        masked = with_mapped_keys(masked, left.transpose(0, 2, 1) @ right)
    else:
        kept = layer.rotary.pairs[list(pairs or ())]
        fitted = fitted_to_dims(layer, [kept.ravel()] * weights.key_heads)
        masked = fitted.with_output(masked.output, masked.output_bias)
        # Pairs are laid out as before: neighbours where interleaved, halves otherwise.
        rows = kept.ravel() if layer.rotary.interleaved else kept.T.ravel()
        left = right = np.broadcast_to(np.eye(weights.head_dim)[rows], (weights.key_heads, head_dim, weights.head_dim))
    left = np.sqrt(head_dim / weights.head_dim) * np.repeat(left, layer.share, axis=0)
    values = reduce[:: layer.share]
    small = HeadWeights(
        query=left @ fitted.query,
        key=right @ fitted.key,
        value=values @ weights.value,
        output=lift,
        query_bias=_mapped(left, fitted.query_bias),
        key_bias=_mapped(right, fitted.key_bias),
        value_bias=_mapped(values, weights.value_bias),
        output_bias=masked.output_bias,
    )
    return SmallLayer(small, masked, reduce)


def _mapped(
    maps: Float[np.ndarray, "heads rows dim"], bias: Float[np.ndarray, "heads dim"] | None
) -> Float[np.ndarray, "heads rows"] | None:
    return None if bias is None else np.einsum("hrd,hd->hr", maps, bias)
