"""Pooling by every back end, against float64: values and gradients, at any shape, of any scores."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.backends import pool
from headcount.models import ClassTokenSpec

from ..helpers import textbook
from ..helpers.compiling import compile_quickly  # noqa: F401
from ..helpers.tolerance import assert_close, assert_trees_close, assert_trees_equal, in_double
from .textbook_pool import Case, gradients, hidden_and_weights, pooled_and_weights

ON_GPU = jax.default_backend() == "gpu"
MOST_NUMBERS = 16
"""Per token, that the kernels of a GPU can do."""


def pooled_by(backend: str, tokens, *weights, masks: bool):
    operation = pool.pool if backend == "fused" else pool.reference
    return operation(tokens, pool.PoolWeights(*weights), masks=masks)


@st.composite
def cases(draw, most: int = 9) -> tuple[Case, bool]:
    """Small whole numbers, so that equal scores are equal in every precision, and any scale of the scores."""
    size = st.integers(1, most)
    batch, length, hidden, heads = (draw(size) for _ in range(4))
    dim = draw(st.integers(1, min(most, MOST_NUMBERS) if ON_GPU else most))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def whole(*shape: int) -> np.ndarray:
        return generator.integers(-2, 3, shape).astype(np.float32)

    scale = np.float32(2.0 ** draw(st.sampled_from((-100, -3, 0, 3, 100))))
    places, added = draw(st.sampled_from((1, length))), draw(st.sampled_from((0, length)))
    tokens, masks = whole(batch, length, dim), draw(st.booleans())
    if masks:  # in each sequence at least one token is there
        absent = generator.random((batch, length)) < 0.5
        absent[np.arange(batch), generator.integers(0, length, batch)] = False
        tokens[absent] = np.nan
    case = Case(tokens, whole(hidden, dim), whole(places, hidden), scale * whole(heads, hidden), whole(added, heads))
    return case, masks


def run(backend: str, masks: bool, case: Case, *changes: np.ndarray):
    """Both results, and the gradients of all but the tokens for these gradients of the results."""

    @jax.jit
    def both(tokens, weights, changes):
        results, pull = jax.vjp(lambda *weights: pooled_by(backend, tokens, *weights, masks=masks), *weights)
        return results, pull(changes)

    return both(case.tokens, case[1:], changes)


def changes_of(case: Case) -> tuple[np.ndarray, np.ndarray]:
    (batch, length, _), (heads, hidden) = case.tokens.shape, case.direction.shape
    generator = np.random.default_rng(0)
    shapes = (batch, heads, hidden), (batch, length, heads)
    return tuple(generator.integers(-2, 3, shape).astype(np.float32) for shape in shapes)


def assert_near(got, want, factor: float, what: str) -> None:
    """Near in units of the largest wanted number, and of a factor by which rounding is multiplied."""
    assert_close(np.float32(got / factor), np.float32(want / factor), what)


def assert_pools(backend: str, case: Case, masks: bool) -> None:
    changes = changes_of(case)
    results, slopes = run(backend, masks, case, *changes)
    for name, got, want in zip(("pooled", "weights"), results, pooled_and_weights(case), strict=True):
        assert_near(got, want, 1, name)
    steepest = max(1.0, float(np.max(np.abs(case.direction))))
    largest = max(1.0, float(np.max(hidden_and_weights(case)[0])))
    for name, got, want in zip(Case._fields[1:], slopes, gradients(case, *changes), strict=True):
        assert_near(got, want, steepest if name in ("weight", "bias") else largest, f"gradient of {name}")


@settings(max_examples=6)
@given(drawn=cases())
def test_any_shape_and_any_scores(backend, drawn):
    assert_pools(backend, *drawn)


@pytest.mark.slow
@given(drawn=cases(most=70))
def test_many_shapes(backend, drawn):
    assert_pools(backend, *drawn)


def test_tokens_of_many_numbers_are_pooled_on_a_cpu_and_refused_on_a_gpu(fused):
    generator = np.random.default_rng(0)
    shapes = ((2, 3, MOST_NUMBERS + 1), (4, MOST_NUMBERS + 1), (1, 4), (2, 4), (0, 2))
    case = Case(*(generator.normal(size=shape).astype(np.float32) for shape in shapes))
    if not ON_GPU:
        assert_pools(fused, case, masks=False)
        return
    with pytest.raises(jax.errors.JaxRuntimeError, match=str(MOST_NUMBERS)):
        jax.block_until_ready(run(fused, False, case, *changes_of(case)))


def test_one_token_is_read_whole_and_absent_ones_not_at_all(backend):
    case = Case(*(np.ones(shape, np.float32) for shape in ((2, 3, 2), (4, 2), (1, 4), (2, 4), (0, 2))))
    case.tokens[0, 1:] = np.nan
    (_, weights), _ = run(backend, True, case, *changes_of(case))
    assert np.array_equal(weights[0], [[1, 1], [0, 0], [0, 0]])


def test_members_are_pooled_as_alone(backend):
    """Whether the sequences, the weights, both or one after the other are stacked."""
    generator = np.random.default_rng(0)
    shapes = ((3, 5, 2), (7, 2), (1, 7), (2, 7), (5, 2))
    members = [Case(*(generator.normal(size=shape).astype(np.float32) for shape in shapes)) for _ in range(3)]
    stacked = Case(*(np.stack(parts) for parts in zip(*members, strict=True)))
    pooled = functools.partial(pooled_by, backend, masks=False)
    alone = [jax.jit(pooled)(*member) for member in members]
    same = assert_trees_equal if backend == "fused" else assert_trees_close
    for i, got in enumerate(zip(*jax.jit(jax.vmap(pooled))(*stacked), strict=True)):
        same(got, alone[i])
    shared = jax.jit(jax.vmap(pooled, in_axes=(None, 0, 0, 0, 0)))(members[0].tokens, *stacked[1:])
    same(jax.tree.map(lambda part: part[0], shared), alone[0])
    spread = jax.jit(jax.vmap(pooled, in_axes=(0, None, None, None, None)))(stacked.tokens, *members[2][1:])
    same(jax.tree.map(lambda part: part[2], spread), alone[2])


def test_scores_that_are_not_numbers_give_none(backend):
    case = Case(*(np.ones(shape, np.float32) for shape in ((1, 2, 1), (1, 1), (1, 1), (1, 1), (0, 1))))
    case.tokens[0, 1] = np.nan
    (pooled, _), _ = run(backend, False, case, *changes_of(case))
    assert np.all(np.isnan(pooled))


# The model.

SPECS = [
    ClassTokenSpec(heads=3, head_dim=2, rank=1, hidden=5, positions="additive", masks_padding=True, beta=2.0),
    pytest.param(ClassTokenSpec(heads=2, head_dim=3, hidden=4), marks=pytest.mark.slow),
    pytest.param(ClassTokenSpec(heads=2, head_dim=3, hidden=4, final_norm=True), marks=pytest.mark.slow),
    pytest.param(ClassTokenSpec(heads=4, head_dim=2, hidden=4, kv_heads=2), marks=pytest.mark.slow),
    pytest.param(ClassTokenSpec(heads=2, head_dim=2, hidden=4, positions="concatenated"), marks=pytest.mark.slow),
]


@pytest.mark.parametrize("spec", SPECS)
def test_a_model_answers_and_learns_as_the_textbook_layer_does(backend, spec):
    model = jax.tree.map(np.asarray, spec.init(0, length=4, dim=2, outputs=2))
    generator = np.random.default_rng(0)
    tokens = generator.normal(size=(3, 4, 2)).astype(np.float32)
    if spec.masks_padding:
        tokens[1, 2:] = np.nan
    wanted = generator.normal(size=(3, 2)).astype(np.float32)

    def slope(answers, model, tokens, wanted):
        return jax.value_and_grad(lambda model: jnp.mean((answers(model, tokens) - wanted) ** 2))(model)

    by_backend = functools.partial(slope, lambda model, tokens: model.answers(tokens, backend=backend))
    got = jax.jit(by_backend)(model, tokens, wanted)
    with jax.enable_x64(True):
        plainly = functools.partial(slope, jax.vmap(textbook.predict, in_axes=(None, 0)))
        want = jax.tree.map(np.asarray, jax.jit(plainly)(*in_double((model, tokens, wanted))))
    assert_trees_close(jax.tree.map(np.asarray, got), want)


def test_the_gradient_of_the_tokens_is_the_references(fused):
    generator = np.random.default_rng(0)
    shapes = ((3, 5, 2), (7, 2), (1, 7), (2, 7), (5, 2))
    case = [generator.normal(size=shape).astype(np.float32) for shape in shapes]

    def slope(by):
        return jax.jit(jax.grad(lambda tokens: jnp.sum(pooled_by(by, tokens, *case[1:], masks=False)[0] ** 2)))(case[0])

    assert_close(slope(fused), slope("reference"))
