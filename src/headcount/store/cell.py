"""A cell is its content: a task at one length, a model, a way of training, a seed, and the trained model that it starts
from, if any. Its key is the hash of all of it.

The task and the model are kept as JSON, so that reading a results folder needs neither of them, nor JAX.
"""

import dataclasses
import enum
import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._choices import PRECISIONS, Precision, Start, require_choice
from .._options import option
from ..errors import require, require_count

MIN_VALIDATION_EXAMPLES = 20
MAX_WARMUP = 0.1


class Content(dict[str, Any]):
    """A JSON object and its `text`, with sorted keys. Not to be changed: thousands of cells share one.

    Example:
        >>> Content.from_object({"b": (1, 2), "a": 0}).text
        '{"a": 0, "b": [1, 2]}'
    """

    text: str

    @classmethod
    def from_object(cls, content: Mapping[str, Any]) -> "Content":
        """The content as JSON reads it back: lists, not tuples; itself where it was read already."""
        return content if isinstance(content, cls) else cls.parsed(json.dumps(content, sort_keys=True))

    @classmethod
    def parsed(cls, text: str) -> "Content":
        """The content of a JSON text with sorted keys. Raises ValueError or TypeError where it is no JSON object."""
        values = json.loads(text)
        if not isinstance(values, dict):
            raise TypeError(f"{text[:40]} is not a JSON object")
        content = cls(values)
        content.text = text
        return content


def json_text(content: Mapping[str, Any]) -> str:
    """The JSON of a content with sorted keys, whichever way it was written."""
    return Content.from_object(content).text


@dataclass(frozen=True, kw_only=True)
class TrainSpec:
    """How a model is trained: Adam with a linear warm-up and a cosine decay.

    The defaults converge on the four-maxima task: the second-moment decay of 0.99 instead of 0.999 alone lowers the
    error four- to fivefold there. What a task gets when nothing is said is in `recipes.py`.

    Args:
        steps: Training steps.
        batch: Examples per step.
        learning_rate: Peak learning rate.
        warmup: Steps of linear warm-up, at most the share `max_warmup` of `steps`.
        clip: Largest gradient norm.
        second_moment_decay: Adam's beta2.
        train_examples: Training examples; 0 draws a fresh batch every step, from a key named by seed and step.
        validation_examples: Validation examples, at least 20.
        data_seed: Draws the examples.
        weight_decay: Decoupled weight decay, as in AdamW.
        precision: "float32", or "bfloat16": products in half precision; weights, norms, softmax and loss in float32.
        max_warmup: Largest share of `steps` that warm-up takes.

    Raises:
        InputError: If a value is out of range.

    Example:
        >>> import headcount as hc
        >>> hc.TrainSpec(steps=500).batch
        64
    """

    steps: int = option(3000, "Training steps per model (default: 3000, images and passages 1000).")
    batch: int = option(64, "Examples per training step (default: 64, images and passages 32).")
    learning_rate: float = 1e-2
    warmup: int = 200
    clip: float = 1.0
    second_moment_decay: float = 0.99
    train_examples: int = option(
        8000, "Training examples; 0: fresh ones every step (default: 8000, encoders 0, images and passages all)."
    )
    validation_examples: int = option(2000, "Validation examples (default: 2000).")
    data_seed: int = 0
    weight_decay: float = 0.0
    precision: Precision = option("float32", "float32 (default); encoders also bfloat16, half precision for a GPU.")
    max_warmup: float = MAX_WARMUP

    def __post_init__(self):
        least = {"steps": 1, "batch": 1, "validation_examples": MIN_VALIDATION_EXAMPLES}
        for name in (*least, "warmup", "train_examples", "data_seed"):
            require_count(name, getattr(self, name), least=least.get(name, 0))
        for name in ("learning_rate", "clip"):
            value = getattr(self, name)
            require(0 < value < float("inf"), what=name, given=value, needed="positive and finite")
            object.__setattr__(self, name, float(value))  # 1 and 1.0 are one content, and JSON would tell them apart
        decay = self.second_moment_decay
        require(0 < decay < 1, what="second_moment_decay", given=decay, needed="between 0 and 1")
        decay = self.weight_decay
        require(0 <= decay < float("inf"), what="weight_decay", given=decay, needed="finite and not negative")
        object.__setattr__(self, "weight_decay", float(self.weight_decay))
        require_choice("precision", self.precision, PRECISIONS)
        share = self.max_warmup
        require(0 < share < 1, what="max_warmup", given=share, needed="a share between 0 and 1")

    def as_dict(self) -> dict[str, Any]:
        """As JSON, without `max_warmup` where it is the default: cells from before it was a field keep their keys."""
        content = dataclasses.asdict(self)
        return content if self.max_warmup != MAX_WARMUP else {k: v for k, v in content.items() if k != "max_warmup"}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One model to be trained.

    `task` is the task's `spec()` and `model` the model spec's `as_dict()`, so that equal content is one cell. A cell
    with a `parent`, the key of another cell, starts from the weights of that one, without its heads `removed`; one
    without a parent starts from random weights. `probe` is the task's `probe()` at this length.
    """

    task: dict[str, Any]
    length: int
    model: dict[str, Any]
    train: TrainSpec
    seed: int
    parent: str = ""
    removed: tuple[int, ...] = ()
    probe: str = ""

    def __post_init__(self):
        require_count("length", self.length)
        require_count("seed", self.seed, least=0)
        for name in ("task", "model"):
            object.__setattr__(self, name, Content.from_object(getattr(self, name)))

    @property
    def start(self) -> Start:
        """Where training starts: at random weights, at a parent's, or at a parent's with fewer heads."""
        if not self.parent:
            return "random"
        return "descended" if self.removed else "continued"

    @functools.cached_property
    def key(self) -> str:
        """The hash of the content."""
        return hashlib.sha256(self.content.encode()).hexdigest()[:20]

    @property
    def content(self) -> str:
        """Everything that decides the numbers: the JSON of all fields with sorted keys, from texts that cells share."""
        parts = {"length": str(self.length), "model": json_text(self.model), "seed": str(self.seed)}
        parts |= {"task": json_text(self.task), "train": train_text(self.train)}
        if self.parent:
            parts |= {"parent": json.dumps(self.parent), "removed": json.dumps(self.removed)}
        if self.probe:
            parts["probe"] = json.dumps(self.probe)
        return "{" + ", ".join(f'"{name}": {parts[name]}' for name in sorted(parts)) + "}"


@functools.lru_cache(maxsize=4096)
def train_text(train: TrainSpec) -> str:
    """The JSON of a way of training, with sorted keys."""
    return json.dumps(train.as_dict(), sort_keys=True)


class Outcome(enum.Enum):
    """How training ended. A diverged cell is a result and is kept; a failed one is trained again."""

    FINISHED = "finished"
    DIVERGED = "diverged"
    FAILED = "failed"


ERRORS = ("nmse", "balanced_error", "error")
"""The metrics that head counts are compared by; a record has one of them."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """The result of a cell.

    `metrics` of a regression: `nmse` (the smallest validation error along the curve, over the variance of the target),
    `final_nmse`, `train_nmse`. Of a classification or ranking: `error` (the smallest share of wrong answers along the
    curve), `final_error`, `cross_entropy`, `train_error` (while training), and on the training examples at the end
    `fitted_error` and `fitted_cross_entropy`; of a ranking also `mrr` and `fitted_mrr`. Where classes count alike it is
    `balanced_error` in place of `error`, but for `train_error`; there and of labels per token also the standard error
    of the final one over validation examples, `balanced_error_noise` or `error_noise`. All have `baseline`, the error
    of the best constant answer on the validation examples, and `baseline_noise`, its standard error.
    `curve` holds pairs of step and validation error. `provenance` does not decide the numbers (seconds, versions).
    """

    cell: Cell
    outcome: Outcome
    metrics: dict[str, float]
    curve: tuple[tuple[int, float], ...]
    provenance: dict[str, Any]
    message: str = ""

    @property
    def finished(self) -> bool:
        """Whether training came to its end: only then are there errors."""
        return self.outcome is Outcome.FINISHED

    @property
    def settled(self) -> bool:
        """Whether the cell needs no more training: finished or diverged."""
        return self.outcome is not Outcome.FAILED

    @property
    def error(self) -> float:
        """The smallest validation error: the first of `ERRORS` that there is; NaN where there is none."""
        return next((self.metrics[name] for name in ERRORS if name in self.metrics), float("nan"))

    @property
    def final_error(self) -> float:
        """The validation error at the end of training, which is that of the stored weights."""
        names = (f"final_{name}" for name in ERRORS)
        return next((self.metrics[name] for name in names if name in self.metrics), self.error)
