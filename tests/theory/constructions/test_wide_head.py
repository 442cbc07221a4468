"""Theorem 2(3): one head averages, five layers do the work, the promise is kept and the size is the one counted."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount._precision import in_double
from headcount.errors import InputError
from headcount.models import folded
from headcount.tasks import Retrieval, max_plus_min, quadratic_basins
from headcount.theory.constructions.adversary import largest_error
from headcount.theory.constructions.parts import Ridge, RidgeSum, linear
from headcount.theory.constructions.wide_head import WideConstruction, construct_wide, wide_size

from ...helpers import textbook

HALVES = [(0.0, 0.5), (0.5, 1.0)]
SQUARE = RidgeSum((Ridge((1.0,), lambda s: s * s, slope=2.0, curvature=2.0),))
CASES = {
    "max plus min": (max_plus_min(length=8), {}),
    "max plus min of halves": (max_plus_min(length=8, windows=HALVES), {}),
    "two basins in the plane": (quadratic_basins(length=4, intrinsic_dim=2, dim=2), {}),
    "fitted": (
        Retrieval(
            [lambda x: x[0] * x[1], lambda x: (jnp.sin(3 * x[0]) + 1) / 2 * x[1]],
            lambda z: z[0] * z[1],
            length=4,
            dim=2,
            distribution="cube",
        ),
        {},
    ),
    "given": (
        Retrieval([lambda x: x[0] ** 2], lambda z: 2 * z[0], length=5, dim=1, distribution="cube"),
        {"components": (SQUARE,), "outer": linear((2.0,))},
    ),
}


@functools.cache
def built_at(name: str, eps: float) -> WideConstruction:
    task, parts = CASES[name]
    return construct_wide(task, eps, **parts)


@pytest.mark.parametrize(
    ("name", "eps"),
    [
        ("fitted", 0.1),
        pytest.param("max plus min of halves", 0.1, marks=pytest.mark.slow),
        *(pytest.param(one, 0.03, marks=pytest.mark.slow) for one in CASES),
    ],
)
def test_no_adversary_finds_more_than_was_promised(name, eps):
    built = built_at(name, eps)
    assert built.promised <= eps
    assert built.proved == (name != "fitted")
    found, _ = largest_error(built.model, CASES[name][0], starts=12, steps=50)
    assert 0 < found <= built.promised


@pytest.mark.parametrize("name", CASES)
def test_it_has_five_layers_of_the_widths_and_the_size_counted(name):
    task, parts = CASES[name]
    built = built_at(name, 0.1)
    layers, head = built.model.layers, built.model.head
    assert tuple(len(layer.bias) for layer in layers) == (*built.widths, 1)
    nets = (head.encoder_in, head.encoder_out, *layers)
    assert wide_size(task, 0.1, **parts) == built.parameters == sum(net.weight.size + net.bias.size for net in nets)
    used = sum(np.count_nonzero(net.weight) + net.bias.size for net in nets)
    assert used <= wide_size(task, 0.1, **parts, zeros=False) <= 1.1 * used


def test_the_head_really_averages():
    length, dim = 5, 3
    task = quadratic_basins(length=length, intrinsic_dim=1, dim=dim)
    tokens = np.random.default_rng(0).uniform(0, 1, (length, dim))
    tokens[0] = 1.0  # where a unit of another place is nearest to opening
    with jax.enable_x64(True):
        head = in_double(construct_wide(task, 0.3).model.head)
        assert head.attention[0].query.shape == (1, length * dim, length * dim)
        read = jax.jit(folded.class_output)(head, jnp.asarray(tokens))
        np.testing.assert_allclose(read, tokens.ravel() / length, rtol=1e-14)
        embedded = jax.jit(textbook.embed)(head, jnp.asarray(tokens))
        blocks = np.asarray(embedded).reshape(length, length, dim)
        np.testing.assert_array_equal(blocks[~np.eye(length, dtype=bool)], 0.0)
        attended = textbook.attend(head.spec, head.attention[0], head.class_token, embedded)
        np.testing.assert_allclose(attended, tokens.ravel() / length, rtol=1e-14)


def test_places_outside_a_set_do_not_matter():
    model = built_at("max plus min of halves", 0.1).model
    tokens = np.full((8, 1), 0.5)
    tokens[1], tokens[6] = 0.0, 1.0  # the maximum is over the first half, the minimum over the second
    with jax.enable_x64(True):
        assert in_double(model)(jnp.asarray(tokens))[0] == pytest.approx(1.0, abs=0.1)


def rate(task, epses, **options) -> float:
    sizes = [wide_size(task, eps, **options) for eps in epses]
    return float(np.polyfit(-np.log(epses), np.log(sizes), 1)[0])


def test_the_size_grows_at_the_published_rate_where_zeros_are_not_counted():
    epses = [0.01 / 8**i for i in range(4)]
    basins, ends = quadratic_basins(length=4, intrinsic_dim=2, dim=2), max_plus_min(length=4)
    assert rate(basins, epses, zeros=False) == pytest.approx(1.5, abs=0.05)
    assert rate(ends, epses, zeros=False) == pytest.approx(1.0, abs=0.05)
    # A matrix of N |S| times N numbers stands in the minimum's net, whatever the components cost.
    assert rate(basins, epses) == pytest.approx(2.0, abs=0.05)
    assert rate(ends, epses) == pytest.approx(2.0, abs=0.05)


@pytest.mark.parametrize("zeros", [True, False])
def test_the_size_grows_as_the_length(zeros):
    lengths = [8, 16, 32, 64]
    sizes = [wide_size(max_plus_min(length=length), 0.003, zeros=zeros) for length in lengths]
    assert np.polyfit(np.log(lengths), np.log(sizes), 1)[0] == pytest.approx(1.0, abs=0.05)


def test_the_adversary_takes_any_function_of_a_sequence():
    task = max_plus_min(length=4)
    assert largest_error(task.target, task, starts=4, steps=5)[0] == pytest.approx(0.0, abs=1e-12)
    found, where = largest_error(lambda tokens: jnp.zeros(1) + jnp.mean(tokens), task, starts=16, steps=60)
    assert found > 0.9
    assert found == pytest.approx(abs(where.max() + where.min() - where.mean()))


@pytest.mark.parametrize(
    ("task", "eps", "words"),
    [
        (quadratic_basins(length=8), 0.01, "has 64,3.* weights and biases, more than 20,000,000"),
        (max_plus_min(length=8), 0.0, "eps must be between 0 and 1, got 0.0"),
        # What `parts_of` refuses is tried in full with Theorem 2(1).
        (Retrieval([lambda x: x[0]], length=4, dim=1), 0.1, "tokens in the cube, its distribution is gaussian"),
    ],
)
def test_what_the_theorem_does_not_cover_is_refused(task, eps, words):
    with pytest.raises(InputError, match=words):
        construct_wide(task, eps)
