"""Parts known by their values alone: nets keep the error they say, and constructions made of them their estimate."""

import jax.numpy as jnp
import numpy as np
import pytest

from headcount.errors import InputError
from headcount.tasks import Retrieval, max_plus_min
from headcount.theory import (
    compare_representations,
    construct,
    construct_roles,
    construct_shared,
    construct_two_layers,
    construct_wide,
    largest_error,
)
from headcount.theory.constructions import fits
from headcount.theory.constructions.fits import SAFETY, sample_points
from headcount.theory.constructions.parts import Fitted, Ridge, RidgeSum, linear

PARTS = {
    "a root": Fitted("a root", lambda x: jnp.sqrt(x[0]), 1),
    "a wave": Fitted("a wave", lambda x: jnp.sin(20 * x[0]), 1),
    "a kink": Fitted("a kink", lambda x: jnp.abs(x[0] - 0.3), 1),
    "a product": Fitted("a product", lambda x: x[0] * x[1], 2),
    "a wave along an axis": Fitted("a wave along an axis", lambda x: (jnp.sin(3 * x[0]) + 1) / 2 * x[1], 2),
    "a bump": Fitted("a bump", lambda x: jnp.exp(-jnp.sum((x - 0.4) ** 2)), 3),
    "a plane": Fitted("a plane", lambda x: x @ jnp.arange(1.0, 6.0) - 2, 5),
}


def answers(net, points) -> np.ndarray:
    first, last = net.layers
    return (np.maximum(points @ first.weight.T + first.bias, 0) @ last.weight.T + last.bias)[:, 0]


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("delta", [0.03, pytest.param(0.003, marks=pytest.mark.slow)])
def test_a_fit_is_within_delta_at_points_it_has_not_seen(name, delta):
    part = PARTS[name]
    net = part.net(delta=delta)
    assert (net.inputs, net.outputs, len(net.layers)) == (part.dim, 1, 2)
    points = np.random.default_rng(1).uniform(0, 1, (5000, part.dim))
    points[::3] = points[::3].round()
    gap = np.abs(answers(net, points) - part.values_at(points)).max()
    assert gap <= delta
    assert net(points[0])[0] == pytest.approx(answers(net, points[:1])[0])


def test_knots_go_where_the_function_bends_so_a_root_is_fitted_at_the_rate_of_a_wave():
    deltas = [0.03 / 2**power for power in range(9)]
    for name in ("a root", "a wave"):
        widths = [PARTS[name].net(delta=delta).widths[0] for delta in deltas]
        assert np.polyfit(-np.log(deltas), np.log(widths), 1)[0] == pytest.approx(0.5, abs=0.05)


def test_what_is_linear_costs_one_unit_an_input_and_a_product_little_more():
    assert PARTS["a plane"].net(delta=1e-6).widths == (5,)
    assert PARTS["a product"].net(delta=0.01).widths == (32,)


def test_the_same_function_gets_the_same_net():
    one, two = (Fitted("f", lambda x: x[0] * x[1] ** 2, 2).net(delta=0.01) for _ in range(2))
    assert all(np.array_equal(a.weight, b.weight) for a, b in zip(one.layers, two.layers, strict=True))


def test_a_wider_cube_is_shrunk_onto_the_functions_own():
    part = PARTS["a root"]
    net = part.net(low=-0.2, high=1.2, delta=0.01)
    points = np.linspace(-0.2, 1.2, 500)[:, None]
    assert np.abs(answers(net, points) - np.sqrt((points[:, 0] + 0.2) / 1.4)).max() <= 0.01


def test_the_slope_seen_covers_the_true_one_and_not_much_more():
    for name, slope in [("a product", 2.0), ("a wave", 20.0), ("a plane", 15.0)]:
        assert slope <= PARTS[name].steepness <= SAFETY * slope + 1e-9


def test_samples_hold_corners_faces_and_inside():
    points = sample_points(3, "held out")
    corners = {tuple(point) for point in points[:8]}
    assert len(corners) == 8
    on_faces = ((points == 0) | (points == 1)).any(axis=1)
    assert 3000 < on_faces.sum() < 5000
    assert len(points) > 20_000
    assert not np.array_equal(points[8:16], sample_points(3, "fit")[8:16])


TWO = [lambda x: x[0] * x[1], lambda x: (jnp.sin(3 * x[0]) + 1) / 2 * x[1]]
SQUARES = [lambda x: x[0] ** 2, lambda x: 1 - x[0]]
SQUARE, FALLING = RidgeSum((Ridge((1.0,), lambda s: s * s, slope=2.0, curvature=2.0),)), linear((-1.0,), 1.0)
TASKS = {
    "sum of two": (Retrieval(TWO, lambda z: z[0] + z[1], length=8, dim=2, distribution="cube"), {}),
    "product of two": (Retrieval(TWO, lambda z: z[0] * z[1], length=8, dim=2, distribution="cube"), {}),
    "a root": (Retrieval([lambda x: jnp.sqrt(x[0])], lambda z: z[0], length=8, dim=1, distribution="cube"), {}),
    "components given": (
        Retrieval(
            SQUARES,
            lambda z: jnp.sin(3 * z[0]) * z[1],
            length=8,
            dim=1,
            distribution="cube",
            windows=[(0, 0.5), (0, 1)],
        ),
        {"components": (SQUARE, FALLING)},
    ),
    "outer given": (
        Retrieval(SQUARES, lambda z: z[0] + 2 * z[1], length=8, dim=1, distribution="cube"),
        {"outer": linear((1.0, 2.0))},
    ),
}


@pytest.mark.parametrize(
    ("name", "eps"),
    [
        ("components given", 0.1),
        pytest.param("product of two", 0.1, marks=pytest.mark.slow),
        *(pytest.param(one, 0.03, marks=pytest.mark.slow) for one in TASKS),
    ],
)
def test_no_adversary_finds_more_than_was_estimated(name, eps):
    task, parts = TASKS[name]
    built = construct(task, eps, **parts)
    assert built.promised <= eps
    assert not built.proved
    found, _ = largest_error(built.model, task, starts=16, steps=60)
    assert found <= built.promised


def test_an_outer_map_that_exists_on_the_cube_only_is_read_there_only():
    # The root is nan a little below 0, where nets of components may reach; on the cube its slope is finite.
    task = Retrieval([lambda x: x[0] ** 2], lambda z: jnp.sqrt(z[0] + 1e-3), length=4, dim=1, distribution="cube")
    built = construct(task, 0.1)
    assert largest_error(built.model, task, starts=32, steps=60)[0] <= built.promised <= 0.1


def test_parts_known_or_given_are_proved_and_the_plain_sum_is_known():
    assert construct(max_plus_min(length=4), 0.1).proved
    task = Retrieval(SQUARES, length=4, dim=1, distribution="cube")
    assert construct(task, 0.1, components=(SQUARE, FALLING)).proved
    assert not construct(task, 0.1).proved


def one(component, outer=lambda z: z[0], **options) -> Retrieval:
    return Retrieval([component], outer, **({"length": 4, "dim": 1, "distribution": "cube", "name": "mine"} | options))


@pytest.mark.parametrize(
    ("task", "eps", "words"),
    [
        (one(lambda x: x[0] + 0.5), 0.1, r"f_1: .* in \[0, 1\], this one ranges from 0\.5 to 1\.5"),
        (one(lambda x: x[0]), 1.0, "eps must be between 0 and 1, got 1.0"),
        (one(lambda x: x[0]), float("nan"), "eps must be between 0 and 1, got nan"),
        (one(lambda x: jnp.sqrt(x[0] - 0.1)), 0.1, "f_1 must be finite on the cube, it is nan at"),
        (one(lambda x: x[0], lambda z: jnp.log(z[0])), 0.1, "outer map must have a finite slope, it is inf"),
        (one(lambda x: x[0], lambda z: jnp.sqrt(z[0])), 0.1, r"outer map must have a finite slope, it is inf at \(0\)"),
        (one(lambda x: x[0], lambda z: z[0] / 0), 0.1, "outer map must"),
        (one(lambda x: x[0], distribution="gaussian"), 0.1, "tokens in the cube, its distribution is gaussian"),
        (one(lambda x: x[0], lambda z: jnp.tile(z, 3)), 0.1, "the task has 3"),
        (one(lambda x: jnp.where(x[0] < 0.3, 0.0, 1.0)), 0.1, "mine: component f_1: no two-layer ReLU net"),
    ],
)
def test_what_cannot_be_fitted_is_refused_in_words(task, eps, words):
    with pytest.raises(InputError, match=words):
        construct(task, eps)


def test_what_is_too_rough_is_refused_with_the_error_reached(monkeypatch):
    monkeypatch.setattr(fits, "MAX_UNITS", 128)
    rough = Fitted("rough", lambda x: jnp.sin(60 * x[0] * x[1]), 2)
    with pytest.raises(InputError, match=r"rough: .* within 0\.01 of it, the best is within [01]\.\d+"):
        rough.net(delta=0.01)


LOW, HIGH = np.array([0.2, 0.3]), np.array([0.8, 0.7])
CLOSED_OVER = Retrieval(
    [lambda x: jnp.sum((x - LOW) ** 2) / 2, lambda x: jnp.dot(x - HIGH, x - HIGH) / 2],
    lambda z: jnp.dot(z, 2 * HIGH),
    length=8,
    dim=2,
    distribution="cube",
    name="arrays closed over",
)
"""JAX met these arrays in float32 when the task was made."""


@pytest.mark.parametrize(
    "construct_model",
    [
        construct,
        construct_shared,
        construct_two_layers,
        construct_wide,
        lambda task, eps: construct_roles(task, eps, heads=1, layers=2),
    ],
    ids=["heads", "shared", "two layers", "wide", "roles"],
)
def test_components_may_close_over_numpy_arrays(construct_model):
    built = construct_model(CLOSED_OVER, 0.3)
    assert largest_error(built.model, CLOSED_OVER, starts=8, steps=20)[0] <= built.promised <= 0.3


def test_representations_that_close_over_numpy_arrays_are_compared():
    assert compare_representations(CLOSED_OVER, CLOSED_OVER, starts=8, steps=5).difference == 0
