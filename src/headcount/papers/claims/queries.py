"""Judges of the number of training queries: what would the published number give?

`table` is over queries, heads, length and seed. A cell's learning curve is a line through the log-odds of wrong
answers; what it says of a number of queries that was not measured has an interval.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from ...answer import ErrorTable, LearningCurve, count_of_heads, learning_curve
from ...answer.bootstrap import COVERAGE
from ...answer.claim import ClaimResult as Claim
from ...answer.claim import Verdict, decided, verdict_of
from .labels import NEAR

Place = tuple[int, int]
"""Heads and length."""


def learning_curves(table: ErrorTable) -> dict[Place, LearningCurve]:
    """The learning curve of every cell that has one, by heads and length."""
    ours = table.ordered("heads", "length", "queries", "seed")
    curves = {
        (heads, length): learning_curve(ours.values("queries"), ours.errors[i, j])
        for i, heads in enumerate(ours.values("heads"))
        for j, length in enumerate(ours.values("length"))
    }
    return {place: curve for place, curve in curves.items() if curve is not None}


def would_be_claim(
    what: str, curves: Mapping[Place, LearningCurve], published: ErrorTable, queries: int, *, whole: bool
) -> Claim:
    """With the published number of queries the published accuracies: judged by whether intervals lie near them.

    It differs where more of them lie apart than would by chance.
    """
    statement = (
        f"With {queries:,} queries every {what} accuracy would be within {100 * NEAR:.0f} points of the published one."
    )
    inside, outside, parts = [], [], []
    for (heads, length), curve in curves.items():
        printed, (low, value, high) = published.at(heads=heads, length=length), curve.at(queries)
        if np.isfinite(printed):
            inside.append(printed - NEAR <= low and high <= printed + NEAR)
            outside.append(high < printed - NEAR or low > printed + NEAR)
            parts.append(
                f"{count_of_heads(heads)}, T = {length} {100 * (1 - value):.1f} [{100 * (1 - high):.1f}, "
                f"{100 * (1 - low):.1f}] ({100 * (1 - printed):.1f})"
            )
    if not parts:
        return Claim(statement, Verdict.UNDECIDED, "no published cell was measured with three numbers of queries")
    evidence = (
        f"near in {sum(inside)}, not near in {sum(outside)} of {len(parts)} cells; per cent [90 % interval] "
        f"(published): {'; '.join(parts)}"
    )
    verdict = verdict_of(inside, [_beyond_chance(outside)])
    return Claim(statement, verdict if whole else Verdict.UNDECIDED, evidence)


def foretold_claim(what: str, table: ErrorTable) -> Claim:
    """The curve through all numbers of queries but the largest gives the accuracy with the largest."""
    points = f"{100 * NEAR:.0f} points"
    statement = f"Curves through fewer queries give every {what} accuracy with the most, within {points}."
    *fewer, most = table.values("queries")
    measured = table.select(queries=most).reduced("seed", "mean")
    missed = {
        (heads, length): curve.at(most).value - measured.at(heads=heads, length=length)
        for (heads, length), curve in learning_curves(table.select(queries=fewer)).items()
    }
    missed = {place: miss for place, miss in missed.items() if np.isfinite(miss)}
    if not missed:
        return Claim(statement, Verdict.UNDECIDED, "it takes four numbers of queries")
    near = sum(abs(miss) <= NEAR for miss in missed.values())
    evidence = (
        f"{near} of {len(missed)} cells; measured with {most:,} queries less foretold from up to {max(fewer):,}: from "
        f"{100 * min(missed.values()):+.1f} to {100 * max(missed.values()):+.1f} points"
    )
    return Claim(statement, decided(near == len(missed)), evidence)


def costs_claim(curves: Mapping[Place, LearningCurve], transition: int) -> Claim:
    """With few heads more queries are harder to fit."""
    statement = f"Below {transition} heads training accuracy falls as queries are added."
    slopes = {place: curve.slopes for place, curve in curves.items() if place[0] < transition}
    if not slopes:
        return Claim(statement, Verdict.UNDECIDED, "no such head count was measured with three numbers of queries")
    evidence = "log-odds of a wrong answer per e-fold of queries [90 % interval]: " + "; ".join(
        f"{count_of_heads(heads)}, T = {length} {slope.value:+.2f} [{slope.low:+.2f}, {slope.high:+.2f}]"
        for (heads, length), slope in slopes.items()
    )
    rising, falling = ([s.low > 0 for s in slopes.values()], [s.high < 0 for s in slopes.values()])
    return Claim(statement, verdict_of(rising, [_beyond_chance(falling)]), evidence)


def _beyond_chance(outside: Sequence[bool]) -> bool:
    """Whether more intervals miss than those that each miss one time in ten: by two deviations of that number."""
    count = len(outside)
    return sum(outside) > count * (1 - COVERAGE) + 2 * (count * COVERAGE * (1 - COVERAGE)) ** 0.5
