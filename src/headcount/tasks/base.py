"""What is to be learned: a law of sequences, and the target of each sequence.

A task is written for one example. `sample(key)` draws a sequence, `target(tokens)` says what it is worth, and
`at(length)` is the same question asked about sequences of another length. A training set is drawn from these two by
`dataset`; tasks made of stored arrays override it.
"""

import hashlib
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
from jaxtyping import Float

from .._choices import AnsweredAt
from .._compile import deterministic_jit
from .._errors import HeadcountError, InputError, require
from .._keys import named_key
from .._shapes import AnyArray, Key, Target, Tokens, TokenTargets


class Dataset(NamedTuple):
    """Examples to learn from, and others to be judged on, in the task's own units.

    `places` is the length where every token has a target, and no axis at all where a sequence has one.
    """

    train_tokens: Float[AnyArray, "train length dim"]
    train_targets: Float[AnyArray, "train *places outputs"]
    validation_tokens: Float[AnyArray, "validation length dim"]
    validation_targets: Float[AnyArray, "validation *places outputs"]


class AbstractTask(eqx.Module):
    """A question about sequences of `length` tokens of `dim` numbers.

    `intrinsic_dim` is D where it is known, None where it is to be found out. `uses_positions` says whether a token's
    place can matter, so that a model without positions would be the wrong one to try.
    """

    name: eqx.AbstractVar[str]
    length: eqx.AbstractVar[int]
    dim: eqx.AbstractVar[int]
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
    def endless(self) -> bool:
        """Whether `sample` never runs out of examples that were not seen before, as stored data does."""
        return True

    @abstractmethod
    def sample(self, key: Key) -> Tokens:
        """One sequence, a function of the key alone."""

    @abstractmethod
    def target(self, tokens: Tokens) -> Target | TokenTargets:
        """The exact target of one sequence, or of each of its tokens."""

    @abstractmethod
    def at(self, length: int) -> "AbstractTask":
        """The same question about sequences of another length."""

    @abstractmethod
    def spec(self) -> dict[str, Any]:
        """What identifies the task's content, as JSON. Equal specs promise equal data; `length` is not part of it."""

    def dataset(self, train_examples: int, validation_examples: int, seed: int = 0) -> Dataset:
        """Training and validation examples; the same arguments give the same numbers."""

        @deterministic_jit
        def draw(keys):
            tokens = jax.vmap(self.sample)(keys)
            return tokens, jax.vmap(self.target)(tokens)

        train_keys = jr.split(named_key(seed, "train examples"), train_examples)
        validation_keys = jr.split(named_key(seed, "validation examples"), validation_examples)
        train = computed(draw, train_keys, name=self.name)
        validation = draw(validation_keys)
        data = Dataset(*train, *validation)
        check_dataset(data, self.name, self.answered_at)
        return data


def check_dataset(data: Dataset, name: str, answered_at: AnsweredAt = "sequence") -> None:
    """Refuse data that nothing can be learned from: NaNs, infinities, a constant target, a target of no known shape."""
    shape, length = data.train_targets.shape[1:], data.train_tokens.shape[1]
    if answered_at == "tokens":
        require(
            len(shape) == 2 and shape[0] == length,
            f"{name}: a target for each of {length} tokens must have shape ({length}, outputs), got shape {shape}.",
        )
    else:
        require(len(shape) == 1, f"{name}: a target must be one number or a vector of them, got shape {shape}.")
    for part, values in data._asdict().items():
        bad = int(np.sum(~np.isfinite(values)))
        require(
            bad == 0, f"{name}: {part} must be finite numbers, found {bad} NaN or infinite values in {values.size}."
        )
    for part, values in (("training", data.train_targets), ("validation", data.validation_targets)):
        values = np.asarray(values)
        require(
            bool(np.any(np.ptp(values, axis=0) > 0)),
            f"{name}: the {part} targets are all equal to {values.flat[0]:g}; a constant needs no heads at all.",
        )


def computed(function: Callable, *arguments: Any, name: str) -> Any:
    """`function(*arguments)`, where the function is a user's own: what it raises becomes a sentence about it."""
    try:
        return function(*arguments)
    except HeadcountError:
        raise
    except Exception as error:
        first_line = (str(error).splitlines() or ["no message"])[0].rstrip(".")
        raise InputError(f"{name}: its own function failed with {type(error).__name__}: {first_line}.") from error


def fingerprint(*arrays: np.ndarray) -> str:
    """A short name for the content of arrays: equal for equal shapes, types and bytes."""
    digest = hashlib.sha256()
    for array in arrays:
        array = np.ascontiguousarray(array)
        digest.update(f"{array.shape}{array.dtype}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()[:16]
