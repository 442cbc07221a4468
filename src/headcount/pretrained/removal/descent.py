"""Heads removed from a whole model, one after the other, each time the one that the loss misses least after a refit.

Errors of single layers rank the heads of one layer well and those of different layers badly. So a layer proposes the
few heads that its moments say are cheapest (`elimination`), and the calibration loss of the model, with the layer
refitted, decides between layers. Scores of earlier rounds tell which proposals are worth scoring again: a head that was
expensive seldom becomes the cheapest, so a round scores the best few and stops when no other is expected to be better.

With few examples a search follows their noise. So at the end it is compared with the order of one score per head
(`importance.fisher_order`), refitted in the same way, and the better of the two on the scored examples is used.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from jaxtyping import Float

from ...errors import require
from ..layers.weights import HeadWeights, LayerStatistics, equal_step
from .elimination import Elimination, most_read
from .importance import fisher_order
from .refit import Head, heads_left, losses_along, refit, refitted_in_order

if TYPE_CHECKING:
    from ..evaluation.evaluate import Evaluation

CHOICES = 2
"""Heads that a layer proposes."""
BREADTH = 3
"""Proposals that a round scores at least."""
LAYERS_PER_REFIT = 8
"""A model with this many layers is refitted after every head, one with three times as many after every third."""


@dataclass(frozen=True, eq=False)
class Descent:
    """Heads in the order of their removal, and what the model lost on the way.

    `kept` counts the heads of the whole model at each measured point, the original first; `losses` are the held-out
    ones there, every layer refitted in order on all calibration examples. `changes` are the layers of the last point;
    empty in a descent that was stored. `order` is "Fisher" where the order by that score was better than the search's
    own, and is `removed`.
    """

    removed: tuple[Head, ...]
    kept: tuple[int, ...]
    losses: Float[np.ndarray, "points examples"]
    changes: Mapping[int, HeadWeights] = field(default_factory=dict)
    order: Literal["search", "Fisher"] = "search"


def descend(
    evaluation: "Evaluation",
    remove: int,
    *,
    points: Iterable[int] = (),
    uniform: bool = False,
    least: int = 1,
    statistics: Sequence[LayerStatistics] | None = None,
    start: Descent | None = None,
) -> Descent:
    """Remove heads from the whole model, one after the other, with refit.

    During the search layers are fitted on the calibration examples that `evaluation` does not score, where there are
    any, since a search that scores what it fits on takes heads for cheaper than they are; at measured points they are
    fitted on all of them.

    Args:
        evaluation: Is settled on the original again at the end.
        remove: Heads to remove in all.
        points: Numbers of removed heads at which held-out losses are measured, and the last.
        uniform: The same number of heads in every layer and for every key head, as stock classes store it.
        least: Heads that every layer keeps.
        statistics: Of the original model, with `fisher`; None: measured here.
        start: A descent to continue, which removed fewer.

    Raises InputError for more heads than may go, and for a number that no uniform model comes to.
    """
    search = _Search(evaluation, statistics, least=least, uniform=uniform)
    search.require_room(remove)
    rows = {0: evaluation.losses({})}
    if start is not None:
        rows |= {search.total - kept: row for kept, row in zip(start.kept, start.losses, strict=True)}
        search.resume(start.removed)
    due = {point for point in (*points, remove) if len(search.removed) < point and point not in rows}
    changes: dict[int, HeadWeights] = {}
    while len(search.removed) < remove:
        search.remove_from_all_layers() if uniform else search.remove_cheapest()
        done = len(search.removed)
        if any(point <= done for point in due):
            search.refit_all()
            changes = search.finished_changes()
            rows[done] = evaluation.losses(changes)
            due = {point for point in due if point > done}
        evaluation.tick(done, remove, f"{done} of {remove} heads removed, calibration loss {search.loss:.4g}")
    measured = sorted(rows)
    losses, removed = np.stack([rows[point] for point in measured]), tuple(search.removed)
    rival = search.better_fisher_order()
    search.settle({})
    if rival is not None:
        removed = rival
        losses = losses_along(evaluation, rival, measured, with_refit=True)
        changes = refitted_in_order(evaluation, heads_left(evaluation.original, rival))
        search.settle({})
        words = "the order by Fisher's score loses less than the search's on the scored examples"
        evaluation.tick(remove, remove, words)
    return Descent(
        removed=removed,
        kept=tuple(search.total - point for point in measured),
        losses=losses,
        changes=changes,
        order="search" if rival is None else "Fisher",
    )


class _Search:
    """The state between two removals: which heads are left, the changed layers, what candidates last cost."""

    def __init__(
        self, evaluation: "Evaluation", statistics: Sequence[LayerStatistics] | None, *, least: int, uniform: bool
    ):
        self.evaluation, self.least, self.uniform = evaluation, least, uniform
        unscored = evaluation.unscored()
        self.fitting = evaluation if unscored is None else unscored
        self.settle({})
        statistics = evaluation.statistics() if statistics is None else statistics
        self.weighting = [one.fisher for one in statistics]
        self.gradients = [one.gradients for one in statistics]
        self.statistics = dict(enumerate(statistics)) if self.fitting is evaluation else {}
        self.kept = [list(range(weights.heads)) for weights in evaluation.original]
        self.total = sum(map(len, self.kept))
        self.removed: list[Head] = []
        self.changes: dict[int, HeadWeights] = {}
        self.scores: dict[Head, float] = {}
        """What removal was last seen to cost."""
        self.factors: dict[int, float] = {}
        """By layer, the last score per local cost."""
        self.proposed: dict[int, dict[Head, float]] = {}
        """By layer, the heads that its moments call cheapest, with their local costs."""
        self.stale = set(range(len(self.kept)))
        """Layers whose proposals are older than the layers before them."""
        self.behind = len(self.kept)
        """The first layer that is to be fitted again."""
        self.since = 0
        """Heads removed since all layers were fitted."""
        self.measure_loss()

    def require_room(self, remove: int) -> None:
        room = sum(max(0, len(kept) - self.least) for kept in self.kept)
        require(
            0 < remove <= room,
            f"remove must be between 1 and {room} of {self.total} heads (each layer keeps {self.least}), got {remove}.",
        )
        if self.uniform:
            step = sum(equal_step(weights) for weights in self.evaluation.original)
            require(
                remove % step == 0,
                f"a model with the same heads in every layer loses {step} heads at a time, got remove={remove}; "
                f"the nearest are {remove // step * step} and {(remove // step + 1) * step}.",
            )

    def resume(self, removed: Iterable[Head]) -> None:
        """Continue where another descent ended; its layers are fitted again, on what this search fits on."""
        self.removed = list(removed)
        self.kept = heads_left(self.evaluation.original, self.removed)
        self.changes = refitted_in_order(self.fitting, self.kept)
        self.settle(self.changes)
        self.statistics = {}
        self.measure_loss()

    def remove_cheapest(self) -> None:
        """Remove the head of the whole model whose removal costs least."""
        scored: dict[Head, float] = {}
        while True:
            expected = {head: self._expected(head) for head in self._waiting() if head not in scored}
            if not expected:
                break
            candidate = min(expected, key=expected.__getitem__)
            if len(scored) >= BREADTH and expected[candidate] >= min(scored.values()):
                break
            if candidate[0] in self.stale:
                self._propose(candidate[0])
            else:
                scored[candidate] = self._score(candidate)
        self._take(*min(scored, key=scored.__getitem__))
        self.refit_all() if self.since >= len(self.kept) / LAYERS_PER_REFIT else self.measure_loss()

    def remove_from_all_layers(self) -> None:
        """Remove one head per key head (per layer where each head has keys of its own) from every layer, in order."""
        for layer, weights in enumerate(self.evaluation.original):
            for _ in range(equal_step(weights)):
                self._propose(layer)
                costs = self.proposed[layer]
                scores = {candidate: self._score(candidate) for candidate in costs} if len(costs) > 1 else costs
                self._take(*min(scores, key=scores.__getitem__))
        self.refit_all()

    def _propose(self, layer: int) -> None:
        """Ask a layer again for the heads that its moments call cheapest, with their local costs."""
        weights, kept = self.evaluation.original[layer], self.kept[layer]
        self.stale.discard(layer)
        self.proposed[layer] = {}
        if len(kept) > self.least:
            felt = replace(self._moments(layer), fisher=self.weighting[layer])
            costs = Elimination(weights, felt, kept).costs()
            heads = sorted(most_read(weights, kept) if self.uniform else kept, key=costs.__getitem__)
            self.proposed[layer] = {(layer, head): costs[head] for head in heads[:CHOICES]}

    def _waiting(self) -> list[Head]:
        """Return all proposals; a layer whose earlier layers have changed is asked again when its proposal leads."""
        for layer in range(len(self.kept)):
            if layer not in self.proposed:
                self._propose(layer)
        return [candidate for layer in sorted(self.proposed) for candidate in self.proposed[layer]]

    def _expected(self, candidate: Head) -> float:
        """What removal is expected to cost: its last score, or its local cost in the units of its layer's last score.

        A layer that was never scored comes first.
        """
        layer, _ = candidate
        if candidate in self.scores:
            return self.scores[candidate]
        return self.factors[layer] * self.proposed[layer][candidate] if layer in self.factors else -np.inf

    def _score(self, candidate: Head) -> float:
        """Measure the increase of the mean calibration loss when this head goes and its layer is refitted."""
        layer, head = candidate
        changed = self._refitted(layer, [other for other in self.kept[layer] if other != head])
        losses = self.evaluation.losses({**self.changes, layer: changed}, part="calibration")
        increase = float(np.mean(losses)) - self.loss
        self.scores[candidate] = increase
        self.factors[layer] = max(increase, 0.0) / max(self.proposed[layer][candidate], np.finfo(float).tiny)
        return increase

    def _take(self, layer: int, head: int) -> None:
        self.kept[layer].remove(head)
        self.removed.append((layer, head))
        self.scores = {key: value for key, value in self.scores.items() if key[0] != layer}
        self.proposed.pop(layer, None)
        self._refit(layer)
        self.since += 1
        self.behind = min(self.behind, layer + 1)

    def refit_all(self) -> None:
        """Fit the layers without all their heads again, in order, where a layer before them has changed since."""
        if self.since == 0:
            return
        for layer in range(self.behind, len(self.kept)):
            if len(self.kept[layer]) < self.evaluation.original[layer].heads:
                self._refit(layer)
        self.behind, self.since = len(self.kept), 0
        self.measure_loss()

    def finished_changes(self) -> dict[int, HeadWeights]:
        """Return the changes with all layers fitted, in order, on all calibration examples."""
        if self.fitting is self.evaluation:
            return dict(self.changes)
        changes = refitted_in_order(self.evaluation, self.kept)
        self.evaluation.settle(self.changes)
        return changes

    def better_fisher_order(self) -> tuple[Head, ...] | None:
        """As many heads by their Fisher score, where the model loses less without them than without those removed.

        Both are fitted on the same examples and scored on the same others.
        """
        order = fisher_order(self.evaluation.original, self.gradients, least=self.least, uniform=self.uniform)
        order = order[: len(self.removed)]
        if not order or set(order) == set(self.removed):
            return None
        changes = refitted_in_order(self.fitting, heads_left(self.evaluation.original, order))
        self.settle(changes)
        return order if float(np.mean(self.evaluation.losses(changes, part="calibration"))) < self.loss else None

    def settle(self, changes: Mapping[int, HeadWeights]) -> None:
        """Settle both evaluations on these changes."""
        self.evaluation.settle(changes)
        if self.fitting is not self.evaluation:
            self.fitting.settle(changes)

    def measure_loss(self) -> None:
        self.loss = float(np.mean(self.evaluation.losses(self.changes, part="calibration")))

    def _refit(self, layer: int) -> None:
        self.changes[layer] = self._refitted(layer, self.kept[layer])
        self.settle(self.changes)
        for later in range(layer + 1, len(self.kept)):
            self.statistics.pop(later, None)
            self.stale.add(later)

    def _refitted(self, layer: int, kept: Iterable[int]) -> HeadWeights:
        return refit(self.evaluation.original[layer], self._moments(layer), kept)

    def _moments(self, layer: int) -> LayerStatistics:
        """Moments of a layer in the model as it now is; measured again only where a layer before it has changed."""
        if layer not in self.statistics:
            self.statistics[layer] = self.fitting.layer_statistics(layer)
        return self.statistics[layer]
