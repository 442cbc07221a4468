"""The study of a norm before the readout: what it says of tables whose truth is known."""

import pytest

from headcount.answer import Verdict
from headcount.papers.base import Scale
from headcount.papers.beyond.norm import STUDY

from ..helpers import fabricated

HOLDS, DIFFERS, UNDECIDED = Verdict.HOLDS, Verdict.DIFFERS, Verdict.UNDECIDED


def verdicts(error, kept=lambda at: True) -> tuple[Verdict, ...]:
    """Transition without and with a norm, whether they agree, drop without and with, within tenfold."""
    made = fabricated.study_sweep(STUDY, Scale.LAPTOP)
    records = [
        record for record, at in zip(fabricated.finished(made, error), made.coordinates(), strict=True) if kept(at)
    ]
    return tuple(claim.verdict for claim in STUDY.document(made.experiment, records, Scale.LAPTOP).claims)


def stepped(**needed: int):
    """Errors that fall at so many heads, by norm."""
    return lambda at: (1e-2 if at["heads"] < needed[at["norm"]] else 1e-5) * (1 + 0.1 * at["seed"])


@pytest.mark.parametrize(
    ("error", "wanted"),
    [
        (stepped(none=4, layer=4), (HOLDS, HOLDS, HOLDS, HOLDS, HOLDS, HOLDS)),
        (stepped(none=4, layer=5), (HOLDS, DIFFERS, DIFFERS, HOLDS, DIFFERS, DIFFERS)),
        (stepped(none=3, layer=3), (DIFFERS, DIFFERS, HOLDS, DIFFERS, DIFFERS, HOLDS)),
        (lambda at: 1e-2 * 0.5 ** at["heads"], (DIFFERS, DIFFERS, UNDECIDED, DIFFERS, DIFFERS, HOLDS)),
    ],
    ids=["same", "moved", "both elsewhere", "no transition"],
)
def test_its_claims_are_those_of_the_table(error, wanted):
    assert verdicts(error) == wanted


def test_half_of_the_models_decide_nothing_about_the_other_half():
    plain = verdicts(stepped(none=4, layer=4), lambda at: at["norm"] == "none")
    assert plain == (HOLDS, UNDECIDED, UNDECIDED, HOLDS, UNDECIDED, UNDECIDED)
