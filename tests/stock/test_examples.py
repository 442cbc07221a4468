"""Stock models answer the examples that headcount's models answer, in standard units."""

import jax.numpy as jnp
import numpy as np
import pytest

import headcount as hc
from headcount import recipes
from headcount.errors import InputError
from headcount.stock import StockExamples
from headcount.stock.train import losses_of


@pytest.fixture
def drawn():
    return np.random.default_rng(0)


def test_validation_examples_are_those_of_headcount(drawn):
    x = drawn.normal(size=(200, 4, 2)).astype(np.float32)
    task = hc.ArrayTask(x, x[:, 0, 0])
    examples, plan = StockExamples.of_task(task), recipes.train_for(task)
    split = task.examples(plan.train_examples, plan.validation_examples, plan.data_seed)
    mean, scale = split.train.content.mean((0, 1)), split.train.content.std((0, 1))
    np.testing.assert_allclose(examples.validation.tokens, (split.validation.content - mean) / scale, rtol=1e-4)
    assert abs(examples.train.targets.mean()) < 1e-6
    assert abs(examples.train.targets.std() - 1) < 1e-6


def test_the_error_is_that_of_headcount(drawn):
    x = drawn.normal(size=(200, 4, 2)).astype(np.float32)
    y = x[:, 0] * [1, 100]
    examples = StockExamples.of_task(hc.ArrayTask(x, y))
    answers = drawn.normal(size=examples.validation.targets.shape)
    grades = hc.ArrayTask(x, y).objective.grades(jnp.asarray(answers), jnp.asarray(examples.validation.targets))
    assert losses_of(answers, examples).mean() == pytest.approx(float(grades["nmse"]), rel=1e-5)


def test_wrong_labels_are_counted(drawn):
    x = drawn.normal(size=(200, 4, 2)).astype(np.float32)
    examples = StockExamples.of_task(hc.ArrayTask(x, x[:, 0, 0] > 0))
    right = np.eye(2)[examples.validation.targets]
    assert losses_of(right, examples).mean() == 0
    assert losses_of(1 - right, examples).mean() == 1
    assert examples.shape.classes == 2


def test_padding_comes_first(drawn):
    x = [drawn.normal(size=(2 + i % 3, 2)).astype(np.float32) for i in range(120)]
    examples = StockExamples.of_task(hc.ArrayTask(x, [each[0, 0] for each in x]))
    mask = examples.train.mask
    assert mask is not None
    assert np.all(mask[:, -2:])
    assert np.all(np.diff(mask.astype(int), axis=1) >= 0)
    assert np.all(examples.train.tokens[~mask] == 0)


def test_ids_stay_ids(drawn):
    ids = drawn.integers(0, 7, (150, 6))
    examples = StockExamples.of_task(hc.ArrayTask(ids, ids[:, 0].astype(float)))
    assert examples.shape.vocabulary == 7
    assert examples.train.tokens.dtype == np.int64
    assert set(np.unique(examples.train.tokens)) == set(range(7))


def test_a_task_that_is_drawn_has_examples_too():
    examples = StockExamples.of_task(hc.find_task("nearest-neighbour", length=4, dim=4))
    assert examples.shape.answered_at in ("tokens", "query")
    assert len(examples.train) > len(examples.validation)


def test_images_are_refused(drawn, tmp_path):
    from PIL import Image

    for label in "ab":
        (tmp_path / label).mkdir()
        for i in range(60):
            Image.fromarray(drawn.integers(0, 255, (8, 8, 3), dtype=np.uint8)).save(tmp_path / label / f"{i}.png")
    with pytest.raises(InputError):
        StockExamples.of_task(hc.find_task(tmp_path))
