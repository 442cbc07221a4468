"""Nearest and farthest points are what a search over all points finds; draws follow their distribution."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy import stats

from headcount.tasks import BiasedNearestNeighbour, Examples, FarthestPoint, NearestNeighbour, Split, require_on_sphere
from headcount.tasks.base import check_examples

from ..helpers.compiling import compile_quickly  # noqa: F401
from ..helpers.refusals import refused
from ..helpers.tolerance import assert_close, assert_trees_equal


def nearest(**changes):
    return NearestNeighbour(**({"length": 5, "dim": 4} | changes))


def farthest(**changes):
    return FarthestPoint(**({"length": 5, "dim": 4} | changes))


def biased(**changes):
    return BiasedNearestNeighbour(**({"dim": 4} | changes))


COUNT = 1000


@eqx.filter_jit
def draw_and_answer(task):
    tokens = jax.vmap(task.sample)(jr.split(jr.key(0), COUNT))
    return tokens, jax.vmap(task.target)(tokens)


def drawn(task):
    """Tokens of COUNT sequences."""
    return np.asarray(draw_and_answer(task)[0])


def answered(task):
    """The same and their targets."""
    return tuple(np.asarray(part) for part in draw_and_answer(task))


@eqx.filter_jit
def answers(task, tokens):
    return jax.vmap(task.target)(tokens)


TASKS = {
    "nearest": nearest,
    "nearest of orthogonal": lambda: nearest(points="orthogonal"),
    "nearest of doubled": lambda: nearest(points="doubled"),
    "farthest": farthest,
    "one term": lambda: biased(terms=1),
    "five terms": lambda: biased(terms=5),
}
every_task = pytest.mark.parametrize("make", TASKS.values(), ids=TASKS.keys())


# Targets, against a search in float64.


@pytest.mark.parametrize("points", ["uniform", "orthogonal", "doubled"])
def test_the_nearest_neighbour_is_the_point_at_the_least_distance(points):
    tokens, targets = answered(nearest(points=points))
    distances = np.linalg.norm(tokens[:, :-1].astype(np.float64) - tokens[:, -1:], axis=-1)
    assert np.array_equal(targets, tokens[np.arange(COUNT), np.argmin(distances, axis=1)])


def test_the_farthest_point_is_the_one_at_the_greatest_distance():
    tokens, targets = answered(farthest())
    distances = np.linalg.norm(tokens[:, :, None].astype(np.float64) - tokens[:, None], axis=-1)
    assert np.array_equal(targets, tokens[np.arange(COUNT)[:, None], np.argmax(distances, axis=2)])


def test_each_of_two_points_is_the_farthest_from_the_other():
    tokens, targets = answered(farthest(length=2, points="orthogonal"))
    assert np.array_equal(targets, tokens[:, ::-1])


@pytest.mark.parametrize("terms", [1, 5])
def test_the_biased_nearest_neighbour_is_its_alternating_sum(terms):
    task = biased(terms=terms)
    tokens, targets = answered(task)
    first, second, query = np.moveaxis(tokens.astype(np.float64), 1, 0)
    lead = np.sum((first - second) * query, axis=-1)
    total = np.zeros_like(first)
    for j, bias in enumerate(np.asarray(task.biases)):
        total += (-1) ** j * np.where(lead[:, None] > bias, first, second)
    assert_close(targets, total)


def test_one_term_is_the_nearest_neighbour():
    task = biased(terms=1)
    tokens, targets = answered(task)
    assert_trees_equal(task.biases, np.zeros(1, np.float32))
    assert np.array_equal(targets, answers(nearest(length=3), tokens))


# Symmetries.


@every_task
def test_a_rotation_of_the_tokens_rotates_the_target(make):
    task = make()
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0].astype(np.float32)
    tokens, targets = answered(task)
    assert_close(answers(task, tokens @ rotation), targets @ rotation)


@every_task
def test_the_order_of_the_points_does_not_matter(make):
    task = make()
    tokens, targets = answered(task)
    count = task.length - (task.answered_at == "query")
    order = np.concatenate([np.roll(np.arange(count), 1), np.arange(count, task.length)])
    want = targets[:, order] if task.answered_at == "tokens" else targets
    assert np.array_equal(answers(task, tokens[:, order]), want)
    assert not task.uses_positions


# Distributions of the draws.


@every_task
def test_tokens_lie_on_the_sphere_and_prefer_no_direction(make):
    tokens = drawn(make())
    assert_close(np.linalg.norm(tokens, axis=-1), np.ones(tokens.shape[:2], np.float32))
    for sequence in tokens[:3]:
        require_on_sphere(sequence)
    for place in range(tokens.shape[1]):
        points = tokens[:, place]
        # Coordinates have mean 0 and variance 1/4, their products variance below 1/8: five standard errors.
        assert np.abs(points.mean(axis=0)).max() < 5 * (1 / 4 / COUNT) ** 0.5
        assert np.abs(points.T @ points / COUNT - np.eye(4) / 4).max() < 5 * (1 / 8 / COUNT) ** 0.5


def test_uniform_points_and_the_query_are_independent():
    tokens = drawn(nearest())
    products = np.einsum("eid,ejd->ije", tokens, tokens)[np.triu_indices(5, 1)]
    # For each pair an inner product of mean 0 and variance 1/4: five standard errors.
    assert np.abs(products.mean(axis=1)).max() < 5 * (1 / 4 / COUNT) ** 0.5
    assert np.abs(products.var(axis=1) - 1 / 4).max() < 5 * (1 / 8 / COUNT) ** 0.5


@pytest.mark.parametrize(("count", "dim"), [(2, 2), (32, 32)])
def test_orthogonal_points_are_orthonormal(count, dim):
    points = drawn(nearest(length=count + 1, dim=dim, points="orthogonal"))[:, :-1]
    assert_close(points @ points.swapaxes(1, 2), np.broadcast_to(np.eye(count), (COUNT, count, count)))


def test_orthogonal_points_are_the_factor_of_a_gaussian_matrix():
    key = jr.key(0)
    points = np.asarray(TASKS["nearest of orthogonal"]().sample(key))[:-1]
    q, r = np.linalg.qr(np.asarray(jr.normal(jr.split(key)[0], (4, 4)), np.float64).T)
    assert_close(points, (q * np.sign(np.diag(r))).T)


def test_doubled_points_are_followed_by_their_antipodes():
    points = drawn(TASKS["nearest of doubled"]())[:, :-1]
    assert np.array_equal(points[:, 2:], -points[:, :2])


@pytest.mark.parametrize("dim", [2, 3, 8])
@pytest.mark.parametrize("terms", [1, 3, 5])
def test_biases_are_the_quantiles_of_a_beta_distribution(dim, terms):
    biases = np.asarray(biased(dim=dim, terms=terms).biases)
    distribution = stats.beta((dim - 1) / 2, (dim - 1) / 2, loc=-(2**0.5), scale=2 * 2**0.5)
    assert_close(biases, distribution.ppf(np.arange(1, terms + 1) / (terms + 1)))
    assert np.all(np.diff(biases) > 0)
    assert np.array_equal(biases, -biases[::-1])


@pytest.mark.parametrize("dim", [2, 4])
def test_all_cases_between_the_biases_are_equally_likely(dim):
    task = biased(dim=dim, terms=5)
    first, second, query = np.moveaxis(drawn(task), 1, 0)
    lead = np.sum((first - second) * query, axis=-1)
    shares = np.bincount(np.searchsorted(np.asarray(task.biases), lead), minlength=6) / COUNT
    assert np.abs(shares - 1 / 6).max() < 5 * (5 / 36 / COUNT) ** 0.5


# Refusals.


@pytest.mark.parametrize("make", [nearest, farthest, biased])
@pytest.mark.parametrize("dim", [1, 0, 2.5])
def test_a_sphere_of_fewer_than_two_dimensions_is_refused(make, dim):
    with refused("dim", "at least 2", repr(dim)):
        make(dim=dim)


@pytest.mark.parametrize("length", [1, 2])
def test_one_point_is_refused(length):
    with refused("length", "at least 3", f"got {length}"):
        nearest(length=length)
    with refused("length", "at least 2", "got 1"):
        farthest(length=1)
    with refused("length", "got 2"):
        nearest().at(2)


@pytest.mark.parametrize("make", [nearest, farthest])
def test_a_bad_length_is_refused(make):
    for length in (0, -1, 4.0):
        with refused("length", repr(length)):
            make(length=length)


@pytest.mark.parametrize("make", [nearest, farthest])
def test_unknown_points_are_answered_with_the_nearest(make):
    with refused('"orthogonals"', 'Did you mean "orthogonal"?', "uniform"):
        make(points="orthogonals")


def test_more_orthogonal_points_than_dimensions_are_refused():
    nearest(length=5, dim=4, points="orthogonal")
    with refused("5 orthogonal points", "dim 4"):
        nearest(length=6, dim=4, points="orthogonal")
    with refused("5 orthogonal points", "dim 4"):
        nearest(points="orthogonal").at(6)


def test_an_odd_number_of_doubled_points_is_refused():
    with refused("even", "got 5"):
        nearest(length=6, points="doubled")


def test_orthogonal_points_have_no_farthest():
    with refused("3 orthogonal points", "equally far", '"uniform"'):
        farthest(length=3, points="orthogonal")
    with refused("4 orthogonal points", "equally far"):
        farthest(length=2, points="orthogonal").at(4)


def test_the_farthest_of_doubled_points_needs_no_attention():
    with refused('"doubled"', "antipode", "no attention"):
        farthest(length=4, points="doubled")


@pytest.mark.parametrize("terms", [0, 2, 4, 1.0])
def test_terms_that_are_not_odd_are_refused(terms):
    with refused("terms", repr(terms)):
        biased(terms=terms)


def test_biases_are_for_two_points_only():
    with refused("biased-nearest-neighbour", "3", "got 4"):
        biased().at(4)


@pytest.mark.parametrize("norm", [1.25, 0.5, np.nan])
def test_points_off_the_sphere_are_refused(norm):
    tokens = drawn(nearest())[0].copy()
    require_on_sphere(tokens * 1.0005)
    tokens[1] *= 1.01
    tokens[3] *= norm
    with refused("token 3", f"norm {norm:g}", "0.001"):
        require_on_sphere(tokens)
    with refused("token 1", "1e-06"):
        require_on_sphere(jnp.asarray(tokens[:3]), tolerance=1e-6)


@pytest.mark.parametrize("shape", [(16, 4), (16, 4, 5), (16, 5, 2, 2)])
def test_targets_of_tokens_with_no_place_for_each_are_refused(shape):
    tokens, targets = np.zeros((16, 5, 4), np.float32), np.zeros(shape, np.float32)
    with refused("(5, outputs)", str(shape[1:])):
        check_examples(Split(Examples(tokens, targets), Examples(tokens, targets)), "mine", "tokens")


def test_constant_targets_of_tokens_are_refused():
    tokens, targets = drawn(farthest())[:16], np.full((16, 5, 2), 2.5, np.float32)
    with refused("mine", "2.5", "constant"):
        check_examples(Split(Examples(tokens, targets), Examples(tokens, targets)), "mine", "tokens")
