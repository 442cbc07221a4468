"""A task's examples as arrays that a stock model is trained on: the same, in the same split, as headcount's models.

Tokens and numeric targets are standardised over the training part. Padding comes first in a sequence, so that the last
token is always at the last place.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float, Int

from ..errors import require
from .config import StockShape

if TYPE_CHECKING:
    from ..store import TrainSpec
    from ..tasks import AbstractTask

STREAM_EXAMPLES = 16_000
"""Training examples drawn of a task that headcount's models learn from a stream."""


@dataclass(frozen=True)
class StockPart:
    """Training or validation examples.

    `tokens` are standardised numbers, 0 at padding, or ids; `mask` is True where a token is there, None where all are.
    `targets` are standardised numbers (examples, *places, outputs), or classes (examples, *places).
    """

    tokens: Float[np.ndarray, "examples length dim"] | Int[np.ndarray, "examples length"]
    targets: Float[np.ndarray, "examples *places"] | Int[np.ndarray, "examples *places"]
    mask: Bool[np.ndarray, "examples length"] | None

    def __len__(self) -> int:
        return len(self.tokens)


@dataclass(frozen=True)
class StockExamples:
    """What stock models are trained and judged on.

    Example:
        >>> import headcount as hc
        >>> examples = StockExamples.of_task(hc.find_task("sum-of-maxima", length=8))
        >>> examples.train.tokens.shape, examples.validation.targets.shape, examples.shape.outputs
        ((8000, 8, 4), (2000, 1), 1)
    """

    name: str
    shape: StockShape
    train: StockPart
    validation: StockPart

    @classmethod
    def of_task(cls, task: "AbstractTask", train: "TrainSpec | None" = None) -> "StockExamples":
        """Return the examples that headcount's models are trained and validated on.

        Args:
            task: Numbers or labels of sequences: a preset, a function, arrays.
            train: How many examples and which split (`data_seed`); the recipe's where None.

        Raises:
            InputError: If the task's examples are not sequences of tokens, such as images or passages.
        """
        from .. import recipes

        require_sequences(task)
        plan = recipes.train_for(task) if train is None else train
        split = task.examples(plan.train_examples or STREAM_EXAMPLES, plan.validation_examples, plan.data_seed)
        (x, y), (others, answers) = ((np.asarray(each.content), np.asarray(each.targets)) for each in split)
        labels = np.issubdtype(y.dtype, np.integer)
        shape = StockShape(
            length=x.shape[1],
            dim=task.dim,
            outputs=task.outputs,
            vocabulary=task.vocabulary,
            classes=task.outputs if labels else 0,
            answered_at=task.answered_at,
            uses_positions=task.uses_positions,
        )
        tokens_at = (0, 1)
        absent = np.isnan(x).all(-1)
        mean, scale = (0, 1) if task.vocabulary else _mean_and_scale(x[~absent])
        if not labels:
            centre, unit = _mean_and_scale(y, tokens_at if task.answered_at == "tokens" else (0,))
            y, answers = (y - centre) / unit, (answers - centre) / unit
        parts = (_part((each - mean) / scale, t, shape) for each, t in ((x, y), (others, answers)))
        return cls(task.name, shape, *parts)


def require_sequences(task: "AbstractTask") -> None:
    """Raise `InputError` for images, passages, and answers that are a choice among tokens."""
    choice = getattr(task.objective, "candidates", None) is not None
    words = f"stock models are trained on sequences of numbers or ids, which {task.name} has not; give it as arrays."
    require(task.tokenise is None and not choice, words, what="task")


def _part(x: np.ndarray, targets: np.ndarray, shape: StockShape) -> StockPart:
    """Return a part with its padding in front."""
    there = np.asarray(~np.isnan(x).all(-1))
    targets = targets.astype(np.int64 if shape.classes else np.float32)
    if not there.all():
        order = np.argsort(there, axis=1, kind="stable")  # False, which is padding, first
        x, there = np.take_along_axis(x, order[..., None], axis=1), np.take_along_axis(there, order, axis=1)
        if shape.answered_at == "tokens":
            targets = np.stack([each[row] for each, row in zip(targets, order, strict=True)])
    x = np.nan_to_num(x)
    tokens = x[..., 0].astype(np.int64) if shape.vocabulary else x.astype(np.float32)
    return StockPart(tokens, targets, None if there.all() else there)


def _mean_and_scale(values: np.ndarray, axes: tuple[int, ...] = (0,)) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation; of what never varies 1."""
    wide = values.astype(np.float64)
    deviation = wide.std(axes)
    return wide.mean(axes), np.where(deviation > 0, deviation, 1.0)
