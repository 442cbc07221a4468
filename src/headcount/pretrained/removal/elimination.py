"""Which head of a layer is missed least, by backward elimination on the layer's moments.

With P the inverse of the moments M of the columns that are left, B = C P their least-squares projection, and F a
weighting of the output's coordinates (`fisher`: how much the loss feels each direction; the identity where it is not
known), removing head h and fitting the others again raises the weighted error by exactly

    tr(F B_h (P_hh)^-1 B_h^T),

and the inverse and the projection of what is left are Schur complements of P and B. A whole order costs one
factorisation. These errors compare heads of one layer; they do not compare layers (`descent` asks the loss for that).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from ..evaluation.layer_statistics import LayerStatistics
from ..layers.weights import HeadWeights
from .refit import feature_columns, normal_equations, refit

if TYPE_CHECKING:
    from ..evaluation.evaluate import Evaluation
    from ..examples.batches import Part


class Elimination:
    """The heads of one layer that are left, with the least-squares projection on them.

    Args:
        weights: The layer of the original model.
        statistics: Its moments; where `fisher` is there, it weights the error.
        kept: Heads that are left at the start; None: all.
        ridge: See `refit`.
        weighting: Used in place of `statistics.fisher`.
    """

    def __init__(
        self,
        weights: HeadWeights,
        statistics: LayerStatistics,
        kept: Iterable[int] | None = None,
        *,
        ridge: float | None = None,
        weighting: Float[np.ndarray, "out_width out_width"] | None = None,
    ):
        moments, cross = normal_equations(weights, statistics, ridge=ridge)
        features = weights.heads * weights.value_dim
        self._dim = weights.value_dim
        self.heads = sorted(set(range(weights.heads) if kept is None else kept))
        columns = np.concatenate([feature_columns(weights, self.heads), np.arange(features, len(moments))])
        self._inverse = np.linalg.inv(moments[np.ix_(columns, columns)])
        self._projection = cross[:, columns] @ self._inverse
        fisher = statistics.fisher if weighting is None else weighting
        self._weighting = np.eye(len(cross)) if fisher is None else fisher

    def _place(self, head: int) -> slice:
        start = self.heads.index(head) * self._dim
        return slice(start, start + self._dim)

    def costs(self) -> dict[int, float]:
        """By how much the weighted error grows when one head goes and the others are fitted again."""
        result = {}
        for head in self.heads:
            place = self._place(head)
            columns = self._projection[:, place]
            felt = columns.T @ self._weighting @ columns
            result[head] = float(np.trace(np.linalg.solve(self._inverse[place, place], felt)))
        return result

    def remove(self, head: int) -> None:
        """Take a head out; the others are fitted again."""
        place = self._place(head)
        rest = np.r_[0 : place.start, place.stop : len(self._inverse)]
        shares = np.linalg.solve(self._inverse[place, place], self._inverse[place, rest])
        self._projection = self._projection[:, rest] - self._projection[:, place] @ shares
        self._inverse = self._inverse[np.ix_(rest, rest)] - self._inverse[rest, place] @ shares
        self.heads.remove(head)


def order_within_layer(
    weights: HeadWeights, statistics: LayerStatistics, *, ridge: float | None = None
) -> tuple[int, ...]:
    """Heads of a layer in the order in which they are removed: each time the one that is missed least after a refit.

    Args:
        weights: The layer of the original model.
        statistics: Its moments; `fisher` weights the error where it is there.
        ridge: See `refit`.
    """
    left = Elimination(weights, statistics, ridge=ridge)
    order: list[int] = []
    while left.heads:
        costs = left.costs()
        head = min(left.heads, key=costs.__getitem__)
        left.remove(head)
        order.append(head)
    return tuple(order)


def allowed(weights: HeadWeights, kept: Sequence[int], *, equal_groups: bool) -> list[int]:
    """Kept heads that may go next: all, or with `equal_groups` those of the key heads that most heads still read."""
    if not equal_groups:
        return list(kept)
    readers = [weights.key_head_of(head) for head in kept]
    most = max(map(readers.count, readers))
    return [head for head, group in zip(kept, readers, strict=True) if readers.count(group) == most]


def equal_step(weights: HeadWeights) -> int:
    """Heads that leave a layer together so that its key heads stay equally read."""
    return 1 if weights.heads == weights.key_heads else weights.key_heads


@dataclass(frozen=True, eq=False)
class Curve:
    """Held-out losses of the model as one layer loses its heads, the rest of the model unchanged."""

    kept: tuple[int, ...]
    order: tuple[int, ...]
    losses: Float[np.ndarray, "points examples"]


def layer_curve(
    evaluation: "Evaluation",
    index: int,
    *,
    statistics: LayerStatistics | None = None,
    ridge: float | None = None,
    part: "Part" = "held_out",
) -> Curve:
    """Losses with H, H - 1, ..., 0 heads of one layer, refitted at each count; with none, its bias alone.

    Args:
        evaluation: Runs the model; must be settled on the original.
        index: The layer.
        statistics: Of this layer in the original model; None: measured here, without gradients.
        ridge: See `refit`.
        part: The examples whose losses are reported.
    """
    weights = evaluation.original[index]
    statistics = evaluation.layer_statistics(index) if statistics is None else statistics
    order = order_within_layer(weights, statistics, ridge=ridge)
    losses = [evaluation.losses({}, part=part)]
    for removed in range(1, weights.heads + 1):
        changed = refit(weights, statistics, order[removed:], ridge=ridge)
        losses.append(evaluation.losses({index: changed}, part=part))
    return Curve(kept=tuple(range(weights.heads, -1, -1)), order=order, losses=np.stack(losses))
