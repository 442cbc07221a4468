"""What is to be learned.

A task is a data source and an objective. There are two kinds of data source:

    GeneratedTask   `sample(key)` draws a sequence, `target(tokens)` is its exact target; written for one example
    LabelledTask    stored examples with labels, tokenised on the device (`labelled.py`)

`at(length)` is the same task at another length. `spec()` identifies its content.
"""

import copy
import functools
import hashlib
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import PyTree

from .._choices import AnsweredAt
from .._compile import KeptPrograms, deterministic_jit
from .._shapes import AnyArray, Key, Target, Tokens, TokenTargets
from .._user_files import user_supplied
from ..errors import require
from ..keys import named_key
from .objective import AbstractObjective, Regression

DRAWN = 512
"""Examples drawn at a time."""


class Examples(NamedTuple):
    """Examples along the first axis. `content` are tokens, or what `task.tokenise` turns into tokens."""

    content: PyTree[AnyArray]
    targets: AnyArray


class Split(NamedTuple):
    """Training and validation examples, in the task's units."""

    train: Examples
    validation: Examples


class Tokenise(eqx.Module):
    """Turns a stored example into tokens. Its fields are what examples share, such as a table of embeddings."""

    @abstractmethod
    def __call__(self, content: PyTree[AnyArray], key: Key) -> AnyArray:
        """Return one example's tokens, (length, dim) or (sequences, length, dim); `key` is for random placement."""


class AbstractTask(eqx.Module):
    """A question about sequences of `length` tokens of `dim` numbers, answered by `outputs` numbers.

    A subclass overrides what differs from the values here, by a field, a property or another value. Their types are
    comments, because dataclasses would put an overriding field before those of the subclass.
    """

    name: eqx.AbstractVar[str]
    length: eqx.AbstractVar[int]
    dim: eqx.AbstractVar[int]
    intrinsic_dim = None  # type: int | None
    """D, where it is known."""
    uses_positions = False  # type: bool
    """Whether a token's position can matter, so that a model needs positions."""
    answered_at = "sequence"  # type: AnsweredAt
    """Where the answer is read:

    * "sequence": one target for the whole sequence, of shape (outputs,);
    * "tokens": a target for every token, of shape (length, outputs);
    * "query": the last token asks about the others; one target, of shape (outputs,).
    """
    objective = cast(AbstractObjective, Regression())
    """What makes an answer good."""
    tokenise = None  # type: Tokenise | None
    """Turns stored content into tokens; None where the content is tokens."""
    padded = False  # type: bool
    """Whether sequences have fewer tokens than places. Absent tokens are all NaN; of data that are tokenised, zeros."""
    vocabulary = 0  # type: int
    """How many token ids there are, a token being one id; 0 where tokens are numbers."""
    notes = ()  # type: tuple[str, ...]
    """How the data were read, in sentences without a full stop for a user to check."""
    endless = False  # type: bool
    """Whether new examples can be drawn without end."""
    resamples = False  # type: bool
    """Whether another seed gives other examples."""

    @property
    @abstractmethod
    def outputs(self) -> int:
        """Numbers per answer: per target, or per candidate; one per class."""

    @property
    def sequences(self) -> tuple[int, int]:
        """Sequences per example, and tokens per sequence."""
        return 1, self.length

    @abstractmethod
    def at(self, length: int) -> "AbstractTask":
        """Return the same task at another length."""

    def _with_length(self, length: int) -> Any:
        """Return the same task at another length, without a copy of its data."""
        other = copy.copy(self)
        object.__setattr__(other, "length", length)
        return other

    @abstractmethod
    def spec(self) -> dict[str, Any]:
        """Describe the task's content as JSON, without the length. Equal specs promise equal data."""

    def probe(self) -> str:
        """Hash the program of a user's function at this length; "" for other tasks."""
        return ""

    @abstractmethod
    def examples(self, train_examples: int, validation_examples: int, seed: int = 0) -> Split:
        """Return at most that many training and validation examples; equal arguments give equal numbers."""


class GeneratedTask(AbstractTask):
    """A task whose target can be computed for any sequence."""

    endless = True
    resamples = True

    @property
    def outputs(self) -> int:
        """Numbers per target."""
        answer = user_supplied(jax.eval_shape, lambda key: self.target(self.sample(key)), named_key(0), name=self.name)
        return answer.shape[-1]

    @abstractmethod
    def sample(self, key: Key) -> Tokens:
        """Draw one sequence, a function of the key alone."""

    @abstractmethod
    def target(self, tokens: Tokens) -> Target | TokenTargets:
        """Return the exact target of one sequence, or of each token."""

    @abstractmethod
    def at(self, length: int) -> "GeneratedTask":
        """Return the same task at another length."""

    def examples(self, train_examples: int, validation_examples: int, seed: int = 0) -> Split:
        counts = {"train examples": train_examples, "validation examples": validation_examples}
        split = Split(*user_supplied(_draw_parts, self, counts, seed, name=self.name))
        check_examples(split, self.name, self.answered_at)
        return split


def _draw_parts(task: GeneratedTask, counts: dict[str, int], seed: int) -> list[Examples]:
    """Draw examples by the key of their place, in blocks: one program draws any number, each the same among any others.

    Equal tasks share a compiled program. Tasks with a user's code do not, because that code may read variables that
    change.
    """
    leaves, structure = jax.tree.flatten(task)
    others = [None if eqx.is_array(leaf) else leaf for leaf in leaves]
    program = (_program.make if has_user_code(task) else _program)(structure, *others)
    arrays = [leaf for leaf in leaves if eqx.is_array(leaf)]

    def drawn_part(name: str, count: int) -> Examples:
        key = named_key(seed, name)
        blocks = [program(arrays, key, first) for first in range(0, max(1, count), DRAWN)]
        joined: list[Any] = [np.concatenate(values)[:count] for values in zip(*blocks, strict=True)]
        return Examples(*joined)

    return [drawn_part(name, count) for name, count in counts.items()]


@KeptPrograms
def _program(structure: Any, *others: Any) -> Callable[..., tuple[AnyArray, AnyArray]]:
    def draw_block(arrays, key, first):
        remaining = iter(arrays)
        task = jax.tree.unflatten(structure, [next(remaining) if leaf is None else leaf for leaf in others])
        # A GPU's default rounds the factors of a product to 10 bits: noise of 2e-7 to 1e-6 of the targets' variance.
        with jax.default_matmul_precision("highest"):
            # The keys that `jr.split` gives.
            tokens = jax.vmap(lambda place: task.sample(jr.fold_in(key, place)))(first + jnp.arange(DRAWN))
            return tokens, jax.vmap(task.target)(tokens)

    return deterministic_jit(draw_block, light=True)


def check_examples(split: Split, name: str, answered_at: AnsweredAt) -> None:
    """Raise `InputError` for NaNs, infinities, constant targets and targets of the wrong shape."""
    shape, length = split.train.targets.shape[1:], split.train.content.shape[1]
    if answered_at == "tokens":
        words = f"a target for each of {length} tokens must have shape ({length}, outputs)"
        require(len(shape) == 2 and shape[0] == length, f"{name}: {words}, got shape {shape}.")
    else:
        require(len(shape) == 1, f"{name}: a target must be a number or a vector, got shape {shape}.")
    for part, examples in split._asdict().items():
        for kind, values in (("tokens", examples.content), ("targets", examples.targets)):
            bad, count = int(np.sum(~np.isfinite(values))), np.size(values)
            message = f"{name}: the {part} {kind} must be finite, found {bad} NaN or infinite values in {count}."
            require(bad == 0, message)
        require_varied(examples.targets, name, part)


def require_varied(targets: Any, name: str, part: str) -> None:
    """Raise `InputError` for targets that are all equal; labels are whole numbers, and those below 0 are none."""
    labels = np.asarray(targets).dtype.kind == "i"
    targets = np.asarray(targets)[targets >= 0] if labels else targets
    same = "of one class" if labels else f"equal to {np.ravel(targets)[0]:g}"
    message = f"{name}: the {part} targets are all {same}; a constant needs no heads at all; give targets that differ."
    require(targets.size > 0 and bool(np.any(np.ptp(np.asarray(targets), axis=0) > 0)), message)


def has_user_code(tree: Any) -> bool:
    """Return whether a part of a task is a user's function, which may read variables that change.

    A program of it is shared with no other task. `jax.tree_util.Partial` is JAX's own, with a user's function inside.
    """
    return any(map(_is_user_code, jax.tree.leaves(tree, is_leaf=_is_user_code)))


def _is_user_code(part: Any) -> bool:
    root = (getattr(part, "__module__", None) or "").partition(".")[0]
    is_own = root == "headcount" or (root == "jax" and not isinstance(part, functools.partial))
    return (callable(part) or isinstance(part, eqx.Module)) and not is_own


def fingerprint(*arrays: np.ndarray) -> str:
    """Hash arrays: equal for equal shapes, types and bytes."""
    digest = hashlib.sha256()
    for array in arrays:
        array = np.ascontiguousarray(array)
        digest.update(f"{array.shape}{array.dtype}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()[:16]
