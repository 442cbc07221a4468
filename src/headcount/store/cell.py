"""A cell is its content: a task at one length, a model, a way of training, a seed. Its key is the hash of all of it."""

import dataclasses
import enum
import functools
import hashlib
import json
from dataclasses import dataclass
from typing import Any

from .._errors import require, require_count
from ..models import AnySpec, spec_from_dict


@dataclass(frozen=True, kw_only=True)
class TrainSpec:
    """Adam under a warm-up and a cosine, on standardised tokens and targets.

    The defaults are a recipe that was seen to converge: the second-moment decay of 0.99 in place of the usual 0.999
    alone was worth a factor of four to five in error on the four-maxima task. `train_examples=0` keeps none: every step
    draws its batch afresh, from a key named after the seed and the step.
    """

    steps: int = 3000
    batch: int = 64
    learning_rate: float = 1e-2
    warmup: int = 200
    clip: float = 1.0
    second_moment_decay: float = 0.99
    train_examples: int = 8000
    validation_examples: int = 2000
    data_seed: int = 0

    def __post_init__(self):
        require_count("data_seed", self.data_seed, least=0)
        for name in ("steps", "batch"):
            require_count(name, getattr(self, name))
        for name in ("warmup", "train_examples"):
            require_count(name, getattr(self, name), least=0)
        for name in ("learning_rate", "clip"):
            value = getattr(self, name)
            require(0 < value < float("inf"), f"{name} must be positive and finite, got {value!r}.")
            object.__setattr__(self, name, float(value))  # 1 and 1.0 are one content, and JSON would tell them apart
        require(
            0 < self.second_moment_decay < 1,
            f"second_moment_decay must lie between 0 and 1, got {self.second_moment_decay!r}.",
        )
        require_count("validation_examples", self.validation_examples, least=20)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One model to be trained. `task` is the task's own spec, so that tasks of equal content share their cells."""

    task: dict[str, Any]
    length: int
    model: AnySpec
    train: TrainSpec
    seed: int

    def __post_init__(self):
        require_count("length", self.length)
        require_count("seed", self.seed, least=0)
        object.__setattr__(self, "task", json.loads(json.dumps(self.task)))  # as it is read back: lists, not tuples

    def spec(self) -> dict[str, Any]:
        """Everything that decides the numbers, as JSON."""
        return json.loads(self._content())

    @functools.cached_property
    def key(self) -> str:
        return hashlib.sha256(self._content().encode()).hexdigest()[:20]

    def _content(self) -> str:
        parts = {"model": self.model.as_dict(), "train": dataclasses.asdict(self.train)}
        return json.dumps(parts | {"task": self.task, "length": self.length, "seed": self.seed}, sort_keys=True)


class Outcome(enum.Enum):
    """How a cell ended. A diverged cell is an answer and is kept; a failed one says nothing and is tried again."""

    FINISHED = "finished"
    DIVERGED = "diverged"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True)
class Record:
    """What is known about a cell after it was run.

    `metrics` holds `nmse` (the lowest validation error along the curve over the variance of the target), `final_nmse`
    and `train_nmse`; `curve` pairs of step and validation nmse; `provenance` what does not decide the numbers (seconds,
    versions).
    """

    cell: Cell
    outcome: Outcome
    metrics: dict[str, float]
    curve: tuple[tuple[int, float], ...]
    provenance: dict[str, Any]
    message: str = ""


def cell_from_spec(spec: dict[str, Any]) -> Cell:
    """The cell whose `spec()` this is."""
    return Cell(
        task=spec["task"],
        length=spec["length"],
        model=spec_from_dict(spec["model"]),
        train=TrainSpec(**spec["train"]),
        seed=spec["seed"],
    )
