"""How low the rank of a head's scores (W_Q^T W_K) and of its values (W_O W_V) can go: the best low-rank heads.

Each result has the shapes of the original layer, so that its loss is measured by swapping weights.

*Values.* Head h gives O_h z_h. Of all P of rank r, O_h P with the least E|O_h (z_h - P z_h)|^2 is U U^T O_h, U the
first r left singular vectors of O_h E[z_h z_h^T]^(1/2). Where the layer stores an output bias, z_h is centred and the
mean is kept in the bias.

*Scores without rotary positions.* A score is q . k. Of all N of rank r, the one with the least E(q . k - q . N k)^2
over independent tokens is N = S_k V S^-1 U^T S_q, where S_q and S_k are the square roots of the moments of q and k and
U S V^T the first r singular triples of S_q S_k. A shift of all keys changes no softmax, so keys are centred. Heads that
read one key head share N: the moments of their queries are summed.

*Scores with rotary positions.* q and k are rotated by their positions, so W_Q^T W_K is not one bilinear form but one
per distance, q . R k, and no single singular value decomposition serves them all. What can be lowered is the number of
rotary pairs. Pairs are chosen one at a time, each the one that explains most of what is left of the scores; queries and
keys are then fitted to the scores of the whole head (`sharing.share_keys`), because pairs that turn slowly can stand in
for each other. Without known frequencies that is the pairs with the most E|q_pair|^2 E|k_pair|^2.

*Normed queries and keys.* The norm is taken after the projection, and a mask after the norm is not storable. What is
measured is the key projection with rows set to zero: the norm then enlarges the rest of the key, which sharpens
attention. The rank that is read from it is an upper estimate.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from ..evaluation.layer_statistics import LayerStatistics
from ..inspection.stored import TOLERANCE
from ..layers.rotary import Rotary
from ..layers.weights import HeadWeights
from ..sharing.alignment import (
    NEGLIGIBLE,
    centred_moments,
    key_moments,
    leading_subspace,
    query_moments,
    square_root,
    symmetric_solve,
    with_bias,
)
from ..sharing.shared import MeanRotation, mean_rotation, rotary_frequencies, share_keys

if TYPE_CHECKING:
    from ..evaluation.evaluate import Evaluation

EVALUATIONS = 4
"""Ranks tried per layer for scores, and as many for values."""


def low_rank_values(
    weights: HeadWeights, statistics: LayerStatistics, rank: int, *, shared: bool = False
) -> HeadWeights:
    """The layer with W_O W_V of rank `rank` in every head, in the same shapes: only the output changes.

    Args:
        weights: The layer.
        statistics: Of that layer.
        rank: At least 1; from the value width on nothing changes.
        shared: One subspace for all heads that read a key head, as a smaller value projection needs it.
    """
    if rank >= weights.value_dim:
        return weights
    per_head = weights if shared else weights.expanded()
    lift, reduce = value_factors(per_head, statistics, rank)
    groups = [per_head.key_head_of(head) for head in range(weights.heads)]
    output = np.einsum("ohr,hrv->ohv", lift, reduce[groups])
    return weights.with_output(output, _bias_that_keeps_means(weights, statistics, output))


def value_factors(
    weights: HeadWeights, statistics: LayerStatistics, rank: int
) -> tuple[Float[np.ndarray, "out_width heads rank"], Float[np.ndarray, "key_heads rank value_dim"]]:
    """(lift, reduce) with O_h z_h near lift_h reduce_g z_h, g the key head of head h.

    One head per key head: the optimum. More: `reduce` is the optimum for the mean of their moments, `lift` is fitted.
    """
    moments = head_moments(weights, statistics)
    group = weights.heads // weights.key_heads
    lift = np.zeros((weights.output.shape[0], weights.heads, rank))
    reduce = np.zeros((weights.key_heads, rank, weights.value_dim))
    for key_head in range(weights.key_heads):
        heads = range(key_head * group, (key_head + 1) * group)
        outputs = weights.output[:, heads]
        metric = np.einsum("ohv,ohw->vw", outputs, outputs)
        reduce[key_head], _ = leading_subspace(moments[heads].mean(axis=0), metric, rank)
        for head in heads:
            small = reduce[key_head] @ moments[head]
            lift[:, head] = symmetric_solve(weights.output[:, head] @ small.T, small @ reduce[key_head].T)
    return lift, reduce


def head_moments(weights: HeadWeights, statistics: LayerStatistics) -> Float[np.ndarray, "heads value_dim value_dim"]:
    """E[z_h z_h^T] of every head, centred where an output bias takes the mean."""
    moments = statistics.moments if weights.output_bias is None else centred_moments(statistics.moments)
    size = weights.value_dim
    places = [slice(head * size, (head + 1) * size) for head in range(weights.heads)]
    return np.stack([moments[place, place] for place in places])


def _bias_that_keeps_means(
    weights: HeadWeights, statistics: LayerStatistics, output: Float[np.ndarray, "out_width heads value_dim"]
) -> Float[np.ndarray, " out_width"] | None:
    if weights.output_bias is None:
        return None
    change = (weights.output - output).reshape(len(output), -1)
    return weights.output_bias + change @ statistics.moments[:-1, -1]


def low_rank_scores(
    weights: HeadWeights,
    statistics: LayerStatistics,
    rank: int,
    rotary: Rotary | None = None,
    normed: bool = False,
    *,
    frequencies: Float[np.ndarray, " pairs"] | None = None,
) -> HeadWeights:
    """The layer with scores of rank `rank` in every head, in the same shapes: only keys and queries change.

    Args:
        weights: The layer.
        statistics: Of that layer.
        rank: At least 1; from head_dim on nothing changes. With rotary positions an odd rank keeps a pair fewer.
        rotary: Its rotary positions, if any.
        normed: Whether queries and keys are normalised after the projection; see above.
        frequencies: Radians per position of each rotary pair, where known.
    """
    if rank >= weights.head_dim:
        return weights
    if rotary is None and not normed:
        left, right = score_factors(weights, statistics, rank)
        return mapped_keys(weights, left.transpose(0, 2, 1) @ right)
    rotation = mean_rotation(weights.head_dim, rotary, frequencies)
    units = rotation.pairs if len(rotation.pairs) else np.arange(weights.head_dim)[:, None]
    moments = rotated_moments(weights, statistics, rotation)
    kept = [units[list(choose_units([pair], units, rank // units.shape[1]))].ravel() for pair in moments]
    if normed:
        maps = np.zeros((weights.key_heads, weights.head_dim, weights.head_dim))
        for group, dims in enumerate(kept):
            maps[group, dims, dims] = 1.0
        return mapped_keys(weights, maps)
    return fitted_to_dims(weights, statistics, kept, rotary, frequencies)


def mapped_keys(weights: HeadWeights, maps: Float[np.ndarray, "key_heads head_dim head_dim"]) -> HeadWeights:
    """The layer with its keys mapped."""
    bias = None if weights.key_bias is None else np.einsum("gab,gb->ga", maps, weights.key_bias)
    return replace(weights, key=maps @ weights.key, key_bias=bias)


def rotated_moments(
    weights: HeadWeights, statistics: LayerStatistics, rotation: MeanRotation
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Per key head: the summed E[q q^T] of the heads that read it, and E[R k k^T R^T]."""
    return [(queries, rotation.of(keys)) for queries, keys in _shared_moments(weights, statistics)]


def choose_units(
    moments: Sequence[tuple[Float[np.ndarray, "dim dim"], Float[np.ndarray, "dim dim"]]],
    units: Int[np.ndarray, "units dims"],
    count: int,
) -> tuple[int, ...]:
    """Which units (rows of dimensions) of the keys tell most of the scores, chosen one at a time; in order of place.

    Args:
        moments: E[q q^T] and E[k k^T] of each head; every head counts by the share of its scores that is told.
        units: Their dimensions.
        count: How many are chosen.
    """
    rests = [keys.copy() for _, keys in moments]
    totals = [max(float(np.sum(queries * keys)), np.finfo(float).tiny) for queries, keys in moments]
    chosen: list[int] = []
    for _ in range(count):
        gains = np.full(len(units), -np.inf)
        for place in set(range(len(units))) - {*chosen}:
            gains[place] = sum(
                np.sum(queries * _told(rest, units[place])) / total
                for (queries, _), rest, total in zip(moments, rests, totals, strict=True)
            )
        best = int(np.argmax(gains))
        chosen.append(best)
        rests = [rest - _told(rest, units[best]) for rest in rests]
    return tuple(sorted(chosen))


def _told(moments: Float[np.ndarray, "dim dim"], dims: Int[np.ndarray, " dims"]) -> Float[np.ndarray, "dim dim"]:
    """The part of the moments that regression on some dimensions explains."""
    cross = moments[:, dims]
    return symmetric_solve(cross, cross[dims]) @ cross.T


def fitted_to_dims(
    weights: HeadWeights,
    statistics: LayerStatistics,
    kept: Sequence[Int[np.ndarray, " dims"]],
    rotary: Rotary | None,
    frequencies: Float[np.ndarray, " pairs"] | None,
) -> HeadWeights:
    """The layer with only some dimensions of each key head, whole pairs; queries and keys fitted to the same scores."""
    query = with_bias(weights.query, weights.query_bias)
    key = with_bias(weights.key, weights.key_bias)
    share = weights.heads // weights.key_heads
    for group, (queries, _) in enumerate(_shared_moments(weights, statistics)):
        start = np.zeros_like(key[group])
        start[kept[group]] = key[group, kept[group]]
        shared = share_keys(key[group][None], queries[None], statistics.inputs, rotary, frequencies, start=start)
        heads = slice(group * share, (group + 1) * share)
        query[heads] = shared.query_maps[0] @ query[heads]
        key[group] = shared.key
    return replace(
        weights,
        query=query[..., :-1],
        key=key[..., :-1],
        query_bias=None if weights.query_bias is None else query[..., -1],
        key_bias=None if weights.key_bias is None else key[..., -1],
    )


def score_factors(
    weights: HeadWeights, statistics: LayerStatistics, rank: int
) -> tuple[Float[np.ndarray, "key_heads rank head_dim"], Float[np.ndarray, "key_heads rank head_dim"]]:
    """(left, right) with q . k near (left q) . (right k), for layers without rotary positions and norms."""
    moments = _shared_moments(weights, statistics, centred=True)
    factors = [_factors(queries, keys, rank) for queries, keys in moments]
    return np.stack([left for left, _ in factors]), np.stack([right for _, right in factors])


def _factors(
    queries: Float[np.ndarray, "dim dim"], keys: Float[np.ndarray, "dim dim"], rank: int
) -> tuple[Float[np.ndarray, "rank dim"], Float[np.ndarray, "rank dim"]]:
    """`score_factors` from the moments of queries and keys."""
    query_root, key_root = square_root(queries), square_root(keys)
    left, sizes, right = np.linalg.svd(query_root @ key_root)
    enough = sizes[:rank] > NEGLIGIBLE * sizes[0]
    scale = np.where(enough, np.sqrt(np.where(enough, sizes[:rank], 1.0)), np.inf)[:, None]
    return right[:rank] @ key_root / scale, left[:, :rank].T @ query_root / scale


def _shared_moments(
    weights: HeadWeights, statistics: LayerStatistics, *, centred: bool = False
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Per key head: the summed E[q q^T] of the heads that read it, and E[k k^T]."""
    queries = query_moments(weights, statistics.inputs)
    queries = queries.reshape(weights.key_heads, -1, *queries.shape[1:]).sum(axis=1)
    keys = key_moments(weights, statistics.inputs, centred=centred)
    return [(queries[group], keys[group, group]) for group in range(weights.key_heads)]


def rank_curve(
    evaluation: "Evaluation",
    index: int,
    ranks: Sequence[int] | None = None,
    *,
    statistics: LayerStatistics | None = None,
) -> dict[str, tuple[tuple[int, ...], Float[np.ndarray, "ranks examples"]]]:
    """Held-out losses when all heads of one layer have scores, then values, of lower rank.

    Args:
        evaluation: The model and its examples.
        index: The layer.
        ranks: Ranks to try; by default four per curve, bisecting for where the loss rises by 1 % of its scale.
        statistics: Of the layer in the original model, where they are at hand.

    Returns:
        "scores" and "values", each with ranks, falling from head_dim, and one row of losses per rank.
    """
    layer, weights = evaluation.layers[index], evaluation.original[index]
    statistics = evaluation.layer_statistics(index) if statistics is None else statistics
    frequencies = rotary_frequencies(evaluation.model, layer.rotary)
    base = evaluation.losses()
    allowed = base.mean() + TOLERANCE * evaluation.examples.loss.scale_of(base)

    def scores(rank: int) -> np.ndarray:
        changed = low_rank_scores(weights, statistics, rank, layer.rotary, layer.normed, frequencies=frequencies)
        return evaluation.losses({index: changed})

    def values(rank: int) -> np.ndarray:
        return evaluation.losses({index: low_rank_values(weights, statistics, rank)})

    curves = {}
    step = 1 if layer.rotary is None else 2
    kinds = ("scores", scores, weights.head_dim, step), ("values", values, weights.value_dim, 1)
    for name, measured, full, grain in kinds:
        if ranks is None:
            losses = _bisected(measured, base, allowed, full, grain)
        else:
            losses = {full: base} | {rank: measured(rank) for rank in ranks if rank < full}
        order = sorted(losses, reverse=True)
        curves[name] = tuple(order), np.stack([losses[rank] for rank in order])
    return curves


def _bisected(
    measured: Callable[[int], np.ndarray], base: np.ndarray, allowed: float, full: int, grain: int
) -> dict[int, np.ndarray]:
    """Losses at `full` and at most `EVALUATIONS` ranks, multiples of `grain`, around where the tolerance is passed."""
    losses = {full: base}
    enough, short = full // grain, 0
    for _ in range(EVALUATIONS):
        middle = (enough + short) // 2
        if middle in (enough, short):
            break
        losses[middle * grain] = measured(middle * grain)
        enough, short = (middle, short) if losses[middle * grain].mean() <= allowed else (enough, middle)
    return losses
