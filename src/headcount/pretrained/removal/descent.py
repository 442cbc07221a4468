"""Heads removed from a whole model, one after the other, each time the one that the loss misses least after a refit.

Errors of single layers rank the heads of one layer well and those of different layers badly. So a layer proposes the
few heads that its moments say are cheapest (`elimination`), and the calibration loss of the model, with the layer
refitted, decides between layers. Scores of earlier rounds tell which proposals are worth scoring again: a head that was
expensive seldom becomes the cheapest, so a round scores the best few and stops when no other is expected to be better.

With few examples a search follows their noise. So at the end it is compared with the order of one score per head
(`peers.fisher_order`), refitted in the same way, and the better of the two on the scored examples is used.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
from jaxtyping import Float

from ...errors import require
from ..evaluation.layer_statistics import LayerStatistics
from ..layers.weights import HeadWeights
from .elimination import Elimination, allowed, equal_step
from .peers import fisher_order, losses_along
from .refit import refit, refitted_in_order

if TYPE_CHECKING:
    from ..evaluation.evaluate import Evaluation
    from ..examples.batches import Tick

Candidate = tuple[int, int]
"""A layer and a head of it."""

CHOICES = 2
"""Heads that a layer proposes."""
BREADTH = 3
"""Proposals that a round scores at least."""
LAYERS_PER_REFIT = 8
"""A model with so many layers is refitted after every head, one with three times as many after every third."""


@dataclass(frozen=True, eq=False)
class Descent:
    """Heads in the order of their removal, and what the model lost on the way.

    Attributes:
        removed: (layer, head), first removed first.
        kept: Heads of the whole model at each measured point; the first point is the original.
        losses: Held-out losses at those points, every layer refitted in order on all calibration examples.
        changes: The changed layers of the last point, which its losses are of; empty in a descent that was stored.
        evaluations: Passes over the calibration examples that were made.
        order: "Fisher" where the order by that score was better than the search's own, and is `removed`.
    """

    removed: tuple[Candidate, ...]
    kept: tuple[int, ...]
    losses: Float[np.ndarray, "points examples"]
    changes: Mapping[int, HeadWeights] = field(default_factory=dict)
    evaluations: int = 0
    order: Literal["search", "Fisher"] = "search"

    def kept_after(self, removed: int, heads: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """Heads that stay in each layer after so many removals.

        Args:
            removed: How many of `self.removed` are gone.
            heads: Head count of each layer of the original.
        """
        gone = set(self.removed[:removed])
        return tuple(
            tuple(head for head in range(count) if (index, head) not in gone) for index, count in enumerate(heads)
        )


def expected_evaluations(layers: int, remove: int, *, choices: int = CHOICES, points: int = 0) -> int:
    """About how many passes over the calibration examples `descend` makes without a budget.

    One per layer to begin with; then per head BREADTH scores, another per choice, and the refit. A pass that begins in
    the middle of the model counts whole.
    """
    return layers + remove * (BREADTH + choices) + points


def descend(
    evaluation: "Evaluation",
    remove: int,
    *,
    uniform: bool = False,
    budget: int | None = None,
    choices: int = CHOICES,
    least: int = 1,
    points: Iterable[int] | None = None,
    statistics: Sequence[LayerStatistics] | None = None,
    start: Descent | None = None,
    fitting: "Evaluation | None" = None,
    ridge: float | None = None,
    tick: "Tick | None" = None,
) -> Descent:
    """Remove heads from the whole model, one after the other, with refit.

    Args:
        evaluation: Runs the model; choices are made on its calibration examples, losses reported on held-out ones. At
            the end it is settled on the original again.
        remove: Heads to remove in all.
        uniform: The same number of heads in every layer and for every key head, as stock classes store it.
        budget: Passes over the calibration examples that may be made; None: as many as it takes. A small one removes
            several heads per round. Ignored where `uniform`.
        choices: Heads that a layer proposes to the loss.
        least: Heads that every layer keeps.
        points: Numbers of removed heads at which held-out losses are measured; None: about 20 of them, and the last.
        statistics: Of the original model, with `fisher`; None: measured here.
        start: A descent to go on from.
        fitting: The same model on other calibration examples, which layers are fitted on during the search; at measured
            points they are fitted on all of `evaluation`'s. None: the examples that `evaluation` does not score. A
            search that scores what it fits on takes heads for cheaper than they are.
        ridge: See `refit`.
        tick: Called with (heads removed, heads to remove, words).

    Raises:
        InputError: more heads than may go; a number that no uniform model comes to.
    """
    fitting = evaluation.unscored() if fitting is None else fitting
    search = _Search(evaluation, fitting, statistics, choices=choices, least=least, ridge=ridge, uniform=uniform)
    search.require_room(remove)
    begun = () if start is None else start.removed[:remove]
    targets = set(_default_points(remove) if points is None else points) | {remove}
    rows = {0: evaluation.losses({})}
    if start is not None:
        total = search.total
        rows |= {
            total - kept: row for kept, row in zip(start.kept, start.losses, strict=True) if total - kept <= len(begun)
        }
    changes: dict[int, HeadWeights] = {}
    if begun:
        stored = start.changes if start is not None and len(begun) == len(start.removed) else {}
        search.resume(begun, stored)
        if len(begun) == remove:
            changes = search.finished_changes()
            rows[remove] = evaluation.losses(changes)
    while len(search.removed) < remove:
        missing = remove - len(search.removed)
        if uniform:
            search.uniform_round()
        else:
            search.round(missing, None if budget is None else max(1, budget - search.evaluations))
        done = len(search.removed)
        if any(len(begun) < point <= done and point not in rows for point in targets) or done >= remove:
            search.refit_all()
            changes = search.finished_changes()
            rows[done] = evaluation.losses(changes)
            targets = {point for point in targets if point > done}
        if tick is not None:
            tick(done, remove, f"{done} of {remove} heads removed, calibration loss {search.loss:.4g}")
    measured = sorted(rows)
    losses, removed = np.stack([rows[point] for point in measured]), tuple(search.removed)
    rival = search.better_fisher_order()
    search.settle({})
    if rival is not None:
        removed = rival
        losses = losses_along(evaluation, rival, measured, with_refit=True, ridge=ridge)
        changes = refitted_in_order(evaluation, search.kept_without(rival), ridge=ridge)
        search.settle({})
        if tick is not None:
            tick(remove, remove, "the order by Fisher's score loses less than the search's on the scored examples")
    return Descent(
        removed=removed,
        kept=tuple(search.total - point for point in measured),
        losses=losses,
        changes=changes,
        evaluations=search.evaluations,
        order="search" if rival is None else "Fisher",
    )


def _default_points(remove: int) -> set[int]:
    return {round(float(point)) for point in np.linspace(0, remove, min(remove, 20) + 1)} - {0}


class _Search:
    """The state between two removals: which heads are left, the changed layers, what candidates last cost."""

    def __init__(
        self,
        evaluation: "Evaluation",
        fitting: "Evaluation | None",
        statistics: Sequence[LayerStatistics] | None,
        *,
        choices: int,
        least: int,
        ridge: float | None,
        uniform: bool,
    ):
        self.evaluation, self.choices, self.least, self.ridge, self.uniform = evaluation, choices, least, ridge, uniform
        self.fitting = evaluation if fitting is None else fitting
        self.settle({})
        statistics = evaluation.statistics() if statistics is None else statistics
        self.weighting = [one.fisher for one in statistics]
        self.gradients = [one.gradients for one in statistics]
        self.statistics: dict[int, LayerStatistics] = {} if fitting else dict(enumerate(statistics))
        self.kept = [list(range(weights.heads)) for weights in evaluation.original]
        self.total = sum(map(len, self.kept))
        self.removed: list[Candidate] = []
        self.changes: dict[int, HeadWeights] = {}
        self.scores: dict[Candidate, float] = {}
        self.factors: dict[int, float] = {}
        self.proposed: dict[int, dict[Candidate, float]] = {}
        self.stale = set(range(len(self.kept)))
        self.behind = len(self.kept)
        self.since = 0
        self.evaluations = 1
        self.loss = float(np.mean(evaluation.losses({}, part="calibration")))

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

    def resume(self, removed: Iterable[Candidate], changes: Mapping[int, HeadWeights]) -> None:
        """Stand where another descent ended; its layers are fitted again, on what this search fits on.

        Changes that are given were fitted on all calibration examples: they serve only where this search does too.
        """
        for layer, head in removed:
            self.removed.append((layer, head))
            self.kept[layer].remove(head)
        if changes and self.fitting is self.evaluation:
            self.changes = dict(changes)
        else:
            self.changes = refitted_in_order(self.fitting, self.kept, ridge=self.ridge)
        self.settle(self.changes)
        self.statistics = {}
        self._measure_loss()

    def round(self, missing: int, budget: int | None) -> None:
        """Remove the cheapest head, or several from different layers where the budget is short."""
        limit = np.inf if budget is None else max(1, budget // missing - 1)
        together = 1 if budget is None else max(1, -(-missing * (BREADTH + 1) // budget))
        scored: dict[Candidate, float] = {}
        while len(scored) < max(limit, together):
            expected = {
                candidate: self._expected(candidate) for candidate in self._waiting() if candidate not in scored
            }
            if not expected:
                break
            candidate = min(expected, key=expected.__getitem__)
            enough = len(scored) >= max(min(BREADTH, limit), together)
            if enough and expected[candidate] >= sorted(scored.values())[together - 1]:
                break
            if candidate[0] in self.stale:
                self._propose(candidate[0])
            else:
                scored[candidate] = self._score(candidate)
        chosen: dict[int, int] = {}
        for layer, head in sorted(scored, key=scored.__getitem__):
            if layer not in chosen and len(chosen) < min(together, missing):
                chosen[layer] = head
        self._take(chosen)

    def uniform_round(self) -> None:
        """Remove one head per key head (per layer where each head has keys of its own) from every layer, in order."""
        for layer, weights in enumerate(self.evaluation.original):
            for _ in range(equal_step(weights)):
                self._propose(layer)
                costs = self.proposed[layer]
                scores = {candidate: self._score(candidate) for candidate in costs} if len(costs) > 1 else costs
                self._take({layer: min(scores, key=scores.__getitem__)[1]})
        self.refit_all()

    def _propose(self, layer: int) -> None:
        """Ask a layer again for the heads that its moments call cheapest, with their local costs."""
        weights, kept = self.evaluation.original[layer], self.kept[layer]
        self.stale.discard(layer)
        self.proposed[layer] = {}
        if len(kept) > self.least:
            left = Elimination(weights, self._of(layer), kept, ridge=self.ridge, weighting=self.weighting[layer])
            costs = left.costs()
            heads = sorted(allowed(weights, kept, equal_groups=self.uniform), key=costs.__getitem__)
            self.proposed[layer] = {(layer, head): costs[head] for head in heads[: self.choices]}

    def _waiting(self) -> list[Candidate]:
        """What the layers propose; one whose prefix has changed is asked again when it leads."""
        for layer in range(len(self.kept)):
            if layer not in self.proposed:
                self._propose(layer)
        return [candidate for layer in sorted(self.proposed) for candidate in self.proposed[layer]]

    def _expected(self, candidate: Candidate) -> float:
        """What removal is expected to cost: its last score, or its local cost in the units of its layer's last score.

        A layer that was never scored comes first.
        """
        layer, _ = candidate
        if candidate in self.scores:
            return self.scores[candidate]
        return self.factors[layer] * self.proposed[layer][candidate] if layer in self.factors else -np.inf

    def _score(self, candidate: Candidate) -> float:
        """Increase of the mean calibration loss when this head goes and its layer is refitted."""
        layer, head = candidate
        changed = self._refitted(layer, [other for other in self.kept[layer] if other != head])
        losses = self.evaluation.losses({**self.changes, layer: changed}, part="calibration")
        self.evaluations += 1
        increase = float(np.mean(losses)) - self.loss
        self.scores[candidate] = increase
        self.factors[layer] = max(increase, 0.0) / max(self.proposed[layer][candidate], np.finfo(float).tiny)
        return increase

    def _take(self, chosen: Mapping[int, int]) -> None:
        for layer, head in chosen.items():
            self.kept[layer].remove(head)
            self.removed.append((layer, head))
            self.scores = {key: value for key, value in self.scores.items() if key[0] != layer}
            self.proposed.pop(layer, None)
        for layer in sorted(chosen):
            self._refit(layer)
        self.since += len(chosen)
        self.behind = min(self.behind, min(chosen) + 1)
        if not self.uniform:
            self.refit_all() if self.since >= len(self.kept) / LAYERS_PER_REFIT else self._measure_loss()

    def refit_all(self) -> None:
        """Fit the layers without all their heads again, in order, where a layer before them has changed since."""
        if self.since == 0:
            return
        for layer in range(self.behind, len(self.kept)):
            if len(self.kept[layer]) < self.evaluation.original[layer].heads:
                self._refit(layer)
        self.behind, self.since = len(self.kept), 0
        self._measure_loss()

    def finished_changes(self) -> dict[int, HeadWeights]:
        """The changes with all layers fitted, in order, on all calibration examples."""
        if self.fitting is self.evaluation:
            return dict(self.changes)
        changes = refitted_in_order(self.evaluation, self.kept, ridge=self.ridge)
        self.evaluation.settle(self.changes)
        return changes

    def kept_without(self, gone: Iterable[Candidate]) -> list[list[int]]:
        """Heads of the original without these, per layer."""
        gone = set(gone)
        return [
            [head for head in range(weights.heads) if (layer, head) not in gone]
            for layer, weights in enumerate(self.evaluation.original)
        ]

    def better_fisher_order(self) -> tuple[Candidate, ...] | None:
        """As many heads by their Fisher score, where the model loses less without them than without those removed.

        Both are fitted on the same examples and scored on the same others.
        """
        order = fisher_order(self.evaluation.original, self.gradients, least=self.least, uniform=self.uniform)
        order = order[: len(self.removed)]
        if not order or set(order) == set(self.removed):
            return None
        changes = refitted_in_order(self.fitting, self.kept_without(order), ridge=self.ridge)
        self.settle(changes)
        self.evaluations += 1
        return order if float(np.mean(self.evaluation.losses(changes, part="calibration"))) < self.loss else None

    def settle(self, changes: Mapping[int, HeadWeights]) -> None:
        """Let both evaluations stand on these changes."""
        self.evaluation.settle(changes)
        if self.fitting is not self.evaluation:
            self.fitting.settle(changes)

    def _refit(self, layer: int) -> None:
        self.changes[layer] = self._refitted(layer, self.kept[layer])
        self.settle(self.changes)
        for later in range(layer + 1, len(self.kept)):
            self.statistics.pop(later, None)
            self.stale.add(later)

    def _refitted(self, layer: int, kept: Iterable[int]) -> HeadWeights:
        return refit(self.evaluation.original[layer], self._of(layer), kept, ridge=self.ridge)

    def _of(self, layer: int) -> LayerStatistics:
        """Moments of a layer in the model as it now is; measured again only where a layer before it has changed."""
        if layer not in self.statistics:
            self.statistics[layer] = self.fitting.layer_statistics(layer)
        return self.statistics[layer]

    def _measure_loss(self) -> None:
        self.loss = float(np.mean(self.evaluation.losses(self.changes, part="calibration")))
        self.evaluations += 1
