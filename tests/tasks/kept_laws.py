"""What every task of kept data promises."""

import json
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from headcount.tasks.kept import Labelled

from headcount.tasks import AnsweredAt, LabelledTask, Tokenise, taken

from ..helpers.tolerance import assert_close, assert_trees_equal

ALL = 10**6


@dataclass(frozen=True)
class KeptConstruction:
    """One way to make a task, and what is known of it. `known` is how many examples to learn from and be judged on."""

    make: Callable[[], LabelledTask]
    answered_at: AnsweredAt
    other_length: int
    known: tuple[int, int]
    shown: Callable[[int], tuple[int, ...]]
    """The shape of an example's tokens at a length."""


class KeptTaskLaws:
    """Inherited by the test class of every task of kept data, which gives the fixture `construction`."""

    @pytest.fixture
    def task(self, construction):
        return construction.make()

    @pytest.fixture
    def other(self, task, construction):
        return task.at(construction.other_length)

    @staticmethod
    def names(part: Labelled) -> list[bytes]:
        """What tells examples apart, for each of them."""
        raise NotImplementedError

    @staticmethod
    def answers(task: LabelledTask) -> int:
        return task.length if task.graded_by == "choice" else task.outputs

    def test_spec_is_json_without_a_length_and_the_same_for_equal_constructions(self, task, construction):
        written = json.dumps(task.spec(), sort_keys=True, allow_nan=False)
        assert "length" not in task.spec()
        assert json.dumps(construction.make().spec(), sort_keys=True) == written

    def test_at_changes_the_length_alone(self, task, other, construction):
        assert type(other) is type(task)
        assert other.length == construction.other_length != task.length
        assert other.spec() == task.spec()
        for name in (
            "name",
            "dim",
            "outputs",
            "graded_by",
            "answered_at",
            "uses_positions",
            "form",
            "joined",
            "endless",
        ):
            assert getattr(other, name) == getattr(task, name), name
        assert task.answered_at == construction.answered_at
        assert task.intrinsic_dim is None
        assert not task.endless

    def test_there_and_back_is_the_same_task(self, task, other):
        back = other.at(task.length)
        assert back.length == task.length
        assert_trees_equal(back.examples(30, 20, 3), task.examples(30, 20, 3))
        assert_trees_equal(self.shown(back), self.shown(task))

    def test_the_same_arguments_give_the_same_examples(self, task, construction):
        assert_trees_equal(construction.make().examples(30, 20, 5), task.examples(30, 20, 5))
        assert self.names(task.examples(30, 20, 5)[0]) != self.names(task.examples(30, 20, 6)[0])

    @pytest.mark.parametrize(("train", "validation"), [(1, 20), (30, 21), (ALL, ALL)])
    def test_at_most_as_many_as_asked_for(self, task, construction, train, validation):
        parts = task.examples(train, validation)
        learned, judged = construction.known
        assert [len(part.labels) for part in parts] == [min(train, learned), min(validation, judged)]
        for part in parts:
            assert {len(leaf) for leaf in jax.tree.leaves(part.content)} == {len(part.labels)}

    def test_nobody_is_judged_on_what_he_learned_from(self, task):
        """Whichever examples a seed chooses."""
        learned, judged = (
            {name for seed in range(3) for name in self.names(task.examples(ALL, ALL, seed)[place])} for place in (0, 1)
        )
        assert not learned & judged
        assert len(learned | judged) == len(self.names(task.examples(ALL, ALL)[0])) + len(judged)

    def test_fewer_examples_are_the_first_of_more(self, task):
        few, many = task.examples(10, 20, 1), task.examples(30, 20, 1)
        assert_trees_equal(few[0], taken_labelled(many[0], slice(10)))
        assert_trees_equal(few[1], many[1])

    def test_another_length_has_the_same_examples(self, task, other):
        for mine, theirs in zip(task.examples(40, 20, 2), other.examples(40, 20, 2), strict=True):
            assert self.names(mine) == self.names(theirs)

    def test_labels_are_places_of_answers(self, task, other):
        for one in (task, other):
            labels = np.concatenate([part.labels for part in one.examples(ALL, ALL)])
            assert labels.dtype == np.int32
            assert set(labels.tolist()) == set(range(self.answers(one)))

    def test_tokens_are_finite_and_of_the_promised_shape(self, task, other, construction):
        for one in (task, other):
            tokens = np.asarray(self.shown(one))
            assert tokens.shape == (5, *construction.shown(one.length))
            assert tokens.shape[1:-1] == ((one.length, one.joined) if one.joined else tokens.shape[1:-1])
            assert tokens.shape[-1] == one.dim
            assert tokens.dtype == np.float32
            assert np.all(np.isfinite(tokens))

    def test_tokens_are_a_function_of_content_and_key(self, other):
        tokens = np.asarray(self.shown(other))
        assert_trees_equal(self.shown(other), tokens)
        assert len({example.tobytes() for example in tokens}) == len(tokens)
        content, _ = other.examples(5, 20)[0]
        show = self.tokenise(other)
        alone = jax.jit(lambda *given: show(*given))(taken(content, 3), jr.split(jr.key(7), 5)[3])
        assert_close(alone, tokens[3])

    @staticmethod
    def shown(task: LabelledTask, key: int = 7):
        """The tokens of five examples."""
        content, _ = task.examples(5, 20)[0]
        return jax.jit(jax.vmap(KeptTaskLaws.tokenise(task)))(taken(content, slice(None)), jr.split(jr.key(key), 5))

    @staticmethod
    def show(task: LabelledTask) -> Tokenise:
        """As the engine has it, with what examples share on the device."""
        return jax.tree.map(jnp.asarray, task.tokenise)


def taken_labelled(part: Labelled, places) -> Labelled:
    return Labelled(jax.tree.map(lambda leaf: leaf[places], part.content), part.labels[places])
