"""Data with labels, from start to end: what is learned, what is stored, and the same by obvious means."""

import dataclasses
import functools
import math
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

from headcount._keys import named_key
from headcount.datasets.mining import given_negatives
from headcount.engine import Hardware, grid, plan_sweep, run_sweep
from headcount.engine.data import Kept, examples
from headcount.engine.labelled import LABELLED_TRAIN, labelled_encoder
from headcount.engine.sweep import default_model, default_train, shape_of
from headcount.engine.train import program
from headcount.models import ClassTokenSpec, from_arrays, init_encoder, predict
from headcount.store import Outcome, Record, Store, TrainSpec
from headcount.tasks import CANDIDATES, IMAGES, PAIRS, ImageTask, LabelledTask, Ranking

from ..models.encoders import slowly
from ..tasks.kept_laws import ALL
from ..tasks.labelled import some_images, some_passages, tiny_bert
from ..tasks.laws import refused
from ..tolerance import TOLERANCE, assert_close, assert_trees_close, assert_trees_equal

ONE_BY_ONE = Hardware("cpu", "a test", 1 << 30, 1, side_by_side=False)
SIDE_BY_SIDE = Hardware("gpu", "pretend", 1 << 30, 1, side_by_side=True)
SEEDS = (0, 1)
LENGTH = 9
TRAIN = TrainSpec(
    steps=60,
    batch=16,
    warmup=6,
    learning_rate=1e-2,
    weight_decay=0.1,
    second_moment_decay=0.999,
    train_examples=100,
    validation_examples=30,
    data_seed=5,
)
FEW = dataclasses.replace(TRAIN, train_examples=30, validation_examples=20)
IMAGE_GRADES = {"error", "final_error", "train_error", "cross_entropy", "fitted_error", "fitted_cross_entropy"}


@pytest.fixture(autouse=True, scope="module")
def compile_quickly():
    """Sixty steps of models this small cost less than compiling them well."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


class Run(NamedTuple):
    """The record and the weights of each seed."""

    records: tuple[Record, ...]
    weights: tuple[dict[str, np.ndarray], ...]


@functools.cache
def images() -> ImageTask:
    """Images of 8 x 8 pixels anywhere in frames of 12 x 12: nine patches."""
    return ImageTask(some_images(), patch=4).at(LENGTH)


@functools.cache
def lists(layout: str) -> Ranking:
    corpus = some_passages(125, negatives=3)
    with tempfile.TemporaryDirectory() as folder:
        bert = tiny_bert(Path(folder))
    negatives = given_negatives(corpus, 3)
    return Ranking(corpus, bert, negatives, length=4, layout=layout, query_tokens=3, passage_tokens=4)


def encoder(task: LabelledTask, heads: int = 2, **changes):
    return labelled_encoder(task.form, heads, **({"head_dim": 4, "layers": 1, "dropout": 0.0} | changes))


def trained(task: LabelledTask, train: TrainSpec = TRAIN, machine: Hardware = ONE_BY_ONE, **changes) -> Run:
    sweep = grid(task, heads=[2], seeds=SEEDS, model=lambda heads: encoder(task, heads, **changes), train=train)
    with tempfile.TemporaryDirectory() as folder, Store.open_for_writing(Path(folder)) as store:
        summary = run_sweep(sweep, store, plan=plan_sweep(sweep, machine=machine))
        messages = {record.message for record in store.records()}
        assert summary.outcomes == {Outcome.FINISHED: len(SEEDS)}, messages
        by_key = {record.cell.key: record for record in store.records()}
        keys = [cell.key for cell in sweep.cells]
        return Run(tuple(by_key[key] for key in keys), tuple(dict(store.weights(key)) for key in keys))


@pytest.fixture(scope="module")
def plain() -> Run:
    return trained(images())


@pytest.fixture(scope="module")
def dropping() -> Run:
    return trained(images(), dropout=0.5)


# Obvious means.


def shown(task: LabelledTask, part: str, train: TrainSpec = TRAIN) -> tuple[np.ndarray, np.ndarray]:
    """Tokens and labels of the examples of a part, each shown with its own key."""
    made = dict(
        zip(
            ("train", "validation"),
            task.examples(train.train_examples, train.validation_examples, train.data_seed),
            strict=True,
        )
    )
    content, labels = made[part]
    show, key = jax.tree.map(jnp.asarray, task.tokenise), named_key(train.data_seed, "shown", part)
    keys = jnp.stack([jr.fold_in(key, place) for place in range(len(labels))])
    return np.asarray(jax.jit(jax.vmap(show))(jax.tree.map(jnp.asarray, content), keys)), labels


def graded_slowly(task: LabelledTask, run: Run, part: str, train: TrainSpec) -> dict[str, float]:
    """What the second seed's stored weights score on a part, one example, head, query and key at a time."""
    model: Any = from_arrays(run.records[1].cell.model, run.weights[1])
    ranks, entropies = [], []
    for tokens, label in zip(*shown(task, part, train), strict=True):
        if task.joined:
            scores = np.array([slowly(model, pair)[0] for pair in tokens])
        else:
            answers = slowly(model, tokens)
            scores = answers if task.graded_by == "class" else answers[: task.length, 0]
        ranks.append(1 + sum(scores[label] <= score for i, score in enumerate(scores) if i != label))
        entropies.append(math.log(sum(np.exp(scores - scores[label]))))
    return {
        "error": float(np.mean(np.array(ranks) > 1)),
        "mrr": float(np.mean(1 / np.array(ranks))),
        "cross_entropy": float(np.mean(entropies)),
    }


def assert_grades_are_those_of_the_stored_weights(task: LabelledTask, run: Run, train: TrainSpec = TRAIN) -> None:
    metrics = run.records[1].metrics
    fitted, judged = (graded_slowly(task, run, part, train) for part in ("train", "validation"))
    assert metrics["final_error"] == pytest.approx(judged["error"], abs=1e-6)
    for name in ("error", "cross_entropy", "mrr"):
        if f"fitted_{name}" in metrics:
            assert metrics[f"fitted_{name}"] == pytest.approx(fitted[name], rel=1e-3, abs=1e-5), name
        if name in metrics and name != "error":
            assert metrics[name] == pytest.approx(judged[name], rel=1e-3, abs=1e-5), name


def metrics_of(run: Run) -> list[dict[str, float]]:
    return [record.metrics for record in run.records]


# Images.


def test_colours_are_learned(plain):
    for record in plain.records:
        assert set(record.metrics) == IMAGE_GRADES
        assert record.metrics["error"] <= 0.05
        assert record.metrics["fitted_error"] <= 0.05
        assert record.metrics["cross_entropy"] < 0.2
        assert record.error == record.metrics["error"] == min(error for _, error in record.curve)
        assert record.metrics["final_error"] == record.curve[-1][1]


def test_grades_are_those_of_the_stored_weights(plain):
    assert_grades_are_those_of_the_stored_weights(images(), plain)


def test_the_same_seed_twice_gives_the_same_and_another_seed_another(plain):
    again = trained(images())
    assert metrics_of(again) == metrics_of(plain)
    assert_trees_equal(again.weights, plain.weights)
    assert not np.array_equal(plain.weights[0]["read.weight"], plain.weights[1]["read.weight"])


def test_side_by_side_agrees_with_one_after_another(plain):
    side = trained(images(), machine=SIDE_BY_SIDE)
    for one, other in zip(metrics_of(side), metrics_of(plain), strict=True):
        assert one == pytest.approx(other, rel=0.02, abs=0.02)
    for one, other in zip(side.weights, plain.weights, strict=True):
        # Sixty steps apart: rounding has grown.
        assert all(np.max(np.abs(one[name] - other[name])) < 0.01 for name in one)


def test_dropping_changes_training_and_no_grade(plain, dropping):
    assert_grades_are_those_of_the_stored_weights(images(), dropping)
    for one, other in zip(dropping.weights, plain.weights, strict=True):
        assert np.max(np.abs(one["read.weight"] - other["read.weight"])) > 0.01
    for record, of_plain in zip(dropping.records, plain.records, strict=True):
        assert record.metrics["error"] <= 0.1
        assert record.metrics["train_error"] >= of_plain.metrics["train_error"]
        assert record.curve[0] == of_plain.curve[0], "nothing was trained yet, and nothing is dropped in judging"


def test_half_precision_learns_as_well():
    half = trained(images(), train=dataclasses.replace(TRAIN, steps=40, precision="bfloat16"))
    for record, weights in zip(half.records, half.weights, strict=True):
        assert record.metrics["error"] <= 0.1
        assert record.metrics["fitted_error"] <= 0.1
        assert {str(array.dtype) for array in weights.values()} == {"float32"}
        # Weights are kept in full: most of their numbers are none of half precision.
        assert np.mean(weights["read.weight"].astype(jnp.bfloat16) == weights["read.weight"]) < 0.1


# The obvious loop.

STEPS = 8


def rate(step) -> Any:
    """The learning rate at a step: of sixty, six of warm-up."""
    falling = 0.5 * (1 + jnp.cos(jnp.pi * (step - 6) / 54))
    return 0.01 * jnp.where(step < 6, (step + 1) / 6, falling)


def test_training_is_plain_adamw():
    task, seed = images(), SEEDS[1]
    start: Any = init_encoder(encoder(task), seed, length=LENGTH, dim=task.dim, outputs=2)
    content, labels = task.examples(TRAIN.train_examples, TRAIN.validation_examples, TRAIN.data_seed)[0]
    show = jax.tree.map(jnp.asarray, task.tokenise)
    decayed = optax.adamw(rate, b2=TRAIN.second_moment_decay, weight_decay=TRAIN.weight_decay)
    optimiser = optax.chain(optax.clip_by_global_norm(TRAIN.clip), decayed)

    @jax.jit
    def one_step(model, moments, chosen, keys):
        def loss(model):
            tokens = jax.vmap(show)(jnp.asarray(content)[chosen], keys)
            logits = jax.vmap(predict, in_axes=(None, 0))(model, tokens)
            right = jnp.asarray(labels)[chosen]
            return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), right[:, None], axis=1))

        gradient = jax.grad(loss)(model)
        changes, moments = optimiser.update(gradient, moments, model)
        return optax.apply_updates(model, changes), moments

    model, moments = start, jax.jit(optimiser.init)(start)
    for step in range(STEPS):
        which, places = jr.split(jr.fold_in(named_key(seed, "batches"), step))
        chosen = jr.randint(which, (TRAIN.batch,), 0, TRAIN.train_examples)
        model, moments = one_step(model, moments, chosen, jr.split(places, TRAIN.batch))

    (cell,) = grid(task, heads=[2], seeds=[seed], model=lambda heads: encoder(task, heads), train=TRAIN).cells
    other = dataclasses.replace(cell, seed=SEEDS[0])  # two members, as other tests have compiled for
    data, _ = examples(task, cell.model, TRAIN)
    parts = program(shape_of(cell), task.dim, 2, False, "class")
    states, members = parts.start((other, cell), data)
    states, _ = parts.advance(states, members, data, STEPS)
    got = jax.tree.map(lambda leaf: np.asarray(leaf)[1], states.model)
    moved = [np.median(np.abs(a - b)) for a, b in zip(jax.tree.leaves(start), jax.tree.leaves(model), strict=True)]
    assert np.median(moved) > 20 * TOLERANCE["float32"], "hardly moved, so nothing was compared"
    assert_trees_close(got, jax.tree.map(np.asarray, model))


# What is kept.


def test_a_batch_keeps_labels_with_their_images_and_places_each_by_its_own_key():
    data, units = examples(images(), encoder(images()), TRAIN)
    assert units is None
    assert data.probe is None
    assert isinstance(data.train, Kept)
    assert isinstance(data.validation, Kept)
    batch = jax.jit(lambda source, key: source.batch(key, 40))
    tokens, labels = batch(data.train, jr.key(3))
    assert_trees_equal(batch(data.train, jr.key(3)), (tokens, labels))
    assert not np.array_equal(batch(data.train, jr.key(4))[0], tokens)
    # Red is the first of a pixel's colours, and redder in the second class, whose mean is then above the other's.
    red = np.mean(np.asarray(tokens).reshape(40, -1, 3)[:, :, 0], axis=1)
    assert np.array_equal(red > 0, np.asarray(labels) == 1)
    assert len({example.tobytes() for example in np.asarray(tokens)}) > 30


@pytest.mark.parametrize("part", ["train", "validation"])
def test_outside_of_training_an_example_is_always_shown_alike(part):
    data, _ = examples(images(), encoder(images()), TRAIN)
    want, labels = shown(images(), part)
    source = getattr(data, part)
    assert np.array_equal(source.targets, labels)
    got = jax.jit(jax.vmap(source.tokens_at))(jnp.arange(len(labels)))
    assert_close(got, want)


# Candidates.


@pytest.mark.parametrize("layout", ["candidates", "pairs"])
def test_candidates_are_learned(layout):
    """The right one of four has a word that no other has; guessing is wrong three times of four."""
    task = lists(layout)
    run = trained(task, train=FEW)
    for record in run.records:
        assert set(record.metrics) == IMAGE_GRADES | {"mrr", "fitted_mrr"}
        assert record.metrics["error"] <= 0.5
        assert record.metrics["fitted_error"] <= 0.5
        assert record.metrics["mrr"] >= 0.65
        assert record.error == min(error for _, error in record.curve)
    assert_grades_are_those_of_the_stored_weights(task, run, FEW)


# What is tried, and what is refused.


@pytest.mark.parametrize(
    ("form", "layers", "head_dim", "dropout"), [(IMAGES, 4, 16, 0.1), (CANDIDATES, 2, 32, 0.0), (PAIRS, 2, 32, 0.0)]
)
def test_what_is_tried_is_the_first_paper_s(form, layers, head_dim, dropout):
    spec = labelled_encoder(form, 3)
    assert (spec.layers, spec.head_dim, spec.rank, spec.dropout) == (layers, head_dim, head_dim, dropout)
    assert (spec.width, spec.hidden) == (3 * head_dim, 12 * head_dim)
    assert (spec.answered_at, spec.padded) == (form.answered_at, form.padded)
    assert (spec.positions == "additive") == form.uses_positions
    assert (spec.norm, spec.norm_first, spec.final_norm, spec.activation) == ("layer", True, True, "gelu")
    assert spec.query_is_key
    one = labelled_encoder(form, 1).as_dict()
    assert one | {"heads": 3} == spec.as_dict(), "head counts are one family"


def test_nothing_said_is_the_published_encoder_on_all_the_examples():
    assert default_model(images())(2) == labelled_encoder(IMAGES, 2)
    assert default_train(images()) == LABELLED_TRAIN
    assert LABELLED_TRAIN.train_examples >= ALL
    (cell,) = grid(images(), heads=[1], seeds=[0]).cells
    assert (cell.length, cell.train) == (LENGTH, LABELLED_TRAIN)


def test_a_class_token_model_is_refused():
    with refused("colours is data with labels", "a class-token model cannot read", "take an EncoderSpec"):
        grid(images(), heads=[1], model=lambda heads: ClassTokenSpec(heads=heads))


def test_a_model_that_answers_elsewhere_is_refused():
    with refused('answered at "sequence"', 'the model at "tokens"', 'answered_at="sequence"'):
        grid(images(), heads=[1], model=lambda heads: labelled_encoder(CANDIDATES, heads))


def test_data_that_is_kept_cannot_be_drawn_afresh():
    with refused("stored examples", "train_examples must be at least 1", "got 0"):
        grid(images(), heads=[1], train=dataclasses.replace(TRAIN, train_examples=0))


def test_a_length_without_a_frame_is_refused_before_anything_is_trained():
    with refused("10 patches", "square"):
        grid(images(), heads=[1], lengths=[LENGTH, 10])
