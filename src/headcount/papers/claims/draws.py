"""Judges of Table 2 over draws of the a_i and of the examples: what holds in nine of ten draws, or in all of them."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...answer import Answer, ErrorTable, count_of_heads
from ...answer.bootstrap import TAIL
from ...answer.claim import ClaimResult as Claim
from ...answer.claim import Verdict, decided, verdict_of
from ...answer.signals import MIN_DROP, length_slopes
from .heads import FLAT_SLOPE, drop_factor, measured_like

MIN_DRAWS = 4
"""Fewer draws say nothing of nine in ten."""
MOST = 0.9
"""The share of draws in which something holds that holds in nearly all."""
LIMIT = 0.05
"""A share of exceptions is ruled out where so many draws without one have at most this probability."""


@dataclass(frozen=True, kw_only=True)
class Draw:
    """Table 2 for one draw of the a_i, `task_seed`, and one of the examples, `data_seed`."""

    task_seed: int
    data_seed: int
    table: ErrorTable
    answer: Answer
    claims: tuple[Claim, ...]

    @property
    def name(self) -> str:
        return f"a_i {self.task_seed}, data {self.data_seed}"

    @property
    def slopes(self) -> dict[int, float]:
        """d log(error) / d log(length) of the best of seeds by heads, where two lengths are there."""
        slopes = {}
        best = self.table.reduced("seed").ordered("heads", "length").errors
        for heads, row in zip(self.table.values("heads"), best, strict=True):
            there = np.isfinite(row) & (row > 0)
            lengths = tuple(length for length, kept in zip(self.table.values("length"), there, strict=True) if kept)
            if len(lengths) > 1:
                slopes[heads] = float(length_slopes(row[None, there], lengths)[0])
        return slopes

    def drop(self, published: ErrorTable, transition: int) -> float | None:
        """The factor by which the error falls at the transition, under the published statistic over seeds."""
        errors = measured_like(self.table, published).ordered("heads", "length").errors
        return drop_factor(self.table.values("heads"), errors, transition)


def spread(values: Sequence[float], form: str) -> str:
    """The median and the interval that holds 90 % of the draws, in words."""
    low, middle, high = (format(value, form) for value in np.quantile(values, [TAIL, 0.5, 1 - TAIL]))
    return f"{middle} [{low}, {high}]"


def same_transition_claim(draws: Sequence[Draw], transition: int) -> Claim:
    """It differs where two draws' intervals share no head count, and holds where all draws have the same answer."""
    statement = "The transition does not depend on the draw."
    needs = [draw.answer.needs["heads"] for draw in draws if draw.answer.kind == "needs"]
    answers = Counter(draw.answer.heads for draw in draws)
    parts = [
        f"{'no answer' if heads is None else count_of_heads(heads)} in {count} of {len(draws)} draws"
        for heads, count in answers.most_common()
    ]
    wide = [f"{draw.name}: {draw.answer.needs['heads']}" for draw in draws if _is_wide(draw.answer)]
    evidence = "; ".join(parts) + (f"; more than one head count in the interval of: {'; '.join(wide)}" if wide else "")
    if len(draws) < MIN_DRAWS:
        return Claim(statement, Verdict.UNDECIDED, f"{evidence}; {_too_few(draws)}")
    apart = bool(needs) and max(need.low for need in needs) > min(need.high for need in needs)
    same = len(answers) == 1 and None not in answers
    if same:
        independent = len({draw.task_seed for draw in draws})
        exceptions = 1 - LIMIT ** (1 / independent)
        evidence += (
            f" (published: {transition}); {independent} draws of the a_i without an exception rule out that more than "
            f"{100 * exceptions:.0f} % of all draws are one ({100 * (1 - LIMIT):.0f} % limit)"
        )
    return Claim(statement, verdict_of([same], [apart]), evidence)


def growth_over_draws(
    draws: Sequence[Draw], published: Mapping[int, float], heads: Sequence[int], transition: int
) -> tuple[Claim, Claim]:
    """The error grows with length below the transition, and no longer from it on, in nine of ten draws."""

    def judge(statement: str, chosen: list[int], holds: Callable[[float], bool], word: str) -> Claim:
        slopes = {count: [draw.slopes[count] for draw in draws if count in draw.slopes] for count in chosen}
        if not chosen or min(map(len, slopes.values())) < MIN_DRAWS:
            return Claim(statement, Verdict.UNDECIDED, f"{_too_few(draws)} at two lengths and every head count")
        shares = {count: sum(map(holds, values)) / len(values) for count, values in slopes.items()}
        rows = "; ".join(
            f"{count_of_heads(count)} {spread(values, '+.2f')} ({published[count]:+.2f}), {word} {FLAT_SLOPE:g} in "
            f"{sum(map(holds, values))} of {len(values)}"
            for count, values in slopes.items()
        )
        evidence = f"d log(error) / d log(length), best of seeds, median [90 % of the draws] (published): {rows}"
        return Claim(statement, decided(min(shares.values()) >= MOST), evidence)

    below = "In nine of ten draws the error grows with length at every head count below the transition."
    above = "In nine of ten draws the error does not grow with length at any head count from the transition on."
    few, many = ([count for count in heads if (count < transition) is side] for side in (True, False))
    return (
        judge(below, few, lambda slope: slope > FLAT_SLOPE, "above"),
        judge(above, many, lambda slope: slope <= FLAT_SLOPE, "at most"),
    )


def drop_over_draws(draws: Sequence[Draw], published: ErrorTable, theirs: float, transition: int) -> Claim:
    """The error falls sharply at the transition in nine of ten draws."""
    statement = f"In nine of ten draws the error falls sharply from {transition - 1} to {transition} heads."
    drops = {draw.name: drop for draw in draws if (drop := draw.drop(published, transition)) is not None}
    if len(drops) < MIN_DRAWS:
        return Claim(statement, Verdict.UNDECIDED, f"{_too_few(draws)} with {transition - 1} and {transition} heads")
    values = list(drops.values())
    sharp = sum(drop >= 10**MIN_DROP for drop in values)
    smallest, largest = min(drops, key=drops.__getitem__), max(drops, key=drops.__getitem__)
    evidence = (
        f"{published.statistic} over seeds, median {spread(values, '.3g')}-fold [90 % of the draws], from "
        f"{drops[smallest]:.3g}-fold ({smallest}) to {drops[largest]:.3g}-fold ({largest}); fivefold or more in "
        f"{sharp} of {len(values)}; published {theirs:.3g}-fold, less than in "
        f"{sum(drop > theirs for drop in values)} of {len(values)} draws"
    )
    return Claim(statement, decided(sharp / len(values) >= MOST), evidence)


def every_rule_claim(draws: Sequence[Draw]) -> Claim:
    """Every claim of the table holds in every draw."""
    statement = "Every claim of Table 2 holds in every draw tried."
    evidence = "; ".join(
        f"{said} {', '.join(f'{counts[verdict]} {verdict.value}' for verdict in Verdict if counts[verdict])}"
        for said, counts in verdicts_by_rule(draws).items()
    )
    verdicts = [claim.verdict for draw in draws for claim in draw.claims]
    if len(draws) < MIN_DRAWS:
        return Claim(statement, Verdict.UNDECIDED, f"{evidence}; {_too_few(draws)}")
    holds, differs = ([verdict is each for verdict in verdicts] for each in (Verdict.HOLDS, Verdict.DIFFERS))
    return Claim(statement, verdict_of(holds, differs), evidence)


def verdicts_by_rule(draws: Sequence[Draw]) -> dict[str, Counter[Verdict]]:
    """How many draws have each verdict, by the claim's statement."""
    counts: dict[str, Counter[Verdict]] = {}
    for draw in draws:
        for claim in draw.claims:
            counts.setdefault(claim.statement, Counter())[claim.verdict] += 1
    return counts


def _is_wide(answer: Answer) -> bool:
    return answer.kind == "needs" and answer.needs["heads"].low < answer.needs["heads"].high


def _too_few(draws: Sequence[Draw]) -> str:
    return f"{len(draws)} draws finished, judged are {MIN_DRAWS} or more"
