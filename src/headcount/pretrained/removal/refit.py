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

from ...errors import require
from ..evaluation.layer_statistics import LayerStatistics
from ..layers.weights import HeadWeights

if TYPE_CHECKING:
    from ..evaluation.evaluate import Evaluation

PRIOR_TOKENS = 800
"""The original columns count as much as this many calibration tokens: the ridge is PRIOR_TOKENS / tokens, at most 1.

stories15M, 11 of 36 heads removed, 2,000 calibration tokens; increase of the held-out loss by ridge: 1e-4 .303, 1e-2
.295, .05 .279, .2 .266, 1 .265. Tokens of one text are alike, so least squares need far more of them than unknowns.
"""


def feature_columns(weights: HeadWeights, heads: Iterable[int]) -> Int[np.ndarray, " features"]:
    """Places of these heads' outputs in the concatenation of all heads' outputs."""
    dim = weights.value_dim
    return np.concatenate([np.empty(0, int), *(np.arange(head * dim, (head + 1) * dim) for head in heads)])


def normal_equations(
    weights: HeadWeights, statistics: LayerStatistics, *, ridge: float | None = None
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

    Args:
        weights: The layer of the original model.
        statistics: Moments of all its heads' outputs on calibration tokens, and of those with the original's output.
        kept: Heads that stay. With none, the output is the fitted bias alone (zero where none is stored).
        ridge: Strength of the pull towards the original columns, relative to the mean diagonal of the moments; None: by
            the number of tokens.

    Returns:
        The same shapes; the removed heads' part of the output is zero.

    Raises:
        InputError: a kept head that the layer does not have.
    """
    heads = sorted(set(kept))
    require(
        all(0 <= head < weights.heads for head in heads),
        f"kept heads must be among 0..{weights.heads - 1}, got {', '.join(map(str, heads))}.",
    )
    moments, cross = normal_equations(weights, statistics, ridge=ridge)
    features = weights.heads * weights.value_dim
    columns = np.concatenate([feature_columns(weights, heads), np.arange(features, len(moments))])
    output = np.zeros((weights.output.shape[0], features))
    bias = weights.output_bias
    if len(columns) > 0:
        solution = np.linalg.solve(moments[np.ix_(columns, columns)], cross[:, columns].T).T
        stays = len(heads) * weights.value_dim
        output[:, columns[:stays]] = solution[:, :stays]
        bias = None if bias is None else bias + solution[:, stays]
    return weights.with_output(output.reshape(weights.output.shape), bias)


def removed_plainly(evaluation: "Evaluation", kept: Sequence[Iterable[int]]) -> dict[int, HeadWeights]:
    """Changes that keep these heads of every layer and refit nothing."""
    changes = {}
    for index, (weights, heads) in enumerate(zip(evaluation.original, kept, strict=True)):
        gone = set(range(weights.heads)) - set(heads)
        if gone:
            changes[index] = weights.without(gone)
    return changes


def refitted_in_order(
    evaluation: "Evaluation", kept: Sequence[Iterable[int]], *, ridge: float | None = None
) -> dict[int, HeadWeights]:
    """Changes that keep these heads, each layer that loses some refitted to what the layers before it now give it.

    Leaves the evaluation settled on the result.

    Args:
        evaluation: Runs the model on the calibration examples.
        kept: Heads that stay, per layer.
        ridge: See `refit`.
    """
    changes = removed_plainly(evaluation, kept)
    evaluation.settle(changes)
    for index in sorted(changes):
        changes[index] = refit(evaluation.original[index], evaluation.layer_statistics(index), kept[index], ridge=ridge)
        evaluation.settle(changes)
    return changes
