"""Words that specs choose from, and the check that a given word is one of them. Nothing here imports JAX."""

from collections.abc import Collection
from typing import Literal

from ._errors import InputError, did_you_mean

AnsweredAt = Literal["sequence", "tokens", "query"]
"""What a target belongs to: the whole sequence, every token of it, or its last token, which asks about the others."""
Positions = Literal["none", "additive", "concatenated"]
POSITIONS: tuple[Positions, ...] = ("none", "additive", "concatenated")


def require_choice(name: str, given: object, known: Collection[str]) -> None:
    """Raise `InputError` unless `given` is one of the known words."""
    if given not in known:
        raise InputError(
            f'{name} must be one of {", ".join(known)}, got "{given}".{did_you_mean(str(given), known)}',
            what=name,
            given=given,
            needed=f"one of {', '.join(known)}",
        )
