"""A batch computed in parts: the same gradient as the whole one, of every objective; and how large parts are."""

import dataclasses
import math
import sys
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.engine.buckets import shape_of
from headcount.engine.data import prepare
from headcount.engine.hardware import TOKENS_AT_ONCE, TaskShape, examples_at_once, needs
from headcount.engine.plan import task_shape
from headcount.engine.steps import gradient_of
from headcount.engine.train import Program, respond
from headcount.store import TrainSpec
from headcount.tasks import AbstractTask, Regression

from ..helpers.compiling import compile_quickly  # noqa: F401
from ..helpers.sweeps import CPU, FARTHEST, GPU, TASK, Numbers, class_token, encoder, labelled_model, swept
from ..helpers.tolerance import assert_trees_close, in_double

BATCH = 12
HARDWARE = sys.modules[examples_at_once.__module__]
TASKS: dict[str, tuple[AbstractTask, Any]] = {
    "an answer": (TASK, class_token),
    "answers at tokens": (FARTHEST, encoder),
    **{
        each: (Numbers(each), labelled_model(Numbers(each), dropout=0.3)) for each in ("classes", "candidates", "pairs")
    },
}
TRAIN = TrainSpec(steps=8, batch=BATCH, warmup=0, train_examples=100, validation_examples=30)


def shape_for(name: str, train: TrainSpec = TRAIN):
    task, model = TASKS[name]
    return shape_of(swept(task, model, train, heads=[2], length=[4], seed=[0]).cells[0])


@pytest.mark.parametrize("at_once", [1, 4])
@pytest.mark.parametrize("name", TASKS)
def test_parts_give_the_gradient_of_the_whole_batch(name, at_once):
    task, _ = TASKS[name]
    spec = shape_for(name).model
    data = prepare(task, spec, TRAIN).data
    tokens, targets = data.train.batch(jr.key(1), BATCH)
    sizes = task_shape(task)
    model = spec.init(3, length=sizes.tokens, dim=sizes.dim, outputs=sizes.outputs)
    keys = jr.split(jr.key(2), BATCH) if spec.drops else None
    with jax.enable_x64(True):
        model, tokens, exact = jax.tree.map(jnp.asarray, in_double((model, tokens, targets)))
        labels = targets if np.issubdtype(targets.dtype, np.integer) else exact

        def loss(model, tokens, targets, keys):
            return task.objective.loss(respond(model, tokens, keys), targets)

        def graded(count: int):
            return jax.jit(lambda model, batch: gradient_of(loss, model, batch, count))(model, (tokens, labels, keys))

        parts, whole = graded(at_once), graded(BATCH)
    if labels is targets:  # the scores of labels are compared in single precision
        parts, whole = (jax.tree.map(np.float32, each) for each in (parts, whole))
    assert_trees_close(parts, whole)


@pytest.mark.parametrize("name", [name for name in TASKS if name != "an answer"])
def test_a_model_trained_in_parts_is_the_model_trained_on_whole_batches(name, monkeypatch):
    task, _ = TASKS[name]
    shape = shape_for(name)
    data = prepare(task, shape.model, TRAIN).data
    cells = swept(*TASKS[name], TRAIN, heads=[2], length=[4], seed=[0]).cells

    def trained(parts: bool):
        monkeypatch.setattr(HARDWARE, "WHOLE_BYTES", 0 if parts else 1 << 40)
        monkeypatch.setattr(HARDWARE, "TOKENS_AT_ONCE", 12)
        program = Program(shape.program, task_shape(task), side_by_side=False)
        assert (program._at_once < BATCH) == parts
        states, members = program.start(cells, data)
        _, measured = program.advance(states, members, data, 4)
        return jax.tree.map(np.asarray, measured)

    # Not the weights: Adam makes whole steps of the rounding in a gradient that is zero, such as that of a shared bias.
    assert_trees_close(trained(True), trained(False))


@given(batch=st.integers(1, 4096), tokens=st.integers(1, 2000), sequences=st.integers(1, 64))
def test_parts_divide_a_batch_and_are_near_the_wanted_size(batch, tokens, sequences):
    shape = shape_for("answers at tokens", dataclasses.replace(TRAIN, batch=batch))
    sizes = TaskShape(3, 3, sequences, tokens, Regression())
    at_once = examples_at_once(shape, sizes, side_by_side=False)
    assert batch % at_once == 0
    assert examples_at_once(shape, sizes, side_by_side=True) == batch
    if at_once < batch:
        away = {
            count: abs(math.log(count * sequences * tokens / TOKENS_AT_ONCE))
            for count in range(1, batch + 1)
            if batch % count == 0
        }
        assert away[at_once] == min(away.values())
    in_turn, at_the_same_time = (needs(shape, sizes, 1, machine).turn for machine in (CPU, GPU))
    assert in_turn <= at_the_same_time


def test_of_the_largest_batch_not_every_number_is_tried():
    """It would take minutes; 2^31 - 1 is a prime."""
    shape = shape_for("answers at tokens", dataclasses.replace(TRAIN, batch=2**31 - 1))
    assert examples_at_once(shape, TaskShape(3, 3, 1, 16, Regression()), side_by_side=False) == 1


def test_class_token_models_are_computed_as_a_whole_however_large():
    """Theirs is little per token; in parts their steps, and above all validation by kernels, take longer."""
    shape = shape_for("an answer", dataclasses.replace(TRAIN, batch=4096))
    assert examples_at_once(shape, TaskShape(3, 1, 1, 512, Regression()), side_by_side=False) == 4096


def test_what_the_caches_hold_is_computed_as_a_whole():
    assert examples_at_once(shape_for("an answer"), task_shape(TASK), side_by_side=False) == BATCH
