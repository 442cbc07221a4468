"""Random labels: drawn by the seed alone, one per query, after a context for all examples or another for each."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from headcount.papers.tasks.random_labels import RandomLabels
from headcount.tasks import examples_at
from headcount.tasks.presets import preset_from_spec

from ...helpers.compiling import compile_quickly  # noqa: F401
from ...helpers.refusals import refused
from ...helpers.tolerance import assert_trees_equal
from ...tasks.laws import ALL, Construction, TaskLaws

SHARED, OWN = (RandomLabels(length=5, dim=6, classes=3, context=context) for context in ("shared", "own"))
every_context = pytest.mark.parametrize("task", [SHARED, OWN], ids=["shared", "own"])


class TestRandomLabels(TaskLaws):
    constructions = {  # noqa: RUF012
        context: Construction(
            lambda context=context: RandomLabels(length=5, dim=6, classes=3, context=context),
            outputs=3,
            answered_at="query",
            stored=(ALL, ALL),
            labels=True,
        )
        for context in ("shared", "own")
    }

    @staticmethod
    def numbers(task):
        return task.examples(30, 20, 3), tokens_of(task)


def tokens_of(task, count: int = 8, seed: int = 0) -> np.ndarray:
    """The tokens of some training examples."""
    content = task.examples(count, 20, seed).train.content
    tokenise = jax.tree.map(jnp.asarray, task.tokenise)
    return np.asarray(jax.vmap(tokenise)(examples_at(content, slice(None)), jr.split(jr.key(1), count)))


@every_context
def test_fewer_examples_are_the_first_of_more(task):
    few, many = task.examples(10, 20, 1), task.examples(300, 20, 1)
    assert_trees_equal(few.train, jax.tree.map(lambda leaf: leaf[:10], many.train))
    assert_trees_equal(few.validation, many.validation)


@every_context
def test_few_examples_are_repeated_equally_often(task):
    few = RandomLabels(**{name: getattr(task, name) for name in ("length", "dim", "classes", "context")}, distinct=7)
    repeated, all_different = few.examples(21, 20, 1).train, task.examples(7, 20, 1).train
    for third in range(3):
        assert_trees_equal(jax.tree.map(lambda leaf, at=7 * third: leaf[at : at + 7], repeated), all_different)
    with refused("train_examples", "20"):
        few.examples(20, 20)


@every_context
def test_labels_are_uniform_whatever_the_query(task):
    content, labels = task.examples(3000, 20).train
    np.testing.assert_allclose(np.bincount(labels) / len(labels), 1 / 3, atol=0.04)
    queries = content.reshape(3000, -1)[:, -task.dim :]
    means = np.stack([queries[labels == label].mean(axis=0) for label in range(3)])
    np.testing.assert_allclose(means, 0, atol=0.15)  # four standard errors of a mean over a third of them


def test_the_context_is_one_for_all_examples_or_another_for_each():
    shared, own = tokens_of(SHARED), tokens_of(OWN)
    assert shared.shape == own.shape == (8, 5, 6)
    assert len({context.tobytes() for context in shared[:, :-1]}) == 1
    assert len({context.tobytes() for context in own[:, :-1]}) == 8
    for tokens in (shared, own):
        assert len({query.tobytes() for query in tokens[:, -1]}) == 8


def test_a_shared_context_is_drawn_by_the_task_and_queries_by_the_seed():
    one, other = (tokens_of(SHARED, seed=seed) for seed in (0, 1))
    np.testing.assert_array_equal(one[:, :-1], other[:, :-1])
    assert not np.array_equal(one[:, -1], other[:, -1])
    elsewhere = tokens_of(RandomLabels(length=5, dim=6, classes=3, task_seed=1))
    assert not np.array_equal(elsewhere[:, :-1], one[:, :-1])


def test_a_longer_shared_context_begins_with_the_shorter_one():
    np.testing.assert_array_equal(tokens_of(SHARED.at(9))[:, :4], tokens_of(SHARED)[:, :4])


@every_context
def test_a_stored_spec_gives_the_task_again(task):
    again = preset_from_spec(task.spec())
    assert again is not None
    assert again.spec() == task.spec()


def test_sizes_that_cannot_be_are_refused():
    for option, value in {
        "length": 1,
        "dim": 0,
        "classes": 1,
        "distinct": -1,
        "task_seed": -1,
        "context": "none",
    }.items():
        with refused(option, str(value)):
            RandomLabels(**{option: value})
