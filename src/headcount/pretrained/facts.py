"""What an inspection measures of a trained model, fact by fact, in the order in which they are measured.

Every fact is a function of the original model, the examples and the facts before it, so that a run that was ended goes
on to the same numbers. Between two facts the evaluation stands on the original.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .effort import Schedule
from .kept_statistics import KeptStatistics
from .running import Fact

if TYPE_CHECKING:
    from .evaluation import Evaluation

Values = Mapping[str, Any]
"""Facts by name."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Subject:
    """A model on its examples, and how much is measured of it.

    Args:
        evaluation: Runs the model.
        statistics: Of the original's layers.
        schedule: How much is measured.
        model: The fact "model".
        data: The fact "data" but for its scale, which the base losses give.
        scale_of: The loss's scale, from the base losses.
        seed: Of everything that is drawn.
    """

    evaluation: "Evaluation"
    statistics: KeptStatistics
    schedule: Schedule
    model: Mapping[str, Any]
    data: Mapping[str, Any]
    scale_of: Callable[[np.ndarray], float]
    seed: int = 0


def on_original(evaluation: "Evaluation", fact: Fact) -> Fact:
    """The same fact; the evaluation stands on the original again afterwards, also after an error."""

    def measure(values: Values) -> Any:
        try:
            return fact.measure(values)
        finally:
            evaluation.settle({})

    return replace(fact, measure=measure)


def facts_of(subject: Subject) -> tuple[Fact, ...]:
    """All facts of a model, in order."""
    passes, layers = subject.schedule.passes, range(len(subject.evaluation.layers))
    share = 1 / len(layers)

    def fact(name: str, phase: str, work: float, measure: Callable[[Values], Any]) -> Fact:
        return Fact(name=name, phase=phase, work=work, measure=measure)

    def by_layer(kind: str, words: str, measure: Callable[[Subject, int], Any]) -> list[Fact]:
        return [
            fact(
                f"{kind}/{index}",
                f"{words}, layer {index + 1} of {len(layers)}",
                passes[kind] * share,
                lambda _, index=index: measure(subject, index),
            )
            for index in layers
        ]

    facts = [
        fact("model", "reading the model", 0.0, lambda _: dict(subject.model)),
        fact("base", "losses of the original", passes["base"], lambda _: {"losses": _base(subject).tolist()}),
        fact("data", "losses of the original", 0.0, lambda _: _data(subject)),
        fact("statistics", "statistics of all layers", passes["statistics"], lambda _: _statistics(subject)),
        *by_layer("importance", "importance of each head", layer_importance),
        *by_layer("curve", "removing heads one by one", layer_curve),
    ]
    if subject.schedule.effort.ranks:
        facts += by_layer("rank", "lowering ranks", layer_ranks)
    facts += by_layer("redundancy", "comparing heads", layer_redundancy)
    facts.append(fact("descent", "removing heads from the whole model", passes["descent"], lambda _: descent(subject)))
    if subject.schedule.effort.peers:
        facts += [
            fact(
                f"peer/{name}",
                f"the heads that {name} would remove",
                passes["peers"] / len(PEERS),
                lambda values, name=name: peer(subject, name, values),
            )
            for name in PEERS
        ]
        facts.append(fact("peers", "peers", 0.0, lambda values: collected_peers(values)))
    return tuple(facts)


def _base(subject: Subject) -> np.ndarray:
    return subject.evaluation.losses()


def _data(subject: Subject) -> dict[str, Any]:
    return {**subject.data, "scale": float(subject.scale_of(_base(subject)))}


def _statistics(subject: Subject) -> dict[str, int]:
    """Measured here, so that the time is that of this fact; the numbers themselves are in a file of their own."""
    return {"tokens": subject.statistics.layers[0].tokens}
