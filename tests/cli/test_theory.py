"""`headcount bounds` and `headcount prove` as a person meets them."""

import pytest

from headcount.cli import theory as theory_commands
from headcount.theory.claims import Entry, Verdict, ledger

from .commands import a_sentence, headcount, strict_json

SETTING = ["--heads", 2, "--intrinsic-dim", 4, "--length", 128, "--head-dim", 8, "--eps", 1e-2]


def test_the_bounds_are_told_with_their_sources_and_conditions():
    told = headcount("bounds", *SETTING)
    assert told.code == 0
    assert "too few heads: exponent k: 0.4211" in told.out
    for words in ("Theorem 1", "Theorem 2(1)", "Theorem 2(2)", "Theorem 2(3)", "Lemma 9", "Corollary 1", "conjecture"):
        assert words in told.out
    found = {bound["name"]: bound for bound in strict_json(headcount("bounds", *SETTING, "--json").out)}
    assert found["too few heads: exponent k"]["applies"]
    assert not found["enough heads: exponent"]["applies"]
    assert found["depth: minimum heads per layer"]["kind"] == "conjecture"


def test_a_vacuous_bound_says_nothing_and_from_which_length_it_would():
    told = headcount("bounds", *SETTING[:4], "--length", 8, "--head-dim", 8)
    assert told.code == 0
    assert "says nothing" in told.out
    assert "it takes length 100 or more" in " ".join(told.out.split())


@pytest.mark.parametrize("dim", [1, 4])
def test_the_exponent_is_drawn_for_any_task(tmp_path, dim):
    result = headcount("bounds", "--heads", 1, "--intrinsic-dim", dim, "--length", 96, "--plot", tmp_path / "k.svg")
    assert result.code == 0
    assert "<svg" in (tmp_path / "k.svg").read_text()


RANK = ["--heads", 8, "--rank", 8, "--dim", 64, "--length", 2, "--eps", 0.1]


def test_with_a_rank_the_second_papers_bounds_are_told():
    told = headcount("bounds", *RANK)
    assert told.code == 0
    assert "low rank: minimum error: 0.178" in told.out
    for words in ("full rank", "Theorem 2", "Theorem 3", "gives the order only", "majority vote", "conjecture"):
        assert words in told.out
    assert "2510.06662" not in told.out
    found = {bound["name"]: bound for bound in strict_json(headcount("bounds", *RANK, "--json").out)}
    assert found["low rank: heads needed"]["value"] == 12955
    assert found["low rank, high accuracy: heads"]["value"] is None
    assert not found["full rank: heads enough"]["applies"]


@pytest.mark.parametrize(("rank", "dim"), [(1, 64), (8, 24), (64, 64), (200, 256)])
def test_the_floor_is_drawn_for_any_rank(tmp_path, rank, dim):
    numbers = ["--heads", 8, "--rank", rank, "--dim", dim, "--length", 2]
    assert headcount("bounds", *numbers, "--plot", tmp_path / "floor.svg").code == 0
    assert "<svg" in (tmp_path / "floor.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--heads", 8, "--length", 2], "give --intrinsic-dim"),
        ([*RANK, "--intrinsic-dim", 4], "not both"),
        ([*RANK, "--rank", 65], "at most dim = 64, got 65"),
        ([*RANK, "--heads", 0], "heads must be a whole number of at least 1, got 0"),
        ([*RANK, "--length", 1], "length must be a whole number of at least 2, got 1"),
        (["--heads", 8, "--length", 2, "--rank", 1], "--rank needs the --dim"),
    ],
)
def test_a_rank_that_cannot_be_is_refused_in_a_sentence(arguments, words):
    a_sentence(headcount("bounds", *arguments), 2, words)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (["--eps", 2], "eps must lie between 0 and 1, got 2.0"),
        (["--heads", 0], "heads must be a whole number of at least 1, got 0"),
        (["--plot", "k.bmp"], "k.bmp"),
        (["--gamma", -1], "gamma must be positive"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_in_a_sentence(change, words):
    a_sentence(headcount("bounds", *SETTING, *change), 2, words)


def _entry(verdict):
    return Entry(claim="a claim", source="Lemma 0", program="none", evidence="seen 1 of [2]", verdict=verdict)


@pytest.fixture
def quick_claims(monkeypatch):
    """The ledger's claims themselves are run in tests/theory/claims/test_ledger.py."""

    def use(*verdicts):
        claims = tuple((lambda verdict=verdict: _entry(verdict)) for verdict in verdicts)
        monkeypatch.setattr(ledger, "CLAIMS", claims)
        monkeypatch.setattr(theory_commands, "CLAIMS", claims)

    return use


def test_the_ledger_is_told_and_written(quick_claims, tmp_path):
    quick_claims(Verdict.HOLDS, Verdict.ESTIMATED, Verdict.CONJECTURE)
    told = headcount("prove", "--write", tmp_path / "claims.md")
    assert told.code == 0
    assert "3 claims: 1 holds, 1 estimated, 1 conjecture" in told.out
    assert "seen 1 of [2]" in told.out
    assert (tmp_path / "claims.md").read_text().count("**holds**") == 1
    assert [entry["verdict"] for entry in strict_json(headcount("prove", "--json").out)] == [
        "holds",
        "estimated",
        "conjecture",
    ]


def test_a_claim_that_fails_ends_in_1(quick_claims):
    quick_claims(Verdict.HOLDS, Verdict.FAILS)
    told = headcount("prove")
    assert told.code == 1
    assert "1 fails" in told.out
