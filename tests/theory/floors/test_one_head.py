"""One head of D numbers keeps its promise, everywhere, with the slope it names."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount._errors import InputError
from headcount.tasks import max_plus_min, quadratic_basins
from headcount.theory import one_head_answer, one_head_slope
from headcount.theory.floors.one_head import one_head_error

TASK = max_plus_min(length=128)
HEAD = one_head_answer(TASK, 0.007)


def largest(head, task, tokens) -> float:
    """The largest error over several sequences."""
    with jax.enable_x64(True):
        return float(jax.jit(jax.vmap(lambda each: jnp.abs(head(each) - task.target(each))[0]))(tokens).max())


def test_the_promise_holds_with_ties_of_any_number_and_is_attained():
    generator = np.random.default_rng(0)
    tied = generator.integers(1, 128, (300, 1)) > np.arange(128)
    numbers = np.where(tied, *generator.random((2, 300, 1)))
    numbers[::3] += 0.01 * generator.random((100, 128))  # tokens about 1 / b apart
    numbers[0], numbers[0, 0] = 0.0, 1.0  # one maximum, all others tied
    assert 0.99 < largest(HEAD, TASK, np.clip(numbers, 0, 1)[..., None]) / HEAD.promised <= 1


def test_the_readout_is_no_steeper_than_it_says():
    head = one_head_answer(max_plus_min(length=8), 0.2)
    outputs = np.exp(-head.sharpness) * np.ones((100, 2))
    outputs[:, 0] = np.geomspace(outputs[0, 0], 1, 100)
    with jax.enable_x64(True):
        answers = np.asarray(jax.jit(jax.vmap(head.readout))(outputs))[:, 0]
    steepest = np.max(np.abs(np.diff(answers)) / np.diff(outputs[:, 0]))
    assert 0.3 < steepest / 10**head.decades <= 1


def test_position_sets_are_kept_apart():
    task = quadratic_basins(length=16, intrinsic_dim=3, dim=2, windows=[(0, 0.5), (0.5, 1), (0, 0.25)])
    head = one_head_answer(task, 0.02)
    assert head.head_dim == 3
    assert largest(head, task, np.random.default_rng(0).random((20, 16, 2))) <= head.promised


@settings(max_examples=15, deadline=None)
@given(st.integers(2, 10**6), st.floats(1e-3, 0.5), st.floats(1, 10))
def test_the_slope_of_an_error_promises_that_error(length, eps, outer_slope):
    decades = one_head_slope(length, eps, outer_slope=outer_slope)
    assert one_head_error(length, decades, outer_slope=outer_slope) <= eps * (1 + 1e-6)


def test_an_error_too_small_for_float64_is_refused_with_one_that_is_not():
    with pytest.raises(InputError, match="eps must be at least") as refused:
        one_head_answer(TASK, 0.001)
    assert refused.value.given == 0.001
    with pytest.raises(InputError):
        one_head_answer(TASK, 0.1, low=1.0, high=0.0)
