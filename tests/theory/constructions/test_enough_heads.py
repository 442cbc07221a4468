"""Theorem 2(1): the model is built, its promise is within eps, no adversary breaks it, its size grows at the rate."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import lambertw

from headcount.errors import InputError
from headcount.models import folded
from headcount.tasks import Retrieval, max_plus_min, quadratic_basins, sum_of_maxima
from headcount.theory import construct, largest_error
from headcount.theory.constructions.parts import Ridge, RidgeSum, linear

from ...helpers import textbook

HALVES = [(0.0, 0.5), (0.5, 1.0)]
WAVE = RidgeSum((Ridge((0.5, 0.5), lambda s: 0.5 + 0.4 * np.sin(4 * s), slope=1.6, curvature=6.4),))
TILT = linear((0.3, 0.6), 0.05)
PRODUCT = RidgeSum(
    (
        Ridge((1.0, 1.0), lambda s: s * s / 4, slope=1.2, curvature=0.5),
        Ridge((1.0, -1.0), lambda s: -s * s / 4, slope=0.7, curvature=0.5),
    )
)
"""z_1 z_2 as a difference of squares."""


def own_task(length: int = 8) -> Retrieval:
    """A user's own: a wave and a tilted plane, multiplied."""
    return Retrieval(
        [lambda x: 0.5 + 0.4 * jnp.sin(2 * (x[0] + x[1])), lambda x: 0.3 * x[0] + 0.6 * x[1] + 0.05],
        lambda z: z[0] * z[1],
        length=length,
        dim=2,
        distribution="cube",
        name="own",
    )


CASES = {
    "max plus min": (max_plus_min(length=8), {}),
    "max plus min of halves": (max_plus_min(length=8, windows=HALVES), {}),
    "three basins in the plane": (quadratic_basins(length=8, intrinsic_dim=3, dim=2), {}),
    "basins of halves": (quadratic_basins(length=8, intrinsic_dim=2, dim=2, windows=HALVES), {}),
    "a user's own": (own_task(), {"components": (WAVE, TILT), "outer": PRODUCT}),
}


@pytest.mark.parametrize(
    ("name", "eps"),
    [("a user's own", 0.03), pytest.param("basins of halves", 0.03, marks=pytest.mark.slow)]
    + [pytest.param(name, eps, marks=pytest.mark.slow) for name in CASES for eps in (0.1, 0.01)],
)
def test_no_adversary_finds_more_than_was_promised(name, eps):
    task, parts = CASES[name]
    built = construct(task, eps, **parts)
    assert built.promised <= eps
    assert built.proved
    found, where = largest_error(built.model, task, starts=32, steps=120)
    assert 0 <= found <= built.promised
    assert where.shape == (task.length, task.dim)
    assert where.min() >= 0
    assert where.max() <= 1


def test_the_model_is_an_ordinary_one_with_d_heads_of_two_numbers():
    task, parts = CASES["a user's own"]
    built = construct(task, 0.05, **parts)
    assert built.model.attention[0].query.shape == (2, 2, 4)
    tokens = np.random.default_rng(0).uniform(0, 1, (8, 2))
    with jax.enable_x64(True):
        wide = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), built.model)
        one, other = (jax.jit(way.predict)(wide, jnp.asarray(tokens)) for way in (folded, textbook))
        assert one == pytest.approx(other)


def test_places_outside_a_heads_set_do_not_move_it():
    task, _ = CASES["max plus min of halves"]
    built = construct(task, 0.01)
    tokens = np.full((8, 1), 0.5)
    with jax.enable_x64(True):
        wide = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), built.model)
        # The maximum is over the first half and the minimum over the second: each is blind to the other's extremes.
        tokens[1], tokens[6] = 0.0, 1.0
        assert folded.predict(wide, jnp.asarray(tokens))[0] == pytest.approx(1.0, abs=1e-3)


def test_the_size_grows_as_the_root_of_one_over_eps():
    task, _ = CASES["three basins in the plane"]
    epses = [0.1 / 4**i for i in range(6)]
    sizes = [construct(task, eps).parameters for eps in epses]
    assert np.polyfit(-np.log(epses), np.log(sizes), 1)[0] == pytest.approx(0.5, abs=0.05)


def test_a_flat_outer_map_does_not_make_the_nets_coarser_than_the_gate_allows():
    task = Retrieval(
        [lambda x: x[0] ** 2], lambda z: 1e-3 * z[0], length=8, dim=1, distribution="cube", windows=[(0.0, 0.5)]
    )
    square = RidgeSum((Ridge((1.0,), lambda s: s * s, slope=2.0, curvature=2.0),))
    built = construct(task, 0.5, components=(square,), outer=linear((1e-3,)))
    assert built.delta == 0.1
    assert built.promised <= 0.5
    assert largest_error(built.model, task, starts=16, steps=60)[0] <= built.promised


def test_an_adversary_finds_what_is_wrong_with_a_wrong_model():
    task, _ = CASES["max plus min"]
    other = construct(max_plus_min(length=8, windows=HALVES), 0.01)
    found, _ = largest_error(other.model, task, starts=32, steps=120)
    assert found > 0.5


def test_an_adversary_looks_at_every_output_and_an_answer_that_is_no_number_is_infinitely_wrong():
    task = Retrieval([lambda x: x[0]], lambda z: jnp.stack([z[0], z[0]]), length=2, dim=1, distribution="cube")
    few = {"starts": 4, "steps": 2}
    assert largest_error(lambda x: task.target(x) + jnp.array([0.0, 3.0]), task, **few)[0] == pytest.approx(3)
    assert largest_error(lambda x: task.target(x) * jnp.nan, task, **few)[0] == np.inf
    # A root has no slope at 0, where corners start: its answers are finite all the same.
    root = largest_error(lambda x: task.target(x) + jnp.sqrt(jnp.abs(jnp.sum(x) - jnp.sum(x))), task, **few)
    assert root[0] == 0
    assert np.isfinite(root[1]).all()


@pytest.mark.parametrize("length", [8, pytest.param(32, marks=pytest.mark.slow)])
def test_an_adversary_finds_the_worst_case_of_the_softmax(length):
    """One token ahead by a of |S| - 1 others: the head is off by (|S| - 1) a / (|S| - 1 + e^(beta a)), at most
    W((|S| - 1) / e) / beta. The linear components cost nothing, and max + min reads one head this wrong."""
    task = max_plus_min(length=length)
    built = construct(task, 0.01)
    worst = float(lambertw((length - 1) / np.e).real) / built.beta
    error, _ = largest_error(built.model, task, starts=32, steps=100)
    assert 0.8 * worst <= error <= 1.1 * worst
    assert worst <= (length - 1) / (np.e * built.beta)


@pytest.mark.parametrize(
    ("stated", "what", "seen"),
    [({"slope": 2.3, "curvature": 1.0}, "curvature", 2.0), ({"slope": 1.0, "curvature": 2.0}, "slope", 2.0)],
)
def test_a_ridge_that_states_too_little_is_refused(stated, what, seen):
    """An understated curvature gives too few pieces, an understated slope of F0 too small a beta."""
    task = Retrieval([lambda x: x[0] ** 2], lambda z: z[0] ** 2, length=4, dim=1, distribution="cube")
    honest = RidgeSum((Ridge((1.0,), lambda s: s * s, slope=2.3, curvature=2.0),))
    wrong = RidgeSum((Ridge((1.0,), lambda s: s * s, **stated),))
    assert construct(task, 0.1, components=(honest,), outer=honest).proved
    for parts in ({"components": (wrong,), "outer": honest}, {"components": (honest,), "outer": wrong}):
        with pytest.raises(InputError) as refused:
            construct(task, 0.1, **parts)
        assert refused.value.what == what
        assert refused.value.given == stated[what]
        assert float(refused.value.needed.split()[-1]) == pytest.approx(seen, rel=0.15)


def test_a_ridge_that_keeps_its_statement_at_equally_spaced_points_only_is_refused():
    wave = Ridge((1.0,), lambda s: s + 0.01 * np.sin(1000 * np.pi * s), slope=1.0, curvature=0.0)
    with pytest.raises(InputError) as refused:
        wave.check(0.0, 1.0)
    assert refused.value.what == "curvature"


def test_a_ridge_in_single_precision_is_not_refused_for_its_rounding():
    half = np.float32(0.5)
    for function in (lambda s: np.float32(np.sin(3 * s)) * half, lambda s: float(jnp.sin(jnp.float32(3 * s)) / 2)):
        Ridge((1.0,), function, slope=1.5, curvature=4.5).check(0.0, 1.0)


@pytest.mark.parametrize("total", [WAVE, TILT, PRODUCT])
def test_a_sum_of_ridges_is_its_net_within_delta_and_no_steeper_than_it_says(total):
    net = total.net(low=0.0, high=1.0, delta=1e-3)
    tokens = np.random.default_rng(0).uniform(0, 1, (300, 2))
    assert max(abs(net(x)[0] - total(x)) for x in tokens) <= 1e-3 + 1e-12
    for x, y in zip(tokens[:150], tokens[150:], strict=True):
        assert abs(total(x) - total(y)) <= total.steepness * np.abs(x - y).max() + 1e-12


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: construct(max_plus_min(length=8), 0.0), "eps must be between 0 and 1"),
        (lambda: construct(sum_of_maxima(length=8), 0.1), "tokens in the cube"),
        (
            lambda: construct(sum_of_maxima(length=8, distribution="cube"), 0.1),
            r"components in \[0, 1\], this one ranges from 0 to 1\.75",
        ),
        (lambda: construct(own_task(), 0.1, components=(TILT, WAVE), outer=PRODUCT), "f_1: the given part differs"),
        (lambda: construct(own_task(), 0.1, components=(WAVE,), outer=PRODUCT), "has 2 components, got 1"),
        (lambda: construct(own_task(), 0.1, components=(WAVE, TILT), outer=TILT), "outer map: the given part differs"),
        (
            lambda: construct(
                Retrieval([lambda x: 3 * x[0]], lambda z: z[0], length=4, dim=1, distribution="cube"),
                0.1,
                components=(linear((3.0,)),),
                outer=linear((1.0,)),
            ),
            r"components in \[0, 1\], .* to 3",
        ),
    ],
)
def test_what_the_theorem_does_not_cover_is_refused(build, words):
    with pytest.raises(InputError, match=words):
        build()
