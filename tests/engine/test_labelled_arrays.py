"""A user's arrays, from start to end: trained, graded and stored, class labels by the error rate."""

import tempfile
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import optax
import pytest

from headcount.answer.metric import ERROR_RATE
from headcount.answer.table import error_table
from headcount.engine import run_sweep, spec_of
from headcount.models import from_arrays
from headcount.recipes import model_for
from headcount.store import Outcome, Store
from headcount.tasks import ArrayTask

from ..helpers.compiling import compile_quickly  # noqa: F401
from ..helpers.sweeps import TRAIN, swept

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
