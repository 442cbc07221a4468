"""A claim of a paper and its verdict: it holds, differs, or is undecided (not measured, or too roughly to tell)."""

import enum
from collections.abc import Iterable
from dataclasses import dataclass


class Verdict(enum.StrEnum):
    HOLDS = "holds"
    DIFFERS = "differs"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper, its verdict, and the numbers it was judged by."""

    statement: str
    verdict: Verdict
    evidence: str


def decided(true: bool) -> Verdict:
    """The verdict of a claim that was measured: it holds, or differs."""
    return Verdict.HOLDS if true else Verdict.DIFFERS


def verdict_of(holds: Iterable[bool], differs: Iterable[bool]) -> Verdict:
    """Of a claim about several things: it differs where one of them refutes it, holds where all bear it out."""
    if any(differs):
        return Verdict.DIFFERS
    return Verdict.HOLDS if all(holds) else Verdict.UNDECIDED
