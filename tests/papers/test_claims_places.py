"""Claims about places that are drawn once or each time, on accuracies that decide them."""

import pytest

from headcount.answer import Verdict
from headcount.papers.base import Scale
from headcount.papers.real_data.cifar_places import EACH_TIME, ONCE, STUDY

from ..helpers import fabricated

HOLDS, DIFFERS, UNDECIDED = Verdict.HOLDS, Verdict.DIFFERS, Verdict.UNDECIDED
RULES = 3
"""The claims about places; those after them compare with the tables."""


def section_of(accuracies, kept=lambda at: True):
    """The section of accuracies (training, validation) by coordinates, at paper scale."""
    made = fabricated.study_sweep(STUDY, Scale.PAPER)
    cells = tuple(cell for cell, at in zip(made.cells, made.coordinates(), strict=True) if kept(at))

    def metrics(at):
        training, validation = accuracies(at)
        errors = {"error": 1 - validation, "final_error": 1 - validation, "train_error": 1 - training}
        return errors | {"fitted_error": 1 - training, "baseline": 0.9, "baseline_noise": 0.003}

    records = fabricated.graded(fabricated.Sweep(made.experiment, cells), metrics)
    return STUDY.document(made.experiment, records, Scale.PAPER)


def verdicts(accuracies, kept=lambda at: True):
    return [claim.verdict for claim in section_of(accuracies, kept).claims][:RULES]


def as_guessed(at):
    """Places drawn once are learned: more right in training, fewer in validation; new ones help."""
    if at["length"] == 64:
        return 0.9, 0.7
    return (0.95, 0.6) if at["places"] == ONCE else (0.8, 0.75)


def test_all_holds_where_places_are_learned():
    assert verdicts(as_guessed) == [HOLDS] * RULES


def test_the_opposite_refutes_all():
    assert verdicts(lambda at: tuple(1.4 - share for share in as_guessed(at))) == [DIFFERS] * RULES


def test_a_difference_within_chance_decides_nothing():
    near = 0.004
    assert verdicts(lambda at: (0.9, 0.7 + (near if at["places"] == ONCE else 0))) == [UNDECIDED] * RULES


def test_only_the_most_heads_are_judged():
    few = verdicts(lambda at: as_guessed(at) if at["heads"] == 24 else (0.5, 0.5))
    assert few == [HOLDS] * RULES


@pytest.mark.parametrize("places", [ONCE, EACH_TIME])
def test_one_kind_of_places_decides_nothing(places):
    assert verdicts(as_guessed, lambda at: at["places"] == places) == [UNDECIDED] * RULES
    assert "both kinds" in section_of(as_guessed, lambda at: at["places"] == places).headline


@pytest.mark.parametrize("lengths", [(144,), (144, 256)])
def test_without_the_smallest_frame_its_claim_is_undecided(lengths):
    assert verdicts(as_guessed, lambda at: at["length"] in lengths) == [HOLDS, HOLDS, UNDECIDED]


def test_a_chart_has_a_line_per_kind_and_the_published_one_once():
    training, _ = section_of(as_guessed, lambda at: at["length"] in (64, 144)).charts
    assert [line.name for line in training.series] == [
        "T = 65, each time", "T = 145, each time", "T = 145, once", "T = 65, published", "T = 145, published",
    ]  # fmt: skip
    assert len({line.place for line in training.series}) == 5
