"""What an interval allows for: other seeds, other draws of the data, and solutions that the search missed."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.answer import Answer, ErrorTable, Interval, answer
from headcount.answer.heads_rule import MAX_MISSED, chance_missed
from headcount.answer.signals import SOLVED

from .tables import sharp, table

HIGH, LOW = 0.2, 1e-4
STARTS = {"heads": (1, 2), "start": ("random", "descended"), "seed": (0, 1, 2)}
few = settings(max_examples=20, deadline=None)


def boundary(found: int, tried: int, below: int | None = None) -> np.ndarray:
    """Errors of two head counts at one length: of the starts at the larger, so many found a solution."""
    starts = max(tried, below or tried)
    errors = np.full((2, 1, starts), np.nan)
    errors[0, 0, : below or tried] = HIGH
    errors[1, 0, :tried] = HIGH
    errors[1, 0, :found] = LOW
    return errors


def missed(errors: np.ndarray, attempts=None) -> float:
    return chance_missed(errors, attempts or tuple(range(errors.shape[-1])), 1, SOLVED)


# The chance that a solution was missed.


def test_starts_that_all_succeed_leave_little_chance_and_one_in_four_much():
    assert missed(boundary(4, 4)) <= MAX_MISSED < missed(boundary(1, 4))


@few
@given(tried=st.integers(1, 12), below=st.integers(1, 12), data=st.data())
def test_the_chance_falls_with_successes_and_with_attempts(tried, below, data):
    found = data.draw(st.integers(1, tried))
    chance = missed(boundary(found, tried, below))
    assert 0 < chance < 1
    assert missed(boundary(found, tried, below + 1)) < chance
    if found < tried:
        assert missed(boundary(found + 1, tried, below)) < chance
    else:
        assert missed(boundary(tried + 1, tried + 1, below)) < chance


def test_starts_of_a_kind_that_succeeds_count_beside_those_that_do_not():
    kinds = tuple(f"{kind} {seed}" for kind in ("random", "descended") for seed in range(4))
    errors = np.concatenate([boundary(0, 4), boundary(4, 4)], axis=-1)
    assert missed(errors, kinds) == pytest.approx(missed(boundary(4, 4)))
    assert missed(errors, kinds) < missed(errors, tuple(range(8)))


def test_of_several_lengths_the_worst_counts():
    errors = np.concatenate([boundary(4, 4), boundary(1, 4)], axis=1)
    assert missed(errors) == missed(boundary(1, 4))


@few
@given(
    transition=st.integers(2, 5),
    seeds=st.integers(2, 4),
    lengths=st.sampled_from([(8,), (8, 16)]),
    noise=st.floats(0.0, 0.2),
    seed=st.integers(0, 1000),
    data=st.data(),
)
def test_four_seeds_that_disagree_never_give_one_certain_number(transition, seeds, lengths, noise, seed, data):
    stuck = data.draw(st.integers(1, seeds - 1), "seeds that are stuck at the boundary")
    errors = np.array(table(sharp(transition), lengths=lengths, seeds=seeds, noise=noise, seed=seed).errors)
    errors[transition - 1, :, :stuck] = errors[transition - 2, :, :stuck]
    said = answer(replace(table(sharp(transition), lengths=lengths, seeds=seeds), errors=errors), resamples=80)
    if said.needs:
        assert said.low < said.high, said.sentence
        assert said.low <= transition <= said.high, said.sentence
        assert said.widest is not None


@few
@given(transition=st.integers(1, 5), seeds=st.integers(4, 6), seed=st.integers(0, 1000))
def test_four_seeds_that_agree_give_one_number(transition, seeds, seed):
    said = answer(table(sharp(transition), seeds=seeds, noise=0.05, seed=seed), resamples=80)
    assert (said.low, said.heads, said.high) == (transition,) * 3
    assert said.widest is None


# Draws of the data.


def drawn(*transitions: int | None) -> ErrorTable:
    """One table per draw of the data; None is a draw on which nothing is learned."""
    tables = [table([1.0] * 6 if at is None else sharp(at), lengths=(8,), noise=0.05) for at in transitions]
    axes = dict(tables[0].axes) | {"data_seed": tuple(range(len(tables)))}
    return ErrorTable(axes=axes, errors=np.stack([each.errors for each in tables], axis=-1))


@few
@given(st.lists(st.integers(1, 5), min_size=1, max_size=3))
def test_the_first_draw_answers_and_the_others_widen(transitions):
    said = answer(drawn(*transitions), resamples=80)
    assert (said.low, said.heads, said.high) == (min(transitions), transitions[0], max(transitions))
    assert said.sentence.endswith(f"[{said.low}, {said.high}]")
    assert ("data" in said.unknowns) == (len(transitions) > 1)
    assert said.widest == ("data" if len(set(transitions)) > 1 else None)


def test_a_draw_without_an_answer_leaves_the_neighbours_open():
    said = answer(drawn(3, None), resamples=80)
    assert (said.low, said.heads, said.high) == (2, 3, 4)
    assert any("1 of 2" in note for note in said.notes)
    assert answer(drawn(None, 3), resamples=80).heads is None


@pytest.mark.parametrize("axes", [STARTS, STARTS | {"data_seed": (0, 1)}], ids=["one draw", "two draws"])
def test_where_nothing_finished_there_is_no_answer(axes):
    said = answer(ErrorTable(axes=axes, errors=np.full([len(values) for values in axes.values()], np.nan)))
    assert (said.heads, said.needs) == (None, {})


# All of them together.


@few
@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(0, 3)), min_size=2, max_size=2),
    st.floats(0.0, 0.4),
    st.integers(0, 1000),
)
def test_an_interval_holds_every_unknown(draws, noise, seed):
    tables = []
    for transition, stuck in draws:
        errors = np.array(table(sharp(transition), lengths=(8,), noise=noise, seed=seed).errors)
        errors[transition - 1, :, :stuck] = 0.1
        tables.append(errors)
    axes = dict(table(sharp(1), lengths=(8,)).axes) | {"data_seed": (0, 1)}
    said = answer(ErrorTable(axes=axes, errors=np.stack(tables, axis=-1)), resamples=40)
    if said.needs:
        assert said.low == min(each.low for each in said.unknowns.values())
        assert said.high == max(each.high for each in said.unknowns.values())
        assert {each.at for each in said.unknowns.values()} == {said.heads}
        assert said.as_dict()["unknowns"].keys() == said.unknowns.keys()
        assert (said.widest is None) == (said.low == said.high)


def test_the_widest_unknown_leaves_most_counts_open():
    def said(**unknowns: Interval) -> Answer:
        return Answer(sentence="", unknowns=unknowns)

    assert said().widest is None
    assert said(seeds=Interval(4, 4, 4), data=Interval(4, 4, 4)).widest is None
    assert said(seeds=Interval(4, 3, 4), data=Interval(4, 2, 5), search=Interval(4, 3, 4)).widest == "data"
    assert said(seeds=Interval(4, 4, 4), search=Interval(4, 3, 4)).widest == "search"


# Starts beside seeds.


@few
@given(st.lists(st.floats(1e-9, 10) | st.just(np.nan), min_size=12, max_size=12))
def test_starts_are_joined_to_seeds_and_nothing_is_lost(values):
    whole = ErrorTable(axes=STARTS, errors=np.reshape(values, (2, 2, 3)))
    merged = whole.merged("start", "seed")
    assert list(merged.axes) == ["heads", "seed"]
    for at, error in whole.cells():
        label = f"{at['start']} {at['seed']}"
        assert np.isnan(error) if label not in merged.values("seed") else True
        np.testing.assert_array_equal(merged.at(heads=at["heads"], seed=label), error)
    np.testing.assert_array_equal(merged.best, whole.reduced("start").best)
    assert len(merged.values("seed")) >= 1
    there = np.isfinite(merged.errors).any(axis=0)
    assert there.all() or not there.any(), "an attempt that is nowhere is left out"


def test_a_table_without_the_axis_is_merged_as_it_is():
    plain = table(sharp(2))
    assert plain.merged("start", "seed") is plain
    np.testing.assert_array_equal(
        ErrorTable(axes=STARTS, errors=np.zeros((2, 2, 3))).merged("seed", "start").values("start"),
        [f"{seed} {start}" for seed in (0, 1, 2) for start in ("random", "descended")],
    )
