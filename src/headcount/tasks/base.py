"""What is to be learned.

A task is a data source and an objective. Its data source is one of two:

    GeneratedTask   `sample(key)` draws a sequence, `target(tokens)` is its exact target; written for one example
    LabelledTask    stored examples with labels, made into tokens on the device (`labelled.py`)

`at(length)` is the same question about sequences of another length. `spec()` identifies the content.
"""

import hashlib
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
from jaxtyping import PyTree

from .._choices import AnsweredAt
from .._compile import deterministic_jit
from .._errors import HeadcountError, InputError, require
from .._keys import named_key
from .._shapes import AnyArray, Key, Target, Tokens, TokenTargets
from .objective import AbstractObjective, Regression


class Examples(NamedTuple):
    """Examples along the first axis. `content` are tokens, or what `task.tokenise` makes tokens of."""

    content: PyTree[AnyArray]
    targets: AnyArray


class Split(NamedTuple):
    """Training and validation examples, in the task's own units."""

    train: Examples
    validation: Examples


class Tokenise(eqx.Module):
    """Makes tokens of one stored example. What examples share, such as a table of embeddings, is carried along."""

    @abstractmethod
    def __call__(self, content: PyTree[AnyArray], key: Key) -> AnyArray:
        """The tokens of one example, (length, dim) or (sequences, length, dim); `key` draws what varies by showing."""


class AbstractTask(eqx.Module):
    """A question about sequences of `length` tokens of `dim` numbers, answered by `outputs` numbers.

    `intrinsic_dim` is D where it is known. `uses_positions` says whether a token's position can matter, so that a model
    without positions would be the wrong one to try. `padded` says that tokens of zeros are padding.
    """

    name: eqx.AbstractVar[str]
    length: eqx.AbstractVar[int]
    dim: eqx.AbstractVar[int]
    outputs: eqx.AbstractVar[int]
    intrinsic_dim: eqx.AbstractVar[int | None]
    uses_positions: eqx.AbstractVar[bool]

    @property
    def answered_at(self) -> AnsweredAt:
        """Where the answer is read:

        * "sequence": one target for the whole sequence, of shape (outputs,);
        * "tokens": a target for every token, of shape (length, outputs);
        * "query": the last token asks about the others; one target, of shape (outputs,).
        """
        return "sequence"

    @property
    def objective(self) -> AbstractObjective:
        """What makes an answer good."""
        return Regression()

    @property
    def tokenise(self) -> Tokenise | None:
        """What makes tokens of the stored content; None where the content is tokens."""
        return None

    @property
    def sequences(self) -> tuple[int, int]:
        """Sequences per example, and tokens of each."""
        return 1, self.length

    @property
    def padded(self) -> bool:
        return False

    @property
    def endless(self) -> bool:
        """Whether fresh examples can be drawn for ever."""
        return False

    @abstractmethod
    def at(self, length: int) -> "AbstractTask":
        """The same question about sequences of another length."""

    @abstractmethod
    def spec(self) -> dict[str, Any]:
        """What identifies the task's content, as JSON. Equal specs promise equal data; `length` is not part of it."""

    @abstractmethod
    def examples(self, train_examples: int, validation_examples: int, seed: int = 0) -> Split:
        """Training and validation examples, at most as many as asked for; equal arguments give equal numbers."""


class GeneratedTask(AbstractTask):
    """A task whose target can be computed for any sequence."""

    @property
    def outputs(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        answer = user_supplied(jax.eval_shape, lambda key: self.target(self.sample(key)), jr.key(0), name=self.name)
        return answer.shape[-1]

    @property
    def endless(self) -> bool:
        return True

    @abstractmethod
    def sample(self, key: Key) -> Tokens:
        """One sequence, a function of the key alone."""

    @abstractmethod
    def target(self, tokens: Tokens) -> Target | TokenTargets:
        """The exact target of one sequence, or of each of its tokens."""

    @abstractmethod
    def at(self, length: int) -> "GeneratedTask":
        """The same question about sequences of another length."""

    def examples(self, train_examples: int, validation_examples: int, seed: int = 0) -> Split:
        @deterministic_jit
        def draw(keys):
            tokens = jax.vmap(self.sample)(keys)
            return tokens, jax.vmap(self.target)(tokens)

        train_keys = jr.split(named_key(seed, "train examples"), train_examples)
        validation_keys = jr.split(named_key(seed, "validation examples"), validation_examples)
        train = user_supplied(draw, train_keys, name=self.name)
        split = Split(Examples(*train), Examples(*draw(validation_keys)))
        check_examples(split, self.name, self.answered_at)
        return split


def check_examples(split: Split, name: str, answered_at: AnsweredAt = "sequence") -> None:
    """Refuse data that nothing can be learned from: NaNs, infinities, constant targets, targets of the wrong shape."""
    shape, length = split.train.targets.shape[1:], split.train.content.shape[1]
    if answered_at == "tokens":
        require(
            len(shape) == 2 and shape[0] == length,
            f"{name}: a target for each of {length} tokens must have shape ({length}, outputs), got shape {shape}.",
        )
    else:
        require(len(shape) == 1, f"{name}: a target must be one number or a vector of them, got shape {shape}.")
    for part, examples in split._asdict().items():
        for kind, values in (("tokens", examples.content), ("targets", examples.targets)):
            bad = int(np.sum(~np.isfinite(values)))
            require(
                bad == 0,
                f"{name}: the {part} {kind} must be finite, found {bad} NaN or infinite values in {values.size}.",
            )
        values = np.asarray(examples.targets)
        require(
            bool(np.any(np.ptp(values, axis=0) > 0)),
            f"{name}: the {part} targets are all equal to {values.flat[0]:g}; a constant needs no heads at all.",
        )


def user_supplied(function: Callable, *arguments: Any, name: str) -> Any:
    """`function(*arguments)` of a user's function: what it raises becomes an `InputError` that names it."""
    try:
        return function(*arguments)
    except HeadcountError:
        raise
    except Exception as error:
        first_line = (str(error).splitlines() or ["no message"])[0].rstrip(".")
        raise InputError(f"{name}: the user-supplied function raised {type(error).__name__}: {first_line}.") from error


def fingerprint(*arrays: np.ndarray) -> str:
    """A short hash of arrays: equal for equal shapes, types and bytes."""
    digest = hashlib.sha256()
    for array in arrays:
        array = np.ascontiguousarray(array)
        digest.update(f"{array.shape}{array.dtype}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()[:16]
