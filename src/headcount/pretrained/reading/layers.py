"""What one layer of a trained model uses: heads needed, the transition in its curve, rank needed."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from ...answer.answer_base import Interval
from ...answer.bootstrap import COVERAGE, interval_of
from ...answer.signals import (
    FLOOR_THROUGHOUT,
    NO_SHARP_DROP,
    NONE,
    NOT_LEARNED,
    ONE_HEAD_COUNT,
    STILL_FALLING,
    drop_indices,
    drop_transition,
)
from ...answer.words import decimal
from .facts import Facts, IncreaseCurve

ShortOf = Literal["heads", "rank", "heads and rank", "neither", "undecided"]
UNDECIDED: ShortOf = "undecided"
VERDICTS: dict[ShortOf, str] = {
    "heads": "short of heads",
    "rank": "short of rank",
    "heads and rank": "short of heads and rank",
    "neither": "short of neither",
    UNDECIDED: f"undecided (fewer than {100 * COVERAGE:.0f} % of resamples agree, or no rank near the full was tried)",
}
COARSE = 0.75
"""A rank below this share of the full one is too far from it to say that a layer is short of rank."""
KINDS = ("scores", "values")
"""Products of a head whose rank is lowered: W_Q^T W_K, which scores tokens, and W_V W_O, which writes what was read."""
_REASONS = {
    STILL_FALLING: "the loss still falls with the last head kept",
    NO_SHARP_DROP: "the loss changes with heads kept but shows no sharp drop with a plateau after it",
    NOT_LEARNED: "all counts are close to no head at all",
    ONE_HEAD_COUNT: "only one count of heads was measured",
    FLOOR_THROUGHOUT: "one head is enough, and more gain less than the tolerance",
}


@dataclass(frozen=True)
class Transition:
    """Where a layer's curve drops, by the rule that reads a task's; `heads` is None where it shows none.

    `sentence` says what the rule saw, or why there is none.
    """

    heads: Interval | None
    sentence: str
    fold: float | None = None


@dataclass(frozen=True)
class RankReading:
    """Rank needed of one product of every head in a layer. `at_most`: the smallest rank tried is enough."""

    curve: IncreaseCurve
    needed: Interval

    @property
    def full(self) -> int:
        return self.curve.at[-1]

    @property
    def at_most(self) -> bool:
        return len(self.curve.at) > 1 and self.needed.at == self.curve.at[0]

    def __str__(self) -> str:
        return f"at most {self.needed.at}" if self.at_most else str(self.needed)


@dataclass(frozen=True, kw_only=True)
class LayerReading:
    """One layer. What was not measured is None or empty.

    `needed` are the fewest heads with which, all other layers unchanged, the mean held-out loss increase stays within
    the tolerance. `order` is that in which its heads were removed. `short_of` says what the layer has no spare of,
    `support` is the share of resamples that say the same, and `evidence` has the numbers for it. `importance` has a
    value per head and measure.
    """

    index: int
    heads: int
    curve: IncreaseCurve | None = None
    needed: Interval | None = None
    order: tuple[int, ...] = ()
    transition: Transition | None = None
    ranks: dict[str, RankReading] = field(default_factory=dict)
    short_of: ShortOf | None = None
    support: float = 0.0
    evidence: tuple[str, ...] = ()
    importance: dict[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def verdict(self) -> ShortOf | None:
        """`short_of`, or "undecided" where fewer than 90 % of resamples agree."""
        return self.short_of if self.short_of is None or self.support >= COVERAGE else UNDECIDED

    @property
    def sentence(self) -> str:
        """The reading in one sentence."""
        if self.needed is None:
            return f"layer {self.index}: heads needed not measured"
        parts = [f"layer {self.index} needs {self.needed} of {self.heads} heads"]
        parts += [f"rank {reading} of {reading.full} for {kind}" for kind, reading in self.ranks.items()]
        return ", ".join(parts) + (f"; {VERDICTS[self.verdict]}" if self.verdict else "")


def read_layer(facts: Facts, index: int) -> LayerReading:
    """All that the facts say of one layer."""
    heads = facts.heads_of(index)
    stored = facts.of(f"curve/{index}")
    curve = facts.curve(stored, "kept", heads, f"curve/{index}")
    ranks = _ranks(facts, index)
    needed = None if curve is None else curve.needed(facts.budget)
    short_of, support, evidence = _short_of(facts, curve, ranks)
    importance = {
        name: tuple(np.asarray(values, float).tolist())
        for name, values in facts.of(f"importance/{index}").items()
        if isinstance(values, list) and len(values) == heads
    }
    return LayerReading(
        index=index,
        heads=heads,
        curve=curve,
        needed=needed,
        order=tuple(map(int, stored.get("order") or ())),
        transition=None if curve is None else transition_of(curve, facts.budget),
        ranks=ranks,
        short_of=short_of,
        support=support,
        evidence=evidence,
        importance=importance,
    )


def _ranks(facts: Facts, index: int) -> dict[str, RankReading]:
    readings = {}
    for kind in KINDS:
        stored = facts.of(f"rank/{index}").get(kind) or {}
        ranks = stored.get("ranks") or ()
        full = max([facts.number("head_dim", index), *ranks])
        curve = facts.curve(stored, "ranks", full, f"rank/{index}")
        if curve is not None:
            readings[kind] = RankReading(curve, curve.needed(facts.budget))
    return readings


def transition_of(curve: IncreaseCurve, budget: float) -> Transition:
    """The drop of the loss increase, as a share of that with no head at all; less than `budget` apart counts as equal.

    The budget enters as the scatter that the rule knows from seeds: without it the original, whose increase is 0 by
    definition, would always be a drop.
    """
    if curve.at[0] != 0:
        return Transition(None, "no transition found: no head at all was not measured")
    if curve.mean[0] <= budget or curve.mean[0] <= 0:
        return Transition(None, "no transition found: even no head at all stays within the tolerance")
    tried = curve.at[1:]
    best, median = _relative(curve.mean[None], budget)
    drop = drop_transition(best[0], median[0])
    reason = _REASONS.get(drop.reason, drop.reason.replace("the error", "the loss increase"))
    if drop.index is None:
        return Transition(None, f"no transition found: {reason}")
    usable = curve.drawn[:, 0] > budget
    drawn = drop_indices(*_relative(curve.drawn[usable], budget))
    agreeing = drawn[drawn != NONE]
    if len(agreeing) < len(curve.drawn) / 2:
        return Transition(None, "no transition found: most resamples of the held-out examples show none")
    at = tried[drop.index]
    return Transition(Interval(at, *interval_of(tried, drop.index, agreeing)), f"at {at}: {reason}", drop.fold)


def _relative(mean: np.ndarray, budget: float) -> tuple[np.ndarray, np.ndarray]:
    """Resamples x heads x 1: increases as shares of that without any head, and the same with the budget on top."""
    none = mean[:, :1]
    least = np.broadcast_to(budget / none, mean[:, 1:].shape)
    best = np.clip(mean[:, 1:] / none, least, None)
    return best[..., None], (best + least)[..., None]


def _short_of(
    facts: Facts, curve: IncreaseCurve | None, ranks: dict[str, RankReading]
) -> tuple[ShortOf | None, float, tuple[str, ...]]:
    """What a layer has no spare of, the share of resamples that agree, and the numbers.

    None until heads and both ranks are measured. A step is the largest count below the original's that was tried.
    Ranks are searched for one tolerance: at another the largest rank tried may be far below the full one, and that it
    costs too much decides nothing.
    """
    steps = {"heads": curve} | {f"rank of {kind}": ranks[kind].curve if kind in ranks else None for kind in KINDS}
    known = {name: step for name, step in steps.items() if step is not None and len(step.at) > 1}
    evidence = [f"{step.at[-2]} of {step.at[-1]} {name}: {cost_words(step, -2)}" for name, step in known.items()]
    evidence = (*evidence, f"allowed: {decimal(facts.budget)}") if evidence else ()
    if len(known) < len(steps):
        return None, 0.0, evidence
    heads, *others = known.values()
    too_low = {name: known[name] for name in list(known)[1:] if known[name].mean[-2] > facts.budget}
    if too_low and all(map(_is_coarse, too_low.values())):
        untried = [
            f"{name}: nothing between {each.at[-2]} and {each.at[-1]} was tried" for name, each in too_low.items()
        ]
        return UNDECIDED, 0.0, (*evidence, *untried)
    short = heads.mean[-2] > facts.budget, bool(too_low)
    drawn_heads = heads.drawn[:, -2] > facts.budget
    drawn_rank = np.any([each.drawn[:, -2] > facts.budget for each in others], axis=0)
    support = float(np.mean((drawn_heads == short[0]) & (drawn_rank == short[1])))
    words: dict[tuple[bool, bool], ShortOf] = {
        (True, True): "heads and rank",
        (True, False): "heads",
        (False, True): "rank",
        (False, False): "neither",
    }
    return words[bool(short[0]), bool(short[1])], support, evidence


def _is_coarse(curve: IncreaseCurve) -> bool:
    """Whether the largest rank tried is far below the full one; 2, a rotary pair, is the smallest step there is."""
    return curve.at[-2] < COARSE * curve.at[-1] and curve.at[-1] - curve.at[-2] > 2


def cost_words(curve: IncreaseCurve, place: int) -> str:
    """`loss +0.031 [0.025, 0.037]`."""
    low, high = curve.bounds[:, place]
    return f"loss {signed(curve.mean[place])} [{decimal(low)}, {decimal(high)}]"


def signed(value: float) -> str:
    """An increase with its sign."""
    return f"+{decimal(value)}" if value > 0 else decimal(value)
