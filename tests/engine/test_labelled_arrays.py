"""Class labels of a user's arrays, from start to end: trained, graded by the error rate, and stored."""

import tempfile
from pathlib import Path

import jax
import numpy as np
import optax
import pytest

from headcount.analysis.metric import ERROR_RATE
from headcount.analysis.table import error_table
from headcount.engine import run_sweep, spec_of
from headcount.models import from_arrays
from headcount.store import Outcome, Store
from headcount.tasks import ArrayTask

from ..helpers.compiling import compile_quickly  # noqa: F401
from ..helpers.sweeps import TRAIN, swept

GRADES = {"error", "final_error", "train_error", "cross_entropy", "baseline", "baseline_noise"}


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
