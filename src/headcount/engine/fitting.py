"""Whether what is asked for can be trained at all: sizes and memory by arithmetic, before anything is made."""

import math
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import asdict
from typing import Any

from .._limits import MAX_STEPS, max_bytes, require_size, require_within, too_large
from ..models import AbstractSpec
from ..store import TrainSpec
from ..tasks import AbstractTask
from .data import PROBE_EXAMPLES

DRAWN_FREELY = ("seed", "data_seed", "task_seed")
"""Axes whose values are names of draws, not sizes."""
STATES = 3
"""Weights, and two moments of Adam."""


def require_axes_fit(axes: Mapping[str, Sequence[Any]]) -> None:
    """Raise `InputError` if axes have more combinations than are allowed, or a value that no machine can have."""
    counts = {axis: len(values) if isinstance(values, Sized) else 1 for axis, values in axes.items()}
    models = math.prod(counts.values())
    listed = " x ".join(f"{count:,} of {axis}" for axis, count in counts.items() if count > 1)
    require_within(f"{models:,} models are asked for ({listed})", models, "HEADCOUNT_MAX_MODELS")
    for axis, values in axes.items():
        if axis not in DRAWN_FREELY:
            for value in values if isinstance(values, Sized) else ():
                require_size(axis, value, MAX_STEPS if axis == "steps" else None)


def require_models_fit(
    task: AbstractTask, specs: Iterable[AbstractSpec], trains: Iterable[TrainSpec], lengths: Iterable[int]
) -> None:
    """Raise `InputError` if the largest of these models, or the examples it is trained on, need too much memory.

    A model needs its weights and Adam's moments, and what one step keeps for its gradient. Examples are counted where
    they are drawn; those of a file are in memory already.
    """
    specs = list(specs)
    for train in trains:
        for name, value in asdict(train).items():
            if name not in DRAWN_FREELY:
                require_size(name, value, MAX_STEPS if name == "steps" else None)
        for length in lengths:
            _require_fit(task, specs, train, length)


def _require_fit(task: AbstractTask, specs: list[AbstractSpec], train: TrainSpec, length: int) -> None:
    require_size("length", length)
    examples = (train.train_examples or PROBE_EXAMPLES) + train.validation_examples
    sequence = length * task.dim
    if task.endless:
        _require(f"{task.name}: {examples:,} examples of {length:,} tokens", 4 * examples * sequence)
    at = task.at(length)
    (sequences, tokens), outputs = at.sequences, at.outputs
    if task.endless:
        drawn = f"{task.name}: {examples:,} examples of {length:,} tokens and {outputs:,} outputs"
        _require(drawn, 4 * examples * (sequence + outputs))
    for spec in specs:
        weights = STATES * spec.parameters(length=tokens, dim=task.dim, outputs=outputs)
        kept = train.batch * sequences * spec.activations(length=tokens, dim=task.dim)
        model = f"{task.name}: a model of {weights // STATES:,} weights with a batch of {train.batch:,}"
        _require(model, 4 * (weights + kept))


def _require(what: str, size: int) -> None:
    """A size is allowed that fits here, or on the device that trains."""
    if size > max_bytes():
        from .hardware import hardware  # which imports what a sweep is

        if size > hardware(backend="reference").memory:
            raise too_large(what, size)
