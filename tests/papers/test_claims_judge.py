"""A claim holds where every case bears it out, and differs where one refutes it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.answer import Verdict
from headcount.answer.fits import Estimate
from headcount.papers.claims.judge import (
    Case,
    above,
    at_most,
    claims_that,
    estimate_words,
    exactly,
    geometric_mean,
    judge,
    within,
)

HOLDS, DIFFERS, UNDECIDED = Verdict.HOLDS, Verdict.DIFFERS, Verdict.UNDECIDED
YES, NO, OPEN = Case("yes", True, False), Case("no", False, True), Case("open", False, False)
NOT_MEASURED = Case("", False, False)


@pytest.mark.parametrize(
    ("cases", "verdict", "evidence"),
    [
        ([YES, YES], HOLDS, "yes; yes"),
        ([YES, NO], DIFFERS, "yes; no"),
        ([YES, OPEN], UNDECIDED, "yes; open"),
        ([YES, NOT_MEASURED], UNDECIDED, "yes"),
        ([NOT_MEASURED], UNDECIDED, "nothing"),
        (["before: "], UNDECIDED, "nothing"),
        (["before: ", YES, NO, " (after)"], DIFFERS, "before: yes; no (after)"),
    ],
)
def test_cases_decide_and_are_the_evidence(cases, verdict, evidence):
    claim = judge("It is so.", cases, "nothing")
    assert (claim.statement, claim.verdict, claim.evidence) == ("It is so.", verdict, evidence)
    assert judge("It is so.", cases, "nothing", whole=False).verdict is UNDECIDED


@claims_that("All but {most} are even.", "no number up to {most}")
def even_claim(numbers, most, *, whole=True):
    for number in numbers:
        yield exactly(str(number), number % 2 == 0)


def test_a_statement_has_the_arguments_of_its_rule():
    assert even_claim([2, 4], 3).statement == "All but 3 are even."
    assert even_claim([], most=3).evidence == "no number up to 3"
    assert [even_claim(numbers, 3).verdict for numbers in ([2, 4], [2, 3], [])] == [HOLDS, DIFFERS, UNDECIDED]
    assert even_claim([2], 3, whole=False).verdict is UNDECIDED


@given(st.lists(st.floats(-5, 5), min_size=3, max_size=3).map(sorted), st.floats(-5, 5))
def test_a_limit_within_an_interval_decides_nothing(ends, limit):
    estimate = Estimate(*ends)
    over, under = above("", estimate, limit), at_most("", estimate, limit)
    assert (over.holds, over.differs) == (under.differs, under.holds)
    assert over.holds == (estimate.low > limit)
    assert over.differs == (estimate.high <= limit)
    both = within("", estimate, limit - 1, limit + 1)
    assert not (both.holds and both.differs)


def test_words_and_means():
    assert estimate_words(Estimate(1, 2.0, 3), ".1f", "-fold") == "2.0-fold [1.0, 3.0]"
    assert geometric_mean([1, 100]) == pytest.approx(10)
    assert geometric_mean([0, 1]) == 0
    assert np.isnan(geometric_mean([]))
