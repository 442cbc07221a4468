"""An experiment knows where its cells lie."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from headcount.store import Experiment

from ..helpers.refusals import refused
from .drawn import experiments, law, unchecked_randomness
from .records import a_record, an_experiment, bucket

pytestmark = unchecked_randomness
GRID = Experiment(
    name="grid",
    question="?",
    task="any",
    axes=("heads", "layout"),
    places={f"{heads}{layout}": (heads, layout) for heads, layout in product((4, 1, 2), ("pairs", "apart"))},
)


@law
@given(experiments())
def test_coordinates_name_every_axis(experiment):
    for key, place in experiment.places.items():
        assert tuple(experiment.coordinates(key).items()) == tuple(zip(experiment.axes, place, strict=True))
    for axis in experiment.axes:
        tried = [experiment.coordinates(key)[axis] for key in experiment.places]
        assert set(experiment.values(axis)) == set(tried)
        assert len(experiment.values(axis)) == len(set(tried))


def test_numbers_come_by_size_and_words_as_they_first_came():
    assert GRID.values("heads") == (1, 2, 4)
    assert GRID.values("layout") == ("pairs", "apart")


@given(st.sets(st.sampled_from([1, 2, 4, 8])), st.sets(st.sampled_from(["pairs", "apart"])))
def test_a_part_is_the_cells_with_these_values(heads, layouts):
    part = GRID.part(heads=heads, layout=layouts)
    assert set(part.places.values()) == {place for place in GRID.places.values() if set(place) <= heads | layouts}
    assert part.identity == GRID.identity
    assert GRID.part() == GRID


def test_its_records_are_those_of_its_cells():
    stored = bucket(0, 1, 2, 3)
    assert an_experiment(3, 1).own(stored) == [stored[1], stored[3]]
    assert an_experiment(7).own([a_record()]) == []


def test_axes_that_cannot_be_right_are_refused():
    with refused("seed, seed"):
        an_experiment(axes=("seed", "seed"), places={})
    with refused("a coordinate for each of the axes"):
        an_experiment(axes=("heads", "seed"), places={"k": (1,)})
