"""What Tables 6 and 7 owe to the length of training and to the number of queries, on accuracies that decide it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.answer import ERROR_RATE, ErrorTable, Verdict
from headcount.papers.base import Scale
from headcount.papers.real_data import marco_epochs, marco_queries
from headcount.papers.real_data.marco_epochs import Apart, apart, epochs_needed, together
from headcount.papers.real_data.passages import TRAINED, TRAINING, VALIDATION
from headcount.papers.tasks.stand_in import StandIn

from .test_real_data import graded

HOLDS, DIFFERS, UNDECIDED = Verdict.HOLDS, Verdict.DIFFERS, Verdict.UNDECIDED


def printed(at) -> tuple[float, float]:
    """The published training and validation accuracy at these coordinates."""
    place = {"heads": at["heads"], "length": at["length"]}
    return 1 - TRAINING.at(**place), 1 - VALIDATION.at(**place)


def verdicts(study, accuracies, scale=Scale.LAPTOP, kept=lambda at: True):
    section = study.document(*graded(study, scale, accuracies, kept), scale)
    assert not any("nan" in claim.evidence for claim in section.claims)
    return tuple(claim.verdict for claim in section.claims)


# Epochs: training, the same at the end, its rise with heads, validation, both tables, no gain in validation


def off_by(shift):
    """The published accuracies, off by `shift(at)` points, beyond 100 per cent too."""
    return lambda at: tuple(share + shift(at) / 100 for share in printed(at))


def only_at_8_epochs(at) -> float:
    return 0 if at["epochs"] == 8 else -20


def later_with_more_heads(at) -> float:
    """Fewer heads are at the published accuracy after fewer epochs."""
    return 15 * np.log2(at["epochs"] / (2 * at["heads"]))


EPOCHS = {
    "as published at one number of epochs": (only_at_8_epochs, (HOLDS,) * 6),
    "a different number of epochs per head count": (
        later_with_more_heads,
        (DIFFERS, DIFFERS, DIFFERS, DIFFERS, DIFFERS, HOLDS),
    ),
    "as published between two numbers of epochs": (
        lambda at: -20 if at["epochs"] <= 4 else 15,
        (UNDECIDED, UNDECIDED, HOLDS, UNDECIDED, UNDECIDED, HOLDS),
    ),
    "too low until the end": (lambda at: -20, (UNDECIDED, UNDECIDED, HOLDS, UNDECIDED, UNDECIDED, HOLDS)),
}


@pytest.mark.parametrize("kind", EPOCHS)
def test_a_number_of_epochs_meets_the_tables_or_is_out_of_reach(kind):
    shift, expected = EPOCHS[kind]
    assert verdicts(marco_epochs.STUDY, off_by(shift)) == expected
    assert verdicts(marco_epochs.STUDY, off_by(shift), Scale.SMOKE) == (UNDECIDED,) * 6


@pytest.mark.parametrize("scale", [Scale.LAPTOP, Scale.PAPER])
@pytest.mark.parametrize("towards", [1, -1])
def test_accuracies_that_are_nearest_at_the_most_or_the_fewest_epochs_may_meet_beyond(scale, towards):
    def nearing(at):
        return towards * 10 * np.log2(at["epochs"]) - (70 if towards > 0 else 0)

    found = verdicts(marco_epochs.STUDY, off_by(nearing), scale, lambda at: at["heads"] not in (10, 14))
    assert (found[0], found[3]) == (UNDECIDED, UNDECIDED)


def test_both_tables_must_be_met_by_the_same_number_of_epochs():
    def training_early_validation_late(at):
        training, validation = printed(at)
        return training - (0 if at["epochs"] == 4 else 0.2), validation - (0 if at["epochs"] == 8 else 0.2)

    training, _, _, validation, both, _ = verdicts(marco_epochs.STUDY, training_early_validation_late)
    assert (training, validation, both) == (HOLDS, HOLDS, DIFFERS)


def test_training_accuracy_at_the_end_is_judged_too():
    def late(at):
        training, validation = printed(at)
        return training - 0.2, validation, training - (0 if at["epochs"] == 4 else 0.2)

    while_training, at_the_end = verdicts(marco_epochs.STUDY, late)[:2]
    assert (while_training, at_the_end) == (UNDECIDED, HOLDS)


def test_validation_that_rises_with_heads_at_every_number_of_epochs_is_refused():
    assert verdicts(marco_epochs.STUDY, lambda at: (0.5, 0.2 + 0.05 * at["heads"]))[-1] is DIFFERS
    sometimes = verdicts(marco_epochs.STUDY, lambda at: (0.5, 0.2 + 0.05 * at["heads"] * (at["epochs"] > 2)))
    assert sometimes[-1] is HOLDS


def test_one_number_of_epochs_decides_nothing_about_others():
    found = verdicts(marco_epochs.STUDY, off_by(only_at_8_epochs), kept=lambda at: at["epochs"] == 8)
    assert found[:5] == (UNDECIDED,) * 5


def over_epochs(errors, heads=(1, 2), epochs=(2, 4, 8)) -> ErrorTable:
    """A table with one length, 8 candidates."""
    axes = {"epochs": epochs[: len(errors)], "heads": heads, "length": (8,)}
    return ErrorTable(axes=axes, errors=np.array(errors, float)[..., None], metric=ERROR_RATE)


def test_a_cell_that_one_number_of_epochs_lacks_is_not_compared():
    distance = apart(over_epochs([[0.5, 0.5], [0.4, np.nan]]), TRAINING)
    assert distance is not None
    np.testing.assert_allclose(distance.points[:, 0], TRAINING.at(heads=1, length=8) - np.array([0.5, 0.4]))
    assert distance.points.shape == (2, 1)
    assert apart(over_epochs([[np.nan, 0.5], [0.4, np.nan]]), TRAINING) is None
    assert together([distance, None]) is None


@given(st.lists(st.lists(st.floats(-1, 1), min_size=3, max_size=3), min_size=2, max_size=4))
def test_between_numbers_of_epochs_it_is_never_further_than_at_the_nearest(rows):
    epochs = (2, 4, 8, 15)[: len(rows)]
    distance = Apart(epochs, np.array(rows))
    place, least, at_end = distance.between()
    assert at_end == any(place == pytest.approx(end, abs=1e-9) for end in (epochs[0], epochs[-1]))
    assert epochs[0] <= place * (1 + 1e-9)
    assert place <= epochs[-1] * (1 + 1e-9)
    assert least <= distance.worst[distance.nearest] + 1e-12


@pytest.mark.parametrize(
    ("excess", "needed"),
    [
        ((0.2, 0.1, -0.1), "5.7"),
        ((0.2, 0.1, 0.05), "> 8"),
        ((-0.1, -0.2, -0.3), "< 2"),
        ((0.0, -0.2, -0.3), "2"),
        ((0.3, 0.0, 0.3), "4.0"),
    ],
)
def test_the_epochs_that_give_the_published_accuracy(excess, needed):
    published = TRAINING.at(heads=1, length=8)
    table = over_epochs([[published + each] for each in excess], heads=(1,))
    assert epochs_needed(table, TRAINING) == {(1, 8): needed}


# Queries: training and validation with 28,000, training falls, both foretold


def odds(share: float) -> float:
    return float(np.log(share / (1 - share)))


def curve_to(end, slope=-0.2, noise=0.0, bend=0.0):
    """Training and validation accuracies whose log-odds are a line in log(queries) that ends at `end(at)` at 28,000."""

    def accuracies(at):
        distance = np.log(at["queries"] / TRAINED)
        scatter = noise * (-1) ** (at["seed"] + at["queries"] // 700 % 2)
        shares = (min(max(share, 0.001), 0.999) for share in end(at))
        return tuple(1 / (1 + np.exp(-(odds(s) + slope * distance + bend * distance**2 + scatter))) for s in shares)

    return accuracies


def far_from_published(at) -> tuple[float, float]:
    return tuple(share + 0.2 if share < 0.6 else share - 0.2 for share in printed(at))


QUERIES = {
    "lines that end at the published accuracies": (curve_to(printed), (HOLDS, HOLDS, HOLDS, HOLDS, HOLDS)),
    "lines that end elsewhere": (curve_to(far_from_published), (DIFFERS, DIFFERS, HOLDS, HOLDS, HOLDS)),
    "accuracy that grows with queries": (curve_to(printed, slope=0.2), (HOLDS, HOLDS, DIFFERS, HOLDS, HOLDS)),
    "seeds that scatter": (curve_to(printed, noise=1.0, slope=0.0), (UNDECIDED, UNDECIDED, UNDECIDED, HOLDS, HOLDS)),
}


@pytest.mark.parametrize("kind", QUERIES)
def test_what_the_published_number_of_queries_would_give(kind):
    accuracies, expected = QUERIES[kind]
    assert verdicts(marco_queries.STUDY, accuracies) == expected
    assert verdicts(marco_queries.STUDY, accuracies, Scale.SMOKE)[:2] == (UNDECIDED,) * 2


def test_one_interval_of_eight_may_miss_by_chance():
    def one_cell_apart(at):
        return far_from_published(at) if (at["heads"], at["length"]) == (1, 8) else printed(at)

    assert verdicts(marco_queries.STUDY, curve_to(one_cell_apart))[:2] == (UNDECIDED, UNDECIDED)


def test_a_curve_that_bends_does_not_foretell():
    found = verdicts(marco_queries.STUDY, curve_to(lambda at: (0.9, 0.5), slope=2.0, bend=0.8))
    assert found[3:] == (DIFFERS, DIFFERS)


def test_two_numbers_of_queries_have_no_curve():
    study, few = marco_queries.STUDY, lambda at: at["queries"] in (700, 1400)
    assert verdicts(study, curve_to(printed), kept=few) == (UNDECIDED,) * 5
    section = study.document(*graded(study, Scale.LAPTOP, curve_to(printed), few), Scale.LAPTOP)
    assert {row[-2] for grid in section.grids for row in grid.rows} == {"-"}
    assert "[" not in section.headline


def test_queries_beyond_those_there_are_all_of_them():
    effort = marco_queries.STUDY.efforts[Scale.PAPER]
    for there, expected in ((5584, (700, 1400, 2800, 5584)), (28_000, marco_queries.SHARES), (100, (100,))):
        among = marco_queries.efforts_by_queries(effort, there)
        assert tuple(among) == expected
        for count, each in among.items():
            assert each.steps == effort.epochs * count // each.batch
            assert min(each.train_examples, there) == count
            assert each.steps == pytest.approx(effort.steps, rel=0.01) or count == 100, "the same for all"


def test_models_of_all_queries_are_shared_between_the_studies():
    task = StandIn("marco", length=8, dim=384, count=6980)
    for scale in (Scale.LAPTOP, Scale.PAPER):
        queries = dict(marco_queries.efforts_by_queries(marco_queries.STUDY.efforts[scale], 5584))
        epochs = marco_queries.STUDY.efforts[scale].epochs
        trainings = {
            at["epochs"]: effort for at, effort in marco_epochs.STUDY.trainings(marco_epochs.STUDY.efforts[scale], task)
        }
        assert queries[5584].train == trainings[epochs].train
