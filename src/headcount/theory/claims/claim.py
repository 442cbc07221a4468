"""What a claim of the ledger is, and what running it gives."""

import enum
from collections.abc import Callable
from dataclasses import dataclass


class Verdict(enum.StrEnum):
    """`estimated` depends on samples or searches; a `conjecture` is proved by nobody."""

    HOLDS = "holds"
    ESTIMATED = "estimated"
    CONJECTURE = "conjecture"
    FAILS = "fails"


Result = tuple[str, Verdict]
"""The numbers that a check gave, and what they say of the claim."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One line of the ledger: a claim and the result of its check."""

    claim: str
    source: str
    program: str
    evidence: str
    verdict: Verdict
    repair: str = ""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement of a paper and the check that runs it at small size. Call it to get its `Entry`."""

    statement: str
    source: str
    program: str
    """Names under `headcount.theory` of the functions that the check uses."""
    repair: str = ""
    """What had to be changed where a published step does not hold as written."""
    check: Callable[[], Result]

    def __call__(self) -> Entry:
        evidence, verdict = self.check()
        about = {"claim": self.statement, "source": self.source, "program": self.program, "repair": self.repair}
        return Entry(**about, evidence=evidence, verdict=verdict)


def claim(statement: str, *, source: str, program: str, repair: str = "") -> Callable[[Callable[[], Result]], Claim]:
    """Decorate a check to make it a `Claim`."""
    return lambda check: Claim(statement=statement, source=source, program=program, repair=repair, check=check)


def verdict_of(holds: bool, *, estimated: bool = False) -> Verdict:
    """FAILS unless the claim holds; ESTIMATED where that depends on samples or searches."""
    if not holds:
        return Verdict.FAILS
    return Verdict.ESTIMATED if estimated else Verdict.HOLDS
