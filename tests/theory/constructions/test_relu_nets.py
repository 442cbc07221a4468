"""A construction's test is its theorem: depth, width and error are the promised ones."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.errors import InputError
from headcount.theory.bounds import max_net_widths
from headcount.theory.constructions.relu_nets import (
    AffineMap,
    ReluNet,
    compose,
    in_parallel,
    interpolation_net,
    max_net,
    min_net,
    pieces_needed,
)

seeds = st.integers(0, 2**16)


def random_net(sizes, seed=0) -> ReluNet:
    generator = np.random.default_rng(seed)
    pairs = zip(sizes[1:], sizes[:-1], strict=True)
    return ReluNet(
        tuple(
            AffineMap(generator.standard_normal((after, before)), generator.standard_normal(after))
            for after, before in pairs
        )
    )


CURVES = {
    "square": (lambda x: x * x, 2.0),
    "sine": (lambda x: math.sin(5 * x), 25.0),
    "exponential": (lambda x: math.exp(x), math.exp(1.5)),
    "line": (lambda x: 3 * x - 1, 0.0),
}


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("delta", [0.01, *(pytest.param(delta, marks=pytest.mark.slow) for delta in (0.3, 1e-4))])
def test_an_interpolant_is_within_delta_everywhere(name, delta):
    function, curvature = CURVES[name]
    net = interpolation_net(function, curvature=curvature, low=-0.5, high=1.5, delta=delta)
    assert len(net.layers) == 2
    assert net.widths == (pieces_needed(curvature, -0.5, 1.5, delta),)
    grid = np.linspace(-0.5, 1.5, 4001)
    errors = [abs(net(np.array([x]))[0] - function(x)) for x in grid]
    assert max(errors) <= delta + 1e-12


def test_the_interpolants_width_grows_as_the_root_of_one_over_delta():
    deltas = [10.0**-power for power in range(1, 7)]
    widths = [pieces_needed(2.0, 0.0, 1.0, delta) for delta in deltas]
    slope = np.polyfit(-np.log(deltas), np.log(widths), 1)[0]
    assert slope == pytest.approx(0.5, abs=0.03)


def test_the_bound_is_attained_by_a_parabola():
    delta = 0.01
    net = interpolation_net(lambda x: x * x, curvature=2.0, low=0.0, high=1.0, delta=delta)
    step = 1 / net.widths[0]
    assert net(np.array([step / 2]))[0] - (step / 2) ** 2 == pytest.approx(step**2 / 4)


@settings(deadline=None)
@given(st.integers(1, 9), st.floats(0.02, 0.9), seeds, st.sampled_from(["any", "ends", "ties"]))
def test_lemma_9_holds_for_maximum_and_minimum(count, eps, seed, distribution):
    numbers = np.random.default_rng(seed).uniform(0, 1, count)
    numbers = {"any": numbers, "ends": numbers.round(), "ties": numbers.round(1)}[distribution]
    largest, smallest = max_net(count, eps), min_net(count, eps)
    assert abs(largest(numbers)[0] - numbers.max()) <= eps + 1e-12
    assert abs(smallest(numbers)[0] - numbers.min()) <= eps + 1e-12
    for net in (largest, smallest):
        assert len(net.layers) == 3
        assert net.widths == max_net_widths(count, eps)
        assert max(net.widths) <= 2 * count * math.ceil(1 / eps)


@settings(deadline=None)
@given(st.integers(1, 6), st.floats(0.05, 0.9), seeds)
def test_numbers_outside_the_range_count_as_its_nearer_end(count, eps, seed):
    numbers = np.random.default_rng(seed).uniform(-0.5, 1.5, count)
    for net in (max_net(count, eps), min_net(count, eps)):
        assert net(numbers)[0] == pytest.approx(net(numbers.clip(0, 1))[0], abs=1e-12)
        assert -1e-12 <= net(numbers)[0] <= 1 + 1e-12


@given(seeds)
def test_lemma_8_composes_two_three_and_two_layers_into_five(seed):
    inner, outer = random_net((3, 5, 2), seed), random_net((2, 6, 1), seed + 2)
    middle = random_net((2, 4, 3, 2), seed + 1)
    whole = compose(inner, middle, outer)
    x = np.random.default_rng(seed).standard_normal(3)
    assert len(whole.layers) == 5
    assert whole(x) == pytest.approx(outer(middle(inner(x))))


@given(seeds)
def test_nets_side_by_side_do_not_meet(seed):
    one, other = random_net((2, 3, 1), seed), random_net((4, 2, 3), seed + 1)
    both = in_parallel([one, other])
    x, y = np.random.default_rng(seed).standard_normal(2), np.random.default_rng(seed + 1).standard_normal(4)
    assert both(np.concatenate([x, y])) == pytest.approx(np.concatenate([one(x), other(y)]))
    assert (both.inputs, both.outputs, both.widths) == (6, 4, (5,))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: compose(random_net((1, 2)), random_net((3, 1))), "3 inputs cannot follow one of 2"),
        (lambda: interpolation_net(lambda _: math.nan, curvature=1.0, low=0.0, high=1.0, delta=0.1), "finite on"),
        (lambda: max_net(0, 0.1), "count"),
        (lambda: max_net(2, 1.0), "eps must be"),
    ],
)
def test_what_cannot_be_built_is_refused(call, words):
    with pytest.raises(InputError, match=words):
        call()
