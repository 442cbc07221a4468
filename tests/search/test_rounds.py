"""What is trained next: the right answer from wrong estimates and unlucky starts, and nothing where it is settled."""

import math
from collections import Counter

import numpy as np
import pytest

from headcount.models import ClassTokenSpec
from headcount.search import EFFORTS
from headcount.store import TrainSpec
from headcount.tasks import ArrayTask

from ..helpers.sweeps import TASK, class_token
from .playing import a_question, needing, play, scatter

FOUR = needing(4)


@pytest.mark.parametrize("effort", EFFORTS)
def test_a_task_that_is_what_it_looks_like_is_settled_around_its_answer(effort):
    played = play(FOUR, 4, a_question(most=32), effort)
    assert played.answer.sentence == "needs 4 heads [4, 4]"
    assert played.heads <= {1, 3, 4, 5, 8, 12}, "nothing far from the answer"
    assert {cell.start for cell in played.cells} == {"random", "descended"}
    assert max(Counter(cell.key for cell in played.cells).values()) <= 2


def test_more_effort_trains_more():
    counts = [len(set(play(FOUR, 4, a_question(), effort).question.cells)) for effort in EFFORTS]
    assert counts == sorted(set(counts))


@pytest.mark.parametrize("looks", [1, 3, 5, 6])
def test_an_estimate_that_is_wrong_does_not_decide(looks):
    assert play(FOUR, looks, a_question()).answer.heads == 4


@pytest.mark.parametrize("distinct", [1, 2, 7, 8, 10])
def test_every_number_of_heads_is_found(distinct):
    played = play(needing(distinct), distinct, a_question(most=32))
    assert played.answer.sentence.startswith(f"needs {distinct} head")
    assert played.answer.low <= distinct == played.answer.high
    raised = max(played.heads) > 12
    assert raised == (distinct > 7), "room above the answer"


def test_only_head_counts_that_may_be_tried_are():
    played = play(FOUR, 4, a_question([2, 4, 6]))
    assert played.heads <= {2, 4, 6}
    assert (played.answer.heads, played.answer.low) == (4, 3)


def test_one_head_count_has_no_answer_and_ends():
    played = play(FOUR, 4, a_question([4]))
    assert played.heads == {4}
    assert played.answer.heads is None


def test_where_nothing_is_learned_nothing_descends():
    played = play(lambda cell: 1.0, 1, a_question(most=32))
    assert played.answer.heads is None
    assert {cell.start for cell in played.cells} == {"random", "continued"}, "trained for longer, before it gives up"
    assert len(played.cells) < 20


def test_an_error_that_no_head_count_lowers_sharply_is_no_answer():
    played = play(lambda cell: 0.5 * 0.8 ** cell.model["heads"], 4, a_question(most=32))
    assert played.answer.heads is None
    assert "continued" in {cell.start for cell in played.cells}


@pytest.mark.parametrize("distinct", [4, 7])
def test_random_starts_that_all_miss_do_not_hide_an_answer_that_descent_finds(distinct):
    def misses(cell):
        return cell.start == "random" and cell.model["heads"] <= distinct

    assert play(needing(distinct, misses=misses), distinct, a_question(most=32)).answer.heads == distinct


def test_starts_that_disagree_leave_the_smaller_count_open():
    def misses(cell):
        return cell.model["heads"] <= 4 and (cell.start == "random" or cell.seed > 0)

    answer = play(needing(4, misses=misses), 4, a_question(), "quick").answer
    assert answer.low < 4 <= answer.high


@pytest.mark.parametrize("other", [3, 5])
def test_draws_of_the_data_that_disagree_widen_the_interval(other):
    def error(cell):
        return needing(4 if cell.train.data_seed == 0 else other)(cell)

    played = play(error, 4, a_question())
    assert {cell.train.data_seed for cell in played.cells} == {0, 1}
    assert (played.answer.heads, played.answer.low, played.answer.high) == (4, min(4, other), max(4, other))
    assert played.answer.unknowns["data"].low == min(4, other)
    again = [cell for cell in played.cells if cell.train.data_seed == 0 and cell.model["heads"] == 3]
    few = [cell for cell in play(FOUR, 4, a_question()).cells if cell.model["heads"] == 3 and not cell.train.data_seed]
    assert (len({cell.key for cell in again}) > len({cell.key for cell in few})) == (other == 3), "tried again there"


def test_a_child_of_its_parents_draw_has_its_data():
    played = play(FOUR, 4, a_question())
    draws = {cell.key: cell.train.data_seed for cell in played.cells}
    assert all(cell.train.data_seed == draws[cell.parent] for cell in played.cells if cell.parent)


LOST = {
    "a seed": lambda cell: cell.seed == 1 and cell.model["heads"] == 4,
    "the largest": lambda cell: cell.model["heads"] == 12 and cell.start == "random",
    "a length": lambda cell: cell.length == 5,
    "the largest at a length": lambda cell: cell.model["heads"] == 12 and cell.length == 5,
    "descended": lambda cell: cell.start == "descended",
    "everything": lambda cell: True,
}


@pytest.mark.parametrize("lost", LOST)
def test_models_that_diverge_do_not_stop_the_rounds(lost):
    def error(cell):
        return math.inf if LOST[lost](cell) else FOUR(cell)

    played = play(error, 4, a_question(lengths=(4, 5)))
    if lost == "a seed":
        assert played.answer.heads == 4


def test_a_task_whose_data_cannot_be_drawn_again_gets_one_draw():
    x = np.random.default_rng(0).normal(size=(200, 4, 1))

    class OneDraw(ArrayTask):
        resamples = False

    played = play(FOUR, 4, a_question(task=OneDraw(x, x.max(axis=(1, 2)))))
    assert {cell.train.data_seed for cell in played.cells} == {0}
    assert played.answer.heads == 4


# Where heads cannot be removed.


def deep(heads: int, **fields):
    return class_token(heads, layers=2, **fields)


def test_models_that_keep_their_heads_get_more_seeds_at_the_boundary_alone():
    def misses(cell):
        return cell.model["heads"] == 4 and cell.seed != 0

    played = play(needing(4, misses=misses), pytest.fail, a_question(range(1, 7), model=deep))
    assert {cell.start for cell in played.cells} == {"random"}
    seeds = Counter(cell.model["heads"] for cell in played.cells)
    assert seeds[1] == seeds[6] < seeds[4] <= EFFORTS["normal"].more_seeds
    settled = play(FOUR, pytest.fail, a_question(range(1, 7), model=deep))
    assert len(set(Counter(cell.model["heads"] for cell in settled.cells).values())) == 1
    assert settled.answer.sentence == "needs 4 heads [4, 4]"


def test_widths_that_follow_the_heads_are_not_descended():
    question = a_question([1, 2, 3, 4, 5], model=lambda heads, **_: class_token(heads, hidden=2 * heads))
    assert not question.removes_heads
    assert {cell.start for cell in play(FOUR, pytest.fail, question).cells} == {"random"}


def test_fields_that_do_not_go_with_fewer_heads_are_not_descended():
    """Heads that share a width: a rank of 16 is more than one of the narrow heads carries."""
    shared = lambda heads, **_: ClassTokenSpec.with_total_dim(32, heads=heads, rank=16)  # noqa: E731
    assert not a_question([1, 2, 4, 8], model=shared).removes_heads


# Of data that a user stored, more is asked for only where head counts differ.


def stored_data(examples=1000):
    x = np.random.default_rng(0).normal(size=(examples, 4, 1))
    return ArrayTask(x, x[:, :, 0].max(axis=1))


def of_stored_data(**changes):
    train = TrainSpec(steps=4, train_examples=8000, validation_examples=2000)
    return a_question(**({"most": 32, "task": stored_data(), "train": train} | changes))


def gradual(cell):
    return scatter(cell) ** 0.05 * (0.1 + 0.3 / cell.model["heads"])


@pytest.mark.parametrize("effort", ["quick", "normal"])
def test_heads_that_make_no_difference_are_soon_enough(effort):
    played = play(lambda cell: 0.3 * scatter(cell) ** 0.05, 10, of_stored_data(), effort)
    assert max(played.heads) == 12, "12 do no better than 8, so more are not tried"
    endless = play(lambda cell: 0.3 * scatter(cell) ** 0.05, 10, a_question(most=32), effort)
    assert max(endless.heads) > 12
    assert len(played.cells) <= len(endless.cells)


def test_where_the_error_falls_gradually_the_counts_between_are_tried():
    played = play(gradual, 10, of_stored_data())
    assert {1, 2, 3} <= played.heads
    assert played.answer.heads is None, "no drop"
    draws = Counter(cell.train.data_seed for cell in played.cells)
    assert len(draws) == EFFORTS["normal"].splits_of(200) == 5
    assert {cell.start for cell in played.cells if cell.train.data_seed} == {"random"}


def test_the_least_effort_splits_once():
    assert {cell.train.data_seed for cell in play(gradual, 10, of_stored_data(), "quick").cells} == {0}


@pytest.mark.parametrize("distinct", [1, 2, 3, 4, 5])
def test_without_descent_head_counts_are_tried_where_errors_differ(distinct):
    played = play(needing(distinct), pytest.fail, of_stored_data(heads=range(1, 7), most=6, model=deep))
    assert played.answer.heads == distinct
    counts = Counter(cell.model["heads"] for cell in played.cells)
    assert sum(counts.values()) < 6 * 4, "fewer models than four at every head count"
    assert all(counts[near] >= 2 for near in (distinct - 1, distinct) if near)


@pytest.mark.parametrize("distinct", [1, 2, 3, 5, 8, 10])
@pytest.mark.parametrize("looks", [2, 9])
def test_a_drop_of_stored_data_is_found_wherever_it_is(distinct, looks):
    played = play(needing(distinct), looks, of_stored_data())
    assert played.answer.heads == distinct


# The same again.


@pytest.mark.parametrize("effort", ["quick", "normal"])
def test_the_same_results_ask_for_the_same_cells_in_the_same_order(effort):
    def misses(cell):
        return cell.seed % 2 == 1 and cell.model["heads"] <= 5

    first, second = (play(needing(4, misses=misses), 5, a_question(lengths=(4, 5)), effort) for _ in range(2))
    assert first.rounds == second.rounds
    assert list(first.question.whole().places.items()) == list(second.question.whole().places.items())


def test_every_cell_has_a_place_of_its_own():
    played = play(needing(4, misses=lambda cell: cell.seed == 1), 3, a_question(lengths=(4, 5)), "thorough")
    assert len(set(played.question.whole().places.values())) == len(played.question.cells)
    assert played.question.cells.keys() == {cell.key for cell in played.cells} == played.results.records.keys()
    assert {cell.task["task"] for cell in played.cells} == {TASK.name}
