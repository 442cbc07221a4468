"""The output projection of a layer fitted again after heads were removed, in closed form.

    minimise over A, b:   E |A z_K + b - t|^2 + ridge * s * |A - O_K|^2,    ridge = min(1, PRIOR_TOKENS / tokens)

z_K are the outputs of the kept heads, t what the original attention put out (without its bias), O_K the original
columns of the kept heads, s the mean of E z_i^2. The penalty pulls towards the original columns, so that with little
data the layer falls back to plain removal. Where the layer stores no output bias, b is 0.

Any weighting of the coordinates of t leaves the solution as it is; it changes which head is best removed.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from ..layers.weights import HeadWeights, LayerStatistics, Shaped

if TYPE_CHECKING:
    from ..evaluation.evaluate import Evaluation

Head = tuple[int, int]
"""A layer and a head of it."""
PRIOR_TOKENS = 800
"""The original columns count as much as this many calibration tokens: the ridge is PRIOR_TOKENS / tokens, at most 1.

stories15M, 11 of 36 heads removed, 2,000 calibration tokens; increase of the held-out loss by ridge: 1e-4 .303, 1e-2
.295, .05 .279, .2 .266, 1 .265. Tokens of one text are alike, so least squares need far more of them than unknowns.
"""


def columns_of(weights: HeadWeights, heads: Iterable[int]) -> Int[np.ndarray, " columns"]:
    """Places of these heads' outputs, and of the stored bias, in the least squares over all heads."""
    places = np.arange(weights.heads * weights.value_dim).reshape(weights.heads, -1)[list(heads)].ravel()
    return places if weights.output_bias is None else np.append(places, weights.heads * weights.value_dim)


def normal_equations(
    weights: HeadWeights, statistics: LayerStatistics, ridge: float | None = None
) -> tuple[Float[np.ndarray, "columns columns"], Float[np.ndarray, "out_width columns"]]:
    """M and C of the least squares A M = C over all heads, with the ridge; the last column is the stored bias.

    Rows and columns of removed heads may be left out: what remains is the problem of the kept ones.
    """
    features = weights.heads * weights.value_dim
    columns = features + (weights.output_bias is not None)
    moments = statistics.moments[:columns, :columns].copy()
    cross = statistics.cross[:, :columns].copy()
    ridge = min(1.0, PRIOR_TOKENS / max(1, statistics.tokens)) if ridge is None else ridge
    penalty = ridge * float(np.mean(np.diagonal(moments)[:features])) or ridge
    moments[np.arange(features), np.arange(features)] += penalty
    cross[:, :features] += penalty * weights.output.reshape(-1, features)
    return moments, cross


def refit(
    weights: HeadWeights, statistics: LayerStatistics, kept: Iterable[int], *, ridge: float | None = None
) -> HeadWeights:
    """The layer with only these heads, their output projection fitted to the original attention output.

    The shapes stay; the removed heads' part of the output is zero. With no head, the output is the fitted bias alone
    (zero where none is stored). `ridge` is relative to the mean diagonal of the moments; None: by the number of tokens.
    """
    heads = sorted(set(kept))
    moments, cross = normal_equations(weights, statistics, ridge)
    columns, stays = columns_of(weights, heads), len(heads) * weights.value_dim
    output = np.zeros((len(weights.output), weights.heads * weights.value_dim))
    bias = weights.output_bias
    if len(columns) > 0:
        solution = np.linalg.solve(moments[np.ix_(columns, columns)], cross[:, columns].T).T
        output[:, columns[:stays]] = solution[:, :stays]
        bias = None if bias is None else bias + solution[:, stays]
    return weights.with_output(output.reshape(weights.output.shape), bias)


def heads_left(layers: Sequence[Shaped], removed: Iterable[Sequence[int]]) -> list[list[int]]:
    """The heads of every layer that are not among the removed."""
    gone = set(map(tuple, removed))
    return [[head for head in range(layer.heads) if (index, head) not in gone] for index, layer in enumerate(layers)]


def removed_plainly(original: Sequence[HeadWeights], kept: Sequence[Iterable[int]]) -> dict[int, HeadWeights]:
    """Return changes that keep these heads of every layer and refit nothing."""
    gone = [set(range(weights.heads)) - set(heads) for weights, heads in zip(original, kept, strict=True)]
    return {index: original[index].without(heads) for index, heads in enumerate(gone) if heads}


def refitted_in_order(evaluation: "Evaluation", kept: Sequence[Iterable[int]]) -> dict[int, HeadWeights]:
    """Changes that keep these heads, each layer that loses some refitted to what the layers before it now give it.

    Leaves the evaluation settled on the result.
    """
    changes = removed_plainly(evaluation.original, kept)
    evaluation.settle(changes)
    for index in sorted(changes):
        changes[index] = refit(evaluation.original[index], evaluation.layer_statistics(index), kept[index])
        evaluation.settle(changes)
    return changes


def losses_along(
    evaluation: "Evaluation", order: Sequence[Head], removed: Iterable[int], *, with_refit: bool
) -> Float[np.ndarray, "points examples"]:
    """Held-out losses after each of these numbers of heads of an order are removed; settles on the original again."""
    rows = []
    for count in removed:
        kept = heads_left(evaluation.original, order[:count])
        evaluation.settle({})
        changes = refitted_in_order(evaluation, kept) if with_refit else removed_plainly(evaluation.original, kept)
        rows.append(evaluation.losses(changes))
        evaluation.settle({})
    return np.stack(rows)
