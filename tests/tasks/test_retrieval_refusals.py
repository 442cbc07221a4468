"""A retrieval that cannot be right is refused at birth, in a sentence that names what was given."""

import jax.numpy as jnp
import pytest

from headcount.tasks import Retrieval

from ..helpers.refusals import refused


def two(token):
    return jnp.stack([token[0] ** 2, (token[0] - 1) ** 2])


def make(components=two, **changes):
    return Retrieval(components, **({"length": 8, "dim": 1} | changes))


@pytest.mark.parametrize("place", [8, -1, 100])
def test_a_place_outside_the_sequence(place):
    with refused("S_2", str(place), "0..7"):
        make(position_sets=[[0, 1, 2], [0, 1, place]])


def test_a_set_smaller_than_a_quarter():
    make(position_sets=[[0, 1], [2, 3]])
    with refused("S_1", "1 of 8", "quarter"):
        make(position_sets=[[5], [2, 3]])
    with refused("S_2", "0 of 8", "quarter"):
        make(position_sets=[[0, 1], []])
    with refused("S_1", "2 of 9", "quarter"):
        make(length=9, position_sets=[[0, 1], [2, 3, 4]])


def test_places_given_twice_count_once():
    with refused("S_1", "1 of 8"):
        make(position_sets=[[5, 5, 5], [2, 3]])


@pytest.mark.parametrize("sets", [[[0, 1]], [[0, 1]] * 3, []])
def test_another_number_of_sets_than_components(sets):
    with refused("2 components", f"got {len(sets)}"):
        make(position_sets=sets)


def test_another_number_of_windows_than_components():
    with refused("2 components", "got 1"):
        make(windows=[(0.0, 1.0)])


def test_windows_and_sets_at_once():
    with refused("windows", "position_sets", "not both"):
        make(windows=[(0.0, 1.0)] * 2, position_sets=[[0, 1]] * 2)


@pytest.mark.parametrize("window", [(-0.5, 0.5), (0.5, 1.5), (0.75, 0.25), (0.5, 0.5), (float("nan"), 1.0)])
def test_bad_window_fractions(window):
    with refused("window", f"({window[0]:g}, {window[1]:g})", "0 <= start < stop <= 1"):
        make(windows=[(0.0, 1.0), window])


def test_a_window_that_rounds_to_too_little_at_another_length():
    task = make(windows=[(0.0, 0.25), (0.0, 1.0)])
    with refused("S_1", "0 of 1"):
        task.at(1)


def test_an_unknown_distribution():
    with refused("distribution", '"normal"', "gaussian", "cube"):
        make(distribution="normal")


@pytest.mark.parametrize("value", [0, -3, 2.5, True, "8"])
@pytest.mark.parametrize("name", ["length", "dim"])
def test_a_bad_count(name, value):
    with refused(name, repr(value)):
        make(**{name: value})


@pytest.mark.parametrize("length", [0, -1, 4.0])
def test_a_bad_length_asked_of_a_task(length):
    with refused("length", repr(length)):
        make().at(length)


@pytest.mark.parametrize(
    ("components", "words"),
    [
        (lambda token: token[0], ["components", "()"]),
        (lambda token: jnp.outer(token, token), ["components", "(3, 3)"]),
        (lambda token: token[:0], ["components", "(0,)"]),
        ([lambda token: token], ["(3,)"]),
        ([], ["retrieval"]),
        (lambda token: token[0] @ token, ["retrieval"]),
    ],
    ids=["a scalar", "a matrix", "no numbers", "a list with a vector", "an empty list", "a mistake"],
)
def test_components_of_the_wrong_shape(components, words):
    with refused(*words):
        make(components, dim=3)


def test_explicit_sets_have_no_other_length():
    task = make(position_sets=[[0, 1, 2], [3, 4]])
    with refused("position_sets", "length 8", "length 16"):
        task.at(16)
