"""Models of several layers: the promise is kept, in the class it is promised for, and not without what it rests on."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount._precision import in_double
from headcount.errors import InputError
from headcount.models import folded
from headcount.tasks import max_plus_min, quadratic_basins, sum_of_maxima
from headcount.theory import (
    construct,
    construct_by_content,
    construct_roles,
    construct_two_layers,
    largest_error,
    roles,
    roles_of_maxima,
)

from ...helpers import textbook

HALVES = [(0.0, 0.5), (0.5, 1.0)]


def basins(intrinsic_dim, length=8, **options):
    return quadratic_basins(length=length, intrinsic_dim=intrinsic_dim, dim=2, **options)


CASES = {
    "roles, L = 2, h = 1": lambda eps: (basins(3), construct_roles(basins(3), eps, heads=1, layers=2)),
    "roles of halves, L = 2, h = 2": lambda eps: (
        task := basins(6, windows=3 * HALVES),
        construct_roles(task, eps, heads=2, layers=2),
    ),
    "roles, L = 3, h = 1": lambda eps: (basins(5), construct_roles(basins(5), eps, heads=1, layers=3)),
    "roles to spare": lambda eps: (basins(4), construct_roles(basins(4), eps, heads=2, layers=3)),
    "two layers, D = 3": lambda eps: (basins(3), construct_two_layers(basins(3), eps)),
    "two layers of halves, D = 6": lambda eps: (
        task := basins(6, 12, windows=3 * HALVES),
        construct_two_layers(task, eps),
    ),
    "two layers, D = 12": lambda eps: (basins(12, 32), construct_two_layers(basins(12, 32), eps)),
}
QUICK = ("roles of halves, L = 2, h = 2", "two layers, D = 3")


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CASES]
)
@pytest.mark.slow
def test_no_adversary_finds_more_than_was_promised(name):
    task, built = CASES[name](0.1)
    assert built.proved
    assert built.promised <= 0.1
    assert built.model.spec.layers * built.model.spec.heads < len(task.position_sets) or name == "roles to spare"
    found, _ = largest_error(built.model, task, starts=16, steps=60)
    assert 0 < found <= built.promised


@pytest.mark.slow
@pytest.mark.parametrize(("intrinsic_dim", "length"), [(3, 512), (12, 512)])
def test_two_layers_keep_their_promise_on_long_sequences(intrinsic_dim, length):
    task = basins(intrinsic_dim, length)
    built = construct_two_layers(task, 0.2)
    tokens = np.random.default_rng(0).uniform(0, 1, (20, length, 2))
    assert largest_of(built.model, task, tokens) <= built.promised


def largest_of(model, task, tokens) -> float:
    with jax.enable_x64(True):
        wide, exact = in_double((model, task))
        errors = jax.jit(jax.vmap(lambda x: jnp.abs(wide(x) - exact.target(x))))(jnp.asarray(tokens))
        return float(errors.max())


@pytest.mark.parametrize(
    "build",
    [
        lambda task, eps: construct_roles(task, eps, heads=1, layers=2),
        pytest.param(construct_two_layers, marks=pytest.mark.slow),
    ],
)
def test_the_error_falls_as_one_over_beta(build):
    """At the head's own worst case: all tokens but one lie 1 / beta above the minimum."""
    task, errors, betas = max_plus_min(length=8), [], []
    for eps in (0.4, 0.1, 0.025):
        built = build(task, eps)
        tokens = np.full((1, 8, 1), 0.3 + 1.28 / built.beta)
        tokens[0, 0] = 0.3
        tokens[0, 1] = 0.9
        errors.append(largest_of(built.model, task, tokens))
        betas.append(built.beta)
    assert np.polyfit(np.log(betas), np.log(errors), 1)[0] == pytest.approx(-1, abs=0.05)


def test_nothing_but_the_sharpness_depends_on_the_length():
    short, long = (construct_roles(basins(3, length), 0.1, heads=1, layers=2) for length in (8, 512))
    assert long.parameters == short.parameters
    assert long.model.spec.total_dim == short.model.spec.total_dim
    assert long.beta > short.beta


def test_the_models_are_ordinary_ones():
    task = basins(3)
    one, other = construct_roles(task, 0.2, heads=1, layers=2).model, construct_two_layers(task, 0.2).model
    assert (one.spec.positions, one.spec.inner_hidden, len(one.inner)) == ("none", 0, 0)
    assert (other.spec.positions, other.spec.inner_hidden, other.spec.rank) == ("additive", 3, 3)
    tokens = np.random.default_rng(0).uniform(0, 1, (8, 2))
    with jax.enable_x64(True):
        for model in in_double((one, other)):
            ways = [jax.jit(way.predict)(model, jnp.asarray(tokens)) for way in (folded, textbook)]
            assert ways[0] == pytest.approx(ways[1])


def test_one_layer_of_roles_is_theorem_2():
    task = max_plus_min(length=8)
    one, other = construct_roles(task, 0.1, heads=2, layers=1), construct(task, 0.1)
    tokens = np.random.default_rng(0).uniform(0, 1, (5, 8, 1))
    assert (one.promised, roles(2, 1)) == (other.promised, 2)
    assert largest_of(one.model, task, tokens) == pytest.approx(largest_of(other.model, task, tokens), abs=1e-9)


@pytest.mark.slow
def test_without_its_net_or_labels_it_fails():
    task = basins(3)
    built = construct_two_layers(task, 0.1)
    tokens = np.random.default_rng(0).uniform(0, 1, (64, 8, 2))
    assert largest_of(built.model, task, tokens) <= built.promised
    silent = eqx.tree_at(lambda model: model.position_table, built.model, replace_fn=np.zeros_like)
    open_net = eqx.tree_at(lambda model: model.inner[0].first.bias, built.model, replace_fn=np.zeros_like)
    for broken in (silent, open_net):
        assert largest_of(broken, task, tokens) > 3 * built.promised


def test_too_many_components_are_refused_with_what_would_do():
    with pytest.raises(InputError, match=r"4.*3") as refused:
        construct_roles(basins(4), 0.1, heads=1, layers=2)
    assert refused.value.given == 4
    with pytest.raises(InputError, match=r"6.*4") as refused:
        construct_two_layers(basins(6, 4), 0.1)
    assert refused.value.given == 4


def test_two_layers_of_two_heads_have_eight_maxima_of_random_sequences():
    task = sum_of_maxima(length=32, intrinsic_dim=8, dim=6)
    model = construct_by_content(task)
    assert (model.spec.layers, model.spec.heads, model.spec.positions, model.inner) == (2, 2, "none", ())
    tokens = np.random.default_rng(0).standard_normal((100, 32, 6))
    assert largest_of(model, task, tokens) < 0.05
    for other in (basins(8), sum_of_maxima(intrinsic_dim=7)):
        with pytest.raises(InputError, match=other.name):
            construct_by_content(other)


@pytest.mark.parametrize(
    ("heads", "layers"), [(1, 3), *(pytest.param(*shape, marks=pytest.mark.slow) for shape in ((1, 2), (2, 2), (2, 4)))]
)
def test_the_roles_solve_maxima_in_the_class_that_the_study_trains(heads, layers):
    task = sum_of_maxima(length=16, intrinsic_dim=roles(heads, layers), dim=6)
    model = roles_of_maxima(task, heads=heads, layers=layers)
    assert model.spec.total_dim <= 36
    assert model.spec.hidden <= 32
    tokens = np.random.default_rng(0).standard_normal((100, 16, 6))
    assert largest_of(model, task, tokens) < 0.05
