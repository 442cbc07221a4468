"""What every task promises: `TaskLaws`, and what generated and labelled tasks promise on top of it."""

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from headcount._choices import AnsweredAt
from headcount.tasks import AbstractTask, Choice, Classification, Examples, Regression, Split, Tokenise, examples_at

from ..helpers.tolerance import assert_close, assert_trees_equal

ALL = 10**6


@dataclass(frozen=True)
class Construction:
    """One way to make a task, and what is known of it.

    `other_length=None`: it exists at its own length only. `stored`: all its training and validation examples, where it
    is not endless. `tokens`: the shape of one example's tokens at a length, where that is not (length, dim). `labels`:
    a target is one label, of the example or of each of its tokens.
    """

    make: Callable[[], AbstractTask]
    outputs: int = 1
    other_length: int | None = 12
    answered_at: AnsweredAt = "sequence"
    stored: tuple[int, int] | None = None
    tokens: Callable[[int], tuple[int, ...]] | None = None
    labels: bool = False

    def target_shape(self, length: int) -> tuple[int, ...]:
        if self.labels:
            return (length,) if self.answered_at == "tokens" else ()
        return (length, self.outputs) if self.answered_at == "tokens" else (self.outputs,)


@functools.cache
def made(construction: Construction) -> AbstractTask:
    """One task for all laws, whose programs are compiled once."""
    return construction.make()


@functools.cache
def split_of(construction: Construction, seed: int) -> Split:
    """16 training and 16 validation examples, drawn once for all laws: one program for both."""
    return made(construction).examples(16, 16, seed)


def draw(task, key):
    tokens = task.sample(key)
    return tokens, task.target(tokens)


drawn = eqx.filter_jit(draw)


@eqx.filter_jit
def targets_of(task, tokens):
    return jax.vmap(task.target)(tokens)


class TaskLaws:
    """Inherited by the test class of every task, which sets `constructions`."""

    constructions: dict[str, Construction]

    def pytest_generate_tests(self, metafunc):
        """One case per construction."""
        if "construction" in metafunc.fixturenames:
            metafunc.parametrize("construction", self.constructions.values(), ids=self.constructions.keys())

    @pytest.fixture
    def task(self, construction):
        return made(construction)

    @pytest.fixture
    def other(self, task, construction):
        return task.at(construction.other_length or task.length)

    @staticmethod
    def names(part: Examples) -> list:
        """What tells examples apart, for each of them."""
        return [np.asarray(example).tobytes() for example in part.content]

    @staticmethod
    def numbers(task: AbstractTask) -> Any:
        """Some numbers of a task: equal for equal tasks. Every suite below says which."""
        raise AssertionError("a suite of laws says what a task's numbers are")

    def test_spec_is_json_and_stable(self, task, other, construction):
        assert "length" not in task.spec()
        assert as_json(construction.make().spec()) == as_json(task.spec()) == as_json(other.spec())

    def test_at_changes_only_the_length(self, task, other, construction):
        assert type(other) is type(task)
        assert other.length == (construction.other_length or task.length)
        for name in ("name", "dim", "intrinsic_dim", "uses_positions", "answered_at", "padded", "endless"):
            assert getattr(other, name) == getattr(task, name), name
        assert other.outputs == task.outputs == construction.outputs
        assert type(other.objective) is type(task.objective)
        assert task.answered_at == construction.answered_at
        assert task.endless == (construction.stored is None)

    def test_there_and_back_is_the_same_task(self, task, other):
        for back in (other.at(task.length), task.at(task.length)):
            assert back.length == task.length
            assert back.spec() == task.spec()
            assert_trees_equal(self.numbers(back), self.numbers(task))

    def test_equal_arguments_give_equal_examples(self, construction):
        assert_trees_equal(construction.make().examples(16, 16, 1), split_of(construction, 1))
        assert self.names(split_of(construction, 1).train) != self.names(split_of(construction, 2).train)

    def test_as_many_examples_as_asked_for(self, construction):
        for part in split_of(construction, 1):
            assert {len(leaf) for leaf in jax.tree.leaves(part)} == {16}

    def test_training_and_validation_examples_are_disjoint(self, construction):
        split = split_of(construction, 1)
        assert len({*self.names(split.train), *self.names(split.validation)}) == 16 + 16

    def test_targets_fit_the_objective(self, task, construction):
        for part in split_of(construction, 1):
            targets = np.asarray(part.targets)
            if isinstance(task.objective, Regression):
                assert targets.dtype == np.float32
                assert targets.shape[1:] == construction.target_shape(task.length)
                assert np.all(np.isfinite(targets))
            else:
                assert targets.dtype == np.int32
                per_token = construction.labels and construction.answered_at == "tokens"
                assert targets.shape[1:] == ((task.length,) if per_token else ())
                none = {-1} if task.padded and construction.answered_at == "tokens" else set()
                assert set(targets.ravel().tolist()) <= {*range(choices(task)), *none}

    def test_a_perfect_answer_has_no_error(self, task, construction):
        targets = jnp.asarray(split_of(construction, 1).validation.targets)
        loss, error = task.objective.loss(perfect_answers(task, targets), targets)
        grades = task.objective.grades(perfect_answers(task, targets), targets)
        assert float(loss) == pytest.approx(0, abs=1e-6)
        assert float(error) == float(grades[task.objective.error]) == 0

    def test_the_best_constant_answer_has_the_error_of_the_baseline(self, task, construction):
        targets = np.asarray(split_of(construction, 1).validation.targets)
        error, standard_error = task.objective.baseline(targets)
        grades = task.objective.grades(best_constant_answers(task, targets), jnp.asarray(targets))
        assert 0 < error <= 1
        assert 0 < standard_error < 1
        assert float(grades[task.objective.error]) == pytest.approx(error, abs=1e-6)
        assert all(np.isfinite(float(grade)) for grade in grades.values())


class GeneratedTaskLaws(TaskLaws):
    """Inherited by the test class of every task that draws its sequences and computes their targets."""

    @staticmethod
    def numbers(task):
        return drawn(task, jr.key(6))

    def test_tokens_are_a_function_of_the_key(self, task):
        (tokens, _), (again, _), (others, _) = (drawn(task, jr.key(seed)) for seed in (0, 0, 1))
        assert_trees_equal(again, tokens)
        assert not np.array_equal(others, tokens)

    def test_shapes_follow_length_dim_and_outputs(self, task, other, construction):
        for one in (task, other):
            tokens, target = eqx.filter_eval_shape(draw, one, jr.key(2))
            assert tokens.shape == (one.length, one.dim)
            assert target.shape == construction.target_shape(one.length)

    def test_target_is_a_function_of_tokens_alone(self, task, construction):
        tokens = split_of(construction, 1).train.content
        want = np.asarray(targets_of(task, tokens))
        assert_trees_equal(targets_of(construction.make(), tokens), want)
        assert_trees_equal(targets_of(task, tokens[::-1]), want[::-1])

    def test_target_works_under_vmap_and_jit_and_without(self, task):
        tokens, target = drawn(task, jr.key(6))
        assert_close(task.target(np.asarray(tokens)), target)
        assert_close(targets_of(task, np.tile(tokens, (16, 1, 1)))[3], target)

    def test_every_target_belongs_to_its_sequence(self, task, construction):
        tokens, targets = jax.tree.map(lambda *parts: np.concatenate(parts), *split_of(construction, 2))
        assert tokens.shape == (16 + 16, task.length, task.dim)
        for part in (slice(16), slice(16, None)):
            assert_close(targets[part], targets_of(task, tokens[part]))


class LabelledTaskLaws(TaskLaws):
    """Inherited by the test class of every task of stored examples with labels."""

    @staticmethod
    def numbers(task):
        return task.examples(30, 20, 3), shown(task)

    @pytest.mark.parametrize(("train", "validation"), [(1, 20), (30, 21), (ALL, ALL)])
    def test_at_most_as_many_as_are_stored(self, task, construction, train, validation):
        counts = [len(part.targets) for part in task.examples(train, validation)]
        assert counts == [min(train, construction.stored[0]), min(validation, construction.stored[1])]
        assert task.intrinsic_dim is None

    def test_no_seed_validates_on_training_examples(self, task):
        splits = [task.examples(ALL, ALL, seed) for seed in range(3)]
        train, validation = ({name for split in splits for name in self.names(split[place])} for place in range(2))
        assert not train & validation
        assert (len(train), len(validation)) == tuple(len(part.targets) for part in splits[0])

    def test_fewer_examples_are_the_first_of_more(self, task):
        few, many = task.examples(10, 20, 1), task.examples(30, 20, 1)
        assert_trees_equal(few.train, jax.tree.map(lambda leaf: leaf[:10], many.train))
        assert_trees_equal(few.validation, many.validation)

    def test_another_length_has_the_same_examples(self, task, other):
        for part, at_other in zip(task.examples(40, 20, 2), other.examples(40, 20, 2), strict=True):
            assert self.names(part) == self.names(at_other)

    def test_every_label_occurs(self, task, other):
        for one in (task, other):
            labels = np.concatenate([part.targets for part in one.examples(ALL, ALL)])
            assert set(labels.tolist()) == set(range(choices(one)))

    def test_tokens_are_finite_and_of_the_promised_shape(self, task, other, construction):
        for one in (task, other):
            tokens = np.asarray(shown(one))
            assert tokens.shape == (5, *construction.tokens(one.length))
            assert tokens.shape[-1] == one.dim
            assert tokens.dtype == np.float32
            assert np.all(np.isfinite(tokens))
            assert one.sequences == (tokens.shape[1:3] if tokens.ndim == 4 else (1, tokens.shape[1]))

    def test_tokens_are_a_function_of_content_and_key(self, other):
        tokens = np.asarray(shown(other))
        assert_trees_equal(shown(other), tokens)
        assert len({example.tobytes() for example in tokens}) == len(tokens)
        content = other.examples(5, 20).train.content
        tokenise = on_device(other)
        alone = jax.jit(lambda *one: tokenise(*one))(examples_at(content, 3), jr.split(jr.key(7), 5)[3])
        assert_close(alone, tokens[3])


def as_json(spec: dict) -> str:
    return json.dumps(spec, sort_keys=True, allow_nan=False)


def choices(task: AbstractTask) -> int:
    """How many labels there are."""
    return task.objective.candidates if isinstance(task.objective, Choice) else task.outputs


def label_answers(task: AbstractTask, labels: np.ndarray | jax.Array) -> jax.Array:
    """Answers of a model that is sure of these labels."""
    scores = jnp.asarray(100 * np.eye(choices(task), dtype=np.float32)[np.asarray(labels)])
    return scores if isinstance(task.objective, Classification) else scores[..., None]


def perfect_answers(task: AbstractTask, targets: jax.Array) -> jax.Array:
    return targets if isinstance(task.objective, Regression) else label_answers(task, targets)


def best_constant_answers(task: AbstractTask, targets: np.ndarray) -> jax.Array:
    if isinstance(task.objective, Regression):
        return jnp.broadcast_to(targets.mean(axis=0), targets.shape)
    return label_answers(task, np.full_like(targets, np.argmax(np.bincount(targets[targets >= 0]))))


def on_device(task: AbstractTask) -> Tokenise:
    """As the engine has it, with what examples share on the device."""
    return jax.tree.map(jnp.asarray, task.tokenise)


def shown(task: AbstractTask):
    """The tokens of five examples."""
    content = task.examples(5, 20).train.content
    return jax.jit(jax.vmap(on_device(task)))(examples_at(content, slice(None)), jr.split(jr.key(7), 5))
