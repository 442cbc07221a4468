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
keys are then fitted to the scores of the whole head (`sharing.shared`), because pairs that turn slowly can stand in
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

from ..inspection.facts import TOLERANCE
from ..layers.weights import HeadWeights, LayerStatistics
from ..sharing.moments import (
    NEGLIGIBLE,
    LayerMoments,
    centred_moments,
    head_blocks,
    leading_subspace,
    square_root,
    symmetric_solve,
    with_bias,
)
from ..sharing.shared import share_keys

if TYPE_CHECKING:
    from ..evaluation.evaluate import Evaluation

EVALUATIONS = 4
"""Ranks tried per layer for scores, and as many for values."""


def low_rank_values(layer: LayerMoments, rank: int) -> HeadWeights:
    """The layer with W_O W_V of rank `rank` in every head, in the same shapes: only the output changes."""
    if rank >= layer.weights.value_dim:
        return layer.weights
    lift, reduce = value_factors(layer, rank, shared=False)
    return with_reduced_values(layer, lift, reduce)


def value_factors(
    layer: LayerMoments, rank: int, *, shared: bool
) -> tuple[Float[np.ndarray, "out_width heads rank"], Float[np.ndarray, "heads rank value_dim"]]:
    """(lift, reduce) with O_h z_h near lift_h reduce_h z_h: the optimum for every head.

    Where `shared`, all heads that read a key head have one `reduce`, as a smaller value projection needs it: the
    optimum for the mean of their moments; `lift` is fitted.
    """
    weights = layer.weights
    # Where an output bias is stored it takes the mean.
    moments = layer.statistics.moments if weights.output_bias is None else centred_moments(layer.statistics.moments)
    blocks = head_blocks(moments, weights)
    lift = np.zeros((len(weights.output), weights.heads, rank))
    reduce = np.zeros((weights.heads, rank, weights.value_dim))
    step = layer.share if shared else 1
    for first in range(0, weights.heads, step):
        heads = range(first, first + step)
        metric = np.einsum("ohv,ohw->vw", weights.output[:, heads], weights.output[:, heads])
        reduce[heads], _ = leading_subspace(blocks[heads].mean(axis=0), metric, rank)
        for head in heads:
            small = reduce[head] @ blocks[head]
            lift[:, head] = symmetric_solve(weights.output[:, head] @ small.T, small @ reduce[head].T)
    return lift, reduce


def with_reduced_values(
    layer: LayerMoments,
    lift: Float[np.ndarray, "out_width heads rank"],
    reduce: Float[np.ndarray, "heads rank value_dim"],
) -> HeadWeights:
    """The layer whose outputs are lift_h reduce_h z_h, in the same shapes; an output bias keeps the mean."""
    weights, output = layer.weights, np.einsum("ohr,hrv->ohv", lift, reduce)
    if weights.output_bias is None:
        return weights.with_output(output)
    change = (weights.output - output).reshape(len(output), -1)
    return weights.with_output(output, weights.output_bias + change @ layer.statistics.moments[:-1, -1])


def low_rank_scores(layer: LayerMoments, rank: int) -> HeadWeights:
    """The layer with scores of rank `rank` in every head, in the same shapes: only keys and queries change.

    With rotary positions an odd rank keeps a pair fewer.
    """
    weights = layer.weights
    if rank >= weights.head_dim:
        return weights
    if layer.rotary is None and not layer.normed:
        left, right = score_factors(layer, rank)
        return with_mapped_keys(weights, left.transpose(0, 2, 1) @ right)
    pairs = layer.rotation.pairs
    units = pairs if len(pairs) else np.arange(weights.head_dim)[:, None]
    kept = [units[list(choose_units([one], units, rank // units.shape[1]))].ravel() for one in rotated_moments(layer)]
    if layer.normed:
        maps = np.zeros((weights.key_heads, weights.head_dim, weights.head_dim))
        for group, dims in enumerate(kept):
            maps[group, dims, dims] = 1.0
        return with_mapped_keys(weights, maps)
    return fitted_to_dims(layer, kept)


def with_mapped_keys(weights: HeadWeights, maps: Float[np.ndarray, "key_heads head_dim head_dim"]) -> HeadWeights:
    bias = None if weights.key_bias is None else np.einsum("gab,gb->ga", maps, weights.key_bias)
    return replace(weights, key=maps @ weights.key, key_bias=bias)


def rotated_moments(layer: LayerMoments) -> list[tuple[np.ndarray, np.ndarray]]:
    """Per key head: the summed E[q q^T] of the heads that read it, and E[R k k^T R^T]."""
    inputs, averaged = layer.statistics.inputs, layer.rotation.averaged
    return [(queries, averaged(key @ inputs @ key.T)) for queries, key in zip(layer.queries, layer.keys, strict=True)]


def choose_units(
    moments: Sequence[tuple[Float[np.ndarray, "dim dim"], Float[np.ndarray, "dim dim"]]],
    units: Int[np.ndarray, "units dims"],
    count: int,
) -> tuple[int, ...]:
    """The `count` units (rows of dimensions) of the keys that explain most of the scores, chosen one at a time.

    `moments` are E[q q^T] and E[k k^T] of each head; every head counts by the share of its scores that is explained.
    """
    rests = [keys.copy() for _, keys in moments]
    totals = [max(float(np.sum(queries * keys)), np.finfo(float).tiny) for queries, keys in moments]
    chosen: list[int] = []
    for _ in range(count):
        gains = np.full(len(units), -np.inf)
        for place in set(range(len(units))) - {*chosen}:
            gains[place] = sum(
                np.sum(queries * _explained(rest, units[place])) / total
                for (queries, _), rest, total in zip(moments, rests, totals, strict=True)
            )
        best = int(np.argmax(gains))
        chosen.append(best)
        rests = [rest - _explained(rest, units[best]) for rest in rests]
    return tuple(sorted(chosen))


def _explained(moments: Float[np.ndarray, "dim dim"], dims: Int[np.ndarray, " dims"]) -> Float[np.ndarray, "dim dim"]:
    """The part of the moments that regression on some dimensions explains."""
    cross = moments[:, dims]
    return symmetric_solve(cross, cross[dims]) @ cross.T


def fitted_to_dims(layer: LayerMoments, kept: Sequence[Int[np.ndarray, " dims"]]) -> HeadWeights:
    """The layer with only some dimensions of each key head, whole pairs; queries and keys fitted to the same scores."""
    weights = layer.weights
    query, key = with_bias(weights.query, weights.query_bias), layer.keys.copy()
    for group, dims in enumerate(kept):
        start = np.zeros_like(key[group])
        start[dims] = key[group, dims]
        fitted, maps, _ = share_keys(layer, [group], start=start)
        heads = layer.readers([group])
        query[heads] = maps[0] @ query[heads]
        key[group] = fitted
    return replace(
        weights,
        query=query[..., :-1],
        key=key[..., :-1],
        query_bias=None if weights.query_bias is None else query[..., -1],
        key_bias=None if weights.key_bias is None else key[..., -1],
    )


def score_factors(
    layer: LayerMoments, rank: int
) -> tuple[Float[np.ndarray, "key_heads rank head_dim"], Float[np.ndarray, "key_heads rank head_dim"]]:
    """(left, right) with q . k near (left q) . (right k), for layers without rotary positions and norms."""
    left, right = [], []
    for queries, key in zip(layer.queries, layer.keys, strict=True):
        query_root, key_root = square_root(queries), square_root(key @ layer.inputs @ key.T)
        first, sizes, second = np.linalg.svd(query_root @ key_root)
        enough = sizes[:rank] > NEGLIGIBLE * sizes[0]
        scale = np.where(enough, np.sqrt(np.where(enough, sizes[:rank], 1.0)), np.inf)[:, None]
        left.append(second[:rank] @ key_root / scale)
        right.append(first[:, :rank].T @ query_root / scale)
    return np.stack(left), np.stack(right)


def rank_curve(
    evaluation: "Evaluation",
    index: int,
    ranks: Sequence[int] | None = None,
    *,
    statistics: LayerStatistics | None = None,
) -> dict[str, tuple[tuple[int, ...], Float[np.ndarray, "ranks examples"]]]:
    """Held-out losses when all heads of one layer have scores, then values, of lower rank.

    Without `ranks`, four are tried per curve, bisecting for where the loss rises by 1 % of its scale. Returns "scores"
    and "values", each with ranks, falling from head_dim, and one row of losses per rank.
    """
    layer, base = LayerMoments.of_layer(evaluation, index, statistics), evaluation.losses()
    allowed = base.mean() + TOLERANCE * evaluation.examples.loss.scale_of(base)
    curves = {}
    step = 1 if layer.rotary is None else 2
    kinds = (
        ("scores", low_rank_scores, layer.weights.head_dim, step),
        ("values", low_rank_values, layer.weights.value_dim, 1),
    )
    for name, lowered, full, grain in kinds:

        def measured(rank: int, lowered: Callable[[LayerMoments, int], HeadWeights] = lowered) -> np.ndarray:
            return evaluation.losses({index: lowered(layer, rank)})

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
