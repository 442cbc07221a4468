"""What makes an answer good: the training loss, the reported grades, and the baseline.

Regression       squared distance to the target; reported as nmse, over the variance of the targets
Classification   cross-entropy of the right class; reported as error (share of wrong answers) and cross_entropy
Choice           the same over the candidates of each example; also mrr, the mean over examples of 1 / rank

The baseline is the error of the best constant answer. Answers and targets have the examples as their first axis.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from .._precision import wide

Grades = dict[str, Float[Array, ""]]


@dataclass(frozen=True)
class AbstractObjective(ABC):
    """`error` names the grade that head counts are compared by; smaller is better."""

    error: ClassVar[str]

    @abstractmethod
    def loss(self, answers: Array, targets: Array) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Return the training loss of a batch, and the error that is reported while training."""

    @abstractmethod
    def grades(self, answers: Array, targets: Array) -> Grades:
        """Grade all validation examples: every grade by name."""

    @abstractmethod
    def example_errors(self, answers: Array, targets: Array) -> Float[Array, " examples"]:
        """Return what every example adds to the error, which is their mean."""

    @abstractmethod
    def baseline(self, targets: np.ndarray) -> tuple[float, float]:
        """Return the error of the best constant answer to these examples, and its standard error over them."""


@dataclass(frozen=True)
class Regression(AbstractObjective):
    error: ClassVar[str] = "nmse"

    def loss(self, answers: Array, targets: Array) -> tuple[Float[Array, ""], Float[Array, ""]]:
        mean = jnp.mean((answers - targets) ** 2)
        return mean, mean

    def grades(self, answers: Array, targets: Array) -> Grades:
        variance = jnp.mean((targets - jnp.mean(targets, axis=0)) ** 2)
        return {"nmse": jnp.mean((answers - targets) ** 2) / variance}

    def example_errors(self, answers: Array, targets: Array) -> Float[Array, " examples"]:
        variance = jnp.mean((targets - jnp.mean(targets, axis=0)) ** 2)
        return jnp.mean((answers - targets) ** 2, axis=tuple(range(1, targets.ndim))) / variance

    def baseline(self, targets: np.ndarray) -> tuple[float, float]:
        """Return the error of the mean of the targets, which is 1 by definition."""
        targets = wide(targets)
        squares = np.mean((targets - targets.mean(axis=0)) ** 2, axis=tuple(range(1, targets.ndim)))
        return 1.0, float(squares.std() / squares.mean() / len(targets) ** 0.5)


@dataclass(frozen=True)
class AbstractLabelObjective(AbstractObjective):
    """The target is a label: the index of the right answer among several."""

    error: ClassVar[str] = "error"

    @abstractmethod
    def scores(self, answers: Array) -> Float[Array, "examples choices"]:
        """Return the scores that are compared, in single precision."""

    def loss(self, answers: Array, targets: Int[Array, " batch"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        scores = self.scores(answers)
        mean = jnp.mean(optax.softmax_cross_entropy_with_integer_labels(scores, targets))
        return mean, jnp.mean(ranks(scores, targets) > 1)

    def grades(self, answers: Array, targets: Int[Array, " examples"]) -> Grades:
        entropy, error = self.loss(answers, targets)
        return {"error": error, "cross_entropy": entropy}

    def example_errors(self, answers: Array, targets: Int[Array, " examples"]) -> Float[Array, " examples"]:
        return (ranks(self.scores(answers), targets) > 1).astype(jnp.float32)

    def baseline(self, targets: np.ndarray) -> tuple[float, float]:
        """Return the error of the most frequent label."""
        wrong = 1 - float(np.bincount(targets).max()) / len(targets)
        return wrong, (wrong * (1 - wrong) / len(targets)) ** 0.5


@dataclass(frozen=True)
class Classification(AbstractLabelObjective):
    """The answer is a score per class."""

    def scores(self, answers: Array) -> Float[Array, "examples choices"]:
        return answers.astype(jnp.float32)


@dataclass(frozen=True)
class Choice(AbstractLabelObjective):
    """The answer is a score per candidate.

    Where candidates are tokens of one sequence, the query's token comes after them and cannot be chosen.
    """

    candidates: int

    def scores(self, answers: Array) -> Float[Array, "examples choices"]:
        return answers[:, : self.candidates, 0].astype(jnp.float32)

    def grades(self, answers: Array, targets: Int[Array, " examples"]) -> Grades:
        return super().grades(answers, targets) | {"mrr": jnp.mean(1 / ranks(self.scores(answers), targets))}


def ranks(scores: Float[Any, "examples choices"], labels: Int[Any, " examples"]) -> Int[Array, " examples"]:
    """Return the rank of the right answer by score, from 1.

    Ties count against it, so that equal scores for all answers are an error. NaN counts against it too.
    """
    right = jnp.take_along_axis(scores, labels[:, None], axis=1)
    return jnp.sum(~(scores < right), axis=1)
