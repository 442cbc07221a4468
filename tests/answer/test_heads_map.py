"""The map of heads needed: the rule for heads at every kv_heads and head_dim, and one sentence about all of them."""

import json

import numpy as np

from headcount.answer import ErrorTable, answer
from headcount.answer.heads_map import OWN, parts_of
from headcount.answer.heads_rule import ONE_SEED
from headcount.answer.prose import prose
from headcount.report.error_grid import error_grids
from headcount.report.evidence import evidence_rows
from headcount.report.heads_map import heads_needed_grid, heads_needed_map, place_name, worst_length

from .tables import HEADS

DIMS, SEEDS = (2, 4), 3


def a_map(error, groups=(1, 2, 3, 4, 5, 6)) -> ErrorTable:
    """Errors `error(heads, kv_heads, head_dim)` where kv_heads divides heads, with some scatter between seeds."""
    scatter = 10 ** (0.05 * np.abs(np.random.default_rng(0).standard_normal(SEEDS)))
    level = [
        [[error(heads, group, dim) if heads % group == 0 else np.nan for dim in DIMS] for group in groups]
        for heads in HEADS
    ]
    axes = {"heads": HEADS, "kv_heads": groups, "head_dim": DIMS, "length": (8,), "seed": tuple(range(SEEDS))}
    return ErrorTable(axes=axes, errors=np.array(level)[..., None, None] * scatter)


def as_predicted(heads, group, dim):
    """Four heads are enough, unless they share keys of too few numbers."""
    return 1e-4 if heads >= 4 and (group == heads or dim >= 4) else 2e-2


def test_every_place_is_answered_for_itself():
    table = a_map(as_predicted)
    found = answer(table)
    at = {(each.kv_heads, each.head_dim): each for each in found.map}
    assert {place: each.needs.at for place, each in at.items() if each.needs} == {
        (1, 4): 4,
        (2, 4): 4,
        (OWN, 2): 4,
        (OWN, 4): 4,
    }
    assert at[1, 2].kind == "floor"
    assert at[2, 4].tried == (2, 4, 6)
    assert at[OWN, 2].tried == HEADS
    assert (found.heads, found.kind) == (4, "needs")
    assert "head_dim 2" in found.sentence
    assert json.loads(json.dumps(found.as_dict()))["map"][0]["kv_heads"] == 1
    assert "4 heads" in " ".join(prose(table, found))


def test_the_own_keys_are_those_of_as_many_as_heads():
    own = parts_of(a_map(lambda heads, group, _: 100.0 * heads + group))[OWN, 2]
    assert np.all(np.abs(worst_length(own).errors / [101 * heads for heads in HEADS] - 1) < 0.5)
    assert own.values("heads") == HEADS


def test_a_drop_to_an_error_far_above_the_best_needs_no_number_of_heads():
    """With narrow shared keys the error falls at three heads and stays: three heads are not enough for the task."""

    def error(heads, group, dim):
        if group < heads and dim < 4:
            return 2e-2 if heads >= 3 else 0.5
        return as_predicted(heads, group, dim)

    table = a_map(error)
    found = answer(table)
    (narrow,) = (each for each in found.map if (each.kv_heads, each.head_dim) == (1, 2))
    assert (narrow.needs.at, narrow.needed, narrow.far) == (3, None, True)
    assert 100 < narrow.behind < 400
    assert found.heads == 4
    assert "200 times the best" in found.sentence
    assert "at every head count" in found.sentence
    assert "far" in {word for row in heads_needed_grid(found).rows for word in row}
    (grid,) = error_grids(table, found)
    (column,) = (i for i, name in enumerate(grid.columns) if "kv heads 1" in name and "head dim 2" in name)
    assert not any(row[column].style for row in grid.rows)
    smallest = [entry for row in grid.rows for entry in row[1:] if entry.style == "smallest"]
    assert len(smallest) == sum(each.needed is not None for each in found.map)
    assert "far above" in " ".join(prose(table, found))


def test_a_place_with_a_tiny_error_is_not_far():
    """Both are solved: one with an error twenty times the other's, which is still next to nothing."""
    found = answer(a_map(lambda heads, group, dim: 1.0 if heads < 4 else 2e-6 if dim == 2 else 1e-7, groups=(1,)))
    assert [(each.needed, each.far) for each in found.map] == [(4, False)] * len(found.map)
    assert max(each.behind for each in found.map) > 10
    assert "times the best" not in found.sentence


def test_notes_of_the_places_are_kept():
    table = a_map(as_predicted)
    errors = np.stack([table.errors, 2 * table.errors], axis=-1)
    several = ErrorTable(axes=table.axes | {"learning_rate": (0.01, 0.1)}, errors=errors)
    assert answer(several).notes == ("best over learning_rate 0.01, 0.1",)


def test_one_count_everywhere_is_one_sentence():
    found = answer(a_map(lambda heads, *_: 1e-4 if heads >= 4 else 2e-2, groups=(1,)).select(kv_heads=1))
    assert found.sentence == "needs 4 heads [4, 4] at every head_dim tried"


def test_where_nothing_drops_there_is_no_answer():
    found = answer(a_map(lambda heads, *_: 2e-2 / heads))
    assert (found.kind, found.needs) == ("none", {})
    assert found.map


def test_one_reason_for_all_places_is_that_of_the_map():
    table = a_map(as_predicted).select(seed=(0,))
    found = answer(table)
    assert (found.kind, found.reason) == ("none", ONE_SEED)
    assert [words for _, words in evidence_rows(table, found, {})] == [found.sentence]


def test_map_and_grid_say_the_same():
    found = answer(a_map(as_predicted))
    chart, grid = heads_needed_map(found), heads_needed_grid(found)
    assert [row[1:] for row in grid.rows] == [
        tuple("not tried" if word == "-" else word for word in row) for row in chart.words
    ]
    assert chart.columns[-1] == "own"
    assert chart.values[1, 0] == 4
    assert np.isnan(chart.values[0, 0])
    assert np.nanmax(chart.colour_shares()) <= 1
    assert place_name(1, 4) == "kv heads 1, head dim 4"
