"""How much each head of a layer matters, by the loss itself and by cheaper estimates that others publish."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from ..evaluation.layer_statistics import LayerStatistics
from ..layers.weights import HeadWeights

if TYPE_CHECKING:
    from ..evaluation.evaluate import Evaluation
    from ..examples.batches import Part, Tick


@dataclass(frozen=True, eq=False)
class Importance:
    """Scores of the heads of one layer; more is more important.

    Attributes:
        magnitude: Norm of the head's part of the output projection.
        output_norm: Root of the mean squared norm of what the head adds to the attention output.
        gradient: Mean over examples of the absolute derivative of the loss by the head's gate (Michel et al. 2019).
        fisher: Mean over examples of its square (Kwon et al. 2022).
        leave_one_out: Increase of the mean loss when the head alone is removed, nothing refitted.
        leave_one_out_error: Its standard error; losses of the same examples are compared.
    """

    magnitude: Float[np.ndarray, " heads"]
    output_norm: Float[np.ndarray, " heads"]
    gradient: Float[np.ndarray, " heads"] | None = None
    fisher: Float[np.ndarray, " heads"] | None = None
    leave_one_out: Float[np.ndarray, " heads"] | None = None
    leave_one_out_error: Float[np.ndarray, " heads"] | None = None


def importance(
    evaluation: "Evaluation",
    *,
    statistics: Sequence[LayerStatistics] | None = None,
    leave_one_out: bool = True,
    part: "Part" = "calibration",
    tick: "Tick | None" = None,
) -> tuple[Importance, ...]:
    """Importances of all heads, layer by layer.

    Args:
        evaluation: Runs the model; must be settled on the original.
        statistics: Of the original model; None: measured here.
        leave_one_out: Whether to remove every head once: one evaluation per head.
        part: Examples of the leave-one-out losses.
        tick: Called with (layers done, layers, words).
    """
    statistics = evaluation.statistics() if statistics is None else statistics
    result = []
    for index, one in enumerate(statistics):
        result.append(layer_importance(evaluation, index, one, leave_one_out=leave_one_out, part=part))
        if tick is not None:
            tick(index + 1, len(statistics), "importance of heads")
    return tuple(result)


def layer_importance(
    evaluation: "Evaluation",
    index: int,
    statistics: LayerStatistics,
    *,
    leave_one_out: bool = True,
    part: "Part" = "calibration",
) -> Importance:
    """Importances of one layer's heads; see `importance`."""
    weights, gradients = evaluation.original[index], statistics.gradients
    increase = error = None
    if leave_one_out:
        base = evaluation.losses({}, part=part)
        rises = np.stack(
            [evaluation.losses({index: weights.without([head])}, part=part) - base for head in range(weights.heads)]
        )
        increase = rises.mean(axis=1)
        error = (
            rises.std(axis=1, ddof=1) / np.sqrt(rises.shape[1])
            if rises.shape[1] > 1
            else np.full_like(increase, np.nan)
        )
    return Importance(
        magnitude=magnitudes(weights),
        output_norm=output_norms(weights, statistics),
        gradient=None if gradients is None else np.mean(np.abs(gradients), axis=0),
        fisher=None if gradients is None else np.mean(gradients**2, axis=0),
        leave_one_out=increase,
        leave_one_out_error=error,
    )


def magnitudes(weights: HeadWeights) -> Float[np.ndarray, " heads"]:
    """Frobenius norm of each head's part of the output projection."""
    return np.sqrt(np.sum(weights.output**2, axis=(0, 2)))


def output_norms(weights: HeadWeights, statistics: LayerStatistics) -> Float[np.ndarray, " heads"]:
    """Root of E |O_h z_h|^2 for each head, from the moments."""
    heads, dim = weights.heads, weights.value_dim
    blocks = statistics.moments[: heads * dim, : heads * dim].reshape(heads, dim, heads, dim)
    own = np.einsum("hihj->hij", blocks)
    return np.sqrt(np.maximum(np.einsum("ohi,hij,ohj->h", weights.output, own, weights.output, optimize=True), 0.0))
