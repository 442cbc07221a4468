"""A user's arrays, from start to end: trained, graded and stored, class labels by the error rate."""

import tempfile
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import optax
import pytest

from headcount import measure
from headcount.answer.metric import BALANCED_ERROR, ERROR_RATE
from headcount.answer.table import error_table
from headcount.backends import kernels_here
from headcount.engine import run_sweep, spec_of
from headcount.engine.baselines import baselines
from headcount.models import from_arrays
from headcount.recipes import model_for
from headcount.store import Outcome, Store
from headcount.tasks import ArrayTask

from ..helpers.compiling import compile_quickly  # noqa: F401
from ..helpers.sweeps import TRAIN, swept
from ..helpers.tolerance import assert_close, assert_trees_equal

GRADES = {"error", "final_error", "train_error", "cross_entropy", "baseline", "baseline_noise"}


@pytest.mark.slow
def test_labels_are_graded_by_their_error_rate_and_so_are_the_stored_weights():
    x = np.random.default_rng(0).normal(2, 3, (120, 4, 2))
    task = ArrayTask(x, np.where(x.max(axis=(1, 2)) > 6, "above", "below"), labels=True)
    sweep = swept(task, heads=[1], length=[4], seed=[0])
    with tempfile.TemporaryDirectory() as folder, Store.open_for_writing(Path(folder)) as store:
        run_sweep(sweep, store)
        (record,) = store.records()
        weights = dict(store.weights(record.cell.key))
    assert record.outcome is Outcome.FINISHED, record.message
    assert set(record.metrics) == GRADES
    assert record.error == record.metrics["error"] == min(error for _, error in record.curve)
    assert error_table(sweep.experiment, [record]).metric is ERROR_RATE

    # Stored weights read the user's units and give one score per class.
    model = from_arrays(spec_of(record.cell), weights)
    _, (tokens, labels) = task.examples(TRAIN.train_examples, TRAIN.validation_examples, TRAIN.data_seed)
    scores = np.asarray(jax.jit(jax.vmap(model))(tokens))
    assert scores.shape == (len(labels), 2)
    assert np.mean(np.argmax(scores, axis=1) != labels) == pytest.approx(record.metrics["final_error"])
    entropy = np.mean(optax.softmax_cross_entropy_with_integer_labels(scores, labels))
    assert entropy == pytest.approx(record.metrics["cross_entropy"], rel=1e-4)


X = np.random.default_rng(0).normal(2, 3, (120, 4, 2))
IDS = np.random.default_rng(1).integers(0, 5, (120, 4))
MASK = np.arange(4) < 2 + np.arange(120)[:, None] % 3


@pytest.mark.parametrize(
    ("task", "fields"),
    [
        (ArrayTask(X, X[:, 0, 0], mask=MASK, answered_at="query"), {"width": 4}),
        pytest.param(ArrayTask(IDS, IDS.max(axis=1) * 100.0, mask=MASK), {}, marks=pytest.mark.slow),
    ],
    ids=["query", "ids"],
)
def test_stored_weights_read_the_user_s_units_where_tokens_are_absent(task, fields):
    small = {"head_dim": 2, "rank": 2, "hidden": 4} | fields
    sweep = swept(task, lambda heads: replace(model_for(task)(heads), **small), heads=[1], length=[4], seed=[0])
    with tempfile.TemporaryDirectory() as folder, Store.open_for_writing(Path(folder)) as store:
        run_sweep(sweep, store)
        (record,) = store.records()
        weights = dict(store.weights(record.cell.key))
    assert record.outcome is Outcome.FINISHED, record.message
    model = from_arrays(spec_of(record.cell), weights)
    _, (tokens, targets) = task.examples(TRAIN.train_examples, TRAIN.validation_examples, TRAIN.data_seed)
    answers = np.asarray(jax.jit(jax.vmap(model))(tokens))
    nmse = np.mean((answers - targets) ** 2) / np.var(targets)
    assert nmse == pytest.approx(record.metrics["final_nmse"], rel=1e-3)


TAGS = (X[..., 0] > X[..., 0].mean(axis=1, keepdims=True)) * 1 + (X[..., 1] > 6)


def trained(task, fields):
    """The record and the stored weights of one model of a task."""
    sweep = swept(task, lambda heads: replace(model_for(task)(heads), **fields), heads=[1], length=[4], seed=[0])
    with tempfile.TemporaryDirectory() as folder, Store.open_for_writing(Path(folder)) as store:
        run_sweep(sweep, store)
        (record,) = store.records()
        assert record.outcome is Outcome.FINISHED, record.message
        return record, store.weights(record.cell.key), error_table(sweep.experiment, [record])


def test_labels_of_tokens_are_learned_and_graded_where_there_are_tokens():
    task = ArrayTask(X, TAGS, mask=MASK, answered_at="tokens")
    record, weights, table = trained(task, {"head_dim": 2, "rank": 2, "hidden": 4, "width": 4})
    assert set(record.metrics) == GRADES | {"error_noise"}
    assert table.metric is ERROR_RATE
    model = from_arrays(spec_of(record.cell), weights)
    _, (tokens, labels) = task.examples(TRAIN.train_examples, TRAIN.validation_examples, TRAIN.data_seed)
    scores, there = np.asarray(jax.jit(jax.vmap(model))(tokens)), labels >= 0
    assert scores.shape == (*labels.shape, 3)
    assert 0 < there.mean() < 1
    wrong = (scores.argmax(axis=-1) != labels)[there]
    assert wrong.mean() == pytest.approx(record.metrics["final_error"])
    entropy = np.mean(optax.softmax_cross_entropy_with_integer_labels(scores[there], labels[there]))
    assert entropy == pytest.approx(record.metrics["cross_entropy"], rel=1e-3)
    assert 0 < record.metrics["train_error"] < 1
    assert record.metrics["baseline"] == pytest.approx(1 - np.bincount(labels[there]).max() / there.sum())
    assert {entry["error"] is not None for entry in baselines(task, TRAIN)} == {True}


@pytest.mark.parametrize("backend", ["reference", "fused"])
def test_how_answers_are_judged_changes_nothing_in_training(backend, monkeypatch):
    """Classes that count alike are learned by the same steps, by kernels too."""
    if backend == "fused" and kernels_here().problem:
        pytest.skip("there are no kernels here")
    monkeypatch.setenv("HEADCOUNT_BACKEND", backend)
    rare = np.random.default_rng(5).random(120) < 0.15
    tasks = [ArrayTask(X, rare, metric=metric) for metric in ("error", "balanced")]
    (plain, weights, _), (balanced, same, table) = (
        trained(task, {"head_dim": 2, "rank": 2, "hidden": 4}) for task in tasks
    )
    same_as = assert_trees_equal if backend == "fused" else assert_close  # a program with other grades rounds otherwise
    for name, values in weights.items():
        same_as(same[name], values)
    assert table.metric is BALANCED_ERROR
    assert balanced.metrics["train_error"] == plain.metrics["train_error"]
    assert {"balanced_error", "final_balanced_error", "fitted_balanced_error"} <= set(balanced.metrics)
    assert balanced.error == balanced.metrics["balanced_error"] == min(error for _, error in balanced.curve)
    assert balanced.final_error == balanced.metrics["final_balanced_error"]
    assert balanced.metrics["baseline"] == 0.5


@pytest.mark.slow
def test_heads_that_no_share_of_wrong_answers_shows_are_seen_where_classes_count_alike():
    """Three positives of ten where the maxima of both halves nearly agree, a tenth of all: no answer is "positive"."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(5000, 16, 1))
    apart = np.abs(x[:, :8].max(axis=(1, 2)) - x[:, 8:].max(axis=(1, 2)))
    y = (apart < np.quantile(apart, 0.1)) & (generator.random(5000) < 0.3)
    least = {}
    for metric in ("error", None):
        found = measure(x, y, metric=metric, heads=[1, 3], seeds=2, steps=1000, progress=False)
        least[metric] = found.table.relative.min(axis=(1, 2))
    assert np.all(least["error"] > 0.9)
    assert least[None][0] > 1.5 * least[None][1]
    assert least[None][1] < 0.6
