"""The metric `importance`: how much each head matters, how well cheap estimates rank the heads, and the map of them."""

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from ...answer.words import decimal
from ...report.chart import HeatMap
from .correlation import Correlation, correlation
from .facts import Facts
from .measuring import Fact, Subject

if TYPE_CHECKING:
    from .layers import LayerReading
    from .model import TrainedModel

MEASURES = {
    "leave_one_out": "loss increase without the head",
    "fisher": "Fisher estimate of the loss without the head (mean square of the gradient of a factor before it)",
    "gradient": "gradient of a factor before the head",
    "output_norm": "norm of the head's output",
    "magnitude": "size of the head's output weights",
}
"""Measures of importance in words, the most trusted first; the first is exact, the others estimate it."""
EXACT, *ESTIMATES = MEASURES
IMPORTANCE_SCALE = (0.1, 100.0)
"""The ends of the colours: per cent of the loss's scale, or of the largest."""
REMOVED = "\u00d7"
"""Written before the importance of a head that is removed."""


def importance_facts(subject: Subject) -> list[Fact]:
    return subject.by_layer("importance", "importance of each head", _measure_importance)


def _measure_importance(subject: Subject, index: int) -> dict[str, Any]:
    from ..removal.importance import layer_importance

    leave_one_out = subject.schedule.leave_one_out
    found = layer_importance(subject.evaluation, index, subject.statistics[index], leave_one_out=leave_one_out)
    return {name: values.tolist() for name, values in found.items()}


def read_importance(facts: Facts, layer: int, heads: int) -> dict[str, tuple[float, ...]]:
    """A value per head, by measure."""
    return {
        name: tuple(np.asarray(values, float).tolist())
        for name, values in facts.fact(f"importance/{layer}").items()
        if isinstance(values, list) and len(values) == heads
    }


def read_agreement(layers: "tuple[LayerReading, ...]") -> dict[str, Correlation]:
    """Correlate each estimate of importance with leaving heads out one by one, over all heads of the model."""
    measured = [layer.importance for layer in layers if EXACT in layer.importance]
    correlations = {}
    for name in ESTIMATES:
        both = [(each[EXACT], each[name]) for each in measured if name in each]
        found = correlation(*(np.concatenate(side) for side in zip(*both, strict=True))) if both else None
        if found is not None:
            correlations[name] = found
    return correlations


def importance_table(layers: "tuple[LayerReading, ...]", measure: str) -> Float[np.ndarray, "layers heads"]:
    """A measure by layer and head; NaN where there is no such head, or it was not measured."""
    table = np.full((len(layers), max(layer.heads for layer in layers)), np.nan)
    for row, layer in zip(table, layers, strict=True):
        known = layer.importance.get(measure, ())
        row[: len(known)] = known
    return table


def agreement_words(model: "TrainedModel") -> str:
    """Say how well cheap estimates rank the heads; "" where that is not known."""
    parts = [f"{name.replace('_', ' ')} {each} ({each.strength})" for name, each in model.agreement.items()]
    return f"rank correlation with leaving heads out one by one: {'; '.join(parts)}" if parts else ""


def importance_map(model: "TrainedModel") -> HeatMap | None:
    """Layers by heads, by the first measure that some layer has; None where nothing was measured."""
    name = next((name for name in MEASURES if any(name in layer.importance for layer in model.layers)), None)
    if name is None:
        return None
    values = importance_table(model.layers, name)
    exact = name == EXACT
    unit = model.scale if exact else np.nanmax(values) if np.isfinite(values).any() else 0.0
    per_cent = 100 * values / unit if unit > 0 else np.zeros_like(values)
    what = f"{MEASURES[name]}, % of {'the loss scale ' if exact else 'the largest, '}{decimal(unit)}"
    words = tuple(
        tuple(_cell(value, (layer.index, head) in model.removed) for head, value in enumerate(row))
        for layer, row in zip(model.layers, per_cent, strict=True)
    )
    removed = f"; {REMOVED}: removed ({_removed_by(model)})" if model.removed else ""
    return HeatMap(
        name="importance",
        title="Importance of every head",
        rows=tuple(layer.index for layer in model.layers),
        columns=tuple(range(values.shape[1])),
        row_label="layer",
        column_label="head",
        values=per_cent,
        unit="loss increase without the head, %" if exact else f"{name.replace('_', ' ')}, %",
        caption=f"{what}{removed}",
        words=words,
        scale=IMPORTANCE_SCALE,
        scale_label="% of the loss scale" if exact else "% of the largest",
        downward=True,
    )


def _removed_by(model: "TrainedModel") -> str:
    if model.recommended is not None and model.recommended.removed:
        return f"by the recommended configuration, {model.recommended.name}"
    return "" if model.whole is None else model.whole.gone_by


def _cell(value: float, removed: bool) -> str:
    """A number of per cent, short enough for a small cell."""
    if not np.isfinite(value):
        return "-"
    words = "0" if value < 0.005 else f"{value:.2f}".lstrip("0") if value < 0.995 else f"{float(f'{value:.2g}'):g}"
    return f"{REMOVED}{words}" if removed else words
