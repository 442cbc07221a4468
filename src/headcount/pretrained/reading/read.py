"""What an inspection says of a trained model: per layer, as a whole, and what it does not say."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ...answer.answer_base import Interval
from ...errors import StoreError
from .facts import TOLERANCE, Facts, IncreaseCurve, missing_facts
from .layers import LayerReading, RankReading, read_layer
from .pairs import Correlation, Pair, agreement, same_tokens, shared_keys
from .whole import (
    Configuration,
    Prediction,
    WholeModel,
    candidates,
    read_configurations,
    read_prediction,
    read_whole,
    recommended,
)

__all__ = ["TOLERANCE", "TrainedModel", "read_trained_model"]


@dataclass(frozen=True, kw_only=True)
class TrainedModel:
    """What is known of a trained model. What was not measured is None or empty.

    `model` and `data` are the stored facts. `tolerance` is the loss increase allowed, as a share of `scale`; `budget`
    is their product. `missing` is what an inspection that has not ended still lacks, in words. `agreement` has
    Spearman's correlation of every estimate of importance with leaving heads out. `same_tokens` are heads that read the
    same, `shared_keys` key heads whose keys can be shared. `recommended` is the cheapest of the `configurations` whose
    interval is within the tolerance and that a stock class stores small, `candidates` are all that one stores small.
    `effort` is empty where it is not known, `held_out` the number of held-out examples.
    """

    model: Mapping[str, Any]
    data: Mapping[str, Any]
    tolerance: float
    scale: float
    budget: float
    missing: tuple[str, ...] = ()
    layers: tuple[LayerReading, ...] = ()
    agreement: dict[str, Correlation] = field(default_factory=dict)
    same_tokens: tuple[Pair, ...] = ()
    shared_keys: tuple[Pair, ...] = ()
    whole: WholeModel | None = None
    configurations: tuple[Configuration, ...] = ()
    candidates: tuple[Configuration, ...] = ()
    recommended: Configuration | None = None
    prediction: Prediction | None = None
    effort: str = ""
    held_out: int = 0
    cost: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The model's name without the folder it lies in."""
        return str(self.model.get("name") or "the model").rstrip("/").split("/")[-1]

    @property
    def heads(self) -> int:
        """Heads of all layers."""
        return sum(layer.heads for layer in self.layers)

    @property
    def removed(self) -> frozenset[tuple[int, int]]:
        """The heads that the recommended configuration removes where it says so, else those that the descent removes
        within the tolerance."""
        if self.recommended is not None and self.recommended.removed:
            return frozenset(self.recommended.removed)
        return frozenset() if self.whole is None else frozenset(self.whole.gone)

    def as_dict(self) -> dict[str, Any]:
        """As JSON."""
        whole, prediction = self.whole, self.prediction
        return {
            "model": dict(self.model),
            "data": dict(self.data),
            "tolerance": self.tolerance,
            "scale": self.scale,
            "missing": list(self.missing),
            "layers": [_layer(layer) for layer in self.layers],
            "agreement": {name: asdict(each) for name, each in self.agreement.items()},
            "same_tokens": [asdict(pair) for pair in self.same_tokens],
            "shared_keys": [asdict(pair) for pair in self.shared_keys],
            "whole": None
            if whole is None
            else {
                "curve": _curve(whole.curve),
                "removable": asdict(whole.removable),
                "open_ended": whole.open_ended,
                "removed": [list(each) for each in whole.removed],
                "refit": whole.refit,
                "order": whole.order,
                "peers": {peer.label: _curve(peer.curve) for peer in whole.peers},
            },
            "configurations": [asdict(each) for each in self.configurations],
            "recommended": None if self.recommended is None else self.recommended.name,
            "prediction": None if prediction is None else asdict(prediction),
            "cost": dict(self.cost),
        }


def read_trained_model(attachments: Mapping[str, Any], *, tolerance: float | None = None) -> TrainedModel:
    """Read the facts of an inspection, also of one that has not ended.

    Arguments: `attachments` are the facts by name, as a store has them; `tolerance` is the loss increase allowed, as a
    share of the loss's scale, None: as the inspection was asked. Raises StoreError where a fact is not
    what an inspection writes.

    Example:
        >>> read_trained_model({"model": {"name": "tiny", "layers": 2, "heads": 4}}).heads
        8
    """
    try:
        return _read(Facts(attachments, tolerance))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise StoreError(f"the facts of an inspection cannot be read: {type(error).__name__}: {error}.") from error


def _read(facts: Facts) -> TrainedModel:
    layers = tuple(read_layer(facts, index) for index in facts.layers())
    whole, configurations = read_whole(facts, layers), read_configurations(facts)
    return TrainedModel(
        model=facts.model,
        data=facts.data,
        tolerance=facts.tolerance,
        scale=facts.scale,
        budget=facts.budget,
        missing=missing_facts(facts.attachments),
        layers=layers,
        agreement=agreement(layers),
        same_tokens=same_tokens(facts),
        shared_keys=shared_keys(facts),
        whole=whole,
        configurations=configurations,
        candidates=candidates(facts, configurations),
        recommended=recommended(facts, configurations),
        prediction=read_prediction(layers, whole),
        effort=facts.effort,
        held_out=len(facts.base),
        cost=facts.of("cost"),
    )


def _layer(layer: LayerReading) -> dict[str, Any]:
    transition = layer.transition
    return {
        "layer": layer.index,
        "heads": layer.heads,
        "needed": _interval(layer.needed),
        "curve": None if layer.curve is None else _curve(layer.curve),
        "order": list(layer.order),
        "transition": None
        if transition is None
        else {"heads": _interval(transition.heads), "sentence": transition.sentence},
        "ranks": {kind: _rank(reading) for kind, reading in layer.ranks.items()},
        "short_of": layer.short_of,
        "support": layer.support,
        "evidence": list(layer.evidence),
        "importance": {name: list(map(_known, values)) for name, values in layer.importance.items()},
        "sentence": layer.sentence,
    }


def _rank(reading: RankReading) -> dict[str, Any]:
    return {"needed": asdict(reading.needed), "at_most": reading.at_most, "curve": _curve(reading.curve)}


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _interval(interval: Interval | None) -> dict[str, int] | None:
    return None if interval is None else asdict(interval)


def _curve(curve: IncreaseCurve) -> dict[str, list[float]]:
    low, high = curve.bounds
    return {"at": list(curve.at), "mean": curve.mean.tolist(), "low": low.tolist(), "high": high.tolist()}
