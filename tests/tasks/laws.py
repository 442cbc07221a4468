"""What every task promises, and how every bad request is refused."""

import json
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.random as jr
import jaxtyping
import numpy as np
import pytest

from headcount._errors import InputError
from headcount.tasks import AbstractTask, AnsweredAt

from ..helpers.tolerance import assert_close, assert_trees_equal


@pytest.fixture(autouse=True, scope="module")
def compile_quickly():
    """For modules whose programs run once, on a few numbers, so that compiling is all they cost; import it there."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@dataclass(frozen=True)
class Construction:
    """One way to make a task, and what is known of it. `other_length=None`: it exists at its own length only."""

    make: Callable[[], AbstractTask]
    outputs: int = 1
    other_length: int | None = 12
    answered_at: AnsweredAt = "sequence"

    def target_shape(self, length: int) -> tuple[int, ...]:
        return (length, self.outputs) if self.answered_at == "tokens" else (self.outputs,)


class TaskLaws:
    """Inherited by the test class of every task, which gives the fixture `construction`."""

    @pytest.fixture
    def task(self, construction):
        return construction.make()

    @pytest.fixture
    def other(self, task, construction):
        return task.at(construction.other_length or task.length)

    def test_same_key_same_tokens(self, task):
        assert_trees_equal(task.sample(jr.key(0)), task.sample(jr.key(0)))

    def test_other_key_other_tokens(self, task):
        assert not np.array_equal(task.sample(jr.key(0)), task.sample(jr.key(1)))

    def test_shapes_follow_length_dim_and_outputs(self, task, construction):
        tokens = task.sample(jr.key(2))
        assert tokens.shape == (task.length, task.dim)
        assert task.answered_at == construction.answered_at
        assert task.target(tokens).shape == construction.target_shape(task.length)

    def test_target_is_a_function_of_tokens_alone(self, task, construction):
        tokens = task.sample(jr.key(3))
        assert_trees_equal(construction.make().target(tokens), task.target(tokens))
        assert_trees_equal(task.target(np.asarray(tokens)), task.target(tokens))

    def test_target_works_under_vmap_and_jit(self, task):
        tokens = jax.vmap(task.sample)(jr.split(jr.key(4), 5))
        one_by_one = np.stack([task.target(sequence) for sequence in tokens])
        assert_close(jax.vmap(task.target)(tokens), one_by_one)
        assert_close(eqx.filter_jit(lambda task, sequence: task.target(sequence))(task, tokens[0]), one_by_one[0])

    def test_at_changes_the_length(self, task, other, construction):
        length = construction.other_length or task.length
        tokens = other.sample(jr.key(5))
        assert other.length == length
        assert tokens.shape == (length, other.dim)
        assert other.target(tokens).shape == construction.target_shape(length)

    def test_at_changes_only_the_length(self, task, other):
        assert type(other) is type(task)
        for name in ("name", "dim", "intrinsic_dim", "uses_positions", "answered_at"):
            assert getattr(other, name) == getattr(task, name), name

    def test_there_and_back_is_the_same_task(self, task, other):
        self._assert_equivalent(other.at(task.length), task)

    def test_at_its_own_length_is_the_same_task(self, task):
        self._assert_equivalent(task.at(task.length), task)

    def test_spec_is_json_and_the_same_for_equal_constructions(self, task, construction):
        assert _as_json(construction.make().spec()) == _as_json(task.spec())

    def test_spec_is_the_same_at_every_length(self, task, other):
        assert _as_json(other.spec()) == _as_json(task.spec())

    def test_dataset(self, task, construction):
        data, again, other = task.dataset(16, 16, 1), task.dataset(16, 16, 1), task.dataset(16, 8, 2)
        assert_trees_equal(again, data)
        assert not np.array_equal(other.train_tokens, data.train_tokens)
        assert other.train_tokens.shape == (16, task.length, task.dim)
        assert other.train_targets.shape == (16, *construction.target_shape(task.length))
        assert other.validation_tokens.shape == (8, task.length, task.dim)
        assert other.validation_targets.shape == (8, *construction.target_shape(task.length))
        # Every target belongs to its sequence, and no validation sequence is trained on.
        tokens = np.concatenate([other.train_tokens, other.validation_tokens])
        targets = np.concatenate([other.train_targets, other.validation_targets])
        assert_close(targets, jax.vmap(task.target)(tokens))
        assert len({sequence.tobytes() for sequence in tokens}) == 16 + 8

    @staticmethod
    def _assert_equivalent(got: AbstractTask, want: AbstractTask) -> None:
        tokens = want.sample(jr.key(6))
        assert got.length == want.length
        assert got.spec() == want.spec()
        assert_trees_equal(got.sample(jr.key(6)), tokens)
        assert_trees_equal(got.target(tokens), want.target(tokens))


def _as_json(spec: dict) -> str:
    return json.dumps(spec, sort_keys=True, allow_nan=False)


@contextmanager
def refused(*given: str):
    """What a user without a type checker meets: an `InputError` of one line that names what was `given`."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        with pytest.raises(InputError) as caught:
            yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", before)
    message = str(caught.value)
    assert "\n" not in message, f"more than one line: {message}"
    assert message.endswith((".", "?")), f"not a sentence: {message}"
    assert not message.endswith(".."), f"two full stops: {message}"
    missing = [words for words in given if words not in message]
    assert not missing, f"{missing} not named in: {message}"
