"""How much an inspection measures: by arithmetic on the model's size, never by the clock, so that it is the same everywhere.

The unit of work is a pass: the whole model over all held-out examples. A change in one layer costs about half of one,
because the blocks before it are not run again.
"""

from dataclasses import dataclass

from .._choices import require_choice
from ..effort.levels import DEFAULT_EFFORT, EFFORTS

__all__ = ["DEFAULT_EFFORT", "LEVELS", "InspectionEffort", "ModelSize", "Schedule", "schedule"]

EXAMPLES = 8
"""Held-out examples, at least: intervals are over resampled examples."""
CALIBRATION = 4
"""Calibration tokens per feature of a layer, at least: the output projection is fitted to them."""
RESCORED = 2.0
"""Scores per removed head of the descent over the whole model, beyond the first of each layer."""


@dataclass(frozen=True, kw_only=True)
class InspectionEffort:
    """The numbers of an effort.

    Args:
        operations: Multiplications and additions of the whole inspection that are aimed at.
        min_tokens: Held-out tokens, at least; leave-one-out is left out where there would be fewer.
        max_tokens: Held-out tokens, at most.
        leave_one_out: Whether each head's removal is measured where it is affordable.
        ranks: How many ranks are tried per layer, for scores and for values.
        removed: Share of all heads that the descent over the whole model removes.
        peers: Whether other orders of removal are measured beside it.
        counts: Shares of heads removed at which losses of the whole model are measured.
    """

    operations: float
    min_tokens: int
    max_tokens: int
    leave_one_out: bool
    ranks: int
    removed: float
    peers: bool
    counts: tuple[float, ...]


LEVELS: dict[str, InspectionEffort] = {
    "quick": InspectionEffort(
        operations=8e12,
        min_tokens=512,
        max_tokens=1024,
        leave_one_out=False,
        ranks=0,
        removed=0.3,
        peers=False,
        counts=(0.1, 0.2, 0.3),
    ),
    "normal": InspectionEffort(
        operations=8e13,
        min_tokens=1024,
        max_tokens=2048,
        leave_one_out=True,
        ranks=3,
        removed=0.5,
        peers=True,
        counts=(0.1, 0.2, 0.3, 0.5),
    ),
    "thorough": InspectionEffort(
        operations=8e14,
        min_tokens=2048,
        max_tokens=16384,
        leave_one_out=True,
        ranks=6,
        removed=0.5,
        peers=True,
        counts=(0.1, 0.2, 0.3, 0.4, 0.5),
    ),
}
assert LEVELS.keys() == EFFORTS.keys(), "an effort has one name in all verbs"


@dataclass(frozen=True, kw_only=True)
class ModelSize:
    """What the cost of an inspection depends on.

    Args:
        layers: Attention layers.
        heads: Heads of all layers together.
        features: Width of the concatenated heads of the widest layer.
        used_parameters: Parameters that every token is multiplied by: all but the tables that are only looked up.
    """

    layers: int
    heads: int
    features: int
    used_parameters: int

    @property
    def one_layer(self) -> float:
        """Passes that a change in one layer costs, on average over the layers."""
        return (self.layers + 1) / (2 * self.layers)


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """What is measured, and on how much.

    Args:
        effort: The numbers of the effort.
        size: The model's size.
        leave_one_out: Whether each head's removal is measured.
        held_out: Held-out tokens aimed at.
        calibration: Calibration tokens aimed at.
    """

    effort: InspectionEffort
    size: ModelSize
    leave_one_out: bool
    held_out: int
    calibration: int

    @property
    def passes(self) -> dict[str, float]:
        """Passes over the held-out examples by kind of fact, those over calibration examples converted."""
        return _passes(self.effort, self.size, self.leave_one_out, self.calibration / self.held_out)

    @property
    def removed(self) -> int:
        """Heads that the descent over the whole model removes."""
        return round(self.effort.removed * self.size.heads)

    @property
    def removed_counts(self) -> tuple[int, ...]:
        """Numbers of heads removed at which losses of the whole model are measured."""
        counts = {round(share * self.size.heads) for share in self.effort.counts}
        return tuple(sorted(count for count in counts if 0 < count <= self.removed))


def schedule(effort: str, size: ModelSize, *, length: int, examples: int | None = None) -> Schedule:
    """What an effort measures of a model of this size.

    Args:
        effort: "quick", "normal" or "thorough".
        size: The model's size.
        length: Tokens per example.
        examples: Held-out examples; None: as many as the effort's operations allow.

    Raises:
        InputError: an unknown effort.
    """
    require_choice("effort", effort, LEVELS)
    level = LEVELS[effort]
    calibration = max(level.max_tokens, CALIBRATION * size.features)
    choices = (True, False) if level.leave_one_out else (False,)
    held_out, leave_one_out = 0, False
    for leave_one_out in choices:
        passes = sum(_passes(level, size, leave_one_out, calibration / level.max_tokens).values())
        held_out = int(level.operations / (2 * size.used_parameters * passes))
        if held_out >= level.min_tokens:
            break
    held_out = min(max(held_out, level.min_tokens), level.max_tokens)
    count = max(EXAMPLES, held_out // length) if examples is None else examples
    return Schedule(
        effort=level,
        size=size,
        leave_one_out=leave_one_out,
        held_out=count * length,
        calibration=calibration // length * length,
    )


def _passes(level: InspectionEffort, size: ModelSize, leave_one_out: bool, calibration: float) -> dict[str, float]:
    """Passes by kind of fact; `calibration` is the ratio of calibration to held-out tokens."""
    refits = 1 + size.layers * size.one_layer * calibration / 4
    counts = len(level.counts)
    return {
        "base": 1.0,
        "statistics": 3.0 * calibration,
        "importance": size.heads * size.one_layer if leave_one_out else 0.0,
        "curve": size.heads * size.one_layer,
        "rank": 2 * level.ranks * size.layers * size.one_layer,
        "redundancy": 0.3,
        "descent": (level.removed * size.heads * RESCORED + size.layers) * size.one_layer * calibration + counts,
        "peers": 4.0 * counts * (1 + refits) if level.peers else 0.0,
        "configurations": 4.0 * refits,
    }
