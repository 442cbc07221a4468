"""One head of D numbers keeps its promise, everywhere, with the slope it names."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.errors import InputError
from headcount.tasks import Retrieval, max_plus_min, quadratic_basins
from headcount.tasks.presets import ScalarEnds
from headcount.theory import counting_slope, one_head_answer, one_head_slope
from headcount.theory.floors.one_head import counting_error, one_head_error

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


def test_an_outer_map_that_is_steep_outside_the_range_is_not_evaluated_there():
    outer = lambda z: jnp.sum(z) + 1e6 * jnp.sum(jnp.maximum(-z, 0) ** 2)  # noqa: E731
    task = Retrieval(ScalarEnds(), outer, length=4, dim=1, distribution="cube")
    head = one_head_answer(task, 0.05, outer_slope=2.0)
    assert largest(head, task, np.array([[[0.0], [1.0], [1.0], [1.0]], [[0.0], [0.0], [0.0], [1.0]]])) <= head.promised


def test_the_slope_of_an_outer_map_that_is_not_known_must_be_given():
    task = Retrieval(ScalarEnds(), lambda z: 10 * z[0] - 7 * z[1], length=4, dim=1, distribution="cube")
    with pytest.raises(InputError) as refused:
        one_head_answer(task, 0.05)
    assert refused.value.what == "outer_slope"
    head = one_head_answer(task, 0.2, outer_slope=17.0)
    assert largest(head, task, np.array([[[0.0], [1.0], [1.0], [1.0]], [[0.0], [0.0], [0.0], [1.0]]])) <= head.promised


def sum_weights(prime: int, length: int) -> tuple[int, ...]:
    """`prime` whole numbers below prime^length whose multisets of `length` have different sums; for small sizes."""
    if length == 1:
        return tuple(range(prime))
    for lowest in itertools.product(range(prime), repeat=length):
        # x^length = sum of lowest[j] x^j; x generates the field where it takes all other elements first.
        powers, element = {}, (1, *[0] * (length - 1))
        for exponent in range(prime**length - 1):
            if element in powers:
                break
            powers[element] = exponent
            top = element[-1]
            shifted = (0, *element[:-1])
            element = tuple((low + top * each) % prime for low, each in zip(shifted, lowest, strict=True))
        if len(powers) == prime**length - 1:
            return tuple(powers[(c, 1, *[0] * (length - 2))] for c in range(prime))
    raise AssertionError("every finite field has a generator")


@pytest.mark.parametrize(("prime", "length"), [(5, 3), (13, 2), (2, 5), (7, 1)])
def test_a_head_that_counts_answers_with_the_slope_it_promises(prime, length):
    """All sequences of cells of max + min: the steepest pair is within the slope, and no two share an output."""
    cells = np.array(list(itertools.combinations_with_replacement(range(prime), length)))
    weights = np.array(sum_weights(prime, length))
    assert weights.max() < prime**length
    outputs = weights[cells].mean(axis=1) / prime**length
    ordered = np.argsort(outputs)
    minima = (cells.min(axis=1)[ordered] + 0.5) / prime
    distances = np.diff(outputs[ordered])
    assert distances.min() > 0
    steepest = 2 * np.max(np.abs(np.diff(minima)) / distances)  # two numbers, each as steep
    assert steepest <= 10 ** counting_slope(length, 1 / prime, outer_slope=2.0) * (1 + 1e-9)


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 100), st.floats(1e-3, 0.5), st.floats(1, 10))
def test_the_slope_of_counting_promises_its_error(length, eps, outer_slope):
    decades = counting_slope(length, eps, outer_slope=outer_slope)
    assert counting_error(length, decades * (1 + 1e-9), outer_slope=outer_slope) <= eps
    assert counting_error(length, -1.0, outer_slope=outer_slope) == np.inf
