"""One head of thermometer codes keeps its promise at every width, with the slope it names, and floors stay below it."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.errors import InputError
from headcount.tasks import Retrieval, max_plus_min, quadratic_basins
from headcount.theory import BoundedClass, construct_thermometer, phase_diagram
from headcount.theory.claims.floors import WEIGHTS, hostile_numbers, weighted_ends
from headcount.theory.floors.thermometer import thermometer_error, thermometer_slope

SLOPE = sum(map(abs, WEIGHTS))


def largest(head, task, tokens) -> float:
    """The largest error over several sequences."""
    with jax.enable_x64(True):
        errors = jax.jit(jax.vmap(lambda each: jnp.abs(head(each) - task.target(each))[0]))(tokens)
        return float(errors.max())


@settings(max_examples=8, deadline=None)
@given(
    length=st.sampled_from([1, 2, 7, 64, 2000]),
    eps=st.floats(0.02, 0.9),
    cells=st.one_of(st.none(), st.integers(1, 130)),
    seed=st.integers(0, 10**6),
)
def test_the_promise_holds_on_hostile_sequences_with_unequal_weights(length, eps, cells, seed):
    task = weighted_ends(length)
    if cells is not None:  # as many as float64 can hold
        cells = max(cells, math.ceil(math.log(length) * SLOPE / (2 * eps) / 700))
    head = construct_thermometer(task, eps, head_dim=cells and 2 * cells, outer_slope=SLOPE)
    assert head.promised <= eps + 1e-11
    assert head.head_dim == (2 * cells if cells else 2 * math.ceil(SLOPE / (2 * eps)))
    assert largest(head, task, hostile_numbers(length, 200, np.random.default_rng(seed))) <= head.promised


def test_the_promise_is_attained():
    """By all tokens but one at one height: where the tokens of a cell stand is lost in their sum."""
    task = weighted_ends(200)
    head = construct_thermometer(task, 0.05, head_dim=20, outer_slope=SLOPE)
    numbers = np.tile(np.linspace(0, 1, 101)[:, None], 200)
    numbers[:, 0] = 1 - numbers[:, 0]
    assert largest(head, task, numbers[..., None]) > 0.9 * head.promised


def test_a_readout_that_swaps_the_components_breaks_the_promise():
    task = weighted_ends(64)
    swapped = Retrieval(
        task.features, lambda z: WEIGHTS[0] * z[1] + WEIGHTS[1] * z[0], length=64, dim=1, distribution="cube"
    )
    head = construct_thermometer(swapped, 0.05, outer_slope=SLOPE)
    assert largest(head, task, hostile_numbers(64, 20, np.random.default_rng(0))) > 10 * head.promised


def test_position_sets_are_kept_apart_and_other_ranges_are_cut():
    task = quadratic_basins(length=16, intrinsic_dim=3, dim=2, windows=[(0, 0.5), (0.5, 1), (0, 0.25)])
    tokens = np.random.default_rng(0).random((50, 16, 2))
    for head_dim in (None, 9):
        head = construct_thermometer(task, 0.1, head_dim=head_dim)
        assert largest(head, task, tokens) <= head.promised <= 0.1 + 1e-11
    shifted = Retrieval(lambda x: 4 * x - 1, lambda z: z[0], length=16, dim=1, distribution="cube")
    head = construct_thermometer(shifted, 0.1, outer_slope=1.0, low=-1.0, high=3.0)
    assert head.head_dim == 20
    assert largest(head, shifted, tokens[..., :1]) <= head.promised


@pytest.mark.parametrize("head_dim", [2, 6, 40])
def test_the_readout_is_no_steeper_than_it_says(head_dim):
    """Along the steepest line, cells near 0, one component up and one down; and between any two outputs."""
    head = construct_thermometer(max_plus_min(length=8), 0.2, head_dim=head_dim)
    least = math.exp(-head.sharpness) if head.sharpness else 1.0
    # Above a minimum of 1 the answer is cut off: the first cell is full, or the only one not empty.
    lowest = 0.0 if head.cells > 1 else 2 * least
    steps = np.linspace(lowest, lowest + 1e-3 * least, 50)[:, None] / 8
    first = np.repeat([True, False], head.cells)  # the outer map is 1 - z_1 + z_2
    line = np.where(first, steps, steps[::-1])
    if head.cells > 1:
        line[:, :: head.cells] = 1 / 8
    drawn = np.random.default_rng(0).random((200, head.head_dim)) ** 8 / 8
    for outputs, shallowest in ((line, 0.2), (drawn, 0.0)):
        with jax.enable_x64(True):
            answers = np.asarray(jax.jit(jax.vmap(head.readout))(outputs))[:, 0]
        distances = np.linalg.norm(np.diff(outputs, axis=0), axis=1)
        steepest = np.max(np.abs(np.diff(answers)) / distances)
        assert shallowest < steepest / 10**head.decades <= 1 + 1e-6


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 10**6), st.floats(1e-3, 0.5), st.integers(1, 300), st.floats(1, 10))
def test_the_slope_of_an_error_promises_that_error(length, eps, cells, outer_slope):
    decades = thermometer_slope(length, eps, cells, outer_slope=outer_slope)
    assert thermometer_error(length, decades * (1 + 1e-9) + 1e-9, cells, outer_slope=outer_slope) <= eps * (1 + 1e-6)
    assert thermometer_error(length, -1.0 - math.log10(cells), cells, outer_slope=0.5) == math.inf
    # A wider head never needs a steeper readout.
    assert thermometer_slope(length, eps, cells + 1, outer_slope=outer_slope) <= decades + 1e-9


def test_the_slope_needed_is_of_the_order_of_the_slope_that_is_enough():
    """log K of the order log T max(1, 1 / (n eps)) from both sides, at long sequences."""
    one, eps = BoundedClass(heads=1, intrinsic_dim=2, length=8), 0.002
    phases = phase_diagram(one, [10**8, 10**10], [eps], outer_slope=2.0, widths=[2, 8, 32, 128, 512, 2048, 8192])
    for phase in phases:
        unit = math.log10(phase.length) * max(1.0, 1 / (phase.head_dim * eps))
        assert 0.05 < phase.fails_below / unit < phase.enough_from / unit < 4


def test_a_head_that_cannot_be_is_refused_with_one_that_can():
    with pytest.raises(InputError, match="head_dim") as refused:
        construct_thermometer(max_plus_min(length=8), 0.1, head_dim=1)
    assert refused.value.given == 1
    task = max_plus_min(length=1000)
    with pytest.raises(InputError, match="head_dim must be at least") as refused:
        construct_thermometer(task, 0.001, head_dim=4)
    least = int(str(refused.value.needed).split()[2])
    assert construct_thermometer(task, 0.001, head_dim=least).sharpness <= 700
    with pytest.raises(InputError):
        construct_thermometer(task, 0.0)
    with pytest.raises(InputError):
        construct_thermometer(weighted_ends(8), 0.1)
