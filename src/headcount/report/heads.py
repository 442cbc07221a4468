"""What each head of a trained model reads, as it was stored with an experiment; see `headcount.heads_read`."""

from dataclasses import dataclass
from typing import Any

from ..answer.words import factor_words

SHOWN = 0.05
"""Attention weights below this are not put in words."""
WORDS = 3
"""Tokens of an example that are put in words."""


@dataclass(frozen=True, kw_only=True)
class ReadExample:
    """One validation example: its tokens as words (empty for an absent one), its target and the model's answer."""

    tokens: tuple[str, ...]
    target: str
    answer: str


@dataclass(frozen=True, kw_only=True)
class HeadRead:
    """One head: its attention weights per example and token, the tokens it reads on average over many examples, and the
    validation error of the model without it."""

    name: str
    weights: tuple[tuple[float, ...], ...]
    reads: float
    without: float

    def most_read(self, example: int, tokens: tuple[str, ...]) -> str:
        """The tokens that the head reads most of in an example, in words: `87% of token 3 (0.31, 1.2)`."""
        weights = self.weights[example]
        order = sorted(range(len(weights)), key=lambda place: -weights[place])[:WORDS]
        shown = [place for place in order if weights[place] >= SHOWN]
        words = [f"{weights[place]:.0%} of token {place + 1} ({tokens[place]})" for place in shown]
        return ", ".join(words) or f"less than {SHOWN:.0%} of every token"


@dataclass(frozen=True, kw_only=True)
class HeadsRead:
    """What the heads of the model that ended best read at one `length`; `error` is its validation error at the end of
    training, with all of them.

    Where every token answers, the reading of one is shown, the `reader`.
    """

    model: str
    length: int
    reader: str
    error: float
    examples: tuple[ReadExample, ...]
    heads: tuple[HeadRead, ...]

    def loss_without(self, head: HeadRead) -> str:
        """The error without a head over the error with all of them, in words; empty where that is 0."""
        if not self.error > 0:
            return ""
        fold = head.without / self.error
        if fold >= 1.05:
            return f"{factor_words(fold)} times larger"
        return "the same" if fold > 0.95 else f"{factor_words(1 / fold)} times smaller"


def heads_read_of(stored: Any) -> HeadsRead | None:
    """The attachment "heads" of an experiment; None where there is none, or where it was skipped or cannot be read."""
    if not stored or "skipped" in stored:
        return None
    try:
        examples = tuple(
            ReadExample(
                tokens=tuple(_token(token) for token in each["tokens"]),
                target=_values(each["target"]),
                answer=_values(each["answer"]),
            )
            for each in stored["examples"]
        )
        heads = tuple(
            HeadRead(
                name=each["name"],
                weights=tuple(tuple(float(weight or 0.0) for weight in row) for row in each["weights"]),
                reads=float(each["reads"]),
                without=float(each["without"]),
            )
            for each in stored["heads"]
        )
        return HeadsRead(
            model=str(stored["model"]),
            length=int(stored["length"]),
            reader=str(stored.get("reader", "")),
            error=float(stored["error"]),
            examples=examples,
            heads=heads,
        )
    except (KeyError, TypeError, ValueError):
        return None  # written by another version: the page does without it


def _token(token: Any) -> str:
    """A token as words: its numbers, its id, or nothing where it is absent."""
    return "" if token is None else _values(token)


def _values(values: Any) -> str:
    if isinstance(values, str | int):
        return str(values)
    return ", ".join(f"{value:.2g}" if isinstance(value, float) else str(value) for value in values)
