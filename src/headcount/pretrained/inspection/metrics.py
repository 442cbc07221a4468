"""Every metric of an inspection in the order of measuring, and what an unfinished one lacks. No torch."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .descent import descent_facts, peer_facts
from .heads import curve_facts
from .importance import importance_facts
from .measuring import Fact, Subject
from .ranks import rank_facts
from .redundancy import redundancy_facts
from .stored import ASKED, Facts, is_complete


class InspectionMetric(NamedTuple):
    """A kind of fact that is measured of a model.

    Args:
        kind: The name of its facts before the "/".
        words: What an inspection without it lacks; empty where that is not said.
        facts: What is measured of a subject.
        read: What the facts say, for `inspect --json` under the name `kind`; None: a field of `TrainedModel` does.
        by_layer: Whether there is a fact per layer, such as "curve/3".
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
