"""Facts that are measured one after another, each stored at once; a stored fact is not measured again.

Every fact is a function of the original model, the examples and the facts before it, so a run that was ended continues
to the same numbers. Between two facts the evaluation stands on the original.
"""

import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import StoreError
from ...report.phases import Phases
from ...store import Experiment
from ...store.weights import Weights, read_weights, write_weights
from ..layers.weights import LayerStatistics
from .effort import Schedule
from .facts import LAST_FACT, SPENT, TOLERANCE

if TYPE_CHECKING:
    from ..evaluation.evaluate import Evaluation
    from ..examples.batches import SplitExamples
    from ..loading.load import Loaded

Values = Mapping[str, Any]
"""Facts by name."""
ATTENTION_EXAMPLES = 8
"""Examples on which heads are compared by what they read."""


@dataclass(frozen=True, kw_only=True)
class Fact:
    """Something to measure, stored under `name`, such as "curve/3".

    `phase` is shown meanwhile; `work` is its expected cost in passes of the whole model over the held-out examples;
    `measure` returns a value that JSON can hold, given the facts so far.
    """

    name: str
    phase: str
    work: float
    measure: Callable[[Values], Any]


@dataclass(eq=False, kw_only=True)
class Subject:
    """A model on its examples, and how much is measured of it.

    `model` and `data` are the facts of these names; the scale of `data` comes from the base losses. `tolerance` decides
    no fact. `read_by` are the options with which other verbs read the same model and data; None where no command can.
    `file` keeps the statistics while the inspection is unfinished.
    """

    evaluation: "Evaluation"
    schedule: Schedule
    model: Mapping[str, Any]
    data: Mapping[str, Any]
    experiment: Experiment
    tolerance: float = TOLERANCE
    read_by: "dict[str, Any] | None" = None
    file: Path | None = None

    @property
    def loaded(self) -> "Loaded":
        return self.evaluation.loaded

    @property
    def examples(self) -> "SplitExamples":
        return self.evaluation.examples

    @cached_property
    def statistics(self) -> tuple[LayerStatistics, ...]:
        """Statistics of the original's layers: read from the file, or measured once and written there."""
        if self.file is not None and self.file.exists():
            try:
                return from_arrays(read_weights(self.file))
            except StoreError:
                self.file.unlink()  # damaged: measured again
        statistics = self.evaluation.statistics()
        if self.file is not None:
            try:
                write_weights(self.file, to_arrays(statistics))
            except OSError as error:
                raise StoreError(f"{self.file} cannot be written: {error.strerror or error}.") from error
        return statistics

    @cached_property
    def same_reading(self) -> tuple[np.ndarray, ...] | None:
        """Similarity of the attention of heads of each layer on a few examples; None where the model does not say."""
        return self.evaluation.same_reading(ATTENTION_EXAMPLES)

    def by_layer(self, kind: str, words: str, measure: Callable[["Subject", int], Any]) -> list[Fact]:
        """Return a fact per layer."""
        layers = range(len(self.evaluation.layers))
        return [
            Fact(
                name=f"{kind}/{index}",
                phase=f"{words}, layer {index + 1} of {len(layers)}",
                work=self.schedule.passes.get(kind, 0.0) / len(layers),
                measure=lambda _, index=index: measure(self, index),
            )
            for index in layers
        ]


def measure_facts(
    subject: Subject,
    facts: Iterable[Fact],
    kept: Values,
    keep: Callable[[str, Any], None],
    *,
    phases: Phases | None = None,
) -> dict[str, Any]:
    """Measure the facts that are not in `kept`, in order, and return all; `keep` stores each new one at once."""
    phases, values = phases or Phases(0.0), dict(kept)
    before = values.get(SPENT) or {"peak_bytes": 0, "forward_tokens": 0, "facts": {}}
    seconds = dict(before["facts"])
    for fact in facts:
        if fact.name in values:
            continue
        phases.begin(fact.phase, fact.work)
        began = time.perf_counter()
        try:
            values[fact.name] = fact.measure(values)
        finally:
            subject.evaluation.settle({})
        keep(fact.name, values[fact.name])
        seconds[fact.name] = round(time.perf_counter() - began, 3)
        values[SPENT] = {
            "seconds": round(sum(seconds.values()), 3),
            "peak_bytes": max(before["peak_bytes"], peak_bytes()),
            "forward_tokens": round(before["forward_tokens"] + subject.evaluation.forward_tokens),
            "facts": dict(seconds),
        }
        keep(SPENT, values[SPENT])
        phases.end()
    if LAST_FACT not in values:
        values[LAST_FACT] = values.get(SPENT, {})
        keep(LAST_FACT, values[LAST_FACT])
    return values


def peak_bytes() -> int:
    """The most memory this process has had so far; 0 where the system does not say (Windows)."""
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def to_arrays(statistics: tuple[LayerStatistics, ...]) -> Weights:
    """All numbers, by layer and name."""
    return {
        f"{index}.{name}": np.asarray(value)
        for index, layer in enumerate(statistics)
        for name, value in vars(layer).items()
        if value is not None
    }


def from_arrays(arrays: Weights) -> tuple[LayerStatistics, ...]:
    """The statistics that `to_arrays` was given."""
    layers: dict[int, dict[str, Any]] = {}
    for key, value in arrays.items():
        index, name = key.split(".")
        layers.setdefault(int(index), {})[name] = value if value.ndim else value.item()
    return tuple(LayerStatistics(**layers[index]) for index in sorted(layers))
