"""The metric `rank`: how low the rank of every head's scores and values can go, layer by layer."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...answer.answer_base import Interval
from ...report.chart import Chart, Level
from .drawing import drawn_at_bottom, increase_label, increase_series, needed_series, tolerance_level
from .facts import Facts, Increases
from .measuring import Fact, Subject

if TYPE_CHECKING:
    from .model import TrainedModel

KINDS = ("scores", "values")
"""Products of a head whose rank is lowered: W_Q^T W_K, which scores tokens, and W_V W_O, which writes what was read."""


@dataclass(frozen=True)
class RankReading:
    """Rank needed of one product of every head in a layer. `at_most`: the smallest rank tried is enough."""

    curve: Increases
    needed: Interval

    @property
    def full(self) -> int:
        return self.curve.at[-1]

    @property
    def at_most(self) -> bool:
        return len(self.curve.at) > 1 and self.needed.at == self.curve.at[0]

    def __str__(self) -> str:
        return f"at most {self.needed.at}" if self.at_most else str(self.needed)

    def as_dict(self) -> dict[str, Any]:
        return {"needed": vars(self.needed), "at_most": self.at_most, "curve": self.curve.as_dict()}


def rank_facts(subject: Subject) -> list[Fact]:
    """The facts "rank/L"; none where the effort does not lower ranks."""
    return subject.by_layer("rank", "lowering ranks", _measure_ranks) if subject.schedule.effort.rank_points else []


def _measure_ranks(subject: Subject, index: int) -> dict[str, Any]:
    from ..rank.low_rank import rank_curve

    ranks = subject.schedule.effort.ranks_of(subject.evaluation.layers[index].head_dim)
    curves = rank_curve(subject.evaluation, index, ranks, statistics=subject.statistics[index])
    return {
        kind: {"ranks": list(map(int, tried)), "losses": losses.tolist()} for kind, (tried, losses) in curves.items()
    }


def read_ranks(facts: Facts, layer: int) -> dict[str, RankReading]:
    """Rank needed of scores and of values, where it was measured."""
    readings = {}
    for kind in KINDS:
        stored = facts.fact(f"rank/{layer}").get(kind) or {}
        full = max([facts.number("head_dim", layer), *(stored.get("ranks") or ())])
        curve = facts.curve(stored, "ranks", full, f"rank/{layer}")
        if curve is not None:
            readings[kind] = RankReading(curve, curve.needed(facts.budget))
    return readings


def rank_needed_chart(model: "TrainedModel") -> Chart | None:
    """Rank needed per layer, of scores and of values, with their intervals."""
    layers = tuple(layer.index for layer in model.layers)
    series, most = [], 0
    for place, kind in enumerate(KINDS):
        readings = [layer.ranks.get(kind) for layer in model.layers]
        most = max([most, *(each.full for each in readings if each is not None)])
        if any(readings):
            needs = [None if each is None else each.needed for each in readings]
            series.append(needed_series(f"rank of {kind}", layers, needs, place=place))
    if not series:
        return None
    return Chart(
        name="rank-needed",
        title="Rank needed per layer",
        x_label="layer",
        y_label="rank of every head",
        x_ticks=layers,
        series=tuple(series),
        caption="line: lowest rank tried within the tolerance, all other layers unchanged; band: 90 % of resamples, "
        "and ranks between the tried ones; scores: W_Q^T W_K; values: W_V W_O",
        log_y=False,
        levels=(Level("full", f"head dim: {most}", float(most), str(most)),),
        spread="resamples",
    )


def rank_chart(model: "TrainedModel") -> Chart | None:
    """The loss increase against the rank of scores and of values, a line per layer."""
    series, ranks = [], set()
    for place, kind in enumerate(KINDS):
        curves = [layer.ranks[kind].curve for layer in model.layers if kind in layer.ranks]
        series += [increase_series(f"rank of {kind}", curve, model, place=place, thin=True) for curve in curves]
        ranks |= {at for curve in curves for at in curve.at if at > 0}
    if not series:
        return None
    return Chart(
        name="loss-against-rank",
        title="Loss increase against rank, each layer alone",
        x_label="rank of every head in the layer",
        y_label=increase_label(model),
        x_ticks=tuple(sorted(ranks)),
        series=tuple(series),
        caption=f"a line per layer, all other layers unchanged{drawn_at_bottom(model)}",
        log_x=True,
        levels=tolerance_level(model),
        spread="resamples",
    )
