"""Theorem 1: minima hold order statistics, inputs come back within the promised error, and it falls at its rate."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.errors import InputError
from headcount.theory.constructions.density import promised_error, retrieval_of

WHOLE = jnp.ravel
"""The function whose values are the inputs themselves: what it gets wrong is what recovery gets wrong."""
TASKS = {(length, dim): retrieval_of(WHOLE, length=length, dim=dim, q=50.0) for length, dim in [(4, 2), (8, 1), (8, 2)]}


def recovered(task, tokens) -> np.ndarray:
    return np.asarray(eqx.filter_jit(task.target)(jnp.asarray(tokens, jnp.float32))).reshape(tokens.shape)


@pytest.mark.parametrize("size", TASKS)
@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**16), distribution=st.sampled_from(["uniform", "corners", "ties", "one apart"]))
def test_every_input_comes_back_within_the_promise(size, seed, distribution):
    generator = np.random.default_rng(seed)
    tokens = generator.uniform(0, 1, size)
    if distribution == "corners":
        tokens = tokens.round()
    elif distribution == "ties":
        tokens = tokens.round(1)
    elif distribution == "one apart":
        tokens[1:] = tokens[1]
    assert np.abs(recovered(TASKS[size], tokens) - tokens).max() <= promised_error(50.0) + 1e-6


def worst_sequence(q: float) -> np.ndarray:
    """All tokens equal but one, above them by the a that makes a / (1 + exp(q a^2)) largest."""
    a = np.linspace(0, 3 / np.sqrt(q), 30001)
    tokens = np.full((8, 1), 0.2)
    tokens[3] += a[np.argmax(a / (1 + np.exp(q * a * a)))]
    return tokens


def test_the_promise_is_attained_and_falls_as_the_root_of_q():
    errors = {}
    for q in (10.0, 100.0, 1000.0):
        tokens = worst_sequence(q)
        errors[q] = np.abs(recovered(retrieval_of(WHOLE, length=8, dim=1, q=q), tokens) - tokens).max()
        assert errors[q] == pytest.approx(promised_error(q), rel=1e-3)
    slope = np.polyfit(np.log(list(errors)), np.log(list(errors.values())), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.01)


def test_the_minima_hold_the_order_statistics():
    task = TASKS[8, 1]
    tokens = np.random.default_rng(0).uniform(0, 1, (8, 1))
    of_x, of_rest = np.asarray(task.retrieved(jnp.asarray(tokens, jnp.float32))).reshape(2, -1)
    ordered = np.sort(tokens[:, 0])
    assert of_x.max() == pytest.approx(ordered[-2], abs=1e-6)
    assert 1 - of_rest.max() == pytest.approx(ordered[1], abs=1e-6)


FUNCTIONS = {
    "ends": (lambda x: x[0, 0] * x[-1, 0], 2.0),
    "parity of places": (lambda x: jnp.sum(x[::2]) - jnp.sum(x[1::2]), 8.0),
    "a wave": (lambda x: jnp.sin(3 * x[2, 0]) + jnp.abs(x[5, 0] - x[6, 0]), 5.0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_continuous_function_is_met_within_its_steepness_times_the_promise(name):
    function, lipschitz = FUNCTIONS[name]
    sequences = jnp.asarray(np.random.default_rng(1).uniform(0, 1, (400, 8, 1)), jnp.float32)
    largest = []
    for q in (30.0, 3000.0):
        task = retrieval_of(function, length=8, dim=1, q=q)
        wanted = np.asarray(jax.jit(jax.vmap(function))(sequences))
        error = np.abs(np.asarray(jax.jit(jax.vmap(task.target))(sequences))[:, 0] - wanted)
        assert error.max() <= promised_error(q, lipschitz) + 1e-5
        largest.append(error.max())
    assert largest[1] < 0.2 * largest[0]


def test_the_task_is_an_ordinary_one_of_the_family():
    task = TASKS[8, 2]
    assert task.intrinsic_dim == 2 * 2 * 28
    assert {len(places) for places in task.position_sets} == {2}
    assert task.examples(20, 20).train.targets.shape == (20, 16)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"length": 6}, "multiple of 4.*, got 6"),
        ({"length": 20}, "15504 sets"),
        ({"q": 0.0}, "q must be positive"),
        ({"dim": 0}, "dim"),
    ],
)
def test_what_cannot_be_built_is_refused(change, words):
    with pytest.raises(InputError, match=words):
        retrieval_of(WHOLE, **({"length": 8, "dim": 1, "q": 1.0} | change))
    with pytest.raises(InputError, match="lipschitz"):
        promised_error(1.0, -1.0)
