"""Each rule applied to the numbers that the papers print: the verdicts, whatever they are, are shown beside ours."""

import pytest

from headcount.answer.claim import STRICTER, ClaimResult, Verdict, judged
from headcount.papers.published import one_seed, published_table
from headcount.papers.registry import CLOSED_FORM, REAL_DATA, STUDIES, published_claims
from headcount.report.experiment import study_document
from headcount.report.render.html import page

from ..helpers.documents import printed

PINNED = {
    "table2": "UHHH",
    "table3": "UHHH",
    "table4": "UDHH",
    "table5": "UHDH",
    "figure2e": "HH",
    "figure3": "HH",
    "rank-figure1": "UUUU",
    "rank-figure-n": "UHUH",
    "rank-random-features": "UH",
    "cifar": "HHHDH",
    "marco": "HHHHH",
}
"""First letters of the verdicts: the rules refuse Tables 4, 5 and 8 once each."""


def initials(claims: tuple[ClaimResult, ...]) -> str:
    return "".join(claim.verdict.value[0].upper() for claim in claims)


def test_every_rule_has_its_pinned_verdict_on_the_published_numbers():
    assert {name: initials(claims) for name, claims in published_claims().items()} == PINNED


def test_the_refused_claims_are_the_three_that_the_page_names():
    refused = {
        (name, claim.statement)
        for name, claims in published_claims().items()
        for claim in claims
        if claim.verdict is Verdict.DIFFERS
    }
    assert refused == {
        ("table4", "Below the transition the error grows with length."),
        ("table5", "From the transition on the error does not grow with length."),
        ("cifar", "The weighted reversal score turns positive at 10 heads."),
    }


@pytest.mark.parametrize("name", [name for name in PINNED if name.startswith("table")])
def test_a_study_of_the_published_numbers_gives_every_claim_the_same_verdict_twice(name):
    study = STUDIES[name]
    printed = one_seed(study.published)
    for claim in judged(study.rules, printed, printed):
        assert claim.reference is not None
        assert claim.reference.verdict is claim.verdict
        assert claim.reference.evidence.startswith(claim.evidence)
        assert (STRICTER in claim.reference.evidence) is (claim.verdict is Verdict.DIFFERS)


def test_numbers_that_were_not_printed_leave_a_claim_without_a_second_verdict():
    silent = (STUDIES | CLOSED_FORM | REAL_DATA).keys() - PINNED.keys()
    assert {"figure1b", "figure4", "rank-figure-d", "rank-positions", "rank-in-context"} <= silent
    claim = ClaimResult("It is so.", Verdict.HOLDS, "seen")
    assert judged(lambda _: (claim,), 1, None) == (claim,)
    assert claim.reference is None


def test_one_number_per_cell_is_the_table_of_one_seed():
    printed = published_table("table4", statistic="minimum")
    assert one_seed(printed).reduced("seed").aligned(printed) == pytest.approx(printed.errors)


def test_both_verdicts_are_in_the_terminal_the_page_and_the_json():
    claim = ClaimResult("It is so.", Verdict.HOLDS, "seen").with_published(
        ClaimResult("It is so.", Verdict.DIFFERS, "printed")
    )
    claims = (claim, ClaimResult("b", Verdict.HOLDS, "c"))
    section = study_document(name="n", title="t", question="a", headline="h", claims=claims)
    text = printed(section, width=100)
    assert "holds (published numbers: differs)  It is so." in text
    assert text.count("published numbers:") == 2
    written = page([section], folder="results")
    assert '<span class="chip differs">' in written
    assert written.count("published numbers: differs") == 1
    first, second = section.as_dict()["claims"]
    assert (first["verdict"], first["published"]["verdict"]) == ("holds", "differs")
    assert first["published"]["evidence"].startswith("printed; ")
    assert second["published"] is None
