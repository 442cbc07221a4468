"""What a bucket trains on: stored tokens, a stream of fresh ones, or raw examples, in the units its model reads."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount._choices import POSITIONS
from headcount.engine.data import PROBE_EXAMPLES, FreshExamples, RawExamples, StoredTokens, Units, prepare
from headcount.keys import named_key
from headcount.tasks import ArrayTask, FunctionTask, sum_of_maxima

from ..helpers.compiling import compile_quickly  # noqa: F401
from ..helpers.sweeps import FARTHEST, STREAM, TRAIN, Numbers, class_token, encoder, labelled_model
from ..helpers.tolerance import assert_close, assert_trees_close, assert_trees_equal

MAXIMA = sum_of_maxima(length=6, intrinsic_dim=2, dim=3)
TASKS = {
    "farthest": FARTHEST,
    "maxima": MAXIMA,
    "function": FunctionTask(function=lambda tokens: jnp.max(tokens), length=4, dim=3, options={"a": [1]}),
}
MODELS = {"farthest": encoder(), "maxima": class_token(), "function": class_token()}
either = pytest.mark.parametrize("train", [TRAIN, STREAM], ids=["stored", "stream"])


@functools.cache
def prepared(name: str, train=TRAIN):
    return prepare(TASKS[name], MODELS[name], train)


@functools.cache
def in_own_units(name: str, train=TRAIN):
    """What the task gives."""
    split = TASKS[name].examples(train.train_examples or PROBE_EXAMPLES, train.validation_examples, train.data_seed)
    return jax.tree.map(np.asarray, split)


def stream_of(name: str) -> FreshExamples:
    return prepared(name, STREAM).data.train


def test_examples_are_stored_unless_there_are_none():
    assert isinstance(prepared("farthest", TRAIN).data.train, StoredTokens)
    assert isinstance(prepared("farthest", STREAM).data.train, FreshExamples)


@either
def test_a_batch_is_a_function_of_its_key(train):
    source = prepared("farthest", train).data.train
    batch = source.batch(jr.key(3), 8)
    assert_trees_equal(source.batch(jr.key(3), 8), batch)
    assert_trees_equal(prepare(FARTHEST, encoder(), train).data.train.batch(jr.key(3), 8), batch)
    assert not np.array_equal(source.batch(jr.key(4), 8)[0], batch[0])


@pytest.mark.parametrize("name", TASKS)
def test_a_stream_is_the_task_s_own_examples(name):
    """One by one: a key for each, a sequence, its target; and then the model's units."""
    task, (data, units, _) = TASKS[name], prepared(name, STREAM)
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


def test_a_stream_obeys_the_distribution_of_its_task():
    tokens, targets = (np.asarray(part) for part in stream_of("farthest").batch(jr.key(0), 50))
    assert_close(np.linalg.norm(tokens, axis=-1), np.ones((50, 4)))
    least = np.min(tokens.astype(np.float64) @ tokens.swapaxes(1, 2), axis=-1)
    assert_close(np.sum(tokens * targets, axis=-1), least)


def test_a_stream_of_another_task_of_one_shape_is_another_without_compiling_again():
    """The task's arrays are arguments of the program and not part of it."""
    batch = jax.jit(lambda source: source.batch(jr.key(0), 4))
    turned = jax.tree.map(lambda leaf: -leaf if eqx.is_array(leaf) else leaf, MAXIMA)
    one, other = stream_of("maxima"), prepare(turned, class_token(), STREAM).data.train
    assert not np.allclose(batch(one)[1], batch(other)[1])
    assert batch._cache_size() == 1


def test_a_stored_batch_keeps_targets_with_their_tokens():
    source = prepared("farthest", TRAIN).data.train
    place = {np.asarray(sequence).tobytes(): i for i, sequence in enumerate(source.tokens)}
    tokens, targets = source.batch(jr.key(0), 30)
    chosen = np.array([place[np.asarray(sequence).tobytes()] for sequence in tokens])
    assert np.array_equal(targets, np.asarray(source.targets)[chosen])
    assert len(set(chosen.tolist())) > 10


# Units.


@either
def test_an_encoder_reads_the_task_s_own_units(train):
    data, units, _ = prepared("farthest", train)
    split = in_own_units("farthest", train)
    assert units is None
    assert_trees_equal((data.validation.tokens, data.validation.targets), tuple(split.validation))
    assert_close(data.target_variance, np.mean(np.var(split.train.targets, axis=0)))


@either
def test_a_class_token_transformer_reads_standard_units(train):
    data, units, _ = prepared("maxima", train)
    (tokens, targets), validation = in_own_units("maxima", train)
    assert float(data.target_variance) == 1
    assert_close(units.token_mean, np.mean(tokens, axis=(0, 1)))
    assert_close(units.token_scale, np.std(tokens, axis=(0, 1)))
    assert_close(units.target_mean, np.mean(targets, axis=0))
    assert_close(units.target_scale, np.std(targets, axis=0))
    assert_close(data.validation.tokens * units.token_scale + units.token_mean, validation.content)
    assert_close(data.validation.targets * units.target_scale + units.target_mean, validation.targets)


def test_a_standardised_stream_has_mean_nothing_and_variance_one():
    tokens, targets = stream_of("maxima").batch(jr.key(0), 2000)
    for values in (np.reshape(tokens, (-1, 3)), targets):
        # 2000 draws against a probe of 1024: means are known to 0.04, variances to twice that.
        assert np.mean(values, axis=0) == pytest.approx(0, abs=0.2)
        assert np.var(values, axis=0) == pytest.approx(1, abs=0.35)


def test_validation_does_not_depend_on_what_is_learned_from():
    stored, stream = (prepared("farthest", train) for train in (TRAIN, STREAM))
    assert_trees_equal(stored.data.validation.tokens, stream.data.validation.tokens)
    assert_trees_equal(stored.data.validation.targets, stream.data.validation.targets)
    assert stored.baseline == stream.baseline


def test_the_probe_is_what_is_trained_on():
    stored, stream = (prepared("farthest", train).data for train in (TRAIN, STREAM))
    assert_trees_equal(stored.probe, stored.train.tokens)
    assert stream.probe.shape == (PROBE_EXAMPLES, 4, 3)


@pytest.mark.parametrize("name", ["farthest", "maxima"])
def test_the_baseline_is_the_objective_s_on_the_validation_targets(name):
    targets = in_own_units(name).validation.targets
    assert prepared(name).baseline == TASKS[name].objective.baseline(targets)


def labelled_arrays() -> ArrayTask:
    tokens = np.random.default_rng(0).normal(3, 5, (120, 4, 2))
    return ArrayTask(tokens, np.digitize(tokens[:, 0, 0], [1, 5]) * 10, labels=True)


@pytest.mark.parametrize("spec", [class_token(), encoder(answered_at="sequence")], ids=lambda spec: spec.kind)
def test_labels_are_never_standardised(spec):
    task = labelled_arrays()
    data, units, baseline = prepare(task, spec, TRAIN)
    (tokens, _), validation = split = task.examples(TRAIN.train_examples, TRAIN.validation_examples, TRAIN.data_seed)
    assert float(data.target_variance) == 1
    for part, source in zip(split, (data.train, data.validation), strict=True):
        assert source.targets.dtype == jnp.int32
        assert np.array_equal(source.targets, part.targets)
    assert baseline == task.objective.baseline(validation.targets)
    assert (units is None) == (not spec.standardises)
    if units is not None:
        assert_trees_equal((units.target_mean, units.target_scale), (np.zeros(3, np.float32), np.ones(3, np.float32)))
        assert_close(data.train.tokens, (tokens - tokens.mean((0, 1))) / tokens.std((0, 1)))


def test_absent_tokens_stay_absent_and_have_no_part_in_the_units():
    x = np.random.default_rng(0).normal(3, 2, (120, 4, 2))
    mask = np.arange(4) < 1 + np.arange(120)[:, None] % 4
    task = ArrayTask(x, x[:, 0, 0], mask=mask)
    data, units, _ = prepare(task, class_token(masks_padding=True), TRAIN)
    tokens = task.examples(TRAIN.train_examples, TRAIN.validation_examples, TRAIN.data_seed).train.content
    there = ~np.isnan(tokens).all(-1)
    assert_close(units.token_mean, tokens[there].mean(0))
    assert_close(units.token_scale, tokens[there].std(0))
    assert np.array_equal(~np.isnan(np.asarray(data.train.tokens)).all(-1), there)
    assert np.all(np.isfinite(np.asarray(data.train.tokens)[there]))


def test_ids_have_no_units():
    ids = np.random.default_rng(0).integers(0, 5, (120, 4))
    task = ArrayTask(ids, 1.0 * ids.sum(axis=1))
    data, units, _ = prepare(task, class_token(vocabulary=5), TRAIN)
    assert_trees_equal((units.token_mean, units.token_scale), (np.zeros(1, np.float32), np.ones(1, np.float32)))
    assert set(np.unique(data.train.tokens)) <= set(range(5))


def test_targets_at_tokens_have_one_unit():
    x = np.random.default_rng(0).normal(size=(120, 4, 2))
    task = ArrayTask(x, 3 * x + np.arange(4)[:, None], answered_at="tokens")
    data, units, _ = prepare(task, encoder(width=4, always_maps=True), TRAIN)
    assert units.target_mean.shape == units.target_scale.shape == (2,)
    assert_close(np.mean(data.train.targets, axis=(0, 1)), np.zeros(2, np.float32))
    assert_close(data.target_variance, np.mean(np.var(data.train.targets, axis=0)))
    assert float(data.target_variance) < 0.95, "places differ in their means, which a baseline knows"


# Raw examples.

NUMBERS = Numbers()


@functools.cache
def raw():
    return prepare(NUMBERS, labelled_model(NUMBERS)(1), TRAIN)


def test_raw_examples_are_tokenised_as_they_are_drawn_each_by_its_own_key():
    data, units, (baseline, _) = raw()
    assert (units, data.probe, float(data.target_variance)) == (None, None, 1)
    assert isinstance(data.train, RawExamples)
    assert isinstance(data.validation, RawExamples)
    assert 0.3 < baseline <= 0.5
    batch = jax.jit(lambda source, key: source.batch(key, 40))
    tokens, labels = batch(data.train, jr.key(3))
    assert_trees_equal(batch(data.train, jr.key(3)), (tokens, labels))
    assert not np.array_equal(batch(data.train, jr.key(4))[0], tokens)
    assert len({example.tobytes() for example in np.asarray(tokens)}) == 40, "noise is drawn for each"
    scaled = np.asarray(data.train.content) * np.asarray(NUMBERS.tokenise.scale)
    for example, label in zip(np.asarray(tokens), np.asarray(labels), strict=True):
        distances = np.max(np.abs(scaled - example), axis=(1, 2))
        nearest = int(np.argmin(distances))
        assert distances[nearest] < 0.3
        assert label == data.train.targets[nearest]


@pytest.mark.parametrize("part", ["train", "validation"])
def test_outside_of_training_an_example_is_always_shown_alike(part):
    content, labels = getattr(NUMBERS.examples(TRAIN.train_examples, TRAIN.validation_examples, TRAIN.data_seed), part)
    key = named_key(TRAIN.data_seed, "shown", part)
    source = getattr(raw().data, part)
    assert np.array_equal(source.targets, labels)
    got = jax.jit(jax.vmap(source.tokens_at))(jnp.arange(len(labels)))
    show = jax.jit(lambda content, key: NUMBERS.tokenise(content, key))
    for place in (0, 1, len(labels) - 1):
        assert_close(got[place], show(jnp.asarray(content[place]), jr.fold_in(key, place)))


@given(seed=st.integers(0, 10_000), positions=st.sampled_from(POSITIONS))
def test_a_model_goes_to_raw_units_and_back(seed, positions):
    generator = np.random.default_rng(seed)
    units = Units(
        *(generator.normal(size=2), generator.lognormal(size=2)),
        *(generator.normal(size=3), generator.lognormal(size=3)),
    )
    model = class_token(positions=positions).init(seed, length=4, dim=2, outputs=3)
    raw = model.in_raw_units(*units)
    assert_trees_close(raw.in_raw_units(*units.inverse()), model)
    assert_trees_close(model.in_raw_units(*units.inverse()).in_raw_units(*units), model)
    assert np.max(np.abs(raw.readout_out.bias - model.readout_out.bias)) > 0.01
    assert_trees_close(units.inverse().inverse(), units)
