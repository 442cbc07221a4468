"""What an inspection measures of a trained model, fact by fact, in the order in which they are measured.

Every fact is a function of the original model, the examples and the facts before it, so that a run that was ended goes
on to the same numbers. Between two facts the evaluation stands on the original.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .effort import Schedule
from .kept_statistics import KeptStatistics
from .running import Fact
from .whole_model import descent_facts, peer_facts

if TYPE_CHECKING:
    from ..evaluation.evaluate import Evaluation

Values = Mapping[str, Any]
"""Facts by name."""
ATTENTION_EXAMPLES = 8
"""Examples on which heads are compared by what they read."""


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
    """

    evaluation: "Evaluation"
    statistics: KeptStatistics
    schedule: Schedule
    model: Mapping[str, Any]
    data: Mapping[str, Any]
    scale_of: Callable[[np.ndarray], float]

    @cached_property
    def reading(self) -> tuple[np.ndarray, ...] | None:
        """How far heads of each layer read the same tokens, on a few examples; None where the model does not say."""
        return self.evaluation.same_reading(ATTENTION_EXAMPLES)


def facts_of(subject: Subject) -> tuple[Fact, ...]:
    """All facts of a model but its configurations, in order."""
    passes, layers = subject.schedule.passes, range(len(subject.evaluation.layers))

    def by_layer(kind: str, words: str, measure: Callable[[Subject, int], Any]) -> list[Fact]:
        return [
            Fact(
                name=f"{kind}/{index}",
                phase=f"{words}, layer {index + 1} of {len(layers)}",
                work=passes[kind] / len(layers),
                measure=lambda _, index=index: measure(subject, index),
            )
            for index in layers
        ]

    def whole(name: str, words: str, work: float, measure: Callable[[Values], Any]) -> Fact:
        return Fact(name=name, phase=words, work=work, measure=measure)

    facts = [
        whole("model", "reading the model", 0.0, lambda _: dict(subject.model)),
        whole("base", "losses of the original", passes["base"], lambda _: _base(subject)),
        whole("data", "losses of the original", 0.0, lambda values: _data(subject, values)),
        whole("statistics", "statistics of all layers", passes["statistics"], lambda _: _statistics(subject)),
        *by_layer("importance", "importance of each head", importance_of),
        *by_layer("curve", "removing heads one by one", curve_of),
    ]
    if subject.schedule.effort.rank_points:
        facts += by_layer("rank", "lowering ranks", ranks_of)
    facts += by_layer("redundancy", "comparing heads", redundancy_of)
    facts += descent_facts(subject)
    facts += peer_facts(subject)
    return tuple(facts)


def on_original(evaluation: "Evaluation", facts: Sequence[Fact]) -> list[Fact]:
    """The same facts; the evaluation stands on the original again after each, also after an error."""

    def settled(measure: Callable[[Values], Any]) -> Callable[[Values], Any]:
        def measured(values: Values) -> Any:
            try:
                return measure(values)
            finally:
                evaluation.settle({})

        return measured

    return [replace(fact, measure=settled(fact.measure)) for fact in facts]


def _base(subject: Subject) -> dict[str, Any]:
    return {"losses": subject.evaluation.losses().tolist()}


def _data(subject: Subject, values: Values) -> dict[str, Any]:
    return {**subject.data, "scale": float(subject.scale_of(np.array(values["base"]["losses"])))}


def _statistics(subject: Subject) -> dict[str, int]:
    """Measured here, so that the time is that of this fact; the numbers themselves are in a file of their own."""
    return {"tokens": subject.statistics.layers[0].tokens}


def curve_of(subject: Subject, index: int) -> dict[str, Any]:
    """The fact "curve/L": held-out losses as one layer loses its heads."""
    from ..removal.elimination import layer_curve

    curve = layer_curve(subject.evaluation, index, statistics=subject.statistics.layers[index])
    return {"order": list(map(int, curve.order)), "kept": list(map(int, curve.kept)), "losses": curve.losses.tolist()}


def importance_of(subject: Subject, index: int) -> dict[str, Any]:
    """The fact "importance/L": what each head of a layer is worth, by every measure that was taken."""
    from ..removal.importance import layer_importance

    statistics = subject.statistics.layers[index]
    found = layer_importance(subject.evaluation, index, statistics, leave_one_out=subject.schedule.leave_one_out)
    return {name: values.tolist() for name, values in vars(found).items() if values is not None}


def ranks_of(subject: Subject, index: int) -> dict[str, Any]:
    """The fact "rank/L": held-out losses as the rank of all its heads falls."""
    from ..rank.low_rank import rank_curve

    evaluation, statistics = subject.evaluation, subject.statistics.layers[index]
    ranks = subject.schedule.effort.ranks_of(evaluation.layers[index].head_dim)
    curves = rank_curve(evaluation, index, ranks, statistics=statistics)
    return {
        kind: {"ranks": list(map(int, tried)), "losses": np.asarray(losses).tolist()}
        for kind, (tried, losses) in curves.items()
    }


def redundancy_of(subject: Subject, index: int) -> dict[str, Any]:
    """The fact "redundancy/L": heads that read the same tokens, key heads that could share keys or values."""
    from ..sharing.redundancy import redundancy
    from ..sharing.shared import rotary_frequencies

    evaluation, layer = subject.evaluation, subject.evaluation.layers[index]
    reading = subject.reading
    found = redundancy(
        evaluation.original[index],
        subject.statistics.layers[index],
        layer.rotary,
        layer.normed,
        frequencies=rotary_frequencies(evaluation.model, layer.rotary),
        reading=None if reading is None else reading[index],
    )
    return {name: None if values is None else values.tolist() for name, values in vars(found).items()}
