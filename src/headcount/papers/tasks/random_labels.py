"""Queries with random labels: nothing to be learned but the examples themselves, so that memory alone is measured.

A sequence is a context of n tokens and one query, the last token, which is answered by one of several classes. Tokens
are standard normal and labels uniform, each independent of everything else.
Source: the experiments of Mahdavi, Liao and Thrampoulidis, "Memorization Capacity of Multi-Head Attention in
Transformers" (arXiv 2306.02010).
"""

import dataclasses
from typing import Any, Literal, get_args

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..._choices import AnsweredAt, require_choice
from ..._shapes import AnyArray, Key, Tokens
from ...errors import require, require_count
from ...keys import named_generator
from ...tasks.base import AbstractTask, Examples, Split, Tokenise
from ...tasks.objective import AbstractObjective, Classification

Context = Literal["shared", "own"]


class AfterContext(Tokenise):
    """A query after the context that all examples share; the context is stored once."""

    context: Float[AnyArray, "context dim"]

    def __call__(self, content: Float[AnyArray, " dim"], key: Key) -> Tokens:
        return jnp.concatenate([jnp.asarray(self.context), jnp.asarray(content)[None]])


class AsStored(Tokenise):
    """A sequence as it is stored, context and query."""

    def __call__(self, content: Tokens, key: Key) -> Tokens:
        return jnp.asarray(content)


class RandomLabels(AbstractTask):
    """A random label for every query, after a context of `length` - 1 tokens.

    Args:
        length: Tokens per sequence: the context and the query.
        dim: Numbers per token.
        classes: Labels to choose from.
        context: "shared", one context for all examples, or "own", another one for every example.
        distinct: Different training examples, which are repeated in turn to as many as are asked for; 0: all are
            different. A program is compiled for a number of stored examples, and so one serves every `distinct`.
        task_seed: The draw of a shared context; the seed of `examples` draws everything else.

    Raises:
        InputError: A size is out of range, or the context is neither of the two.

    Example:
        >>> from headcount.papers.tasks.random_labels import RandomLabels
        >>> task = RandomLabels(length=9, dim=16, classes=4)
        >>> train, validation = task.examples(100, 20)
        >>> train.content.shape, train.targets.shape, task.answered_at
        ((100, 16), (100,), 'query')
    """

    length: int = eqx.field(static=True, kw_only=True, default=9)
    dim: int = eqx.field(static=True, kw_only=True, default=16)
    classes: int = eqx.field(static=True, kw_only=True, default=4)
    context: Context = eqx.field(static=True, kw_only=True, default="shared")
    distinct: int = eqx.field(static=True, kw_only=True, default=0)
    task_seed: int = eqx.field(static=True, kw_only=True, default=0)
    name: str = eqx.field(static=True, init=False, default="random-labels")
    uses_positions: bool = eqx.field(static=True, init=False, default=False)

    def __check_init__(self):
        # A length is a token of the context, and the query.
        for size, least in (("length", 2), ("dim", 1), ("classes", 2), ("distinct", 0), ("task_seed", 0)):
            require_count(size, getattr(self, size), least=least)
        require_choice("context", self.context, get_args(Context))

    @property
    def outputs(self) -> int:
        return self.classes

    @property
    def answered_at(self) -> AnsweredAt:
        return "query"

    @property
    def objective(self) -> AbstractObjective:
        return Classification()

    @property
    def tokenise(self) -> Tokenise:
        if self.context == "own":
            return AsStored()
        drawn = named_generator(self.task_seed, "shared context").standard_normal((self.length - 1, self.dim))
        context: Any = drawn.astype(np.float32)
        return AfterContext(context)

    @property
    def resamples(self) -> bool:
        return True

    def at(self, length: int) -> "RandomLabels":
        return dataclasses.replace(self, length=length)

    def spec(self) -> dict[str, Any]:
        options = ("dim", "classes", "context", "distinct", "task_seed")
        return {"task": self.name} | {option: getattr(self, option) for option in options}

    def examples(self, train_examples: int, validation_examples: int, seed: int = 0) -> Split:
        """Draw as many as asked for; fewer are the first of more.

        Validation examples are other queries with other labels: no model can be better on them than by chance.

        Raises:
            InputError: The different examples cannot all be there equally often.
        """
        distinct = self.distinct or max(1, train_examples)
        require(
            train_examples % distinct == 0,
            f"{distinct} different examples are to be repeated equally often, got train_examples {train_examples}.",
            what="train_examples",
            given=train_examples,
            needed=f"a multiple of {distinct}",
        )
        content, labels = self._drawn(distinct, seed, "train examples")
        places = np.arange(train_examples) % distinct
        train = Examples(content[places], labels[places])
        return Split(train, self._drawn(validation_examples, seed, "validation examples"))

    def _drawn(self, count: int, seed: int, part: str) -> Examples:
        shape = (count, self.dim) if self.context == "shared" else (count, self.length, self.dim)
        content = named_generator(seed, part, "tokens").standard_normal(shape, np.float32)
        labels: Any = named_generator(seed, part, "labels").integers(0, self.classes, count, np.int32)
        return Examples(content, labels)
