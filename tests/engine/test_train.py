"""The compiled program: against the slow obvious loop, alone and in company, traced once, the same twice."""

import functools
import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.engine.buckets import shape_of, spec_of
from headcount.engine.data import prepare
from headcount.engine.hardware import TaskShape
from headcount.engine.records import checkpoint_steps
from headcount.engine.steps import schedule
from headcount.engine.train import program, respond, sequential_map
from headcount.keys import named_key
from headcount.models import EncoderSpec, folded
from headcount.store import Cell
from headcount.store.cell import MAX_WARMUP
from headcount.tasks import FarthestPoint, Regression, sum_of_maxima

from ..helpers import textbook
from ..helpers.compiling import compile_quickly  # noqa: F401
from ..helpers.sweeps import TRAIN as TINY
from ..helpers.sweeps import class_token, encoder
from ..helpers.tolerance import TOLERANCE, assert_close, assert_trees_close, assert_trees_equal

TRAIN = replace(TINY, steps=40, warmup=4)
STREAM = replace(TRAIN, train_examples=0)
TASK = sum_of_maxima(length=4, intrinsic_dim=2, dim=3)
FARTHEST = FarthestPoint(length=4, dim=3)
PIECES = (0, 3, 5, 4)
"""Steps between checkpoints; of the forty that the schedule is made for, these dozen."""
THREE = ((1, 0), (3, 2), (1, 4))
"""Members of one bucket: the heads and the seed of each."""


def a_cell(heads: int, seed: int, learning_rate: float = 1e-2) -> Cell:
    train = replace(TRAIN, learning_rate=learning_rate)
    return Cell(task=TASK.spec(), length=4, model=class_token(heads).as_dict(), train=train, seed=seed)


@functools.cache
def data():
    return prepare(TASK, class_token(), TRAIN).data


def program_for(shape, side_by_side: bool = False, dim: int = 3, outputs: int = 1):
    return program(shape.program, TaskShape(dim, outputs, 1, shape.length, Regression()), side_by_side)


def taught(parts, cells, data):
    """The members' states after all pieces, and what was measured after each."""
    states, members = parts.start(cells, data)
    watched = []
    for steps in PIECES:
        states, measured = parts.advance(states, members, data, steps)
        watched.append(jax.tree.map(np.asarray, measured))
    return jax.tree.map(np.asarray, states), watched


@functools.cache
def trained(members=THREE, *, heads: int = 4, side_by_side: bool = False):
    cells = tuple(a_cell(*member) for member in members)
    shape = shape_of(cells[0])
    shape = replace(shape, model=replace(shape.model, heads=heads))
    return taught(program_for(shape, side_by_side), cells, data())


def member(states, i: int):
    return jax.tree.map(lambda leaf: leaf[i], states)


def curve(watched) -> np.ndarray:
    return np.stack([measured.validation["nmse"] for measured in watched])


def size_of_change(before, after) -> float:
    """The median over all weights of how far they moved."""
    pairs = zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True)
    return float(np.median(np.concatenate([np.ravel(np.abs(a - b)) for a, b in pairs])))


def rate(step: int) -> float:
    return 0.01 * ((step + 1) / 4 if step < 4 else 0.5 * (1 + math.cos(math.pi * (step - 4) / 36)))


def slowly(start, answer, batch_at, steps: int):
    """The obvious loop: one member, one step at a time, the rate written out."""
    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.scale_by_adam(b2=0.99))

    @jax.jit
    def one_step(model, moments, tokens, targets, rate):
        def loss(model):
            return jnp.mean((jax.vmap(lambda x: answer(model, x))(tokens) - targets) ** 2)

        error, gradient = jax.value_and_grad(loss)(model)
        update, moments = optimiser.update(gradient, moments)
        return jax.tree.map(lambda weight, change: weight - rate * change, model, update), moments, error

    model, moments, losses = start, jax.jit(optimiser.init)(start), []
    for step in range(steps):
        model, moments, error = one_step(model, moments, *batch_at(step), rate(step))
        losses.append(float(error))
    return jax.tree.map(np.asarray, model), losses


def assert_taught(start, model, losses, got, measured, i: int, answer, examples, variance) -> None:
    """A member ended where the obvious loop did, and was measured as it says."""
    assert size_of_change(start, model) > 20 * TOLERANCE["float32"], "hardly moved, so nothing was compared"
    assert_trees_close(got, model)
    assert_close(measured.train_error[i], np.mean(losses[-PIECES[-1] :], dtype=np.float32) / np.asarray(variance))
    answers = jax.jit(jax.vmap(lambda x: answer(model, x)))(examples.tokens)
    truth = np.asarray(examples.targets)
    assert_close(measured.validation["nmse"][i], np.mean((answers - truth) ** 2) / np.mean(np.var(truth, axis=0)))


def test_the_program_is_the_obvious_loop():
    i = 1
    heads, seed = THREE[i]
    model = class_token(heads).init(seed, length=4, dim=3, outputs=1)
    start = jax.tree.map(np.asarray, jax.jit(lambda model, tokens: model.calibrated(tokens))(model, data().probe))

    def batch_at(step):
        chosen = jr.randint(jr.fold_in(named_key(seed, "batches"), step), (TRAIN.batch,), 0, TRAIN.train_examples)
        return data().train.tokens[chosen], data().train.targets[chosen]

    model, losses = slowly(start, textbook.predict, batch_at, sum(PIECES))
    states, watched = trained()
    got = member(states.model, i).with_heads(heads)
    assert_taught(start, model, losses, got, watched[-1], i, textbook.predict, data().validation, 1.0)


def test_padding_does_not_change_training():
    (few, few_watched), (many, many_watched) = trained(), trained(heads=8)
    assert_trees_close(curve(many_watched), curve(few_watched))
    for i, (heads, _) in enumerate(THREE):
        padded, own = member(many.model, i), member(few.model, i).with_heads(heads)
        assert_trees_close(padded.with_heads(heads), own)
        assert_trees_close(own.with_heads(8), padded)  # what was added is still nothing


def test_a_member_does_not_notice_its_neighbours():
    (alone, alone_watched), (together, watched) = trained(THREE[1:2]), trained()
    assert_trees_equal(member(alone, 0), member(together, 1))
    assert np.array_equal(curve(alone_watched)[:, 0], curve(watched)[:, 1])


def test_a_member_that_diverges_harms_no_neighbour():
    wild = (THREE[0], (3, 2, 1e30), THREE[2])
    (states, watched), (calm, calm_watched) = trained(wild), trained()
    assert not np.isfinite(watched[-1].validation["nmse"][1])
    assert np.isfinite(states.best_error[1]), "the error before the first step was finite"
    for i in (0, 2):
        assert_trees_equal(member(states, i), member(calm, i))
        assert np.array_equal(curve(watched)[:, i], curve(calm_watched)[:, i])


def test_side_by_side_agrees_with_one_after_another():
    (side, side_watched), (after, watched) = trained(side_by_side=True), trained()
    assert_trees_close(side.model, after.model)
    assert_trees_close(curve(side_watched), curve(watched))


def test_the_same_cells_twice_give_the_same_bits_and_one_compilation():
    cells = tuple(a_cell(*each) for each in THREE)
    parts = program.__wrapped__(shape_of(cells[0]).program, TaskShape(3, 1, 1, 4, Regression()), False)
    assert_trees_equal(taught(parts, cells, data())[0], trained()[0])
    parts.advance(*parts.start(cells[::-1], data()), data(), 1)
    assert parts._advance._cache_size() == 1, "three members, every number of steps: one program"
    assert parts._calibrate._cache_size() == 1


def test_a_shape_has_one_program_whatever_its_members():
    shapes = {shape_of(a_cell(heads, seed, rate)) for heads in (1, 2, 4) for seed in (0, 1) for rate in (0.1, 1.0)}
    assert len({id(program_for(shape)) for shape in shapes}) == 1


def test_the_best_error_is_the_least_along_the_curve():
    states, watched = trained()
    np.testing.assert_array_equal(states.best_error, curve(watched).min(axis=0))
    np.testing.assert_array_equal(states.step, [sum(PIECES)] * 3)


def test_seeds_differ_in_weights_and_in_batches():
    first, second = (member(trained()[0].model, i).with_heads(1) for i in (0, 2))
    assert size_of_change(first, second) > 0.01


@pytest.mark.parametrize("padded", [3, 4])
def test_what_reaches_the_readout_varies_by_one(padded):
    model = class_token(3).init(5, length=4, dim=3, outputs=1).with_heads(padded)

    @jax.jit
    def reached(model, tokens):
        return jax.vmap(folded.class_output, in_axes=(None, 0))(model.calibrated(tokens), tokens)

    variance = np.var(np.asarray(reached(model, data().train.tokens)), axis=0)
    assert np.mean(variance[:6]) == pytest.approx(1, rel=1e-4)
    assert np.all(variance[6:] == 0)


# Encoders on a stream.


@functools.cache
def stream():
    return prepare(FARTHEST, encoder(2), STREAM).data


@functools.cache
def streamed(*, side_by_side: bool = False):
    """Two seeds of an encoder after all pieces, and what was measured after each."""
    content = encoder(2).as_dict()
    cells = tuple(Cell(task=FARTHEST.spec(), length=4, model=content, train=STREAM, seed=seed) for seed in (0, 1))
    return taught(program_for(shape_of(cells[0]), side_by_side, 3, 3), cells, stream())


def test_a_stream_is_the_obvious_loop_over_fresh_examples():
    start = encoder(2).init(1, length=4, dim=3, outputs=3)
    draw = jax.jit(jax.vmap(lambda key: (tokens := FARTHEST.sample(key), FARTHEST.target(tokens))))

    def batch_at(step):
        return draw(jr.split(jr.fold_in(named_key(1, "batches"), step), STREAM.batch))

    def answer(model, tokens):
        return model(tokens)

    model, losses = slowly(start, answer, batch_at, sum(PIECES))
    states, watched = streamed()
    got, variance = member(states.model, 1), stream().target_variance
    assert_taught(start, model, losses, got, watched[-1], 1, answer, stream().validation, variance)


def test_encoders_side_by_side_agree_with_one_after_another():
    (side, side_watched), (after, watched) = streamed(side_by_side=True), streamed()
    assert_trees_close(side.model, after.model)
    assert_trees_close(curve(side_watched), curve(watched))


# The answers to several sequences.

DROPPING = EncoderSpec(heads=1, rank=2, width=3, hidden=3, answered_at="query", dropout=0.5)


def test_several_sequences_are_answered_one_by_one():
    model = DROPPING.init(0, length=4, dim=3, outputs=1)
    several = np.random.default_rng(0).normal(size=(3, 4, 3)).astype(np.float32)
    (got,), alone = jax.jit(respond)(model, several[None]), jax.jit(lambda model, tokens: model(tokens))
    assert got.shape == (3, 1)
    for sequence, answer in zip(several, got, strict=True):
        assert_close(answer, alone(model, sequence))
    assert_close(jax.jit(respond)(model, several), got)


def test_every_sequence_drops_its_own():
    model = DROPPING.init(0, length=4, dim=3, outputs=1)
    same = np.tile(np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32), (6, 1, 1))
    dropping = jax.jit(respond)
    answers, again, others = (np.asarray(dropping(model, same[None], jr.split(jr.key(seed), 1))) for seed in (0, 0, 1))
    assert len(np.unique(answers.round(4))) > 1
    assert np.array_equal(answers, again)
    assert not np.array_equal(answers, others)


# Loops and schedules.


@pytest.mark.parametrize("count", [1, 2, 3])
def test_members_take_turns_in_a_loop_that_no_compiler_unrolls(count):
    members = {"weight": jnp.arange(3.0 * count).reshape(count, 3)}
    begun = jnp.ones(count, bool)

    def one(member):
        return {"sum": jnp.sum(member["weight"]), "twice": 2 * member["weight"]}

    compiled = jax.jit(functools.partial(sequential_map, one)).lower(members, begun).compile()
    assert " while(" in compiled.as_text()
    assert_trees_equal(compiled(members, begun), jax.lax.map(one, members))


@given(
    steps=st.integers(1, 20_000),
    warmup=st.integers(0, 2_000),
    limit=st.sampled_from([(MAX_WARMUP, 1, 10), (0.5, 1, 2), (0.75, 3, 4)]),
)
def test_the_rate_rises_in_a_line_and_falls_in_a_cosine_to_nothing(steps, warmup, limit):
    max_warmup, parts, of = limit
    at = np.unique(np.linspace(0, steps - 1, 64).astype(np.int32))
    at = np.pad(at, (0, 64 - len(at)), mode="edge")
    share = np.asarray(jax.vmap(lambda step: schedule(step, steps, warmup, max_warmup))(jnp.asarray(at)))
    turn = min(warmup, parts * steps // of)
    rising, falling = share[at < turn], share[at >= turn]
    np.testing.assert_allclose(rising, (at[at < turn] + 1) / max(turn, 1), rtol=1e-5)
    assert np.all(np.diff(falling) <= 1e-6)
    assert np.all((share >= 0) & (share <= 1 + 1e-6))
    assert share[-1] == pytest.approx(math.sin(math.pi / (2 * (steps - turn))) ** 2, abs=1e-5)


@pytest.mark.parametrize(("max_warmup", "rise"), [(MAX_WARMUP, 4), (0.5, 20)])
def test_warm_up_takes_as_many_steps_as_it_may(max_warmup, rise):
    """In Adam's first step a weight moves by the rate, unless its gradient is zero."""
    first = a_cell(1, 0)
    cell = replace(first, train=replace(first.train, warmup=30, max_warmup=max_warmup))
    parts = program_for(shape_of(cell))
    states, members = parts.start((cell,), data())
    before = jax.tree.map(np.array, states.model)
    after, _ = parts.advance(states, members, data(), 1)
    moves = jax.tree.map(lambda a, b: np.max(np.abs(a - b)), before, after.model)
    assert max(jax.tree.leaves(moves)) == pytest.approx(0.01 / rise, rel=1e-2)


@given(st.integers(1, 100_000))
def test_a_curve_is_measured_from_the_first_step_to_the_last(steps):
    points = checkpoint_steps(steps)
    gaps = np.diff(points)
    assert (points[0], points[-1], len(points)) == (0, steps, min(steps, 20) + 1)
    assert 1 <= gaps.min() <= gaps.max() <= math.ceil(steps / 20)


def test_a_cell_starts_from_its_own_head_count():
    """Padding is no part of the draw: a cell's start does not depend on its bucket."""
    cell = a_cell(3, 2)
    start = spec_of(cell).init(2, length=4, dim=3, outputs=1)
    states, _ = program_for(shape_of(cell)).start((a_cell(1, 0), cell, a_cell(1, 4)), data())
    got = jax.tree.map(np.asarray, member(states.model, 1).with_heads(3))
    assert_trees_equal(got.encoder_in, start.encoder_in)
    assert_trees_equal(got.class_token, start.class_token)
