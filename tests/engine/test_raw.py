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

from headcount.engine import Hardware, plan_sweep, run_sweep, spec_of
from headcount.engine.buckets import shape_of
from headcount.engine.data import prepare
from headcount.engine.hardware import CPU_MEMBERS
from headcount.engine.plan import task_shape
from headcount.engine.train import program
from headcount.keys import named_key
from headcount.models import from_arrays
from headcount.store import Outcome, Record, Store, TrainSpec

from ..helpers.compiling import compile_quickly  # noqa: F401
from ..helpers.sweeps import CPU, GPU, Numbers, labelled_model, swept
from ..helpers.tolerance import TOLERANCE, assert_trees_close, assert_trees_equal

SEEDS = (0, 1)
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
GRADES = {"error", "final_error", "train_error", "cross_entropy", "fitted_error", "fitted_cross_entropy"}
BASELINE = {"baseline", "baseline_noise"}


class Run(NamedTuple):
    """The record and the weights of each seed."""

    records: tuple[Record, ...]
    weights: tuple[dict[str, np.ndarray], ...]


def trained(layout: Any = "classes", train: TrainSpec = TRAIN, machine: Hardware = CPU, **changes) -> Run:
    task = Numbers(layout)
    sweep = swept(task, labelled_model(task, **changes), train, heads=[2], length=[4], seed=SEEDS)
    with tempfile.TemporaryDirectory() as folder, Store.open_for_writing(Path(folder)) as store:
        summary = run_sweep(sweep, store, plan=plan_sweep(sweep, machine=machine))
        by_key = {record.cell.key: record for record in store.records()}
        assert summary.outcomes == {Outcome.FINISHED: len(SEEDS)}, {record.message for record in by_key.values()}
        keys = [cell.key for cell in sweep.cells]
        return Run(tuple(by_key[key] for key in keys), tuple(dict(store.weights(key)) for key in keys))


@functools.cache
def plain() -> Run:
    return trained()


@jax.jit
def answer(model, tokens):
    return model(tokens)


@jax.jit
def show(tokenise, content, key):
    return tokenise(content, key)


def graded_slowly(task: Numbers, run: Run, part: str) -> dict[str, float]:
    """What the second seed's stored weights score on a part, one example, sequence and score at a time."""
    model: Any = from_arrays(spec_of(run.records[1].cell), run.weights[1])
    tokenise = task.tokenise
    content, labels = getattr(task.examples(TRAIN.train_examples, TRAIN.validation_examples, TRAIN.data_seed), part)
    key = named_key(TRAIN.data_seed, "shown", part)
    ranks, entropies = [], []
    for place, label in enumerate(labels):
        tokens = show(tokenise, content[place], jr.fold_in(key, place))
        if task.layout == "pairs":
            scores = np.array([answer(model, pair)[0] for pair in tokens], np.float64)
        else:
            answers = np.asarray(answer(model, tokens), np.float64)
            scores = answers if task.layout == "classes" else answers[: task.length, 0]
        ranks.append(1 + sum(scores[label] <= score for i, score in enumerate(scores) if i != label))
        entropies.append(math.log(sum(np.exp(scores - scores[label]))))
    return {
        "error": float(np.mean(np.array(ranks) > 1)),
        "mrr": float(np.mean(1 / np.array(ranks))),
        "cross_entropy": float(np.mean(entropies)),
    }


def assert_grades_are_those_of_the_stored_weights(task: Numbers, run: Run) -> None:
    metrics = run.records[1].metrics
    fitted, validation = (graded_slowly(task, run, part) for part in ("train", "validation"))
    assert metrics["final_error"] == pytest.approx(validation["error"], abs=1e-6)
    for name in ("error", "cross_entropy", "mrr"):
        if f"fitted_{name}" in metrics:
            assert metrics[f"fitted_{name}"] == pytest.approx(fitted[name], rel=1e-3, abs=1e-5), name
        if name in metrics and name != "error":
            assert metrics[name] == pytest.approx(validation[name], rel=1e-3, abs=1e-5), name


@pytest.mark.parametrize(
    ("layout", "error", "more"),
    [
        pytest.param("classes", 0.1, set(), marks=pytest.mark.slow),
        ("candidates", 0.5, {"mrr", "fitted_mrr"}),
        pytest.param("pairs", 0.5, {"mrr", "fitted_mrr"}, marks=pytest.mark.slow),
    ],
)
def test_labels_are_learned_and_graded_by_the_stored_weights(layout, error, more):
    # With positions, every token that is read needs a place among them.
    run = plain() if layout == "classes" else trained(layout, positions="additive")
    for record in run.records:
        assert set(record.metrics) == GRADES | BASELINE | more
        assert record.metrics["error"] <= error < record.metrics["baseline"]
        assert record.metrics["fitted_error"] <= error
        assert record.error == record.metrics["error"] == min(error for _, error in record.curve)
        assert record.metrics["final_error"] == record.curve[-1][1]
        assert record.metrics.get("mrr", 1) >= 0.65
    assert_grades_are_those_of_the_stored_weights(Numbers(layout), run)


def test_the_same_seed_twice_gives_the_same_and_another_seed_another():
    again = trained()
    assert [record.metrics for record in again.records] == [record.metrics for record in plain().records]
    assert_trees_equal(again.weights, plain().weights)
    assert not np.array_equal(again.weights[0]["read.weight"], again.weights[1]["read.weight"])


@pytest.mark.slow  # as in test_train, of other examples
def test_side_by_side_agrees_with_one_after_another():
    side = trained(machine=GPU)
    for one, other in zip(side.records, plain().records, strict=True):
        assert one.metrics == pytest.approx(other.metrics, rel=0.02, abs=0.02)
    for one, other in zip(side.weights, plain().weights, strict=True):
        # Sixty steps apart: rounding has grown.
        assert all(np.max(np.abs(one[name] - other[name])) < 0.01 for name in one)


@pytest.mark.slow
def test_dropping_changes_training_and_no_grade():
    dropping = trained(dropout=0.25)
    assert_grades_are_those_of_the_stored_weights(Numbers(), dropping)
    for one, other in zip(dropping.weights, plain().weights, strict=True):
        assert np.max(np.abs(one["read.weight"] - other["read.weight"])) > 0.01
    for record, of_plain in zip(dropping.records, plain().records, strict=True):
        assert record.metrics["error"] < record.metrics["baseline"]
        assert record.metrics["train_error"] >= of_plain.metrics["train_error"]
        assert record.curve[0] == of_plain.curve[0], "nothing was trained yet, and nothing is dropped in validation"


@pytest.mark.slow
def test_half_precision_learns_as_well():
    half = trained(train=dataclasses.replace(TRAIN, precision="bfloat16"))
    for record, weights in zip(half.records, half.weights, strict=True):
        assert record.metrics["error"] <= 0.15
        assert record.metrics["fitted_error"] <= 0.15
        assert {str(array.dtype) for array in weights.values()} == {"float32"}
        # Weights are kept in full: most of their numbers are none of half precision.
        assert np.mean(weights["embed.weight"].astype(jnp.bfloat16) == weights["embed.weight"]) < 0.1


def rate(step) -> Any:
    """The learning rate at a step: of sixty, six of warm-up."""
    falling = 0.5 * (1 + jnp.cos(jnp.pi * (step - 6) / 54))
    return 0.01 * jnp.where(step < 6, (step + 1) / 6, falling)


def test_training_is_plain_adamw():
    steps, task = 8, Numbers()
    other, cell = swept(task, labelled_model(task), TRAIN, heads=[2], length=[4], seed=SEEDS).cells
    start: Any = spec_of(cell).init(cell.seed, length=4, dim=3, outputs=2)
    content, labels = task.examples(TRAIN.train_examples, TRAIN.validation_examples, TRAIN.data_seed).train
    decayed = optax.adamw(rate, b2=TRAIN.second_moment_decay, weight_decay=TRAIN.weight_decay)
    optimiser = optax.chain(optax.clip_by_global_norm(TRAIN.clip), decayed)

    @jax.jit
    def one_step(model, moments, chosen, keys):
        def loss(model):
            logits = jax.vmap(model)(jax.vmap(task.tokenise)(jnp.asarray(content)[chosen], keys))
            right = jnp.asarray(labels)[chosen]
            return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), right[:, None], axis=1))

        changes, moments = optimiser.update(jax.grad(loss)(model), moments, model)
        return optax.apply_updates(model, changes), moments

    model, moments = start, jax.jit(optimiser.init)(start)
    for step in range(steps):
        which, shown = jr.split(jr.fold_in(named_key(cell.seed, "batches"), step))
        chosen = jr.randint(which, (TRAIN.batch,), 0, TRAIN.train_examples)
        model, moments = one_step(model, moments, chosen, jr.split(shown, TRAIN.batch))

    data = prepare(task, spec_of(cell), TRAIN).data
    parts = program(shape_of(cell).program, task_shape(task), False)
    states, members = parts.start((other, cell), data, slots=CPU_MEMBERS)  # compiled before
    states, _ = parts.advance(states, members, data, steps)
    got = jax.tree.map(lambda leaf: np.asarray(leaf)[1], states.model)
    moved = [np.median(np.abs(a - b)) for a, b in zip(jax.tree.leaves(start), jax.tree.leaves(model), strict=True)]
    assert np.median(moved) > 20 * TOLERANCE["float32"], "hardly moved, so nothing was compared"
    assert_trees_close(got, jax.tree.map(np.asarray, model))
