"""Peculiar data are named in a sentence with what to do; ordinary data are not."""

import numpy as np
import pytest

from headcount.request import task_of
from headcount.tasks import ArrayTask

from ..data.written import write_text_table
from ..helpers.commands import headcount
from ..helpers.refusals import refused

random = np.random.default_rng(0)
X = random.normal(size=(120, 5))
Y = X.max(axis=1)
CLASSES = np.array(["a", "b", "c"])[np.arange(120) % 3]


def said(x, y, **options):
    return " ".join(ArrayTask(x, y, **options).notes)


@pytest.mark.parametrize(
    ("column", "y"),
    [
        (Y, Y),
        (-2 * Y + 1, Y),
        (np.exp(Y), Y),
        (np.array([2, 0, 1])[np.arange(120) % 3], CLASSES),
        (np.round(Y) ** 3, np.round(Y) + 0.5),
    ],
)
def test_a_column_that_is_the_target_by_another_name(column, y):
    leaking = np.column_stack([X, column])
    assert "decided by token 6 alone" in said(leaking, y)
    columns = tuple("uvwxyz")
    assert "decided by column z alone" in said(leaking, y, columns=columns)
    leaking[3, 5] += 1e-3 if len(np.unique(y)) < 120 else 100
    assert "decided" not in said(leaking, y)


def test_a_number_of_a_token_that_is_the_target():
    x = np.stack([X, X], axis=2)
    x[:, 1, 1] = Y
    assert "decided by number 2 of token 2 alone" in said(x, Y)
    assert "decided" not in said(np.stack([X, X], axis=2), Y)


def test_a_token_id_that_is_the_class():
    ids = random.integers(0, 9, (120, 4))
    ids[:, 2] = np.array([7, 3, 5])[np.arange(120) % 3]
    assert "decided by token 3 alone" in said(ids, CLASSES)


def test_one_of_several_outputs_is_enough_and_a_constant_one_is_not():
    many = np.stack([Y, random.normal(size=120), np.ones(120)], axis=1)
    assert "decided by token 2 alone" in said(np.column_stack([X[:, :1], Y, X[:, 1:]]), many)
    assert "decided" not in said(np.column_stack([X, np.ones(120)]), many)


def test_columns_that_are_constant():
    x = np.column_stack([X, np.full(120, 3.0)])
    assert "the same in all examples: column z;" in said(x, Y, columns=tuple("uvwxyz"))
    assert "same in all" not in said(x, Y)  # a place without a name may mark something
    numbers = np.stack([X, np.zeros_like(X)], axis=2)
    assert "the same in all examples: number 2 of every token;" in said(numbers, Y)
    assert "the same in all examples: column b of every token;" in said(numbers, Y, columns=("a", "b"))
    with refused("x is the same in all examples"):
        ArrayTask(np.ones((120, 3)), Y)


def test_classes_with_one_example():
    one = CLASSES.astype(object)
    one[5] = "rare"
    assert "of rare there is one example" in said(X, one)
    assert "one example" not in said(X, CLASSES)


def test_few_examples_are_taken_with_a_warning():
    task = ArrayTask(X[:80], Y[:80])
    assert "80 examples are few" in task.notes[-1]
    assert [len(part.targets) for part in task.examples(1000, 1000)] == [60, 20]
    assert "few" not in said(X[:100], Y[:100])
    with refused("39 examples are", "40"):
        ArrayTask(X[:39], Y[:39])
    with refused("1 example is too few"):
        ArrayTask(X[:1], Y[:1])


FAULTS = {
    "leak": ({"copy": Y * 2}, "decided by column copy alone"),
    "constant": ({"flat": np.full(120, 2.5)}, "the same in all examples: column flat;"),
    "time": ({"time": random.normal(size=120)}, "column time: read as a number"),
    "one example": ({"y": np.where(np.arange(120) == 7, "rare", CLASSES)}, "of rare there is one example"),
    "few": ({}, "80 examples are few"),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_both_doors_say_it(tmp_path, kind):
    added, words = FAULTS[kind]
    columns = {f"{name}{name}": values for name, values in zip("abcde", X.T, strict=True)} | {"y": Y} | added
    columns = {name: values[: 80 if kind == "few" else None] for name, values in columns.items()}
    assert any(words in note for note in task_of(columns, None, {}).notes)
    table = write_text_table(tmp_path / "mine.csv", {name: values.tolist() for name, values in columns.items()})
    result = headcount("measure", table, "--dry-run", "--out", tmp_path / "results")
    assert (result.code, words in " ".join(result.err.split())) == (0, True), result.err


def test_a_missing_cell_of_a_file_names_its_line(tmp_path):
    columns = {"a": X[:, 0].tolist(), "b": [*X[:118, 1].tolist(), "", "nan"], "y": Y.tolist()}
    table = write_text_table(tmp_path / "mine.csv", columns)
    result = headcount("measure", table, "--dry-run")
    said = " ".join(result.err.split())
    assert result.code == 2
    assert all(words in said for words in ("2 of 120 values of column b", "line 120", "2 rows", "dropna"))
