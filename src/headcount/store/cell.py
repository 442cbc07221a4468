"""A cell is its content: a task at one length, a model, a way of training, a seed. Its key is the hash of all of it."""

import dataclasses
import enum
import functools
import hashlib
import json
from dataclasses import dataclass
from typing import Any, Literal

from .._errors import require, require_count
from ..models import AbstractSpec, spec_from_dict

Precision = Literal["float32", "bfloat16"]
PRECISIONS: tuple[Precision, ...] = ("float32", "bfloat16")
LATER: dict[str, Any] = {"weight_decay": 0.0, "precision": "float32"}
"""Fields that came after results were stored, and what those results had: so written, a cell keeps its old key."""


@dataclass(frozen=True, kw_only=True)
class TrainSpec:
    """Adam under a warm-up and a cosine, on standardised tokens and targets.

    The defaults are a recipe that was seen to converge: the second-moment decay of 0.99 in place of the usual 0.999
    alone was worth a factor of four to five in error on the four-maxima task. `train_examples=0` keeps none: every step
    draws its batch afresh, from a key named after the seed and the step. `weight_decay` shrinks every weight by its
    share of the learning rate, as AdamW does. `precision` "bfloat16" multiplies in half precision, and keeps weights,
    norms, softmax and loss in float32.
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
    weight_decay: float = 0.0
    precision: Precision = "float32"

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
        require(
            0 <= self.weight_decay < float("inf"),
            f"weight_decay must be finite and not negative, got {self.weight_decay!r}.",
        )
        object.__setattr__(self, "weight_decay", float(self.weight_decay))
        require(
            self.precision in PRECISIONS,
            f'precision must be one of {", ".join(PRECISIONS)}, got "{self.precision}".',
        )

    def as_dict(self) -> dict[str, Any]:
        """What identifies the training, as JSON; what came after results were stored is left out where it is unused."""
        content = dataclasses.asdict(self)
        return {name: value for name, value in content.items() if name not in LATER or value != LATER[name]}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One model to be trained. `task` is the task's own spec, so that tasks of equal content share their cells."""

    task: dict[str, Any]
    length: int
    model: AbstractSpec
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
        parts = {"model": self.model.as_dict(), "train": self.train.as_dict()}
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
    and `train_nmse`. Of data with labels it holds `error` (the lowest share of wrong answers along the curve),
    `final_error`, `cross_entropy`, `train_error` (while training), and, of the training examples at the end,
    `fitted_error` and `fitted_cross_entropy`; of candidates, `mrr` and `fitted_mrr` too. `curve` are pairs of step and
    validation error; `provenance` is what does not decide the numbers (seconds, versions).
    """

    cell: Cell
    outcome: Outcome
    metrics: dict[str, float]
    curve: tuple[tuple[int, float], ...]
    provenance: dict[str, Any]
    message: str = ""

    @property
    def error(self) -> float:
        """What head counts are compared by: the lowest nmse, or the lowest share of wrong answers; NaN without one."""
        return self.metrics.get("nmse", self.metrics.get("error", float("nan")))


def cell_from_spec(spec: dict[str, Any]) -> Cell:
    """The cell whose `spec()` this is."""
    return Cell(
        task=spec["task"],
        length=spec["length"],
        model=spec_from_dict(spec["model"]),
        train=TrainSpec(**spec["train"]),
        seed=spec["seed"],
    )
