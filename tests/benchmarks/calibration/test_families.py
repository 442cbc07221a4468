"""The calibration set is what the documents say, and every task of it can be measured."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.calibration.families import DECAYS, FAMILIES, GRADUAL, OPEN, calibration_set, enough_set
from headcount.keys import named_generator

SET = calibration_set()


def test_the_set_is_as_large_as_promised_and_names_are_unique():
    known = [task.intrinsic_dim for task in SET if task.intrinsic_dim is not None]
    assert (len(SET), len(known), len({task.name for task in SET})) == (193, 169, 193)
    assert set(known) == set(range(1, 11))
    assert {task.family for task in SET} == set(FAMILIES) - {GRADUAL} > set(OPEN)


def test_more_heads_are_enough_where_weights_decay_more_slowly_and_there_is_less_noise():
    enough = [task.intrinsic_dim for task in enough_set()]
    little, much = enough[: len(DECAYS)], enough[len(DECAYS) :]
    assert little == sorted(little)
    assert len(set(little)) > 2
    assert all(less <= more for less, more in zip(much, little, strict=True))
    assert not {task.name for task in enough_set()} & {task.name for task in SET}


def test_the_error_of_the_heads_that_weigh_most_is_what_the_truth_rests_on():
    task = enough_set()[0]
    x, y = task.arrays()
    draw = named_generator(task.variant, "calibration", GRADUAL, str(task.intrinsic_dim), task.dim, task.length)
    draw.standard_normal(x.shape)
    directions = np.linalg.qr(draw.standard_normal((task.dim, task.dim)))[0]
    first = np.max(x @ directions[0], axis=1)
    left = 1 - np.corrcoef(first, y)[0, 1] ** 2
    assert left == pytest.approx(0.1 + 0.9 * DECAYS[0] ** 2, abs=0.03)


@pytest.mark.parametrize(
    "task", [next(iter(group)) for _, group in itertools.groupby((*SET, *enough_set()), lambda task: task.family)]
)
def test_a_task_is_the_same_numbers_every_time(task):
    (x, y), (again, targets) = task.arrays(), task.arrays()
    assert x.shape == (task.examples, task.length, task.dim)
    assert np.array_equal(x, again)
    assert np.array_equal(y, targets)
    assert np.all(np.isfinite(x))
    assert np.std(y) > 0


@pytest.mark.parametrize(
    "task", [task for task in SET if task.classes and task.length <= 16], ids=lambda task: task.name
)
def test_classes_are_about_equally_many(task):
    counts = np.bincount(task.arrays()[1], minlength=task.classes)
    assert len(counts) == task.classes
    assert counts.min() > 0.8 * counts.max()


def test_only_windows_depend_on_positions():
    few = {task.family: replace(task, examples=100) for task in SET if not task.classes}
    assert {name for name, task in few.items() if task.task().uses_positions} == {"windows"}
