"""Tasks made of data that is kept as it came, bytes of images or numbers of passages, and made into tokens on the way.

Such data has no law to draw from and no formula to answer it, only examples with labels. Tokens are made of an example
whenever it is shown, inside the program that trains: what is kept stays small, and an image can be placed anew each
time.
"""

import copy
from abc import abstractmethod
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int, PyTree

from .._errors import require
from .._keys import named_generator
from .._shapes import AnyArray, Key
from .base import AbstractTask, AnsweredAt

GradedBy = Literal["distance", "class", "choice"]
"""What makes an answer good: near to a target, the right class of several, or the right candidate of those shown."""
MIN_EXAMPLES = 100
MIN_VALIDATION = 20
MAX_SET_APART = 2000


class Form(NamedTuple):
    """What a model must know of labelled data to read it.

    `padded` says that tokens of zeros are no tokens.
    """

    graded_by: GradedBy
    answered_at: AnsweredAt
    uses_positions: bool
    padded: bool


IMAGES = Form("class", "sequence", uses_positions=True, padded=False)
CANDIDATES = Form("choice", "tokens", uses_positions=False, padded=False)
PAIRS = Form("choice", "query", uses_positions=False, padded=True)


class Labelled(NamedTuple):
    """Examples as they are kept, an axis of them in front, and the place of the right answer of each."""

    content: PyTree[AnyArray]
    labels: Int[np.ndarray, " examples"]


class Tokenise(eqx.Module):
    """How one example becomes tokens. What examples share, a table of embeddings say, is carried along."""

    @abstractmethod
    def __call__(self, content: PyTree[AnyArray], key: Key) -> Float[AnyArray, "*sequences length dim"]:
        """The tokens of one example; `key` draws what is drawn anew each time it is shown."""


class LabelledTask(eqx.Module):
    """Labelled examples, to be answered by one class of `outputs`, or by choosing one of `length` candidates.

    `tokenise` makes tokens of an example: one sequence, or `length` sequences of `joined` tokens where `joined` is not 0.
    """

    name: eqx.AbstractVar[str]
    length: eqx.AbstractVar[int]
    dim: eqx.AbstractVar[int]
    outputs: eqx.AbstractVar[int]
    joined: eqx.AbstractVar[int]
    form: eqx.AbstractVar[Form]
    tokenise: eqx.AbstractVar[Tokenise]

    @property
    def graded_by(self) -> GradedBy:
        return self.form.graded_by

    @property
    def answered_at(self) -> AnsweredAt:
        return self.form.answered_at

    @property
    def uses_positions(self) -> bool:
        return self.form.uses_positions

    @property
    def intrinsic_dim(self) -> None:
        """Nobody knows the D of real data."""
        return None

    @property
    def endless(self) -> bool:
        return False

    @abstractmethod
    def examples(self, train_examples: int, validation_examples: int, seed: int = 0) -> tuple[Labelled, Labelled]:
        """Training and validation examples, at most as many as asked for; the same arguments give the same ones."""

    @abstractmethod
    def at(self, length: int) -> "LabelledTask":
        """The same question about sequences of another length."""

    @abstractmethod
    def spec(self) -> dict[str, Any]:
        """What identifies the task's content, as JSON; `length` is not part of it."""

    def _with_length(self, length: int) -> Any:
        """The same data, and another length; neither is copied nor read again."""
        other = copy.copy(self)
        object.__setattr__(other, "length", length)
        return other


AnyTask = AbstractTask | LabelledTask


def graded_by(task: AnyTask) -> GradedBy:
    """What makes an answer to the task good."""
    return task.graded_by if isinstance(task, LabelledTask) else "distance"


def set_apart(count: int, held_out: int | None) -> tuple[np.ndarray, np.ndarray]:
    """The examples that may be learned from, and those to be judged on, whatever the seed.

    The last `held_out` are the ones to be judged on; where nobody set any apart, a drawn fifth is, and no more than
    2,000 of them.
    """
    if held_out is None:
        order = named_generator(0, "set apart").permutation(count)
        learned, judged = np.split(order, [learned_of(count)])
        return learned, judged
    return np.arange(count - held_out), np.arange(count - held_out, count)


def learned_of(count: int) -> int:
    """How many of `count` examples are learned from where nobody set any apart."""
    return count - min(count // 5, MAX_SET_APART)


def parted(
    count: int, held_out: int | None, train_examples: int, validation_examples: int, seed: int, name: str
) -> tuple[np.ndarray, np.ndarray]:
    """Which of `count` examples are learned from and which are judged on, each in a drawn order."""
    learned, judged = set_apart(count, held_out)
    require(
        len(learned) >= MIN_EXAMPLES and len(judged) >= MIN_VALIDATION,
        f"{name}: {len(learned)} examples to learn from and {len(judged)} to be judged on are too few to tell head "
        f"counts apart; give at least {MIN_EXAMPLES} and {MIN_VALIDATION}.",
    )
    learned = named_generator(seed, "train examples").permutation(learned)[:train_examples]
    judged = named_generator(seed, "validation examples").permutation(judged)[:validation_examples]
    return learned, judged


def taken(content: PyTree[AnyArray], place: Any) -> PyTree[AnyArray]:
    """The example, or the examples, at a place."""
    return jax.tree.map(lambda part: jnp.asarray(part)[place], content)
