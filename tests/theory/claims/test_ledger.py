"""Every claim holds when its check is run, and the page of claims is the ledger's."""

import dataclasses
import functools
import re
from pathlib import Path

import pytest

import headcount
from headcount.cli.prove import _page as ledger_page
from headcount.theory.claims import CLAIMS, Claim, Entry, Verdict, prove

PAGE = (Path(__file__).parents[3] / "docs" / "claims.md").read_text()
EXPECTED = {
    "fitted_heads": Verdict.ESTIMATED,
    "too_few_heads": Verdict.ESTIMATED,
    "uniqueness": Verdict.ESTIMATED,
    "depth": Verdict.CONJECTURE,
    "any_length": Verdict.CONJECTURE,
}
SEARCHES = {"enough_heads", "fitted_heads", "too_few_heads", "collisions", "collisions_of_a_construction", "wide_head"}
SEARCHES |= {"uniqueness", "full_rank", "closed_forms", "floors", "majority_vote", "support"}
"""Claims whose checks search, sample or compile for seconds. Each has quick cases in the tests of its module."""


def name_of(claim: Claim) -> str:
    return claim.check.__name__


@pytest.fixture(scope="module")
def rows() -> list[list[str]]:
    """The cells of the page's table, one list per claim."""
    lines = [line for line in PAGE.splitlines() if line.startswith("| ") and "**" in line]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_the_page_has_every_claim_in_order_and_no_other(rows):
    wanted = [(claim.source, claim.statement.replace("|", r"\|"), f"`{claim.program}`") for claim in CLAIMS]
    assert [tuple(row[:3]) for row in rows] == wanted
    for claim in CLAIMS:
        assert not claim.repair or claim.repair[1:] in PAGE


def test_the_page_has_the_expected_verdicts(rows):
    assert [row[-1] for row in rows] == [f"**{EXPECTED.get(name_of(claim), Verdict.HOLDS)}**" for claim in CLAIMS]


def test_names_in_expectations_are_claims():
    assert {*EXPECTED, *SEARCHES} <= {name_of(claim) for claim in CLAIMS}


@pytest.mark.parametrize("claim", CLAIMS, ids=name_of)
def test_the_programs_of_a_claim_exist(claim):
    for path in claim.program.split(", "):
        assert callable(functools.reduce(getattr, path.split("."), headcount))


def assert_holds(claim: Claim) -> None:
    entry = claim()
    assert entry.verdict is EXPECTED.get(name_of(claim), Verdict.HOLDS), entry.evidence
    assert (entry.claim, entry.source, entry.repair) == (claim.statement, claim.source, claim.repair)


@pytest.mark.parametrize("claim", [one for one in CLAIMS if name_of(one) not in SEARCHES], ids=name_of)
def test_a_claim_holds(claim):
    assert_holds(claim)


@pytest.mark.slow
@pytest.mark.parametrize("claim", [one for one in CLAIMS if name_of(one) in SEARCHES], ids=name_of)
def test_a_claim_of_searches_holds(claim):
    assert_holds(claim)


def test_a_ledger_runs_its_claims_in_order(monkeypatch):
    quick = [one for one in CLAIMS if name_of(one) in ("gate", "depth")]
    monkeypatch.setattr("headcount.theory.claims.ledger.CLAIMS", tuple(quick))
    assert [entry.source for entry in prove()] == [one.source for one in quick]


def test_a_claim_that_fails_is_written_as_failing():
    entry = Entry(claim="1 = 2", source="nowhere", program="none", evidence="1", verdict=Verdict.FAILS, repair="no")
    page = ledger_page([entry, dataclasses.replace(entry, verdict=Verdict.HOLDS, repair="")], "headcount prove")
    assert "**fails**" in page
    assert page.count("* *nowhere.* No.") == 1
