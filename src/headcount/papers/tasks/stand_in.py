"""A task of real data before the data is there, or before it is prepared: it has the sizes, and no examples."""

from typing import Any

import equinox as eqx

from ..._choices import AnsweredAt
from ...errors import InputError, require
from ...tasks.base import AbstractTask, Split, Tokenise
from ...tasks.objective import AbstractObjective, Choice, Classification


class Nothing(Tokenise):
    """Makes tokens of nothing: it only says that examples have labels."""

    def __call__(self, content: Any, key: Any) -> Any:
        raise InputError("a stand-in has no examples; bind the study to its data.")


class StandIn(AbstractTask):
    """Sizes of a task of `count` examples: `classes` of images, or candidates to choose one from where it is 0.

    `pair_tokens` are the tokens of each sequence where an example is one sequence per candidate, otherwise 0. `longest`
    is the largest length that the data has, 0 where it has any.
    """

    name: str = eqx.field(static=True)
    length: int = eqx.field(static=True)
    dim: int = eqx.field(static=True)
    count: int = eqx.field(static=True)
    classes: int = eqx.field(static=True, default=0)
    pair_tokens: int = eqx.field(static=True, default=0)
    longest: int = eqx.field(static=True, default=0)

    @property
    def outputs(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.classes or 1

    @property
    def uses_positions(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.classes > 0

    @property
    def answered_at(self) -> AnsweredAt:
        if self.classes:
            return "sequence"
        return "query" if self.pair_tokens else "tokens"

    @property
    def objective(self) -> AbstractObjective:
        return Classification() if self.classes else Choice(self.length)

    @property
    def tokenise(self) -> Tokenise:
        return Nothing()

    @property
    def sequences(self) -> tuple[int, int]:
        if self.pair_tokens:
            return self.length, self.pair_tokens
        return 1, self.length + (0 if self.classes else 1)

    @property
    def padded(self) -> bool:
        return self.pair_tokens > 0

    def at(self, length: int) -> "StandIn":
        fits = self.longest in (0, length) or length < self.longest
        require(fits, what="length", given=length, needed=f"at most {self.longest}")
        return self._with_length(length)

    def spec(self) -> dict[str, Any]:
        return {"task": self.name, "stand_in": True, "dim": self.dim, "pair_tokens": self.pair_tokens}

    def examples(self, train_examples: int, validation_examples: int, seed: int = 0) -> Split:
        raise InputError(f"{self.name} has no data yet; pass --data DIR (an empty folder is filled by downloading).")
