"""Heads needed as a prediction of what the descent keeps of a layer."""

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...report.chart import HeatMap
from .correlation import MIN_PAIRS, UNDECIDED, Correlation, correlation
from .descent import WholeModel, kept_by_layer
from .layers import LayerReading

if TYPE_CHECKING:
    from .model import TrainedModel


@dataclass(frozen=True)
class Prediction:
    """Heads needed and heads kept per layer after `removed` heads are gone, and how they correlate."""

    removed: int
    needed: tuple[int, ...]
    kept: tuple[int, ...]
    correlation: Correlation | None


def read_prediction(layers: tuple[LayerReading, ...], whole: WholeModel | None) -> Prediction | None:
    """The two counts per layer where the descent ends: there layers differ most in what they keep."""
    needed = [layer.needed.at for layer in layers if layer.needed is not None]
    if whole is None or not whole.removed or len(needed) < len(layers):
        return None
    kept = kept_by_layer(layers, whole.removed)
    return Prediction(len(whole.removed), tuple(needed), kept, correlation(needed, kept))


def prediction_words(model: "TrainedModel") -> str:
    """The prediction in a sentence; empty where it was not measured."""
    found = model.prediction
    if found is None:
        return ""
    after = f"what the descent keeps of it after {found.removed} removals"
    if len(found.needed) < MIN_PAIRS:
        return f"Whether a layer's heads needed predict {after} cannot be said of {len(found.needed)} layers."
    if found.correlation is None:
        return f"Whether a layer's heads needed predict {after} cannot be said: the counts do not vary."
    numbers = f"rank correlation {found.correlation} over {found.correlation.count} layers"
    if found.correlation.strength == UNDECIDED:
        return f"Whether a layer's heads needed predict {after} is undecided: {numbers}."
    return f"A layer's heads needed predict {after}: {numbers} ({found.correlation.strength})."


def prediction_map(model: "TrainedModel") -> HeatMap | None:
    """The number of layers at each pair of heads needed and heads kept."""
    found = model.prediction
    if found is None:
        return None
    counted = Counter(zip(found.kept, found.needed, strict=True))
    rows = tuple(range(min(found.kept), max(found.kept) + 1))
    columns = tuple(range(min(found.needed), max(found.needed) + 1))
    values = np.array([[float(counted.get((kept, need), 0)) or np.nan for need in columns] for kept in rows])
    return HeatMap(
        name="needed-and-kept",
        title="Does heads needed predict what the descent keeps?",
        rows=rows,
        columns=columns,
        row_label="heads kept by the descent",
        column_label="heads needed, each layer alone",
        values=values,
        unit="layers",
        caption=f"number of layers at each pair of counts, after {found.removed} removals"
        + ("" if found.correlation is None else f"; rank correlation {found.correlation}"),
        counts=True,
        words=tuple(tuple("" if np.isnan(value) else f"{value:.0f}" for value in row) for row in values),
    )
