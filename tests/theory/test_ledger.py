"""Every claim holds when it is run, and the page of claims is the ledger's."""

import dataclasses
import re
from pathlib import Path

import jax
import pytest

from headcount.cli.views.theory import ledger_page
from headcount.theory import ledger
from headcount.theory.ledger import CLAIMS, Entry, Verdict

PAGE = Path(__file__).parent.parent.parent / "docs" / "claims.md"
EXPECTED = {
    "fitted_heads": Verdict.ESTIMATED,
    "too_few_heads": Verdict.ESTIMATED,
    "uniqueness": Verdict.ESTIMATED,
    "depth": Verdict.CONJECTURE,
    "any_length": Verdict.CONJECTURE,
}


SEARCHES = (ledger.collisions, ledger.collisions_of_a_construction)


@pytest.fixture
def fewer_pairs(monkeypatch):
    """The same searches, with certificates of two pairs instead of ten: those of the largest gaps, which come first."""

    def first_two(*arguments, search=ledger.find_collisions, **options):
        return [[pair for pair in found if pair.distance < 1e-6][:2] for found in search(*arguments, **options)]

    monkeypatch.setattr(ledger, "find_collisions", first_two)
    jax.config.update("jax_disable_most_optimizations", True)  # they are compiled for longer than they run
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.mark.parametrize("claim", [claim for claim in CLAIMS if claim not in SEARCHES], ids=lambda one: one.__name__)
def test_a_claim_holds_and_stands_on_the_page(claim):
    assert_holds_and_stands_on_the_page(claim)


@pytest.mark.parametrize("claim", SEARCHES, ids=lambda one: one.__name__)
def test_a_claim_of_searches_holds_by_the_largest_gaps_alone(claim, fewer_pairs):
    assert_holds_and_stands_on_the_page(claim)


@pytest.mark.slow
@pytest.mark.parametrize("claim", SEARCHES, ids=lambda one: one.__name__)
def test_a_claim_of_searches_holds_as_it_is_proved(claim):
    assert_holds_and_stands_on_the_page(claim)


def assert_holds_and_stands_on_the_page(claim):
    entry = claim()
    assert entry.verdict is EXPECTED.get(claim.__name__, Verdict.HOLDS), entry.evidence
    assert re.search(r"\d", entry.evidence)  # numbers, not words
    rows = [line.split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    written = {(row[0].removeprefix("| "), row[1].replace(r"\|", "|")): row[-1] for row in rows}
    assert written[entry.source, entry.claim] == f"**{entry.verdict}** |"
    assert not entry.repair or entry.repair[1:] in PAGE.read_text()


def test_the_page_has_no_other_claims():
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and "**" in line]
    assert len(rows) == len(CLAIMS)


def test_a_claim_that_fails_is_written_as_failing():
    entry = Entry(claim="1 = 2", source="nowhere", program="none", evidence="1", verdict=Verdict.FAILS, repair="no")
    page = ledger_page([entry, dataclasses.replace(entry, verdict=Verdict.HOLDS, repair="")], "headcount prove")
    assert "**fails**" in page
    assert page.count("* *nowhere.* No.") == 1
