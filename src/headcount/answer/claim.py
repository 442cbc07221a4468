"""A claim of a paper and its verdict: it holds, differs, or is undecided (not measured, or too roughly to tell)."""

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

Numbers = TypeVar("Numbers")
STRICTER = (
    "the rule refuses the published numbers themselves: it reads the claim more strictly than the paper, and a verdict "
    "on ours is by that reading"
)


class Verdict(enum.StrEnum):
    HOLDS = "holds"
    DIFFERS = "differs"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Judgement:
    """What a rule says of some numbers, and those numbers."""

    verdict: Verdict
    evidence: str


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper, its verdict, and the numbers it was judged by.

    `published` is what the same rule says of the numbers that the paper prints; None where it prints none, or where the
    rule compares ours with them.
    """

    statement: str
    verdict: Verdict
    evidence: str
    published: Judgement | None = None

    def beside(self, published: "Claim") -> "Claim":
        """This claim with what its rule says of the published numbers."""
        refused = f"; {STRICTER}" if published.verdict is Verdict.DIFFERS else ""
        return replace(self, published=Judgement(published.verdict, published.evidence + refused))


def judged(
    rules: Callable[[Numbers], tuple[Claim, ...]], ours: Numbers, published: Numbers | None
) -> tuple[Claim, ...]:
    """The claims of our numbers, each with the verdict of the same rule on the published ones where there are any."""
    claims = rules(ours)
    if published is None:
        return claims
    return tuple(claim.beside(theirs) for claim, theirs in zip(claims, rules(published), strict=True))


def decided(true: bool) -> Verdict:
    """The verdict of a claim that was measured: it holds, or differs."""
    return Verdict.HOLDS if true else Verdict.DIFFERS


def verdict_of(holds: Iterable[bool], differs: Iterable[bool]) -> Verdict:
    """Of a claim about several things: it differs where one of them refutes it, holds where all bear it out."""
    if any(differs):
        return Verdict.DIFFERS
    return Verdict.HOLDS if all(holds) else Verdict.UNDECIDED
