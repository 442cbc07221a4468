"""Every preset is the formula on its label, and an unknown name or option is answered with the nearest known one."""

import json

import jax.random as jr
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.tasks import (
    PRESETS,
    average,
    max_plus_min,
    preset,
    preset_options,
    quadratic_basins,
    sum_of_maxima,
    value_at_maximum,
)
from headcount.tasks.base import _program
from headcount.tasks.presets import Basins, LinearMean, Ridges, preset_from_spec

from ..helpers.compiling import compile_quickly  # noqa: F401
from ..helpers.refusals import refused
from ..helpers.tolerance import assert_close
from .laws import Construction, GeneratedTaskLaws

HALVES = [(0.0, 0.5), (0.5, 1.0)]


class TestPresets(GeneratedTaskLaws):
    constructions = {  # noqa: RUF012
        "sum-of-maxima": Construction(lambda: preset("sum-of-maxima", length=8, intrinsic_dim=2, dim=2)),
        "sum-of-maxima basis": Construction(
            lambda: sum_of_maxima(
                length=8, intrinsic_dim=2, dim=2, directions="basis", distribution="cube", windows=HALVES
            )
        ),
        "max-plus-min": Construction(lambda: preset("max-plus-min", length=8)),
        "quadratic-basins": Construction(lambda: preset("quadratic-basins", length=8, intrinsic_dim=2)),
        "average": Construction(lambda: preset("average", length=8, dim=2)),
        "value-at-maximum": Construction(lambda: preset("value-at-maximum", length=8, dim=2)),
        "nearest-neighbour": Construction(
            lambda: preset("nearest-neighbour", length=5, dim=3), outputs=3, answered_at="query"
        ),
        "farthest-point": Construction(
            lambda: preset("farthest-point", length=4, dim=3), outputs=3, answered_at="tokens"
        ),
        "biased-nearest-neighbour": Construction(
            lambda: preset("biased-nearest-neighbour", dim=3), outputs=3, other_length=None, answered_at="query"
        ),
        "in-context-regression": Construction(
            lambda: preset("in-context-regression", length=5, inputs=2, noise=0.5), answered_at="query"
        ),
    }


def test_every_preset_has_its_laws_tested():
    assert set(PRESETS) <= set(TestPresets.constructions)


def test_equal_presets_share_a_program():
    hits, misses = _program.hits, _program.misses
    first, second = (sum_of_maxima(length=5).examples(16, 8, seed).train for seed in (0, 1))
    assert (_program.misses - misses, _program.hits - hits) == (1, 1)
    assert not np.array_equal(first.targets, second.targets)


@settings(deadline=None, max_examples=12)
@given(intrinsic_dim=st.sampled_from([1, 4]), length=st.sampled_from([3, 8]), seed=st.integers(0, 2**16))
def test_sum_of_maxima_is_its_formula(intrinsic_dim, length, seed):
    task = sum_of_maxima(length=length, intrinsic_dim=intrinsic_dim, dim=3, task_seed=seed % 5)
    assert isinstance(task.features, Ridges)
    directions = np.asarray(task.features.directions, np.float64)
    tokens = np.asarray(task.sample(jr.key(seed)))
    scores = tokens.astype(np.float64) @ directions.T
    assert scores.shape == (length, intrinsic_dim)
    assert_close(task.target(tokens), np.array([np.sum(np.max(scores, axis=0))]))


def test_sum_of_maxima_over_a_basis_reads_the_coordinates():
    task = sum_of_maxima(length=8, intrinsic_dim=2, dim=3, directions="basis")
    tokens = np.asarray(task.sample(jr.key(0)))
    assert_close(task.target(tokens), np.array([tokens[:, 0].max() + tokens[:, 1].max()]))


def test_gaussian_directions_are_plain_normal_draws():
    drawn = [
        np.asarray(sum_of_maxima(intrinsic_dim=8, dim=8, directions="gaussian", task_seed=seed).features.directions)
        for seed in range(40)
    ]
    values = np.stack(drawn).ravel()
    assert len(np.unique(values)) == len(values)
    # 2,560 standard normal numbers: mean within five standard errors of 0, variance of 1.
    assert abs(values.mean()) < 5 * len(values) ** -0.5
    assert abs(values.var() - 1) < 5 * (2 / len(values)) ** 0.5


def test_fewer_gaussian_directions_are_the_first_of_more():
    three, four = (
        np.asarray(sum_of_maxima(intrinsic_dim=count, directions="gaussian", task_seed=9).features.directions)
        for count in (3, 4)
    )
    assert np.array_equal(three, four[:3])


def test_a_basis_serves_no_more_directions_than_it_has():
    sum_of_maxima(intrinsic_dim=4, dim=4, directions="basis")
    with refused("intrinsic_dim 5", "4 basis directions"):
        sum_of_maxima(intrinsic_dim=5, dim=4, directions="basis")


@pytest.mark.parametrize("intrinsic_dim", [2, 6])
@pytest.mark.parametrize("task_seed", [0, 1, 2])
def test_random_directions_are_unit_and_apart(intrinsic_dim, task_seed):
    task = sum_of_maxima(intrinsic_dim=intrinsic_dim, dim=4, task_seed=task_seed)
    assert isinstance(task.features, Ridges)
    directions = np.asarray(task.features.directions)
    assert directions.shape == (intrinsic_dim, 4)
    assert_close(np.linalg.norm(directions, axis=1), np.ones(intrinsic_dim, np.float32))
    cosines = directions @ directions.T - 2 * np.eye(intrinsic_dim)
    # 45 degrees: a single random draw of six is nearer than that nine times in ten.
    assert cosines.max() < 0.71


def test_spec_tells_options_apart():
    shared = {"intrinsic_dim": 2, "dim": 2}
    changes = (
        {},
        {"dim": 3},
        {"intrinsic_dim": 3},
        {"directions": "basis"},
        {"distribution": "cube"},
        {"windows": HALVES},
    )
    assert len({str(sum_of_maxima(**(shared | change)).spec()) for change in changes}) == len(changes)
    assert average(distribution="cube").spec() != average().spec() != average(dim=3).spec()


def test_other_task_seeds_are_other_tasks():
    for make in (sum_of_maxima, quadratic_basins, average):
        first, second = make(task_seed=0), make(task_seed=1)
        tokens = first.sample(jr.key(0))
        assert first.spec() != second.spec()
        assert not np.array_equal(first.target(tokens), second.target(tokens))


@settings(deadline=None, max_examples=10)
@given(seed=st.integers(0, 2**16))
def test_max_plus_min_is_exact(seed):
    task = max_plus_min(length=8)
    tokens = np.asarray(task.sample(jr.key(seed)))
    assert tokens.min() >= 0
    assert tokens.max() <= 1
    assert_close(task.target(tokens), np.array([tokens.max() + tokens.min()]))


def test_max_plus_min_takes_each_end_from_its_own_window():
    tokens = np.array([[0.4], [0.6], [0.9], [0.1]], np.float32)
    assert_close(max_plus_min(length=4, windows=HALVES).target(tokens), np.array([0.6 + 0.1], np.float32))


def test_quadratic_basins_is_its_formula():
    task = quadratic_basins(length=8, intrinsic_dim=3, dim=2)
    assert isinstance(task.features, Basins)
    tokens = np.asarray(task.sample(jr.key(0)), np.float64)
    centres = np.asarray(task.features.centres, np.float64)
    squares = np.sum((tokens[:, None] - centres) ** 2, axis=-1) / 2
    assert squares.shape == (8, 3)
    assert_close(task.target(tokens.astype(np.float32)), np.array([squares.min(axis=0).sum()]))


def test_average_is_its_formula_and_needs_one_head():
    task = average(length=8, dim=3)
    assert isinstance(task.function, LinearMean)
    direction = np.asarray(task.function.direction)
    tokens = np.asarray(task.sample(jr.key(0)))
    assert_close(np.linalg.norm(direction), np.float32(1))
    assert_close(task.target(tokens), np.array([np.mean(tokens @ direction)]))
    assert task.intrinsic_dim == 1


def test_an_unknown_preset_is_answered_with_the_nearest():
    with refused('"sum-of-maximum"', 'Did you mean "sum-of-maxima"?', "quadratic-basins"):
        preset("sum-of-maximum")


def test_value_at_maximum_reads_one_direction_where_another_is_largest():
    task = value_at_maximum(length=6, dim=3, task_seed=2)
    key, value = np.asarray(task.function.key), np.asarray(task.function.value)
    assert_close(np.array([key @ key, value @ value, key @ value]), np.array([1.0, 1.0, 0.0], np.float32))
    for seed in range(5):
        tokens = np.asarray(task.sample(jr.key(seed)))
        where = max(range(6), key=lambda t: tokens[t] @ key)
        assert_close(task.target(tokens), np.array([tokens[where] @ value]))


def test_an_unknown_option_is_answered_with_the_nearest():
    with refused('"intrinsic_dims"', 'Did you mean "intrinsic_dim"?', "task_seed"):
        preset("sum-of-maxima", intrinsic_dims=3)


@pytest.mark.parametrize("name", PRESETS)
def test_the_options_of_a_preset_are_the_ones_it_takes(name):
    task = preset(name, **preset_options(name))
    assert task.name == name
    assert task.spec() == preset(name).spec()


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("sum-of-maxima", {"intrinsic_dim": 2, "dim": 3, "windows": HALVES}),
        ("nearest-neighbour", {"dim": 5, "points": "doubled"}),
        ("farthest-point", {"dim": 5}),
        ("biased-nearest-neighbour", {"dim": 5, "terms": 5}),
        ("in-context-regression", {"inputs": 3, "noise": 0.5}),
    ],
)
def test_a_preset_is_made_again_from_its_spec(name, options):
    stored = json.loads(json.dumps(preset(name, **options).spec()))
    again = preset_from_spec(stored)
    assert again is not None
    assert json.loads(json.dumps(again.spec())) == stored
    assert preset_from_spec(stored | {"dim": 99, "flavour": "other"}) is None


@pytest.mark.parametrize(("option", "value"), [("intrinsic_dim", 0), ("dim", 0), ("length", -1), ("directions", "up")])
def test_a_bad_option_is_refused(option, value):
    with refused(option, str(value)):
        preset("sum-of-maxima", **{option: value})
