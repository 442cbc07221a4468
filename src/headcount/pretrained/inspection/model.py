"""The reading of an inspection: every metric from the stored facts, at a tolerance. No torch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...errors import StoreError
from .correlation import Correlation
from .descent import WholeModel, descent_facts, peer_facts, read_whole
from .facts import ASKED, Facts, as_json, is_complete
from .heads import curve_facts
from .importance import importance_facts, read_agreement
from .layers import LayerReading, read_layer
from .measuring import Fact, Subject
from .prediction import Prediction, read_prediction
from .ranks import rank_facts
from .recommended import Configuration, read_candidates, read_configurations, read_recommended
from .redundancy import Pair, redundancy_facts, same_tokens, shared_keys


@dataclass(frozen=True, kw_only=True)
class TrainedModel:
    """The reading of an inspection. Whatever was not measured is None or empty.

    `model` and `data` are the stored facts. `tolerance` is the loss increase allowed, as a share of `scale`; `budget`
    is their product. `missing` is what an inspection that has not ended still lacks, in words. `agreement` has
    Spearman's correlation of every estimate of importance with leaving heads out. `recommended` is the cheapest of the
    `configurations` whose interval is within the tolerance and that a stock class stores small, `candidates` are all
    that one stores small. `effort` is empty where it is not known, `held_out` the number of held-out examples.
    `metrics` is what metrics without a field of their own say, as JSON, by their kind.
    """

    model: Mapping[str, Any]
    data: Mapping[str, Any]
    tolerance: float
    scale: float
    budget: float
    missing: tuple[str, ...]
    layers: tuple[LayerReading, ...]
    agreement: dict[str, Correlation]
    same_tokens: tuple[Pair, ...]
    shared_keys: tuple[Pair, ...]
    whole: WholeModel | None
    configurations: tuple[Configuration, ...]
    candidates: tuple[Configuration, ...]
    recommended: Configuration | None
    prediction: Prediction | None
    effort: str
    held_out: int
    cost: Mapping[str, Any]
    metrics: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.model.get("name") or "the model").rstrip("/").split("/")[-1]

    @property
    def heads(self) -> int:
        return sum(layer.heads for layer in self.layers)

    @property
    def removed(self) -> frozenset[tuple[int, int]]:
        """The heads that the recommended configuration removes where it says so, else those that the descent removes
        within the tolerance."""
        if self.recommended is not None and self.recommended.removed:
            return frozenset(self.recommended.removed)
        return frozenset() if self.whole is None else frozenset(self.whole.gone)

    def as_dict(self) -> dict[str, Any]:
        """As JSON; numbers that only the sentences need are not in it."""
        omitted = ("budget", "candidates", "effort", "held_out", "metrics")
        fields = {name: value for name, value in vars(self).items() if name not in omitted}
        recommended = None if self.recommended is None else self.recommended.name
        return as_json(fields | {"recommended": recommended} | self.metrics)


def read_trained_model(stored: Mapping[str, Any], *, tolerance: float | None = None) -> TrainedModel:
    """Read the facts of an inspection, also of one that has not ended; without a tolerance, at the one it asked for.

    Raises StoreError for a fact that an inspection does not write.

    Example:
        >>> read_trained_model({"model": {"name": "tiny", "layers": 2, "heads": 4}}).heads
        8
    """
    try:
        return _read_model(Facts(stored, tolerance))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise StoreError(f"the facts of an inspection cannot be read: {type(error).__name__}: {error}.") from error


def _read_model(facts: Facts) -> TrainedModel:
    layers = tuple(read_layer(facts, index) for index in facts.layers())
    whole, configurations = read_whole(facts, layers), read_configurations(facts)
    candidates = read_candidates(facts, configurations)
    return TrainedModel(
        model=facts.model,
        data=facts.data,
        tolerance=facts.tolerance,
        scale=facts.scale,
        budget=facts.budget,
        missing=missing_facts(facts.stored),
        layers=layers,
        agreement=read_agreement(layers),
        same_tokens=same_tokens(facts),
        shared_keys=shared_keys(facts),
        whole=whole,
        configurations=configurations,
        candidates=candidates,
        recommended=read_recommended(facts, candidates),
        prediction=read_prediction(layers, whole),
        effort=facts.effort,
        held_out=len(facts.base),
        cost=facts.fact("cost"),
        metrics={metric.kind: metric.read(facts) for metric in METRICS if metric.read is not None},
    )


def head_rows(experiment: str, stored: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One flat row per head: every measured importance, its place in the order of removal from its layer and from the
    whole model (0 is removed first), and how many heads its layer needs. None: not measured."""
    model, rows = read_trained_model(stored), []
    removed = () if model.whole is None else model.whole.removed
    for layer in model.layers:
        for head in range(layer.heads):
            at = (layer.index, head)
            row: dict[str, Any] = {"experiment": experiment, "model": model.name, "layer": layer.index, "head": head}
            row |= {measure: values[head] for measure, values in layer.importance.items()}
            row["removed_from_layer"] = layer.order.index(head) if head in layer.order else None
            row["removed_from_model"] = removed.index(at) if at in removed else None
            row["needed_in_layer"] = None if layer.needed is None else layer.needed.at
            rows.append(row)
    return rows


class InspectionMetric(NamedTuple):
    """A kind of fact that is measured of a model; with `by_layer` a fact per layer, such as "curve/3".

    `words` say what an inspection without it lacks; empty where that is not said. `read` returns what `inspect --json`
    has under the name `kind`; None where a field of `TrainedModel` has it.
    """

    kind: str
    words: str
    facts: Callable[[Subject], list[Fact]]
    read: Callable[[Facts], Any] | None = None
    by_layer: bool = True


METRICS = (
    InspectionMetric("importance", "importance of heads", importance_facts),
    InspectionMetric("curve", "heads needed", curve_facts),
    InspectionMetric("rank", "rank needed", rank_facts),
    InspectionMetric("redundancy", "redundancy", redundancy_facts),
    InspectionMetric("descent", "heads removed from the whole model", descent_facts, by_layer=False),
    InspectionMetric("peers", "", peer_facts, by_layer=False),
)


def missing_facts(stored: Mapping[str, Any]) -> tuple[str, ...]:
    """List what an unfinished inspection still lacks, in words; empty for a complete one."""
    if is_complete(stored):
        return ()
    layers = int((stored.get("model") or {}).get("layers") or 0)
    asked = {name.split("/")[0] for name in (stored.get(ASKED) or {}).get("facts") or ()}
    missing = [name for name in ("model", "data", "base") if name not in stored]
    for metric in METRICS:
        lacking = sum(f"{metric.kind}/{layer}" not in stored for layer in range(layers)) if metric.by_layer else 0
        if metric.by_layer and lacking and metric.kind in (asked or (metric.kind,)):
            missing.append(f"{metric.words} ({lacking} of {layers} layers)")
        if not metric.by_layer and metric.words and metric.kind not in stored:
            missing.append(metric.words)
    return (*missing, *({"configurations"} - stored.keys()))
