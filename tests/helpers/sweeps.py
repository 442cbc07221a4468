"""The smallest tasks, models and sweeps that can be trained: a few numbers, a few steps."""

from dataclasses import replace
from typing import Any, Literal

import equinox as eqx
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int

from headcount._shapes import AnyArray, Key
from headcount.engine import Hardware, Sweep, sweep
from headcount.errors import require
from headcount.models import ClassTokenSpec, EncoderSpec
from headcount.recipes import labelled_encoder
from headcount.store import TrainSpec
from headcount.tasks import (
    AbstractTask,
    Choice,
    Classification,
    Examples,
    FarthestPoint,
    Split,
    Tokenise,
    max_plus_min,
)
from headcount.tasks.base import fingerprint

CPU = Hardware("cpu", "a test", 1 << 30, 1, side_by_side=False)
GPU = Hardware("gpu", "pretend", 1 << 30, 1, side_by_side=True)
TASK = max_plus_min(length=4)
FARTHEST = FarthestPoint(length=4, dim=3)
TRAIN = TrainSpec(steps=4, batch=4, train_examples=24, validation_examples=20)
STREAM = replace(TRAIN, train_examples=0)


def class_token(heads: int = 1, **fields: Any) -> ClassTokenSpec:
    return ClassTokenSpec(**({"heads": heads, "head_dim": 2, "hidden": 4} | fields))


def encoder(heads: int = 1, **fields: Any) -> EncoderSpec:
    return EncoderSpec(**({"heads": heads, "rank": 1, "width": 3, "hidden": 4} | fields))


def swept(task: AbstractTask = TASK, model: Any = class_token, train: TrainSpec = TRAIN, **axes: Any) -> Sweep:
    """Two heads, lengths and seeds of class-token models, unless said otherwise."""
    chosen = {"heads": (1, 2), "length": (4, 5), "seed": (0, 1)} | axes
    return sweep(task, axes=chosen, model=model, train=train)


# Data with labels.

CANDIDATES, WORDS, NUMBERS = 4, 3, 3
Layout = Literal["classes", "candidates", "pairs"]
ANSWERED_AT = {"classes": "sequence", "candidates": "tokens", "pairs": "query"}
SHAPES = {"classes": (4, NUMBERS), "candidates": (CANDIDATES + 1, NUMBERS), "pairs": (CANDIDATES, WORDS, NUMBERS)}


class Shaken(Tokenise):
    """The stored numbers times a shared scale, and a little noise that the key draws."""

    scale: Float[AnyArray, " dim"]

    def __call__(self, content: Float[Array, "*places dim"], key: Key) -> Float[Array, "*places dim"]:
        return content * self.scale + 0.05 * jr.normal(key, content.shape)


class Numbers(AbstractTask):
    """Which of two classes, or of four candidates, has larger first numbers."""

    content: Float[np.ndarray, "examples *places dim"]
    labels: Int[np.ndarray, " examples"]
    layout: Layout = eqx.field(static=True)
    length: int = eqx.field(static=True)
    name: str = eqx.field(static=True, default="numbers")
    dim: int = eqx.field(static=True, default=NUMBERS)
    uses_positions: bool = eqx.field(static=True, default=False)

    def __init__(self, layout: Layout = "classes", count: int = 150):
        generator = np.random.default_rng(0)
        self.layout, self.length = layout, 4
        self.labels = generator.integers(0, 2 if layout == "classes" else CANDIDATES, count).astype(np.int32)
        self.content = generator.normal(size=(count, *SHAPES[layout])).astype(np.float32)
        if layout == "classes":
            self.content[:, :, 0] += 6 * self.labels[:, None] - 3
        else:
            self.content[np.arange(count), self.labels, ..., 0] += 4

    @property
    def outputs(self) -> int:
        return 2 if self.layout == "classes" else 1

    @property
    def answered_at(self) -> Any:
        return ANSWERED_AT[self.layout]

    @property
    def objective(self) -> Any:
        return Classification() if self.layout == "classes" else Choice(CANDIDATES)

    @property
    def tokenise(self) -> Shaken:
        return Shaken(np.array([1, 2, 0.5], np.float32))

    @property
    def sequences(self) -> tuple[int, int]:
        return (CANDIDATES, WORDS) if self.layout == "pairs" else (1, self.length + (self.layout == "candidates"))

    def at(self, length: int) -> "Numbers":
        require(length == self.length, what="length", given=length, needed=f"{self.length}")
        return self

    def spec(self) -> dict[str, Any]:
        return {"task": self.name, "layout": self.layout, "content": fingerprint(self.content, self.labels)}

    def examples(self, train_examples: int, validation_examples: int, seed: int = 0) -> Split:
        order = np.random.default_rng(seed).permutation(len(self.labels))
        parts = order[: len(order) - 30][:train_examples], order[-30:][:validation_examples]
        return Split(*(Examples(self.content[part], self.labels[part]) for part in parts))


def labelled_model(task: AbstractTask, **fields: Any) -> Any:
    """`model(heads)` for data with labels: one layer of heads of two numbers, nothing dropped."""
    chosen = {"head_dim": 2, "layers": 1, "dropout": 0.0} | fields
    return lambda heads=1, **others: labelled_encoder(task, heads, **(chosen | others))
