"""A user's own arrays are a task: split once and for all, shortened by the rule that was chosen."""

import jax.random as jr
import numpy as np
import pytest

from headcount._errors import InputError
from headcount.tasks import ArrayTask, load_arrays

from ..helpers.compiling import compile_quickly  # noqa: F401
from ..helpers.tolerance import assert_trees_equal
from .laws import Construction, GeneratedTaskLaws

X = np.random.default_rng(0).normal(size=(120, 6, 2)).astype(np.float32)
Y = X[:, :, 0].max(axis=1)
STORED = (96, 24)
TWO = np.stack([Y, X[:, 0, 1]], axis=1)
LABELS = np.digitize(Y, [0.5, 1.5])


class TestArrayTask(GeneratedTaskLaws):
    constructions = {  # noqa: RUF012
        "given": Construction(lambda: ArrayTask(X, Y), other_length=None, stored=STORED),
        "leading": Construction(lambda: ArrayTask(X, Y, shorter="leading"), other_length=4, stored=STORED),
        "trailing": Construction(
            lambda: ArrayTask(X, TWO, shorter="trailing", name="two"), outputs=2, other_length=1, stored=STORED
        ),
        "labels": Construction(
            lambda: ArrayTask(X, LABELS, shorter="leading", labels=True),
            outputs=3,
            other_length=4,
            stored=STORED,
            labels=True,
        ),
    }


def rows(tokens) -> set[bytes]:
    return {np.asarray(sequence).tobytes() for sequence in tokens}


def test_split_is_disjoint_and_leaves_nothing_out():
    data = ArrayTask(X, Y, validation_fraction=0.25).examples(10_000, 10_000)
    train, validation = rows(data.train.content), rows(data.validation.content)
    assert (len(train), len(validation)) == (90, 30)
    assert not train & validation
    assert train | validation == rows(X)


def test_split_is_the_same_at_every_length():
    whole = ArrayTask(X, Y, shorter="leading")
    for length in (5, 3):
        short = whole.at(length).examples(50, 20, 3)
        long = whole.examples(50, 20, 3)
        assert_trees_equal(short.train.content, long.train.content[:, :length])
        assert_trees_equal(short.validation.content, long.validation.content[:, :length])
        assert_trees_equal(short.train.targets, long.train.targets)


def test_fewer_examples_are_the_first_of_the_same_split():
    few, many = ArrayTask(X, Y).examples(10, 5), ArrayTask(X, Y).examples(1000, 1000)
    assert_trees_equal(few.train.content, many.train.content[:10])
    assert_trees_equal(few.validation.content, many.validation.content[:5])


@pytest.mark.parametrize(("shorter", "kept"), [("leading", slice(0, 2)), ("trailing", slice(4, 6))])
def test_shorter_lengths_follow_the_rule(shorter, kept):
    short = ArrayTask(X, Y, shorter=shorter).at(2)
    assert rows(short.examples(1000, 1000).train.content) <= rows(X[:, kept])
    assert np.asarray(short.sample(jr.key(0))).tobytes() in rows(X[:, kept])
    for i in (0, 7, 119):
        assert_trees_equal(short.target(X[i, kept]), Y[i : i + 1])


def test_a_shorter_task_can_grow_back():
    task = ArrayTask(X, Y, shorter="trailing")
    assert_trees_equal(task.at(2).at(6).examples(20, 20), task.examples(20, 20))


def test_spec_tells_data_apart():
    changed = X.copy()
    changed[5, 3, 1] += 1
    tasks = [
        ArrayTask(X, Y),
        ArrayTask(changed, Y),
        ArrayTask(X, -Y),
        ArrayTask(X, TWO),
        ArrayTask(X[:-1], Y[:-1]),
        ArrayTask(X, Y, shorter="leading"),
        ArrayTask(X, Y, shorter="trailing"),
        ArrayTask(X, Y, validation_fraction=0.3),
        ArrayTask(X, Y, name="other"),
        ArrayTask(X, LABELS),
        ArrayTask(X, LABELS, labels=True),
        ArrayTask(X, LABELS[::-1], labels=True),
    ]
    assert len({str(task.spec()) for task in tasks}) == len(tasks)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (LABELS * 10 - 7, (-7, 3, 13)),
        (LABELS.astype(np.uint8), (0, 1, 2)),
        (LABELS * 1.0, (0, 1, 2)),
        (LABELS > 0, (False, True)),
        (np.array(["low", "mid", "upper"])[LABELS], ("low", "mid", "upper")),
        (np.array(["low", "mid", "upper"], object)[LABELS], ("low", "mid", "upper")),
        (np.array(["z", "a"])[1 * (LABELS > 0)].tolist(), ("a", "z")),
    ],
)
def test_labels_are_places_among_the_sorted_classes(labels, classes):
    task = ArrayTask(X, labels, labels=True, shorter="leading")
    for one in (task, task.at(3)):
        assert (one.classes, one.outputs, one.spec()["labels"]) == (classes, len(classes), len(classes))
        assert list(map(type, one.classes)) == list(map(type, classes)), "plain Python values"
        assert [one.classes[place] for place in one.y] == np.asarray(labels).tolist()


def test_a_regression_has_no_classes():
    task = ArrayTask(X, LABELS)
    assert task.classes is None
    assert "labels" not in task.spec()


def test_whole_numbers_are_numbers():
    whole = np.random.default_rng(1).integers(0, 9, (100, 3, 1))
    task = ArrayTask(whole, whole[:, 0, 0] > 4)
    assert_trees_equal(task.examples(9, 9), ArrayTask(whole.astype(float), 1.0 * (whole[:, 0] > 4)).examples(9, 9))


@pytest.mark.parametrize("compressed", [False, True])
def test_an_npz_holds_x_and_y(tmp_path, compressed):
    path = tmp_path / "mine.npz"
    (np.savez_compressed if compressed else np.savez)(path, x=X, y=Y, notes=np.arange(3))
    task = load_arrays(path, shorter="leading", validation_fraction=0.3)
    assert (task.name, task.length, task.dim) == ("mine", 6, 2)
    assert (task.shorter, task.validation_fraction) == ("leading", 0.3)
    assert_trees_equal(task.examples(50, 20), ArrayTask(X, Y, validation_fraction=0.3).examples(50, 20))


def test_an_npy_holds_x_and_another_y(tmp_path):
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", TWO)
    task = load_arrays(tmp_path / "x.npy", tmp_path / "y.npy", name="pair")
    assert task.name == "pair"
    assert_trees_equal(task.examples(50, 20), ArrayTask(X, TWO).examples(50, 20))


def test_a_split_of_the_users_own_is_kept(tmp_path):
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(150, 6, 2)), generator.normal(size=150)
    np.savez(tmp_path / "split.npz", x=x[:120], y=y[:120], x_validation=x[120:], y_validation=y[120:])
    data = load_arrays(tmp_path / "split.npz").examples(1000, 1000)
    assert np.array_equal(data.train.content, x[:120].astype(np.float32))
    assert np.array_equal(data.validation.targets[:, 0], y[120:].astype(np.float32))


def test_a_split_of_other_shapes_is_refused(tmp_path):
    x, y = np.random.default_rng(0).normal(size=(150, 6, 2)), np.arange(150.0)
    np.savez(tmp_path / "split.npz", x=x, y=y, x_validation=x[:50, :5], y_validation=y[:50])
    with pytest.raises(InputError, match=r"\(150, 6, 2\).*\(50, 5, 2\)"):
        load_arrays(tmp_path / "split.npz")
