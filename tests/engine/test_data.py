"""What a bucket trains on: stored examples or a stream of fresh ones, in the units its model reads."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from headcount.engine.data import PROBE_EXAMPLES, Fresh, Stored, examples
from headcount.models import ClassTokenSpec, EncoderSpec
from headcount.store import TrainSpec
from headcount.tasks import ArrayTask, FarthestPoint, FunctionTask, sum_of_maxima

from ..tasks.laws import compile_quickly  # noqa: F401
from ..tolerance import assert_close, assert_trees_equal

STORED = TrainSpec(train_examples=40, validation_examples=20)
STREAM = TrainSpec(train_examples=0, validation_examples=20)
FARTHEST = FarthestPoint(length=4, dim=3)
MAXIMA = sum_of_maxima(length=6, intrinsic_dim=2, dim=3)
ENCODER, CLASS_TOKEN = EncoderSpec(heads=1, rank=3, width=3), ClassTokenSpec(heads=1)
TASKS = {
    "farthest": FARTHEST,
    "maxima": MAXIMA,
    "function": FunctionTask(function=lambda tokens: jnp.max(tokens), length=4, dim=3, options={"a": [1]}),
}


MODELS = {"farthest": ENCODER, "maxima": CLASS_TOKEN, "function": CLASS_TOKEN}
either = pytest.mark.parametrize("train", [STORED, STREAM], ids=["stored", "stream"])


@functools.cache
def made(name: str, train: TrainSpec):
    return examples(TASKS[name], MODELS[name], train)


@functools.cache
def own(name: str, train: TrainSpec):
    """What the task gives, in its own units."""
    data = TASKS[name].dataset(train.train_examples or PROBE_EXAMPLES, train.validation_examples, train.data_seed)
    return jax.tree.map(np.asarray, data)


def stream_of(name: str) -> Fresh:
    return made(name, STREAM)[0].train


def test_examples_are_stored_unless_there_are_none():
    assert isinstance(made("farthest", STORED)[0].train, Stored)
    assert isinstance(made("farthest", STREAM)[0].train, Fresh)


@either
def test_a_batch_is_a_function_of_its_key(train):
    source = made("farthest", train)[0].train
    batch = source.batch(jr.key(3), 8)
    assert_trees_equal(source.batch(jr.key(3), 8), batch)
    assert_trees_equal(examples(FARTHEST, ENCODER, train)[0].train.batch(jr.key(3), 8), batch)
    assert not np.array_equal(source.batch(jr.key(4), 8)[0], batch[0])


@pytest.mark.parametrize("name", TASKS)
def test_a_stream_is_the_task_s_own_examples(name):
    """One by one: a key for each, a sequence, its target; and then the model's units."""
    task, (data, units) = TASKS[name], made(name, STREAM)
    tokens, targets = jax.jit(lambda data: data.train.batch(jr.key(5), 6))(data)
    one = jax.jit(lambda key: (sequence := task.sample(key), task.target(sequence)))
    for i, key in enumerate(jr.split(jr.key(5), 6)):
        sequence, target = one(key)
        if units is not None:
            sequence = (sequence - units.token_mean) / units.token_scale
            target = (target - units.target_mean) / units.target_scale
        assert_close(tokens[i], sequence)
        assert_close(targets[i], target)


def test_no_example_of_a_stream_comes_twice():
    source = stream_of("farthest")
    drawn = [source.batch(jr.fold_in(jr.key(seed), step), 8)[0] for seed in (0, 1) for step in range(3)]
    assert len({np.asarray(sequence).tobytes() for batch in drawn for sequence in batch}) == 2 * 3 * 8


def test_a_stream_obeys_the_law_of_its_task():
    tokens, targets = (np.asarray(part) for part in stream_of("farthest").batch(jr.key(0), 50))
    assert_close(np.linalg.norm(tokens, axis=-1), np.ones((50, 4)))
    least = np.min(tokens.astype(np.float64) @ tokens.swapaxes(1, 2), axis=-1)
    assert_close(np.sum(tokens * targets, axis=-1), least)


def test_a_stream_of_another_task_of_one_shape_is_another_without_compiling_again():
    """The task's arrays are arguments of the program and not part of it."""
    batch = jax.jit(lambda source: source.batch(jr.key(0), 4))
    turned = jax.tree.map(lambda leaf: -leaf if eqx.is_array(leaf) else leaf, MAXIMA)
    one, other = stream_of("maxima"), examples(turned, CLASS_TOKEN, STREAM)[0].train
    assert not np.allclose(batch(one)[1], batch(other)[1])
    assert batch._cache_size() == 1


def test_a_stored_batch_keeps_targets_with_their_tokens():
    source = made("farthest", STORED)[0].train
    place = {np.asarray(sequence).tobytes(): i for i, sequence in enumerate(source.tokens)}
    tokens, targets = source.batch(jr.key(0), 30)
    chosen = np.array([place[np.asarray(sequence).tobytes()] for sequence in tokens])
    assert np.array_equal(targets, np.asarray(source.targets)[chosen])
    assert len(set(chosen.tolist())) > 10


# Units.


@either
def test_an_encoder_reads_the_task_s_own_units(train):
    data, units = made("farthest", train)
    data_of_task = own("farthest", train)
    assert units is None
    assert_trees_equal((data.validation.tokens, data.validation.targets), tuple(data_of_task[2:]))
    assert_close(data.target_variance, np.mean(np.var(data_of_task.train_targets, axis=0)))


@either
def test_a_class_token_transformer_reads_standard_units(train):
    data, units = made("maxima", train)
    data_of_task = own("maxima", train)
    assert float(data.target_variance) == 1
    assert_close(units.token_mean, np.mean(data_of_task.train_tokens, axis=(0, 1)))
    assert_close(units.token_scale, np.std(data_of_task.train_tokens, axis=(0, 1)))
    assert_close(units.target_mean, np.mean(data_of_task.train_targets, axis=0))
    assert_close(units.target_scale, np.std(data_of_task.train_targets, axis=0))
    assert_close(data.validation.tokens * units.token_scale + units.token_mean, data_of_task.validation_tokens)
    assert_close(data.validation.targets * units.target_scale + units.target_mean, data_of_task.validation_targets)


def test_a_standardised_stream_has_mean_nothing_and_variance_one():
    tokens, targets = stream_of("maxima").batch(jr.key(0), 2000)
    for values in (np.reshape(tokens, (-1, 3)), targets):
        # 2000 draws against a probe of 1024: means are known to 0.04, variances to twice that.
        assert np.mean(values, axis=0) == pytest.approx(0, abs=0.2)
        assert np.var(values, axis=0) == pytest.approx(1, abs=0.35)


def test_what_is_judged_on_does_not_depend_on_what_is_learned_from():
    stored, stream = (made("farthest", train)[0] for train in (STORED, STREAM))
    assert_trees_equal(stored.validation.tokens, stream.validation.tokens)
    assert_trees_equal(stored.validation.targets, stream.validation.targets)


def test_the_probe_is_what_is_trained_on():
    stored, stream = (made("farthest", train)[0] for train in (STORED, STREAM))
    assert_trees_equal(stored.probe, stored.train.tokens)
    assert stream.probe.shape == (PROBE_EXAMPLES, 4, 3)


def test_only_stored_examples_run_out():
    generator = np.random.default_rng(0)
    assert not ArrayTask(generator.normal(size=(100, 6, 2)), generator.normal(size=100)).endless
    assert all(task.endless for task in TASKS.values())
