"""Which head of a layer is missed least, by backward elimination on the layer's moments.

With P the inverse of the moments M of the columns that are left, B = C P their least-squares projection, and F a
weighting of the output's coordinates (`fisher`: how much the loss feels each direction; the identity where it is not
known), removing head h and fitting the others again raises the weighted error by exactly

    tr(F B_h (P_hh)^-1 B_h^T),

and the inverse and the projection of what is left are Schur complements of P and B. A whole order costs one
factorisation. These errors compare heads of one layer; they do not compare layers (`descent` asks the loss for that).
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from ..layers.weights import HeadWeights, LayerStatistics
from .refit import columns_of, normal_equations, refit

if TYPE_CHECKING:
    from ..evaluation.evaluate import Evaluation


class Elimination:
    """The heads of one layer that are left, `kept` at the start, with the least-squares projection on them.

    `weights` and `statistics` are the original's; where `fisher` is there, it weights the error.
    """

    def __init__(self, weights: HeadWeights, statistics: LayerStatistics, kept: Iterable[int]):
        moments, cross = normal_equations(weights, statistics)
        self._dim = weights.value_dim
        self.heads = sorted(kept)
        columns = columns_of(weights, self.heads)
        self._inverse = np.linalg.inv(moments[np.ix_(columns, columns)])
        self._projection = cross[:, columns] @ self._inverse
        self._weighting = np.eye(len(cross)) if statistics.fisher is None else statistics.fisher

    def _place(self, head: int) -> slice:
        start = self.heads.index(head) * self._dim
        return slice(start, start + self._dim)

    def costs(self) -> dict[int, float]:
        """Return by how much the weighted error grows when each head goes and the others are fitted again."""
        result = {}
        for head in self.heads:
            place = self._place(head)
            columns = self._projection[:, place]
            felt = columns.T @ self._weighting @ columns
            result[head] = float(np.trace(np.linalg.solve(self._inverse[place, place], felt)))
        return result

    def remove(self, head: int) -> None:
        place = self._place(head)
        rest = np.r_[0 : place.start, place.stop : len(self._inverse)]
        shares = np.linalg.solve(self._inverse[place, place], self._inverse[place, rest])
        self._projection = self._projection[:, rest] - self._projection[:, place] @ shares
        self._inverse = self._inverse[np.ix_(rest, rest)] - self._inverse[rest, place] @ shares
        self.heads.remove(head)


def order_within_layer(weights: HeadWeights, statistics: LayerStatistics) -> tuple[int, ...]:
    """Heads of a layer in the order in which they are removed: each time the one that is missed least after a refit."""
    left = Elimination(weights, statistics, range(weights.heads))
    order: list[int] = []
    while left.heads:
        costs = left.costs()
        order.append(min(costs, key=costs.__getitem__))
        left.remove(order[-1])
    return tuple(order)


def most_read(weights: HeadWeights, kept: Sequence[int]) -> list[int]:
    """Kept heads of the key heads that most of them read: any of these may go next where key heads stay equal."""
    readers = [weights.key_head_of(head) for head in kept]
    most = max(map(readers.count, readers))
    return [head for head, group in zip(kept, readers, strict=True) if readers.count(group) == most]


def layer_curve(
    evaluation: "Evaluation", index: int, statistics: LayerStatistics
) -> tuple[tuple[int, ...], Float[np.ndarray, "points examples"]]:
    """The order in which one layer loses its heads, and the held-out losses with H, H - 1, ..., 0 of them.

    The layer is refitted at each count, the rest of the model is the original; with no head, its bias alone is left.
    """
    weights = evaluation.original[index]
    order = order_within_layer(weights, statistics)
    losses = [evaluation.losses({})]
    for removed in range(1, weights.heads + 1):
        losses.append(evaluation.losses({index: refit(weights, statistics, order[removed:])}))
    return order, np.stack(losses)
