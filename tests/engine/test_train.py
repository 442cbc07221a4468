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
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount._keys import named_key
from headcount.engine.data import examples
from headcount.engine.run import checkpoint_steps
from headcount.engine.sweep import shape_of
from headcount.engine.train import program, schedule, unit_readout
from headcount.models import ClassTokenSpec, EncoderSpec, folded, init, init_encoder, predict, resize_heads, textbook
from headcount.store import Cell, TrainSpec
from headcount.tasks import FarthestPoint, sum_of_maxima

from ..tolerance import TOLERANCE, assert_close, assert_trees_close, assert_trees_equal

TRAIN = TrainSpec(steps=40, batch=8, warmup=4, train_examples=60, validation_examples=40)
TASK = sum_of_maxima(length=6, intrinsic_dim=2, dim=3)
PIECES = (0, 3, 5, 4)
"""Steps between checkpoints; of the forty that the schedule is made for, these dozen."""


def a_cell(heads: int, seed: int, learning_rate: float = 1e-2) -> Cell:
    return Cell(
        task=TASK.spec(),
        length=TASK.length,
        model=ClassTokenSpec(heads=heads, head_dim=4, hidden=8),
        train=replace(TRAIN, learning_rate=learning_rate),
        seed=seed,
    )


FIVE = ((1, 0), (2, 1), (3, 2), (4, 3), (1, 4))
"""Five members of one bucket: the heads and the seed of each."""


@functools.cache
def data():
    return examples(TASK, ClassTokenSpec(heads=1), TRAIN)[0]


@functools.cache
def trained(members, *, heads: int = 4, side_by_side: bool = False):
    """The members' states after all pieces, and the validation and training errors after each."""
    cells = tuple(a_cell(*member) for member in members)
    shape = shape_of(cells[0])
    shape = replace(shape, model=replace(shape.model, heads=heads))
    parts = program(shape, TASK.dim, 1, side_by_side)
    states, members = parts.start(cells, data())
    watched = []
    for steps in PIECES:
        states, measured = parts.advance(states, members, data(), steps)
        watched.append(jax.tree.map(np.asarray, measured))
    return jax.tree.map(np.asarray, states), watched


def member(states, i: int):
    return jax.tree.map(lambda leaf: leaf[i], states)


def size_of_change(before, after) -> float:
    """The median over all weights of how far they moved."""
    pairs = zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True)
    return float(np.median(np.concatenate([np.ravel(np.abs(a - b)) for a, b in pairs])))


def slowly(cell: Cell, steps: int):
    """The obvious loop: the textbook model, unpadded, one member, one step at a time, the rate written out."""
    model = init(cell.model, cell.seed, length=TASK.length, dim=TASK.dim, outputs=1)
    model = jax.jit(unit_readout)(model, data().train.tokens)
    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.scale_by_adam(b2=0.99))
    moments, losses = optimiser.init(model), []

    @jax.jit
    def one_step(model, moments, tokens, targets, rate):
        def loss(model):
            return jnp.mean((jax.vmap(lambda x: textbook.predict(model, x))(tokens) - targets) ** 2)

        error, gradient = jax.value_and_grad(loss)(model)
        update, moments = optimiser.update(gradient, moments)
        return jax.tree.map(lambda weight, change: weight - rate * change, model, update), moments, error

    for step in range(steps):
        key = jr.fold_in(named_key(cell.seed, "batches"), step)
        chosen = jr.randint(key, (TRAIN.batch,), 0, TRAIN.train_examples)
        rate = 0.01 * ((step + 1) / 4 if step < 4 else 0.5 * (1 + math.cos(math.pi * (step - 4) / 36)))
        batch = data().train.tokens[chosen], data().train.targets[chosen]
        model, moments, error = one_step(model, moments, *batch, rate)
        losses.append(float(error))
    return model, losses


def test_the_program_is_the_obvious_loop():
    i = 2
    states, watched = trained(FIVE)
    model, losses = slowly(a_cell(*FIVE[i]), sum(PIECES))
    start, _ = slowly(a_cell(*FIVE[i]), 0)
    got = resize_heads(member(states.model, i), FIVE[i][0])
    assert size_of_change(start, model) > 20 * TOLERANCE["float32"], "hardly moved, so nothing was compared"
    assert_trees_close(got, model)
    assert_close(watched[-1].train_error[i], np.mean(losses[-PIECES[-1] :], dtype=np.float32))
    answers = jax.vmap(lambda x: textbook.predict(model, x))(data().validation.tokens)
    truth = data().validation.targets
    assert_close(watched[-1].validation["nmse"][i], np.mean((answers - truth) ** 2) / np.var(truth))


def test_padding_does_not_change_training():
    (few, few_watched), (many, many_watched) = trained(FIVE), trained(FIVE, heads=8)
    assert_trees_close([w.validation["nmse"] for w in many_watched], [w.validation["nmse"] for w in few_watched])
    for i, (heads, _) in enumerate(FIVE):
        padded, own = member(many.model, i), resize_heads(member(few.model, i), heads)
        assert_trees_close(resize_heads(padded, heads), own)
        assert_trees_close(resize_heads(own, 8), padded)  # what was added is still nothing


@pytest.mark.parametrize("i", [0, 2])
def test_a_member_does_not_notice_its_neighbours(i):
    (alone, alone_watched), (together, watched) = trained((FIVE[i],)), trained(FIVE)
    assert_trees_equal(member(alone, 0), member(together, i))
    assert [w.validation["nmse"][0] for w in alone_watched] == [w.validation["nmse"][i] for w in watched]


def test_a_member_that_diverges_harms_no_neighbour():
    wild = (*FIVE[:2], (3, 2, 1e30), *FIVE[3:])
    (states, watched), (calm, calm_watched) = trained(wild), trained(FIVE)
    assert not np.isfinite(watched[-1].validation["nmse"][2])
    assert np.isfinite(states.best_error[2]), "the error before the first step was finite"
    for i in (0, 1, 3, 4):
        assert_trees_equal(member(states, i), member(calm, i))
        assert watched[-1].validation["nmse"][i] == calm_watched[-1].validation["nmse"][i]


def test_side_by_side_agrees_with_one_after_another():
    (side, side_watched), (after, watched) = trained(FIVE, side_by_side=True), trained(FIVE)
    assert_trees_close(side.model, after.model)
    assert_trees_close([w.validation["nmse"] for w in side_watched], [w.validation["nmse"] for w in watched])


def test_the_same_cells_twice_give_the_same_bits_and_one_compilation():
    cells = tuple(a_cell(*member) for member in FIVE)
    parts = program.__wrapped__(shape_of(cells[0]), TASK.dim, 1, False)
    for _ in range(2):
        states, members = parts.start(cells, data())
        for steps in PIECES:
            states, _ = parts.advance(states, members, data(), steps)
        assert_trees_equal(states, trained(FIVE)[0])
    parts.advance(*parts.start(cells[::-1], data()), data(), 1)
    assert parts.advance._cache_size() == 1, "five members, every number of steps: one program"


def test_a_shape_has_one_program_whatever_its_members():
    shapes = {shape_of(a_cell(heads, seed, rate)) for heads in (1, 2, 4) for seed in (0, 1) for rate in (0.1, 1.0)}
    assert len({id(program(shape, TASK.dim, 1, False)) for shape in shapes}) == 1


def test_the_best_error_is_the_least_along_the_curve():
    states, watched = trained(FIVE)
    curve = np.stack([w.validation["nmse"] for w in watched])
    np.testing.assert_array_equal(states.best_error, curve.min(axis=0))
    np.testing.assert_array_equal(states.step, [sum(PIECES)] * 5)


def test_seeds_differ_in_weights_and_in_batches():
    first, second = (resize_heads(member(trained(FIVE)[0].model, i), 1) for i in (0, 4))
    assert size_of_change(first, second) > 0.01


# Encoders on a stream.

FARTHEST = FarthestPoint(length=4, dim=3)
STREAM = replace(TRAIN, train_examples=0)


def an_encoder_cell(seed: int) -> Cell:
    model = EncoderSpec(heads=2, rank=1, width=3, head_dim=3, hidden=5)
    return Cell(task=FARTHEST.spec(), length=4, model=model, train=STREAM, seed=seed)


@functools.cache
def stream():
    return examples(FARTHEST, an_encoder_cell(0).model, STREAM)[0]


@functools.cache
def streamed(seeds, *, side_by_side: bool = False):
    """Encoders after all pieces, and what was measured after each."""
    cells = tuple(an_encoder_cell(seed) for seed in seeds)
    parts = program(shape_of(cells[0]), 3, 3, side_by_side)
    states, members = parts.start(cells, stream())
    watched = []
    for steps in PIECES:
        states, measured = parts.advance(states, members, stream(), steps)
        watched.append(jax.tree.map(np.asarray, measured))
    return jax.tree.map(np.asarray, states), watched


def test_a_stream_is_the_obvious_loop_over_fresh_examples():
    seed, steps = 1, sum(PIECES)
    start = model = init_encoder(an_encoder_cell(seed).model, seed, length=4, dim=3, outputs=3)
    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.scale_by_adam(b2=0.99))
    moments, losses = jax.jit(optimiser.init)(model), []
    draw = jax.jit(lambda key: (tokens := FARTHEST.sample(key), FARTHEST.target(tokens)))

    @jax.jit
    def slope(model, tokens, targets):
        return jax.value_and_grad(lambda model: jnp.mean((predict(model, tokens) - targets) ** 2))(model)

    @jax.jit
    def update(model, moments, slopes, rate):
        gradient = jax.tree.map(lambda *leaves: sum(leaves) / len(leaves), *slopes)
        changes, moments = optimiser.update(gradient, moments)
        return jax.tree.map(lambda weight, change: weight - rate * change, model, changes), moments

    for step in range(steps):
        keys = jr.split(jr.fold_in(named_key(seed, "batches"), step), STREAM.batch)
        errors, slopes = zip(*(slope(model, *draw(key)) for key in keys), strict=True)
        rate = 0.01 * ((step + 1) / 4 if step < 4 else 0.5 * (1 + math.cos(math.pi * (step - 4) / 36)))
        model, moments = update(model, moments, slopes, rate)
        losses.append(float(np.mean(errors)))

    states, watched = streamed((0, seed))
    assert size_of_change(start, model) > 20 * TOLERANCE["float32"], "hardly moved, so nothing was compared"
    assert_trees_close(member(states.model, 1), model)
    loss = np.mean(losses[-PIECES[-1] :], dtype=np.float32)
    assert_close(watched[-1].train_error[1], loss / np.asarray(stream().target_variance))
    tokens, truth = (np.asarray(part) for part in (stream().validation.tokens, stream().validation.targets))
    error = np.mean((jax.jit(jax.vmap(predict, in_axes=(None, 0)))(model, tokens) - truth) ** 2)
    assert_close(watched[-1].validation["nmse"][1], error / np.mean(np.var(truth, axis=0)))


def test_encoders_side_by_side_agree_with_one_after_another():
    (side, side_watched), (after, watched) = streamed((0, 1), side_by_side=True), streamed((0, 1))
    assert_trees_close(side.model, after.model)
    assert_trees_close([w.validation["nmse"] for w in side_watched], [w.validation["nmse"] for w in watched])


@pytest.mark.parametrize("padded", [3, 4, 8])
def test_what_reaches_the_readout_varies_by_one(padded):
    model = init(ClassTokenSpec(heads=3, head_dim=4, hidden=8), 5, length=TASK.length, dim=TASK.dim, outputs=1)

    @jax.jit
    def reached(model, tokens):
        return jax.vmap(folded.class_output, in_axes=(None, 0))(unit_readout(model, tokens), tokens)

    variance = np.var(np.asarray(reached(resize_heads(model, padded), data().train.tokens)), axis=0)
    assert np.mean(variance[:12]) == pytest.approx(1, rel=1e-4)
    assert np.all(variance[12:] == 0)


@settings(deadline=None, max_examples=60)
@given(steps=st.integers(1, 20_000), warmup=st.integers(0, 2_000))
def test_the_rate_rises_in_a_line_and_falls_in_a_cosine_to_nothing(steps, warmup):
    train = replace(TRAIN, steps=steps, warmup=warmup)
    at = np.unique(np.linspace(0, steps - 1, 64).astype(np.int32))
    at = np.pad(at, (0, 64 - len(at)), mode="edge")
    share = np.asarray(jax.vmap(lambda step: schedule(step, train))(jnp.asarray(at)))
    turn = min(warmup, steps // 10)
    rising, falling = share[at < turn], share[at >= turn]
    np.testing.assert_allclose(rising, (at[at < turn] + 1) / max(turn, 1), rtol=1e-5)
    assert np.all(np.diff(falling) <= 1e-6)
    assert np.all((share >= 0) & (share <= 1 + 1e-6))
    assert share[-1] == pytest.approx(math.sin(math.pi / (2 * (steps - turn))) ** 2, abs=1e-5)


@given(st.integers(1, 100_000))
def test_a_curve_is_measured_from_the_first_step_to_the_last(steps):
    points = checkpoint_steps(steps)
    assert points[0] == 0
    assert points[-1] == steps
    gaps = np.diff(points)
    assert gaps.min() >= 1
    assert gaps.max() <= math.ceil(steps / 20)
    assert len(points) == min(steps, 20) + 1
