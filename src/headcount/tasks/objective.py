"""What makes an answer good: the training loss, the reported grades, and the baseline.

Regression       squared distance to the target; reported as nmse, over the variance of the targets
Classification   cross-entropy of the right class; reported as error (share of wrong answers) and cross_entropy
Balanced         the same, reported as balanced_error: the mean over classes of the share of wrong answers
Choice           the same over the candidates of each example; also mrr, the mean over examples of 1 / rank

The baseline is the error of the best constant answer. Answers and targets have the examples as their first axis; with a
label per token, tokens are the second, and a label below 0 is none: its token is not answered.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int

from .._precision import wide

Grades = dict[str, Float[Array, ""]]


@dataclass(frozen=True)
class AbstractObjective(ABC):
    """`error` names the grade that head counts are compared by, `batch_error` what training reports of a batch.

    Smaller is better.
    """

    error: ClassVar[str]
    batch_error: ClassVar[str]

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
    batch_error: ClassVar[str] = "nmse"

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
    batch_error: ClassVar[str] = "error"

    @abstractmethod
    def scores(self, answers: Array) -> Float[Array, "*labels choices"]:
        """Return the scores that are compared, in single precision."""

    def loss(self, answers: Array, targets: Int[Array, "*labels"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Return means over examples; with labels per token, over all places, of which those without a label are 0.

        A mean over the labels alone would not be the mean of its parts where a batch comes in parts.
        """
        entropies, wrong = self._judged(answers, targets)
        return jnp.mean(entropies), jnp.mean(wrong)

    def grades(self, answers: Array, targets: Int[Array, " examples"]) -> Grades:
        entropy, error = self.loss(answers, targets)
        return {"error": error, "cross_entropy": entropy}

    def example_errors(self, answers: Array, targets: Int[Array, "examples *places"]) -> Float[Array, " examples"]:
        _, wrong = self._judged(answers, targets)
        return errors_by_example(wrong, jnp.minimum(targets, 0), 1)

    def baseline(self, targets: np.ndarray) -> tuple[float, float]:
        """Return the error of the most frequent label."""
        wrong = 1 - float(np.bincount(targets).max()) / len(targets)
        return wrong, (wrong * (1 - wrong) / len(targets)) ** 0.5

    def _judged(self, answers: Array, targets: Int[Array, "*labels"]) -> tuple[Array, Array]:
        """Return the cross-entropy of every label, and whether it is answered wrongly; neither where there is none."""
        scores = self.scores(answers)
        entropies, wrong = optax.softmax_cross_entropy_with_integer_labels(scores, targets), ranks(scores, targets) > 1
        if targets.ndim == 1:
            return entropies, wrong
        return jnp.where(targets >= 0, entropies, 0.0), wrong & (targets >= 0)


@dataclass(frozen=True)
class Classification(AbstractLabelObjective):
    """The answer is a score per class, of every example or of every token."""

    def scores(self, answers: Array) -> Float[Array, "*labels choices"]:
        return answers.astype(jnp.float32)

    def grades(self, answers: Array, targets: Int[Array, "examples *places"]) -> Grades:
        if targets.ndim == 1:
            return super().grades(answers, targets)
        entropies, wrong = self._judged(answers, targets)
        error, noise = share_of_wrong(wrong, jnp.minimum(targets, 0), 1)
        return {"error": error, "error_noise": noise, "cross_entropy": entropies.sum() / jnp.sum(targets >= 0)}

    def baseline(self, targets: np.ndarray) -> tuple[float, float]:
        """Return the error of the most frequent label.

        Tokens of one sequence are not independent, so the standard error of labels per token is that over sequences; it
        is at least that of independent tokens, because a constant may happen to be wrong equally often in every one.
        """
        if targets.ndim == 1:
            return super().baseline(targets)
        there = targets >= 0
        wrong = there & (targets != np.bincount(targets[there]).argmax())
        share, count = wrong.sum() / there.sum(), there.sum()
        apart = np.sum(wrong - share * there, axis=1)
        return float(share), float(max(np.sqrt(np.sum(apart**2)) / count, np.sqrt(share * (1 - share) / count)))


@dataclass(frozen=True)
class Balanced(Classification):
    """Every class counts alike, however rare: the error is the mean over classes of the share of wrong answers.

    Training is that of `Classification`. What it learns are the classes' chances, and the most frequent class is the
    likeliest almost everywhere; the answer is therefore the class whose chance exceeds its share of all labels by the
    largest factor, which has the smallest balanced error. `shares` are these shares.
    """

    shares: tuple[float, ...]
    error: ClassVar[str] = "balanced_error"

    def grades(self, answers: Array, targets: Int[Array, "examples *places"]) -> Grades:
        entropies, _ = self._judged(answers, targets)
        corrected = self.scores(answers) - jnp.log(jnp.asarray(self.shares))
        error, noise = share_of_wrong(ranks(corrected, targets) > 1, targets, len(self.shares))
        entropy = entropies.sum() / jnp.sum(targets >= 0)
        return {"balanced_error": error, "balanced_error_noise": noise, "cross_entropy": entropy}

    def example_errors(self, answers: Array, targets: Int[Array, "examples *places"]) -> Float[Array, " examples"]:
        corrected = self.scores(answers) - jnp.log(jnp.asarray(self.shares))
        return errors_by_example(ranks(corrected, targets) > 1, targets, len(self.shares))

    def baseline(self, targets: np.ndarray) -> tuple[float, float]:
        """Return the balanced error of any one label; its standard error is that of answers drawn at random."""
        rows = targets.reshape(len(targets), -1)
        examples = np.array([np.sum(np.any(rows == label, axis=1)) for label in np.unique(rows[rows >= 0])])
        wrong = 1 - 1 / len(examples)
        return wrong, float(np.sqrt(np.sum(wrong * (1 - wrong) / examples)) / len(examples))


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


def share_of_wrong(
    wrong: Bool[Array, "examples *places"], groups: Int[Array, "examples *places"], count: int
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return the mean over groups of their share of wrong answers, and its standard error over examples.

    Labels belong to groups 0 to `count` - 1, or to none. A group without a label is left out of the mean.
    """
    belongs, sizes, weights = _groups(groups, count)
    shares = jnp.sum(belongs * wrong[..., None], axis=range(groups.ndim)) / jnp.maximum(sizes, 1)
    apart = (belongs @ weights) * (wrong - belongs @ shares)
    noise = jnp.sqrt(jnp.sum(jnp.sum(apart.reshape(len(apart), -1), axis=1) ** 2))
    return jnp.sum(shares * (sizes > 0)) / jnp.sum(sizes > 0), noise


def errors_by_example(
    wrong: Bool[Array, "examples *places"], groups: Int[Array, "examples *places"], count: int
) -> Float[Array, " examples"]:
    """Return what every example adds to the error of `share_of_wrong`, which is their mean."""
    belongs, _, weights = _groups(groups, count)
    return len(wrong) * jnp.sum(((belongs @ weights) * wrong).reshape(len(wrong), -1), axis=1)


def _groups(groups: Int[Array, "examples *places"], count: int) -> tuple[Array, Array, Array]:
    """Return which group every label belongs to, how many labels a group has, and the weight of each of them."""
    belongs = jax.nn.one_hot(groups, count)  # zeros outside
    sizes = jnp.sum(belongs, axis=range(groups.ndim))
    return belongs, sizes, (sizes > 0) / (jnp.maximum(sizes, 1) * jnp.sum(sizes > 0))


def ranks(scores: Float[Any, "*labels choices"], labels: Int[Any, "*labels"]) -> Int[Array, "*labels"]:
    """Return the rank of the right answer by score, from 1.

    Ties count against it, so that equal scores for all answers are an error. NaN counts against it too.
    """
    right = jnp.take_along_axis(scores, labels[..., None], axis=-1)
    return jnp.sum(~(scores < right), axis=-1)
