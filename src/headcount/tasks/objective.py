"""What makes an answer good: what training lowers, what is reported, and what the best constant answer scores.

Regression       squared distance to the target; reported as nmse, over the variance of the targets
Classification   cross-entropy of the right class; reported as error (share of wrong answers) and cross_entropy
Choice           the same over the candidates of each example; also mrr, the mean over examples of 1 / rank

Written for a batch: answers and targets have the examples as their first axis.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int

Grades = dict[str, Float[Array, ""]]


@dataclass(frozen=True)
class AbstractObjective(ABC):
    """`error` names the grade that head counts are compared by; smaller is better."""

    error: ClassVar[str]

    @abstractmethod
    def loss(self, answers: Array, targets: Array) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Of a batch: what training lowers, and the error that is reported while training."""

    @abstractmethod
    def grades(self, answers: Array, targets: Array) -> Grades:
        """Of all validation examples: every grade by its name."""

    @abstractmethod
    def baseline(self, targets: np.ndarray) -> tuple[float, float]:
        """The error of the best constant answer to these examples, and its standard error over them."""


@dataclass(frozen=True)
class Regression(AbstractObjective):
    error: ClassVar[str] = "nmse"

    def loss(self, answers: Array, targets: Array) -> tuple[Float[Array, ""], Float[Array, ""]]:
        mean = jnp.mean((answers - targets) ** 2)
        return mean, mean

    def grades(self, answers: Array, targets: Array) -> Grades:
        variance = jnp.mean((targets - jnp.mean(targets, axis=0)) ** 2)
        return {"nmse": jnp.mean((answers - targets) ** 2) / variance}

    def baseline(self, targets: np.ndarray) -> tuple[float, float]:
        """The mean of the targets, whose error is 1 by definition."""
        squares = np.mean((targets - targets.mean(axis=0)) ** 2, axis=tuple(range(1, targets.ndim)))
        return 1.0, float(squares.std() / squares.mean() / len(targets) ** 0.5)


@dataclass(frozen=True)
class AbstractLabelObjective(AbstractObjective):
    """The right answer is one of several, and its index is the label."""

    error: ClassVar[str] = "error"

    @abstractmethod
    def scores(self, answers: Array) -> Float[Array, "examples choices"]:
        """What is compared, in single precision."""

    def loss(self, answers: Array, targets: Int[Array, " batch"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        scores = self.scores(answers)
        mean = jnp.mean(optax.softmax_cross_entropy_with_integer_labels(scores, targets))
        return mean, jnp.mean(ranks(scores, targets) > 1)

    def grades(self, answers: Array, targets: Int[Array, " examples"]) -> Grades:
        scores = self.scores(answers)
        entropy = jnp.mean(optax.softmax_cross_entropy_with_integer_labels(scores, targets))
        return {"error": jnp.mean(ranks(scores, targets) > 1), "cross_entropy": entropy}

    def baseline(self, targets: np.ndarray) -> tuple[float, float]:
        """Always the most frequent label."""
        wrong = 1 - float(np.bincount(targets).max()) / len(targets)
        return wrong, (wrong * (1 - wrong) / len(targets)) ** 0.5


@dataclass(frozen=True)
class Classification(AbstractLabelObjective):
    """A score for each class is the answer."""

    def scores(self, answers: Array) -> Float[Array, "examples choices"]:
        return answers.astype(jnp.float32)


@dataclass(frozen=True)
class Choice(AbstractLabelObjective):
    """A score for each candidate is the answer.

    Where candidates are tokens of one sequence, the query's own token comes after them and cannot be chosen.
    """

    candidates: int

    def scores(self, answers: Array) -> Float[Array, "examples choices"]:
        return answers[:, : self.candidates, 0].astype(jnp.float32)

    def grades(self, answers: Array, targets: Int[Array, " examples"]) -> Grades:
        return super().grades(answers, targets) | {"mrr": jnp.mean(1 / ranks(self.scores(answers), targets))}


def ranks(scores: Float[Any, "examples choices"], labels: Int[Any, " examples"]) -> Int[Array, " examples"]:
    """The place of the right answer in the order of scores, from 1.

    Ties count against the answer: a model that scores all alike has found nothing. NaN ranks last.
    """
    right = jnp.take_along_axis(scores, labels[:, None], axis=1)
    return jnp.sum(~(scores < right), axis=1)
