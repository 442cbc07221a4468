"""The metric `curve`: heads needed per layer, all other layers unchanged, and the transition in each layer's curve."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...answer.answer_base import Interval
from ...answer.bootstrap import interval_of
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
from ...answer.words import listed
from ...report.chart import Chart, Level, Series
from .drawing import drawn_at_bottom, increase_label, increase_series, needed_series, tolerance_level
from .facts import Increases
from .measuring import Fact, Subject
from .redundancy import MAX_LISTED

if TYPE_CHECKING:
    from .layers import LayerReading
    from .model import TrainedModel

FEW_LAYERS = 7
"""Layers that have a line of their own; more are drawn thin, in three colours by depth."""
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


def curve_facts(subject: Subject) -> list[Fact]:
    return subject.by_layer("curve", "removing heads one by one", _measure_curve)


def _measure_curve(subject: Subject, index: int) -> dict[str, Any]:
    from ..removal.elimination import layer_curve

    order, losses = layer_curve(subject.evaluation, index, subject.statistics[index])
    return {"order": list(map(int, order)), "kept": list(range(len(order), -1, -1)), "losses": losses.tolist()}


def transition_of(curve: Increases, budget: float) -> Transition:
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
    drawn = drop_indices(*_relative(curve.drawn[curve.drawn[:, 0] > budget], budget))
    agreeing = drawn[drawn != NONE]
    if len(agreeing) < len(curve.drawn) / 2:
        return Transition(None, "no transition found: most resamples of the held-out examples show none")
    at = tried[drop.index]
    return Transition(Interval(at, *interval_of(tried, drop.index, agreeing)), f"at {at}: {reason}")


def _relative(mean: np.ndarray, budget: float) -> tuple[np.ndarray, np.ndarray]:
    """Resamples x heads x 1: increases as shares of that without any head, and the same with the budget on top."""
    # An increase without any head that is next to nothing of the largest counts as 1e-12 of it: shares stay finite.
    none = np.maximum(mean[:, :1], 1e-12 * np.abs(mean).max(axis=1, keepdims=True))
    least = np.broadcast_to(budget / none, mean[:, 1:].shape)
    best = np.clip(mean[:, 1:] / none, least, None)
    return best[..., None], (best + least)[..., None]


def transition_rows(model: "TrainedModel") -> Iterator[tuple[str, str]]:
    """Yield the transitions in words, layers with the same sentence together."""
    by_sentence: dict[str, list[LayerReading]] = {}
    for layer in model.layers:
        if layer.transition is not None:
            by_sentence.setdefault(layer.transition.sentence, []).append(layer)
    for sentence, layers in by_sentence.items():
        yield "transition", f"{layers_listed(layers)}: {sentence}"


def layers_listed(layers: "list[LayerReading]") -> str:
    """`layer 3`, `layers 1 and 2`, `layers 0 to 5`, `9 layers`."""
    indices = [layer.index for layer in layers]
    run = indices == list(range(indices[0], indices[-1] + 1))
    if len(indices) > MAX_LISTED and not run:
        return f"{len(indices)} layers"
    return f"{'layer' if len(indices) == 1 else 'layers'} {listed(indices)}"


def needed_chart(model: "TrainedModel") -> Chart | None:
    """Heads needed per layer with their interval, and what the descent keeps of it."""
    needs = [layer.needed for layer in model.layers]
    if not any(needs):
        return None
    layers = tuple(layer.index for layer in model.layers)
    series = [needed_series("heads needed, each layer alone", layers, needs)]
    if model.prediction is not None:
        kept = tuple(map(float, model.prediction.kept))
        series.append(Series(f"kept by the descent after {model.prediction.removed} removals", layers, kept, place=1))
    most = max(layer.heads for layer in model.layers)
    return Chart(
        name="heads-needed",
        title="Heads needed per layer",
        x_label="layer",
        y_label="attention heads",
        x_ticks=layers,
        series=tuple(series),
        caption="line: fewest heads within the tolerance, all other layers unchanged; band: 90 % of resamples",
        log_y=False,
        levels=(Level("all", f"heads of a layer: {most}", float(most), str(most)),),
        spread="resamples",
    )


def layers_chart(model: "TrainedModel") -> Chart | None:
    """The loss increase against heads kept in one layer, a line per layer."""
    read = [(layer.index, layer.curve) for layer in model.layers if layer.curve is not None]
    if not read:
        return None
    total = len(model.layers)
    few = total <= FEW_LAYERS
    series = []
    for index, curve in read:
        place = index if few else 3 * index // total
        name = f"layer {index}" if few else _third(place, total)
        series.append(increase_series(name, curve, model, place=place, thin=not few))
    return Chart(
        name="loss-against-heads-kept-by-layer",
        title="Loss increase against heads kept, each layer alone",
        x_label="attention heads kept in the layer",
        y_label=increase_label(model),
        x_ticks=tuple(range(max(curve.at[-1] for _, curve in read) + 1)),
        series=tuple(series),
        caption=f"a line per layer, all other layers unchanged{drawn_at_bottom(model)}",
        levels=tolerance_level(model),
        spread="resamples",
    )


def _third(place: int, layers: int) -> str:
    """The layers of one third of the depth."""
    first, last = (-(-place * layers // 3), -(-(place + 1) * layers // 3) - 1)
    return f"layers {first} to {last}"
