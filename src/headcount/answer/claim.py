"""A claim, the check that judges it, and the result: the same three for published sentences and for theorems.

A result is believed as far as its reference allows: the same check of something whose verdict is known. Of a theorem
that is a control, something broken, which must not pass; of a published sentence the numbers that the paper prints.
"""

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

Numbers = TypeVar("Numbers")
STRICTER = (
    "the rule refuses the published numbers themselves: it reads the claim more strictly than the paper, and a verdict "
    "on ours is by that reading"
)


class Verdict(enum.StrEnum):
    """What a check says of a claim.

    `undecided`: not measured, too roughly to tell, or the control passes too. `differs`: our measurements are not as
    the paper says. `contradicted`: a witness refutes what a paper proves or conjectures. `fails`: our own program does
    not keep its promise.
    """

    HOLDS = "holds"
    ESTIMATED = "estimated"
    DIFFERS = "differs"
    UNDECIDED = "undecided"
    CONTRADICTED = "contradicted"
    FAILS = "fails"

    @property
    def passed(self) -> bool:
        """Whether the check was passed; a contradiction passes one too, by its witness."""
        return self in (Verdict.HOLDS, Verdict.ESTIMATED, Verdict.CONTRADICTED)


OF_MEASUREMENTS = (Verdict.HOLDS, Verdict.DIFFERS, Verdict.UNDECIDED)
"""The verdicts of a claim that models were trained for."""

Finding = tuple[str, Verdict]
"""The numbers that a check gave, and what they say of the claim."""


@dataclass(frozen=True)
class ClaimResult:
    """A statement, its verdict, the numbers it was judged by, and the result of the same check on its reference."""

    statement: str
    verdict: Verdict
    evidence: str
    reference: "ClaimResult | None" = None

    def with_published(self, published: "ClaimResult") -> "ClaimResult":
        """Attach the result of the same check on the published numbers."""
        refused = f"; {STRICTER}" if published.verdict is Verdict.DIFFERS else ""
        return replace(self, reference=replace(published, evidence=published.evidence + refused))

    def as_dict(self) -> dict[str, Any]:
        """Return a line of a study as JSON, with what the published numbers gave."""
        seen = self.reference
        published = None if seen is None else {"verdict": seen.verdict, "evidence": seen.evidence}
        line = {"statement": self.statement, "verdict": self.verdict, "evidence": self.evidence}
        return line | {"published": published}


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement with its source and the check that judges it; as a control, `statement` says what is broken.

    `program` names the functions under `headcount` that the check uses, `repair` what had to be changed where a
    published step does not hold as written.
    """

    statement: str
    source: str = ""
    check: Callable[[], Finding]
    control: "Claim | None" = None
    program: str = ""
    repair: str = ""

    def judge(self) -> ClaimResult:
        """Run the check, and its control where the check was passed."""
        evidence, verdict = self.check()
        if self.control is None or not verdict.passed:
            return ClaimResult(self.statement, verdict, evidence)
        control = self.control.judge()  # where it passes too, the check cannot tell right from wrong
        return ClaimResult(self.statement, Verdict.UNDECIDED if control.verdict.passed else verdict, evidence, control)


def judged(
    rules: Callable[[Numbers], tuple[ClaimResult, ...]], ours: Numbers, published: Numbers | None
) -> tuple[ClaimResult, ...]:
    """Judge our numbers, and by the same rules the published ones where there are any."""
    results = rules(ours)
    if published is None:
        return results
    return tuple(result.with_published(theirs) for result, theirs in zip(results, rules(published), strict=True))


def decided(true: bool) -> Verdict:
    """Return HOLDS or DIFFERS, for a claim that was measured."""
    return Verdict.HOLDS if true else Verdict.DIFFERS


def promise_verdict(kept: bool, *, estimated: bool = False) -> Verdict:
    """Return FAILS unless the promise of a program is kept; ESTIMATED where that rests on samples or searches."""
    if not kept:
        return Verdict.FAILS
    return Verdict.ESTIMATED if estimated else Verdict.HOLDS


def verdict_of(holds: Iterable[bool], differs: Iterable[bool]) -> Verdict:
    """Return DIFFERS where one of several things refutes a claim, HOLDS where all bear it out."""
    if any(differs):
        return Verdict.DIFFERS
    return Verdict.HOLDS if all(holds) else Verdict.UNDECIDED
