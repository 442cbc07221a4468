"""What a claim of the ledger is, and what running it gives."""

import enum
from collections.abc import Callable
from dataclasses import dataclass


class Verdict(enum.StrEnum):
    """What a check says of a claim.

    A claim is `undecided` where its control also passes, or where the check cannot reach what the claim is about. It is
    `contradicted` where a witness refutes what a paper states; `fails` where our own program does not keep its promise.
    """

    HOLDS = "holds"
    ESTIMATED = "estimated"
    UNDECIDED = "undecided"
    CONTRADICTED = "contradicted"
    FAILS = "fails"


BORNE_OUT = (Verdict.HOLDS, Verdict.ESTIMATED, Verdict.CONTRADICTED)
"""Verdicts that rest on a check, and that its control must not reach."""

Result = tuple[str, Verdict]
"""The numbers that a check gave, and what they say of the claim."""


@dataclass(frozen=True, kw_only=True)
class Control:
    """The same check on something broken, which must not pass: gates zeroed, weights shuffled, heads enough.

    `breaks` says what is broken.
    """

    breaks: str
    check: Callable[[], Result]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One line of the ledger: a claim and the result of its check.

    `control` is what the broken check gave; empty where a claim has none.
    """

    claim: str
    source: str
    program: str
    evidence: str
    verdict: Verdict
    repair: str = ""
    control: str = ""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement of a paper and the check that runs it at small size. Call it to get its `Entry`.

    Where a control passes too, the check cannot tell right from wrong, and the verdict is `undecided`.
    """

    statement: str
    source: str
    program: str
    """Names under `headcount.theory` of the functions that the check uses."""
    repair: str = ""
    """What had to be changed where a published step does not hold as written."""
    check: Callable[[], Result]
    control: Control | None = None

    def __call__(self) -> Entry:
        evidence, verdict = self.check()
        control = ""
        if self.control is not None and verdict in BORNE_OUT:
            seen, of_broken = self.control.check()
            passes = of_broken in BORNE_OUT
            control = f"{self.control.breaks}: {seen} ({'passes too' if passes else 'does not pass, as it must not'})"
            verdict = Verdict.UNDECIDED if passes else verdict
        about = {"claim": self.statement, "source": self.source, "program": self.program, "repair": self.repair}
        return Entry(**about, evidence=evidence, verdict=verdict, control=control)


@dataclass(frozen=True, kw_only=True)
class NotRun:
    """A statement of a paper that the ledger does not run, and why."""

    statement: str
    source: str
    why: str


def claim(
    statement: str, *, source: str, program: str, repair: str = "", control: Control | None = None
) -> Callable[[Callable[[], Result]], Claim]:
    """Decorate a check to make it a `Claim`."""
    return lambda check: Claim(
        statement=statement, source=source, program=program, repair=repair, check=check, control=control
    )


def verdict_of(holds: bool, *, estimated: bool = False) -> Verdict:
    """FAILS unless the claim holds; ESTIMATED where that depends on samples or searches."""
    if not holds:
        return Verdict.FAILS
    return Verdict.ESTIMATED if estimated else Verdict.HOLDS
