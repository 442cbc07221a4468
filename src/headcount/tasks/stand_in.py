"""A task of real data before the data is there, or before it is prepared: it has the sizes, and no examples."""

from pathlib import Path
from typing import Any

import equinox as eqx

from .._choices import AnsweredAt, require_choice
from ..data.cifar import is_cifar10
from ..data.embeddings import find_embeddings, load_embeddings
from ..data.files import are_examples
from ..data.mining import given_negatives, min_usable
from ..data.passages import is_passages, read_passages
from ..errors import InputError, require
from .base import AbstractTask, Split, Tokenise
from .find import PASSAGE_OPTIONS, find_task
from .labelled import LabelledTask
from .objective import AbstractObjective, Choice, Classification
from .presets import PRESETS
from .ranking import LAYOUTS, MAX_CANDIDATES, PASSAGE_TOKENS, QUERY_TOKENS


class Nothing(Tokenise):
    """Makes tokens of nothing: it only says that examples have labels."""

    def __call__(self, content: Any, key: Any) -> Any:
        raise InputError("a stand-in has no examples; bind the study to its data.")


class StandIn(LabelledTask):
    """Sizes of a task of `count` examples: `classes` of images, or candidates of which one is chosen where it is 0.

    `pair_tokens` are the tokens of each sequence where an example is one sequence per candidate, otherwise 0. `longest`
    is the largest length that the data has, 0 where it has any.
    """

    name: str = eqx.field(static=True)
    length: int = eqx.field(static=True)
    dim: int = eqx.field(static=True)
    count: int = eqx.field(static=True)
    classes: int = eqx.field(static=True)
    pair_tokens: int = eqx.field(static=True)
    longest: int = eqx.field(static=True)

    def __init__(
        self,
        name: str,
        *,
        length: int,
        dim: int,
        count: int,
        classes: int = 0,
        pair_tokens: int = 0,
        longest: int = 0,
    ):
        self.name, self.length, self.dim, self.count = name, length, dim, count
        self.classes, self.pair_tokens, self.longest = classes, pair_tokens, longest

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


def planned_task(reference: str, **options: Any) -> AbstractTask:
    """The task that `reference` names, to plan with: of passages only the sizes, without mining negatives."""
    path = Path(reference)
    if not reference or reference in PRESETS or are_examples(path) or is_cifar10(path) or not is_passages(path):
        return find_task(reference, **options)
    if not options.keys() <= set(PASSAGE_OPTIONS):
        return find_task(reference, **options)  # refuses them
    layout = options.get("layout", "candidates")
    require_choice("layout", layout, LAYOUTS)
    words = load_embeddings(find_embeddings(options.get("embeddings")))
    corpus = read_passages(path, split=options.get("split"))
    given = corpus.negatives is not None
    longest = given_negatives(corpus).shape[1] + 1 if given else min(MAX_CANDIDATES, min_usable(corpus) + 1)
    return StandIn(
        corpus.name,
        length=min(8, longest),
        dim=words.dim,
        count=len(corpus.queries),
        pair_tokens=QUERY_TOKENS + PASSAGE_TOKENS + 3 if layout == "pairs" else 0,
        longest=longest,
    )
