"""How much an inspection measures: by arithmetic on the model's size, never by the clock; the same everywhere.

The unit of work is a pass: the whole model over all held-out examples. A change in one layer costs about half of one,
because the blocks before it are not run again.
"""

import math
from dataclasses import dataclass, replace

from ..._choices import require_choice

RESCORED = 4.0
"""Scores per removed head of the descent over the whole model, about."""
PEERS = ("gradient (Michel)", "Fisher", "magnitude of the output projection", "random 1")
"""Criteria of `peers` whose orders of removal are measured along with our own."""
CONFIGURATIONS = 4
"""Smaller models that are measured, about."""
STRETCHES = (0.1, 0.3)
"""Shares of heads removed at which the descent is kept, about; a run that is ended continues from there."""
ZEROED = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
"""Shares of heads removed that are configurations, about, where no stock class stores fewer heads."""
BISECTED = 4
"""Ranks that are tried where they are not given: by bisection for where the loss rises."""


@dataclass(frozen=True)
class InspectionEffort:
    """The numbers of an effort.

    `max_tokens` bounds the held-out tokens, `operations` the multiplications and additions of the whole inspection.
    Where it would need more, the descent removes the share `least_removed` of all heads in place of `removed`; where
    that is not enough, heads are not left out one by one. `rank_points` ranks are tried per layer, for scores and for
    values. Losses of the whole model are measured at numbers of heads removed that grow by about `ratio`, other orders
    of removal at about the shares `peer_shares`.
    """

    max_tokens: int
    operations: float
    leave_one_out: bool
    rank_points: int
    removed: float
    least_removed: float
    ratio: float
    peer_shares: tuple[float, ...]

    def ranks_of(self, head_dim: int) -> tuple[int, ...] | None:
        """The ranks to try: three quarters, which says whether any can go, and in even ratios; None: by bisection."""
        if self.rank_points <= BISECTED:
            return None
        ratios = [place / (self.rank_points - 1) for place in range(self.rank_points - 1)]
        return tuple(sorted({3 * head_dim // 4, *(round(head_dim**ratio) for ratio in ratios)} - {0}, reverse=True))


LEVELS: dict[str, InspectionEffort] = {
    # tokens, operations, leave one out, ranks, removed: share, least share, ratio, shares of peers
    "quick": InspectionEffort(1024, 1.0e13, False, 0, 0.3, 0.07, 2.0, ()),
    "normal": InspectionEffort(2048, 1.1e14, True, BISECTED, 0.5, 0.15, 1.37, (0.2, 0.3)),
    "thorough": InspectionEffort(4096, 2.0e15, True, 8, 0.5, 0.5, 1.37, (0.1, 0.2, 0.3, 0.5)),
}
DEFAULT_EFFORT = "normal"


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """The measurements of an inspection, and on how many tokens.

    `heads` are those of all layers together, `used_parameters` those that every token is multiplied by (all but the
    tables that are only looked up). `removed_share` of all heads are removed by the descent. A search compares changes
    on `scored` of the `calibration` tokens.
    """

    effort: InspectionEffort
    leave_one_out: bool
    removed_share: float
    layers: int
    heads: int
    used_parameters: int
    held_out: int
    scored: int
    calibration: int

    @property
    def passes(self) -> dict[str, float]:
        """Passes over the held-out examples by kind of fact, those over calibration examples converted."""
        one_layer = (self.layers + 1) / (2 * self.layers)  # what a change in one layer costs, on average
        scored, calibration = self.scored / self.held_out, self.calibration / self.held_out
        refit = calibration + 1
        return {
            "base": 1.0,
            "statistics": 3.0 * calibration,
            "importance": self.heads * one_layer * scored if self.leave_one_out else 0.0,
            "curve": self.heads * one_layer,
            "rank": 2 * self.effort.rank_points * self.layers * one_layer,
            "redundancy": 0.3,
            "descent": self.removed * one_layer * (RESCORED * scored + calibration)
            + len(self.removed_counts) * refit
            + len(self.stretches) * (2 * calibration + scored),
            "peers": len(PEERS) * len(self.peer_counts) * (1 + refit),
            "configurations": CONFIGURATIONS * refit,
        }

    @property
    def operations(self) -> float:
        """Multiplications and additions of everything."""
        return 2.0 * self.used_parameters * self.held_out * sum(self.passes.values())

    @property
    def removed(self) -> int:
        """Heads that the descent over the whole model removes."""
        return round(self.removed_share * self.heads)

    @property
    def removed_counts(self) -> tuple[int, ...]:
        """Numbers of heads removed at which losses of the whole model are measured: 1, 2, 3, .. in growing steps.

        How many heads can go is often a small share of them, and is known to one of these numbers.
        """
        last = self.removed
        if last == 0:
            return ()
        steps = max(1, round(math.log(last, self.effort.ratio)))
        return tuple(sorted({round(last ** (step / steps)) for step in range(steps + 1)}))

    @property
    def stretches(self) -> tuple[int, ...]:
        """Numbers of heads removed at which the descent is kept."""
        return tuple(sorted({*self._nearest(STRETCHES), *self.removed_counts[-1:]}))

    @property
    def peer_counts(self) -> tuple[int, ...]:
        """Those of `removed_counts` at which other orders of removal are measured."""
        return self._nearest(self.effort.peer_shares)

    @property
    def zeroed_counts(self) -> tuple[int, ...]:
        """Those of `removed_counts` that are configurations with zeros."""
        return self._nearest(ZEROED)

    def _nearest(self, shares: tuple[float, ...]) -> tuple[int, ...]:
        """The measured numbers of heads removed that are nearest to these shares of all heads."""
        counts = self.removed_counts
        nearest = (
            {min(counts, key=lambda count: abs(count - share * self.heads)) for share in shares} if counts else set()
        )
        return tuple(sorted(nearest))


def level_of(effort: str) -> InspectionEffort:
    """The effort called `effort`. Raises InputError for an unknown one."""
    require_choice("effort", effort, LEVELS)
    return LEVELS[effort]


def schedule(effort: str, **sizes: int) -> Schedule:
    """Plan what an effort measures of a model and data of these sizes, less where it would cost too much."""
    level = level_of(effort)
    whole = Schedule(effort=level, leave_one_out=level.leave_one_out, removed_share=level.removed, **sizes)
    shorter = replace(whole, removed_share=level.least_removed)
    least = replace(shorter, leave_one_out=False)
    return next((each for each in (whole, shorter) if each.operations <= level.operations), least)
