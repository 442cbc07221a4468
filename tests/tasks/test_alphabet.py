"""Tokens of an alphabet are symbols, and the target is a sum of maxima of their values."""

import jax.numpy as jnp
import jax.random as jr
import numpy as np

from headcount.tasks import AlphabetMaxima, alphabet_values
from headcount.tasks.presets import preset_from_spec

from ..helpers.compiling import compile_quickly  # noqa: F401
from ..helpers.refusals import refused
from ..helpers.tolerance import assert_close
from .laws import Construction, GeneratedTaskLaws


class TestAlphabetMaxima(GeneratedTaskLaws):
    constructions = {"five symbols": Construction(lambda: AlphabetMaxima(length=8))}  # noqa: RUF012


def test_the_target_is_of_the_symbols_present():
    task = AlphabetMaxima(length=6, intrinsic_dim=2, symbols=4, task_seed=3)
    tokens = np.asarray(task.sample(jr.key(0)))
    assert set(tokens.ravel()) == {0.0, 1.0}
    symbols = tokens.argmax(axis=1)
    assert_close(task.target(tokens), alphabet_values(2, 4, 3)[:, symbols].max(axis=1).sum(keepdims=True))


def test_a_stored_spec_gives_the_task_again():
    spec = AlphabetMaxima(length=6, task_seed=3).spec()
    task = preset_from_spec(spec)
    assert task is not None
    assert task.spec() == spec


def test_sizes_that_cannot_be_are_refused():
    with refused("symbols", "1"):
        AlphabetMaxima(symbols=1)
    with refused("intrinsic_dim", "0"):
        AlphabetMaxima(intrinsic_dim=0)


def test_as_many_validation_examples_as_there_are_sequences_are_all_of_them():
    task = AlphabetMaxima(length=3, intrinsic_dim=2, symbols=4)
    tokens, targets = task.examples(50, 4**3).validation
    assert len({row.tobytes() for row in np.asarray(tokens)}) == len(tokens) == 4**3
    assert_close(targets, np.stack([np.asarray(task.target(jnp.asarray(row))) for row in tokens]))
    drawn, of_drawn = task.examples(50, 4**3 - 1), task.examples(50, 4**3)
    assert len(drawn.validation.targets) == 4**3 - 1
    assert_close(drawn.train.content, of_drawn.train.content)
