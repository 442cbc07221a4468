"""Members advanced by every back end: against float64 steps of the textbook layer, alone and in company."""

import functools
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

from headcount.engine.buckets import shape_of
from headcount.engine.data import BucketData, StoredTokens
from headcount.engine.hardware import TaskShape
from headcount.engine.steps import schedule
from headcount.engine.train import program
from headcount.keys import named_key
from headcount.models import ClassTokenSpec
from headcount.store import Cell, TrainSpec
from headcount.tasks import AbstractObjective, Classification, Regression

from ..helpers import textbook
from ..helpers.compiling import compile_quickly  # noqa: F401
from ..helpers.tolerance import assert_close, assert_trees_close, assert_trees_equal, in_double

ON_GPU = jax.default_backend() == "gpu"
TRAIN = TrainSpec(steps=100, batch=5, warmup=3, train_examples=24, validation_examples=20, clip=0.3)
LARGE = replace(TRAIN, batch=256, train_examples=300)
LONG_WARMUP = replace(TRAIN, batch=19, warmup=30, max_warmup=0.5)
STEPS = 5


class Setting(NamedTuple):
    """A model, its training, and what it is trained on."""

    spec: ClassTokenSpec
    objective: AbstractObjective = Regression()
    outputs: int = 2
    train: TrainSpec = TRAIN
    length: int = 4
    dim: int = 2


ADDED = Setting(ClassTokenSpec(heads=3, head_dim=2, rank=1, hidden=5, positions="additive", beta=2.0))
LABELS = Setting(
    ClassTokenSpec(heads=4, head_dim=2, hidden=4, positions="concatenated", kv_heads=2, masks_padding=True),
    Classification(),
    outputs=3,
    train=replace(TRAIN, weight_decay=0.1, second_moment_decay=0.9),
)
SHARED = Setting(ClassTokenSpec(heads=3, head_dim=2, hidden=4, kv_heads=1), outputs=1)
PLAIN = Setting(ClassTokenSpec(heads=1, head_dim=4, hidden=33), outputs=1, train=LONG_WARMUP)
NORMED = Setting(ClassTokenSpec(heads=2, head_dim=2, hidden=4, final_norm=True))
"""Pooled by kernels, and advanced step by step."""
SHORT = Setting(ClassTokenSpec(heads=4, head_dim=8, hidden=32), outputs=1, train=LARGE, length=8, dim=5)
LARGER = [
    SHORT,
    Setting(ClassTokenSpec(heads=3, head_dim=8, hidden=32, positions="additive"), train=LARGE, length=64, dim=12),
    Setting(
        ClassTokenSpec(heads=2, head_dim=4, hidden=20, positions="concatenated", masks_padding=True),
        Classification(),
        outputs=11,
        train=LARGE,
        length=300,
        dim=5,
    ),
    Setting(ClassTokenSpec(heads=16, head_dim=8, hidden=128), outputs=3, train=LARGE, length=8, dim=12),
    Setting(  # some gradients here are as small as Adam's epsilon, which magnifies their rounding
        ClassTokenSpec(heads=2, head_dim=8, hidden=100, positions="additive"),
        Classification(),
        outputs=17,
        train=replace(LARGE, batch=65),
        length=600,
        dim=1,
    ),
]
"""Several tiles of a batch, of the tokens and of the units."""


@functools.cache
def data_of(setting: Setting) -> BucketData:
    generator = np.random.default_rng(0)
    examples = setting.train.train_examples
    tokens = generator.normal(size=(examples, setting.length, setting.dim)).astype(np.float32)
    if setting.spec.masks_padding:
        tokens[::2, 3:] = np.nan
    if isinstance(setting.objective, Classification):
        targets: Any = generator.integers(0, setting.outputs, examples).astype(np.int32)
    else:
        targets = generator.normal(size=(examples, setting.outputs)).astype(np.float32)
    stored = StoredTokens(jnp.asarray(tokens), jnp.asarray(targets))
    return BucketData(train=stored, target_variance=jnp.ones(()), probe=None, validation=stored)


def cell_of(setting: Setting, seed: int = 0, heads: int | None = None) -> Cell:
    spec = replace(setting.spec, heads=heads or setting.spec.heads)
    return Cell(task={}, length=setting.length, model=spec.as_dict(), train=setting.train, seed=seed)


@functools.cache
def trained(setting: Setting, backend: str, members=((0, None),), *, padded: int = 4, slots: int = 3, steps=(STEPS,)):
    """The members, each a seed and a number of heads, after some steps in a program of `padded` heads."""
    cells = [cell_of(setting, *member) for member in members]
    shape = shape_of(cells[0]).program
    shape = replace(shape, model=replace(shape.model, heads=padded))
    task = TaskShape(setting.dim, setting.outputs, 1, setting.length, setting.objective)
    parts = program(shape, task, ON_GPU, backend)
    data = data_of(setting)
    states, who = parts.start(cells, data, slots=slots)
    for count in steps:
        states, measured = parts.advance(states, who, data, count)
    return jax.tree.map(np.asarray, (states, measured))


def one(tree, i: int):
    return jax.tree.map(lambda part: part[i], tree)


@functools.cache
def plainly(setting: Setting, seed: int = 0):
    """The member after its steps in float64: textbook layer, optax, one step at a time; and its mean error."""
    spec, train = setting.spec, setting.train
    model = spec.init(seed, length=setting.length, dim=setting.dim, outputs=setting.outputs)
    stored = data_of(setting).train
    keys = [jr.fold_in(named_key(seed, "batches"), step) for step in range(STEPS)]
    chosen = [np.asarray(jr.randint(key, (train.batch,), 0, train.train_examples)) for key in keys]
    rise = train.warmup, train.max_warmup
    rates = [float(train.learning_rate * schedule(jnp.asarray(i), train.steps, *rise)) for i in range(STEPS)]
    tokens, targets = np.asarray(stored.tokens, np.float64), np.asarray(stored.targets)
    with jax.enable_x64(True):
        optimiser = optax.chain(
            optax.clip_by_global_norm(train.clip), optax.scale_by_adam(b2=train.second_moment_decay)
        )

        @jax.jit
        def step(model, moments, tokens, targets, rate):
            def loss(model):
                return setting.objective.loss(jax.vmap(textbook.predict, in_axes=(None, 0))(model, tokens), targets)

            (_, error), slope = jax.value_and_grad(loss, has_aux=True)(model)
            update, moments = optimiser.update(slope, moments)
            keep = 1 - rate * train.weight_decay
            return jax.tree.map(lambda weight, change: keep * weight - rate * change, model, update), moments, error

        model = in_double(model)
        moments, errors = optimiser.init(model), []
        for which, rate in zip(chosen, rates, strict=True):
            model, moments, error = step(model, moments, tokens[which], targets[which], rate)
            errors.append(float(error))
        return jax.tree.map(np.asarray, model), np.mean(errors)


def test_steps_are_those_of_the_textbook_layer_in_float64(backend):
    assert_textbook_steps(backend, ADDED)


def test_labels_decay_and_shared_keys_are_those_of_the_textbook_layer(fused):
    assert_textbook_steps(fused, LABELS)


def test_steps_of_several_tiles_are_those_of_the_textbook_layer(fused):
    assert_textbook_steps(fused, SHORT)


@pytest.mark.slow
@pytest.mark.parametrize("setting", [LABELS, SHARED, PLAIN, NORMED, *LARGER[1:]])
def test_steps_of_every_setting_are_those_of_the_textbook_layer(backend, setting):
    assert_textbook_steps(backend, setting)


def assert_textbook_steps(backend: str, setting: Setting) -> None:
    padded = setting.spec.padded().heads
    states, measured = trained(setting, backend, padded=padded)
    model, error = plainly(setting)
    assert_trees_close(one(states.model, 0).with_heads(setting.spec.heads), model)
    assert_close(measured.train_error[0], np.float32(error), "the mean error of the batches")
    assert states.step[0] == optax.tree_utils.tree_get(states.optimiser, "count")[0] == STEPS


# The same of the reference is in tests/engine/test_train.py.


def test_added_heads_stay_zero_and_change_nothing(fused):
    (few, few_measured), (many, many_measured) = (
        trained(ADDED, fused, ((0, 1), (1, 3)), padded=padded) for padded in (4, 8)
    )
    assert_trees_close(many_measured, few_measured)
    same = assert_trees_close if ON_GPU else assert_trees_equal  # there the room for heads decides how sums are split
    for i, heads in enumerate((1, 3)):
        cut = one(many.model, i).with_heads(heads)
        same(cut, one(few.model, i).with_heads(heads))
        assert_trees_equal(cut.with_heads(8), one(many.model, i))


def test_a_member_has_the_same_bits_alone_in_company_in_any_order_and_again(fused):
    together = trained(ADDED, fused, ((0, 3), (1, 1), (2, 2)))
    again = trained.__wrapped__(ADDED, fused, ((0, 3), (1, 1), (2, 2)))
    assert_trees_equal(again, together)
    turned = trained(ADDED, fused, ((1, 1), (2, 2), (0, 3)))
    alone = trained(ADDED, fused, ((1, 1),), slots=1)
    for other, i in ((turned, 0), (alone, 0)):
        assert_trees_equal(one(other[0].model, i), one(together[0].model, 1))
        same = assert_trees_close if ON_GPU else assert_trees_equal  # there XLA's validation rounds by the room it has
        same(one(other[1], i), one(together[1], 1))


@pytest.mark.slow
@pytest.mark.parametrize("setting", LARGER[:3])
def test_a_member_of_several_tiles_has_the_same_bits_alone_and_among_many(fused, setting):
    """Alone it has many blocks of a GPU to itself; among many, one of them, or one thread of a CPU."""
    padded = setting.spec.padded().heads
    members = tuple((seed, 1 + seed % setting.spec.heads) for seed in range(40))
    among, _ = trained(setting, fused, members, padded=padded, slots=40)
    for place in (0, 17, 39):
        alone, _ = trained(setting, fused, (members[place],), padded=padded, slots=1)
        assert_trees_equal(one(alone.model, 0), one(among.model, place))


def test_steps_may_be_taken_in_any_portions(fused):
    """Also more of them than a kernel is given room for at a time."""
    whole, parts = (trained(ADDED, fused, steps=steps) for steps in ((40,), (0, 33, 7)))
    assert_trees_equal(whole[0].model, parts[0].model)


@pytest.mark.slow
def test_back_ends_agree_while_rounding_is_small(fused):
    """Within the stated rounding: 2e-4 of the largest number after 40 steps."""
    (states, measured), (plain, plain_measured) = (trained(ADDED, by, steps=(40,)) for by in (fused, "reference"))
    assert_trees_close(states.model, plain.model)
    assert_trees_close(measured, plain_measured)


def test_other_programs_are_the_references(fused):
    for spec in (ClassTokenSpec(heads=1, layers=2), ClassTokenSpec(heads=1, attention="hard")):
        shape = shape_of(cell_of(Setting(spec))).program
        assert program(shape, TaskShape(2, 1, 1, 4, Regression()), False, fused).backend == "reference"
