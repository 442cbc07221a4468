"""What each head of a trained model reads, as it was stored with an experiment; see `headcount.heads_read`."""

from dataclasses import dataclass
from typing import Any

from ..answer.words import factor_words

SHOWN = 0.05
"""Attention weights below this are not put in words."""
WORDS = 3
"""Tokens of an example that are put in words."""


@dataclass(frozen=True, kw_only=True)
class HeadsRead:
    """What the heads of the model that ended best read at one `length`; `error` is its validation error at the end of
    training, with all of them.

    Where every token answers, the reading of one is shown, the `reader`. `examples` have `tokens` (empty for an absent
    one), `target` and `answer` in words. `heads` have a `name`, how many tokens a head `reads`, the error `without` it
    and its `change` in words, and `strips`: for each example what is read most, and the weights.
    """

    model: str
    length: int
    reader: str
    error: float
    examples: list[dict[str, Any]]
    heads: list[dict[str, Any]]


def heads_read_of(stored: Any) -> HeadsRead | None:
    """Return the attachment "heads" of an experiment; None where it is missing, was skipped or cannot be read."""
    if not stored or "skipped" in stored:
        return None
    try:
        examples = [
            {
                "tokens": ["" if token is None else _words_of(token) for token in each["tokens"]],
                "target": _words_of(each["target"]),
                "answer": _words_of(each["answer"]),
            }
            for each in stored["examples"]
        ]
        error = float(stored["error"])
        return HeadsRead(
            model=str(stored["model"]),
            length=int(stored["length"]),
            reader=str(stored.get("reader", "")),
            error=error,
            examples=examples,
            heads=[_head(each, examples, error) for each in stored["heads"]],
        )
    except (KeyError, TypeError, ValueError):
        return None  # written by another version: the page does without it


def _head(stored: dict[str, Any], examples: list[dict[str, Any]], error: float) -> dict[str, Any]:
    rows = [[float(weight or 0.0) for weight in row] for row in stored["weights"]]
    return {
        "name": stored["name"],
        "reads": float(stored["reads"]),
        "without": float(stored["without"]),
        "change": _change(float(stored["without"]), error),
        "strips": [(_most_read(row, each["tokens"]), row) for row, each in zip(rows, examples, strict=True)],
    }


def _change(without: float, error: float) -> str:
    """Return the error without a head over the error with all of them, in words; empty where that is 0."""
    if not error > 0:
        return ""
    fold = without / error
    if fold >= 1.05:
        return f"{factor_words(fold)} times larger"
    return "the same" if fold > 0.95 else f"{factor_words(1 / fold)} times smaller"


def _most_read(weights: list[float], tokens: list[str]) -> str:
    """Return the tokens that a head reads most of in an example, in words: `87% of token 3 (0.31, 1.2)`."""
    order = sorted(range(len(weights)), key=lambda place: -weights[place])[:WORDS]
    words = [f"{weights[i]:.0%} of token {i + 1} ({tokens[i]})" for i in order if weights[i] >= SHOWN]
    return ", ".join(words) or f"less than {SHOWN:.0%} of every token"


def _words_of(values: Any) -> str:
    if isinstance(values, str | int):
        return str(values)
    return ", ".join(f"{value:.2g}" if isinstance(value, float) else str(value) for value in values)
