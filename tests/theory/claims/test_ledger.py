"""Every claim holds when its check is run, and the page of claims is the ledger's."""

import functools
import re
from pathlib import Path

import pytest

import headcount
from headcount.answer.claim import Claim, Verdict
from headcount.errors import InputError
from headcount.tasks import max_plus_min
from headcount.theory import construct, largest_error
from headcount.theory.claims import CLAIMS, NOT_RUN, NotRun, too_few_heads
from headcount.theory.claims.enough_heads import HALVES, without_gates
from headcount.theory.cli.prove import ledger_entry, ledger_page
from headcount.theory.collisions.basins import NoBasinError

PAGE = (Path(__file__).parents[3] / "docs" / "claims.md").read_text()
EXPECTED = {
    "fitted_heads": Verdict.ESTIMATED,
    "too_few_heads": Verdict.ESTIMATED,
    "random_collisions": Verdict.UNDECIDED,
    "closed_forms": Verdict.ESTIMATED,
    "growth_orders": Verdict.ESTIMATED,
    "majority_vote": Verdict.ESTIMATED,
    "biased_floor": Verdict.ESTIMATED,
    "many_points": Verdict.ESTIMATED,
    "norm_bound": Verdict.ESTIMATED,
    "depth_against_conjecture": Verdict.CONTRADICTED,
    "content_roles": Verdict.ESTIMATED,
}
QUICK = {"softmax_gate", "lemma_4", "lemma_8", "lemma_9", "plane_formula"}
"""The other claims' checks search, sample or compile for seconds. Each has quick cases in the tests of its module."""


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
    assert {*EXPECTED, *QUICK} <= {name_of(claim) for claim in CLAIMS}


@pytest.mark.parametrize("claim", CLAIMS, ids=name_of)
def test_the_programs_of_a_claim_exist(claim):
    for path in claim.program.split(", "):
        assert callable(functools.reduce(getattr, path.split("."), headcount))


def assert_holds(claim: Claim) -> None:
    result = claim.judge()
    assert result.verdict is EXPECTED.get(name_of(claim), Verdict.HOLDS), result.evidence
    # A control that passed would have made the verdict undecided; here it has run, and did not pass.
    assert (result.reference is not None) == (result.verdict.passed or claim.control is not None)


@pytest.mark.parametrize("claim", [one for one in CLAIMS if name_of(one) in QUICK], ids=name_of)
def test_a_claim_holds(claim):
    assert_holds(claim)


@pytest.mark.slow
@pytest.mark.parametrize("claim", [one for one in CLAIMS if name_of(one) not in QUICK], ids=name_of)
def test_a_claim_of_searches_holds(claim):
    assert_holds(claim)


def test_every_claim_that_is_judged_by_a_check_has_a_control():
    without = {name_of(claim) for claim in CLAIMS if claim.control is None}
    assert all(name in EXPECTED and not EXPECTED[name].passed for name in without), without


def test_a_claim_whose_control_passes_too_is_undecided():
    def judge(control: Verdict, seen: Verdict = Verdict.HOLDS) -> Verdict:
        zeroed = Claim(statement="zeroed", check=lambda: ("2", control))
        return Claim(statement="s", check=lambda: ("1", seen), control=zeroed).judge().verdict

    assert judge(Verdict.FAILS) is Verdict.HOLDS
    assert judge(Verdict.ESTIMATED) is Verdict.UNDECIDED
    assert judge(Verdict.FAILS, Verdict.CONTRADICTED) is Verdict.CONTRADICTED
    assert judge(Verdict.CONTRADICTED, Verdict.CONTRADICTED) is Verdict.UNDECIDED
    assert judge(Verdict.HOLDS, Verdict.FAILS) is Verdict.FAILS


def test_a_construction_without_gates_breaks_its_promise_on_windows():
    task = max_plus_min(length=8, windows=HALVES)
    built = construct(task, 0.1)
    assert largest_error(without_gates(built.model), task, starts=8, steps=20)[0] > built.promised


def test_only_covered_basins_are_taken_for_no_pair(monkeypatch):
    """Any other refusal is a fault of the check, which must not make a control fail."""

    def refuses(error):
        def refuse(*_, **__):
            raise error

        monkeypatch.setattr(too_few_heads, "find_pigeonhole", refuse)

    (control,) = (claim.control for claim in CLAIMS if name_of(claim) == "too_few_heads")
    assert control is not None
    refuses(NoBasinError("covered"))
    assert control.check()[1] is Verdict.FAILS
    refuses(InputError("another"))
    with pytest.raises(InputError, match="another"):
        control.check()


def test_what_is_not_run_has_a_reason_and_no_line_of_its_own():
    assert {each.source for each in NOT_RUN}.isdisjoint(claim.source for claim in CLAIMS)
    assert all(each.statement and each.why for each in NOT_RUN)


def test_a_claim_that_fails_is_written_as_failing():
    def entry(verdict: Verdict, repair: str) -> dict[str, str]:
        zeroed = Claim(statement="zeroed", check=lambda: ("2", Verdict.FAILS))
        claim = Claim(statement="1 = 2", source="nowhere", check=lambda: ("1", verdict), control=zeroed, repair=repair)
        return ledger_entry(claim, claim.judge())

    missing = NotRun(statement="2 = 3", source="elsewhere", why="nobody tried")
    page = ledger_page([entry(Verdict.FAILS, "no"), entry(Verdict.HOLDS, "")], [missing], "headcount prove")
    assert "| zeroed: 2 (does not pass, as it must not) | **holds** |" in page
    assert "* *elsewhere*: 2 = 3. Nobody tried." in page
    assert "**fails**" in page
    assert page.count("* *nowhere.* No.") == 1
