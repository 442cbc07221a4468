"""One layer of a trained model: heads and rank needed, and what it is short of."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ...answer.answer_base import Interval
from ...answer.bootstrap import COVERAGE
from ...answer.words import as_sentence, decimal
from ...report.document import Grid
from .facts import Facts, Increases, as_json
from .heads import Transition, layers_listed, transition_of
from .importance import read_importance
from .ranks import KINDS, RankReading, read_ranks

if TYPE_CHECKING:
    from .model import TrainedModel

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
    needed: Interval | None = None
    curve: Increases | None = None
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

    def as_dict(self) -> dict[str, Any]:
        fields = as_json(vars(self))
        return {"layer": fields.pop("index"), **fields, "sentence": self.sentence}


def read_layer(facts: Facts, index: int) -> LayerReading:
    heads, stored = facts.number("heads", index), facts.fact(f"curve/{index}")
    curve, ranks = facts.curve(stored, "kept", heads, f"curve/{index}"), read_ranks(facts, index)
    short_of, support, evidence = _short_of(facts, curve, ranks)
    return LayerReading(
        index=index,
        heads=heads,
        curve=curve,
        needed=None if curve is None else curve.needed(facts.budget),
        order=tuple(map(int, stored.get("order") or ())),
        transition=None if curve is None else transition_of(curve, facts.budget),
        ranks=ranks,
        short_of=short_of,
        support=support,
        evidence=evidence,
        importance=read_importance(facts, index, heads),
    )


def _short_of(
    facts: Facts, curve: Increases | None, ranks: dict[str, RankReading]
) -> tuple[ShortOf | None, float, tuple[str, ...]]:
    """Judge what a layer has no spare of: the verdict, the share of resamples that agree, and the numbers.

    None until heads and both ranks are measured. A step is the largest count below the original's that was tried.
    Ranks are searched for one tolerance: at another the largest rank tried may be far below the full one, and that it
    costs too much decides nothing.
    """
    steps = {"heads": curve} | {f"rank of {kind}": ranks[kind].curve if kind in ranks else None for kind in KINDS}
    known = {name: step for name, step in steps.items() if step is not None and len(step.at) > 1}
    evidence = [f"{step.at[-2]} of {step.at[-1]} {name}: {_cost(step)}" for name, step in known.items()]
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
    short = bool(heads.mean[-2] > facts.budget), bool(too_low)
    drawn_heads = heads.drawn[:, -2] > facts.budget
    drawn_rank = np.any([each.drawn[:, -2] > facts.budget for each in others], axis=0)
    support = float(np.mean((drawn_heads == short[0]) & (drawn_rank == short[1])))
    words: dict[tuple[bool, bool], ShortOf] = {
        (True, True): "heads and rank",
        (True, False): "heads",
        (False, True): "rank",
        (False, False): "neither",
    }
    return words[short], support, evidence


def _is_coarse(curve: Increases) -> bool:
    """Whether the largest rank tried is far below the full one; 2, a rotary pair, is the smallest step there is."""
    return curve.at[-2] < COARSE * curve.at[-1] and curve.at[-1] - curve.at[-2] > 2


def _cost(curve: Increases) -> str:
    """`loss +0.031 [0.025, 0.037]`, one step below the original."""
    low, high = curve.bounds[:, -2]
    return f"loss {signed(curve.mean[-2])} [{decimal(low)}, {decimal(high)}]"


def signed(value: float) -> str:
    return f"+{decimal(value)}" if value > 0 else decimal(value)


def needed_words(model: "TrainedModel") -> str:
    """Say the fewest and the most heads that a layer needs."""
    read = [(layer, layer.needed) for layer in model.layers if layer.needed is not None]
    if not read:
        return ""
    fewest, most = min(read, key=lambda each: each[1].at), max(read, key=lambda each: each[1].at)
    which = "Each layer alone" if len(read) == len(model.layers) else "Each layer read so far, alone,"
    counts = f"{fewest[1].at} (layer {fewest[0].index}) to {most[1].at} (layer {most[0].index})"
    counts = str(fewest[1].at) if fewest[1].at == most[1].at else counts
    return f"{which} needs {counts} of its {range_words(layer.heads for layer in model.layers)} heads."


def range_words(counts: Any) -> str:
    """`6`, or `4 to 6`."""
    values = sorted(set(counts))
    return f"{values[0]} to {values[-1]}" if len(values) > 1 else str(values[0])


def short_of_words(model: "TrainedModel") -> str:
    """Say which layers are short of heads, of rank, of both or of neither."""
    judged: dict[str, list[LayerReading]] = {}
    for layer in model.layers:
        if layer.verdict is not None:
            judged.setdefault(layer.verdict, []).append(layer)
    if not judged:
        full = [layer for layer in model.layers if layer.needed is not None and layer.needed.low == layer.heads]
        return f"Cannot lose a head: {layers_listed(full)}." if full else ""
    if list(judged) == ["neither"]:
        which = "layer" if len(judged["neither"]) == len(model.layers) else "layer read so far"
        return f"No {which} is short of heads or of rank: each can lose some of both."
    parts = [f"{words}: {layers_listed(judged[what])}" for what, words in VERDICTS.items() if what in judged]
    return as_sentence("; ".join(parts))


def layer_grids(model: "TrainedModel") -> Iterator[Grid]:
    """Tables of what every layer needs, and of what one step less costs."""
    read = [layer for layer in model.layers if layer.needed is not None or layer.ranks]
    if not read:
        return
    coverage = f"{100 * COVERAGE:.0f} %"
    omitted = "; -: not measured at effort quick" if model.effort == "quick" else ""
    yield Grid(
        title=f"Each layer alone, within a loss increase of {decimal(model.budget)} [{coverage} of resamples]; "
        f"what it is short of, and in how many resamples (fewer than {coverage}: undecided){omitted}",
        columns=("layer", "heads", "needed", "transition", "scores rank", "values rank", "short of"),
        rows=tuple(map(_row, read)),
    )
    unit = model.budget if model.budget > 0 else 1.0  # the loss itself where no increase is allowed
    yield Grid(
        title=f"What one step less costs, in tolerances: 1 is a loss increase of {decimal(unit)}",
        columns=("layer", "one head fewer", "lower scores rank", "lower values rank"),
        rows=tuple(_step_row(layer, unit) for layer in read),
        folded=True,
    )


def _row(layer: LayerReading) -> tuple[str, ...]:
    transition = layer.transition
    drop = "-" if transition is None else "none" if transition.heads is None else str(transition.heads)
    ranks = [str(layer.ranks[kind]) if kind in layer.ranks else "-" for kind in KINDS]
    short_of = (layer.short_of or "-") + (f", {layer.support:.0%}" if layer.support else "")
    return str(layer.index), str(layer.heads), str(layer.needed or "-"), drop, *ranks, short_of


def _step_row(layer: LayerReading, unit: float) -> tuple[str, ...]:
    ranks = [layer.ranks[kind].curve if kind in layer.ranks else None for kind in KINDS]
    return str(layer.index), *(_step_words(curve, unit) for curve in (layer.curve, *ranks))


def _step_words(curve: Increases | None, unit: float) -> str:
    """The loss increase at the place before the original, and that place where it is not one less."""
    if curve is None or len(curve.at) < 2:
        return "-"
    at, (low, high) = curve.mean[-2] / unit, curve.bounds[:, -2] / unit
    place = "" if curve.at[-2] == curve.at[-1] - 1 else f"{curve.at[-2]}: "
    return f"{place}{at:.2g} [{low:.2g}, {high:.2g}]"
