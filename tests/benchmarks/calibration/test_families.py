"""The calibration set is what the documents say, and every task of it can be measured."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.calibration.families import FAMILIES, OPEN, calibration_set

SET = calibration_set()


def test_the_set_is_as_large_as_promised_and_names_are_unique():
    known = [task.intrinsic_dim for task in SET if task.intrinsic_dim is not None]
    assert (len(SET), len(known), len({task.name for task in SET})) == (193, 169, 193)
    assert set(known) == set(range(1, 11))
    assert {task.family for task in SET} == set(FAMILIES) > set(OPEN)


@pytest.mark.parametrize("task", [next(iter(group)) for _, group in itertools.groupby(SET, lambda task: task.family)])
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
