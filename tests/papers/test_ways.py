"""The studies of shared keys and of other ways of reading: what they say of tables whose truth is known."""

import pytest

from headcount.answer import Answer, Verdict
from headcount.answer.answer_base import Interval
from headcount.papers.base import Scale
from headcount.papers.beyond.shared_keys import STUDY
from headcount.papers.claims.heads import same_answer_claim

from ..helpers import fabricated

HOLDS, DIFFERS, UNDECIDED = Verdict.HOLDS, Verdict.DIFFERS, Verdict.UNDECIDED


def needing(at: int, low: int, high: int) -> Answer:
    return Answer(sentence=f"needs {at}", kind="needs", needs={"heads": Interval(at, low, high)})


@pytest.mark.parametrize(
    ("one", "other", "verdict"),
    [
        (needing(4, 4, 4), needing(4, 4, 4), HOLDS),
        (needing(3, 3, 5), needing(4, 3, 5), UNDECIDED),
        (needing(4, 1, 9), needing(4, 1, 9), UNDECIDED),
        (Answer(sentence="nothing can be said"), needing(4, 4, 4), UNDECIDED),
        (needing(2, 2, 3), needing(4, 4, 5), DIFFERS),
    ],
)
def test_two_answers_are_one_where_their_intervals_are(one, other, verdict):
    assert same_answer_claim("", {"one": one, "other": other}, "one", "other").verdict is verdict


def of_shared_keys(narrow, kept=lambda at: True):
    """The claims of a map where four heads are enough, and of one narrow set of keys err by `narrow` of the seed."""

    def error(at):
        if at["kv_heads"] == 1 and at["heads"] == 4 and at["head_dim"] < 4:
            return narrow(at["seed"])
        return (1e-4 if at["heads"] >= 4 else 2e-2) * (1 + 0.1 * at["seed"])

    made = fabricated.study_sweep(STUDY, Scale.LAPTOP)
    records = [
        record for record, at in zip(fabricated.finished(made, error), made.coordinates(), strict=True) if kept(at)
    ]
    section = STUDY.document(made.experiment, records, Scale.LAPTOP)
    return [claim.verdict for claim in section.claims]


@pytest.mark.parametrize(
    ("narrow", "verdict"),
    [
        (lambda seed: 1e-2 * (1 + 0.1 * seed), HOLDS),
        (lambda seed: 2e-4 * (1 + 0.1 * seed), DIFFERS),
        (lambda seed: 5e-4 if seed == 0 else 5e-3, UNDECIDED),
    ],
    ids=["far", "near", "by seed"],
)
def test_a_ratio_decides_where_its_interval_is_on_one_side_of_tenfold(narrow, verdict):
    own, _, near, far = of_shared_keys(narrow)
    assert (own, near, far) == (HOLDS, HOLDS, verdict)


def test_one_seed_has_no_ratio():
    *_, near, far = of_shared_keys(lambda _: 1e-2, kept=lambda at: at["seed"] == 0)
    assert (near, far) == (UNDECIDED, UNDECIDED)
