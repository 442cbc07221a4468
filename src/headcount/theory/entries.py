"""What a line of the ledger says."""

import enum
from dataclasses import dataclass


class Verdict(enum.StrEnum):
    HOLDS = "holds"
    ESTIMATED = "estimated"
    CONJECTURE = "conjecture"
    FAILS = "fails"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One line of the ledger."""

    claim: str
    source: str
    program: str
    evidence: str
    verdict: Verdict
    repair: str = ""


def verdict_of(holds: bool, *, estimated: bool = False) -> Verdict:
    if not holds:
        return Verdict.FAILS
    return Verdict.ESTIMATED if estimated else Verdict.HOLDS
