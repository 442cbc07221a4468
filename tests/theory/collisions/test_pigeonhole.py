"""Theorem 2(2): the proof's pair keeps what the proof says of it, comes nearer with more subsequences, and can be
certified."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount._choices import Positions
from headcount._precision import in_double
from headcount.errors import InputError
from headcount.models import ClassTokenSpec, folded
from headcount.tasks import Retrieval, max_plus_min, quadratic_basins, sum_of_maxima
from headcount.theory import Domain
from headcount.theory.assumptions import check_assumptions
from headcount.theory.collisions.certificates import certify
from headcount.theory.collisions.pigeonhole import find_pigeonhole
from headcount.theory.constructions.enough_heads import construct

pytestmark = pytest.mark.slow  # many compiled programs, of code that nothing else uses

HALVES = [(0.0, 0.5), (0.5, 1.0)]
COUNTS = (100, 10_000)


def drawn(task, heads, *, head_dim=2, beta=1.0, positions: Positions = "none", layers=1):
    spec = ClassTokenSpec(heads=heads, head_dim=head_dim, beta=beta, positions=positions, layers=layers)
    return spec.init(0, length=task.length, dim=task.dim, outputs=1)


def product_of_halves() -> Retrieval:
    """Two bowls on two windows, joined by maps that are not linear."""
    centres = jnp.asarray([[0.3, 0.4], [0.8, 0.5]])
    return Retrieval(
        lambda x: jnp.mean((x - centres) ** 2, axis=-1),
        lambda z: jnp.stack([(1 + z[0]) * (1 + 2 * z[1]), jnp.exp(z[1] - 3 * z[0])]),
        length=32,
        dim=2,
        distribution="cube",
        windows=HALVES,
    )


def case(name):
    """A model, its task, subsequences, resolution."""
    if name == "one head on a line":
        task = quadratic_basins(length=32, intrinsic_dim=2, dim=1)
        return drawn(task, 1, beta=5.0), task, 10_000, 8
    if name == "places that matter":
        task = product_of_halves()
        return drawn(task, 1, positions="concatenated"), task, 500, None
    task = quadratic_basins(length=32, intrinsic_dim=2, windows=HALVES)
    return construct(task, 0.1).model.with_heads(1), task, 500, None


CASES = (
    "places that matter",
    pytest.param("one head on a line", marks=pytest.mark.slow),
    pytest.param("a head of the construction removed", marks=pytest.mark.slow),
)


@pytest.fixture(scope="module", params=CASES)
def found(request):
    model, task, subsequences, resolution = case(request.param)
    return model, task, find_pigeonhole(model, task, subsequences=subsequences, resolution=resolution)


def test_the_pair_differs_at_free_places_of_one_set_only(found):
    model, task, hole = found
    first, second = hole.pair
    assert hole.pair.shape == (2, task.length, task.dim)
    assert hole.pair.min() >= 0
    assert hole.pair.max() <= 1
    assert tuple(np.flatnonzero(np.any(first != second, axis=1))) == hole.free
    assert set(hole.free) <= set(task.position_sets[hole.component])
    heads, count = len(model.attention[0].query), len(task.position_sets)
    assert 1 <= len(hole.free) <= task.length // 4 - heads - count + 1
    for point in hole.responsive:
        assert np.array_equal(first[point.place], point.token)
        assert point.place not in hole.free


def test_one_minimum_differs_by_the_spacing_and_the_others_are_their_lowest(found):
    _, task, hole = found
    with jax.enable_x64(True):
        wide = in_double(task)
        minima = np.array([wide.retrieved(jnp.asarray(tokens)) for tokens in hole.pair])
        targets = np.array([wide.target(jnp.asarray(tokens)) for tokens in hole.pair])
    others = np.arange(len(task.position_sets)) != hole.component
    assert np.array_equal(minima[0, others], minima[1, others])
    assert minima[0, others] == pytest.approx(check_assumptions(task).minima[others], abs=1e-9)
    assert abs(minima[0, ~others] - minima[1, ~others]) >= hole.spacing * (1 - 1e-9)
    assert np.abs(targets[0] - targets[1]).max() == hole.gap
    assert hole.gap >= hole.promised_gap * (1 - 1e-9) > 0


def test_grid_points_lie_apart_by_what_the_slope_says(found):
    model, task, hole = found
    places = task.length // 4 - len(model.attention[0].query) - len(task.position_sets) + 1
    step = np.linalg.norm(hole.segment.stop - hole.segment.start) / (places * hole.resolution - 1)
    assert hole.segment.slope > 0
    assert hole.spacing >= hole.segment.slope * step * (1 - 1e-6)
    ends = np.array([hole.segment.start, hole.segment.stop])
    minimiser = check_assumptions(task).minimisers[hole.component]
    assert np.linalg.norm(ends - minimiser, axis=1).max() <= hole.radius  # these are round bowls


def test_no_free_token_outweighs_the_most_responsive_one(found):
    """The step that fails in the paper, where a head's best place is looked for in one position set only."""
    model, task, hole = found
    generator = np.random.default_rng(0)
    used = [point.place for point in hole.responsive]
    with jax.enable_x64(True):
        heads = hole.observables.heads
        tokens = jnp.asarray(generator.random((2000, task.dim)))
        for point in hole.responsive:
            unused = np.setdiff1d(np.arange(task.length), used[: point.head])
            places = jnp.asarray(generator.choice(unused, 2000))
            scores = np.asarray(jax.vmap(heads.scores)(tokens, places))[:, point.head]
            assert scores.max() <= point.score + 1e-3 * (1 + abs(point.score))
        weights = np.asarray(in_double(model).attention_weights(jnp.asarray(hole.pair[0]))[0].T)
    for point in hole.responsive:
        assert weights[point.place, point.head] >= weights[list(hole.free), point.head].max() * (1 - 1e-9)


def test_the_nearest_pair_is_as_near_as_the_pigeonhole_promises(found):
    model, _, hole = found
    assert hole.moment_distance <= hole.promised_moment_distance
    with jax.enable_x64(True):
        seen = [np.asarray(folded.class_output(in_double(model), jnp.asarray(tokens))) for tokens in hole.pair]
    assert np.linalg.norm(seen[0] - seen[1]) == pytest.approx(hole.distance, abs=1e-14)
    assert hole.size <= hole.gap / 3 / max(hole.distance, 1e-15) / np.sqrt(len(model.class_token)) * 1.0001


@pytest.mark.slow
def test_a_certificate_holds_for_the_pair(found):
    model, task, hole = found
    collision = hole.as_collision()
    certificate = certify(collision, model, task, Domain(0.0, 1.0))
    assert certificate.distance >= hole.distance
    assert certificate.distance == pytest.approx(hole.distance, rel=1e-3, abs=1e-10)
    assert certificate.gap == pytest.approx(hole.gap, rel=1e-3)
    assert certificate.size_needed(hole.gap / 3.01) > 0


@pytest.fixture(scope="module")
def growing():
    task = quadratic_basins(length=32)
    model = drawn(task, 2, beta=50.0)
    return [find_pigeonhole(model, task, subsequences=count, resolution=8) for count in COUNTS]


@pytest.mark.slow
def test_more_subsequences_come_nearer_and_ask_for_a_larger_net(growing):
    for fewer, more in itertools.pairwise(growing):
        assert more.subsequences > fewer.subsequences
        assert more.moment_distance < fewer.moment_distance
        assert more.distance < fewer.distance
        assert more.size > fewer.size
    # (n + 1) s = 6 numbers: N^(-1/6) is promised, and of N random points the nearest two are N^(-2/6) apart.
    ratio = growing[-1].moment_distance / growing[0].moment_distance
    assert ratio <= (growing[-1].subsequences / growing[0].subsequences) ** (-1 / 6)


@pytest.mark.slow
def test_newton_steps_from_the_pair_lead_towards_an_exact_collision(growing):
    collision = growing[-1].as_collision()
    observables = collision.observables
    with jax.enable_x64(True):
        linearised = jax.jit(lambda pair: observables.linearised(pair))
        pair = jnp.asarray(collision.pair)
        for _ in range(5):
            difference, jacobian = linearised(pair)
            pair = observables.tied(pair - (jnp.linalg.pinv(jacobian, rcond=1e-9) @ difference).reshape(pair.shape))
        left = float(jnp.linalg.norm(linearised(pair)[0]))
    assert left < 1e-4 * collision.distance


@pytest.mark.slow
def test_all_choices_are_taken_where_they_are_few():
    task = quadratic_basins(length=16, intrinsic_dim=2, dim=1)
    hole = find_pigeonhole(drawn(task, 1), task, resolution=4)
    assert hole.subsequences == 4**2
    assert hole.resolution == 4


TWICE = Retrieval(
    lambda x: jnp.stack([jnp.mean((x - 0.4) ** 2)] * 2), jnp.sum, length=32, dim=2, distribution="cube", name="twice"
)


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        (quadratic_basins(length=32), {"heads": 3}, "D = 3 heads, got 3"),
        (quadratic_basins(length=30), {"heads": 1}, "multiple of 4, .* has 30"),
        (quadratic_basins(length=16), {"heads": 2}, "at least 24"),
        (quadratic_basins(length=32), {"heads": 1, "layers": 2}, "one attention layer, the model has 2"),
        (sum_of_maxima(length=32, dim=2), {"heads": 1}, 'set distribution="cube"'),
        pytest.param(TWICE, {"heads": 1}, "clause 2.2 fails: nearest minimisers", marks=pytest.mark.slow),
    ],
)
def test_what_the_proof_says_nothing_of_is_refused(task, options, message):
    with pytest.raises(InputError, match=message):
        find_pigeonhole(drawn(task, **options), task)


def test_a_model_of_other_tokens_and_empty_searches_are_refused():
    task = quadratic_basins(length=32)
    with pytest.raises(InputError, match="dim 1"):
        find_pigeonhole(drawn(max_plus_min(length=32), 1), task)
    for options, message in (({"subsequences": 1}, "subsequences"), ({"resolution": 1}, "resolution")):
        with pytest.raises(InputError, match=message):
            find_pigeonhole(drawn(task, 1), task, **options)


@pytest.mark.parametrize(
    "task", [max_plus_min(length=32), sum_of_maxima(length=32, dim=2, intrinsic_dim=2, distribution="cube")]
)
def test_linear_components_rise_along_a_segment_without_a_hessian(task):
    """The papers' own tasks fail clause 2.3, which the proof does not use."""
    assert check_assumptions(task).failing[-1] == "2.3"
    hole = find_pigeonhole(drawn(task, 1), task, subsequences=500)
    assert hole.gap >= hole.promised_gap * (1 - 1e-9) > 0
    assert hole.moment_distance <= hole.promised_moment_distance
    assert certify(hole.as_collision(), drawn(task, 1), task, Domain(0.0, 1.0)).gap == pytest.approx(hole.gap, rel=1e-3)


def test_a_component_that_rises_nowhere_is_refused():
    task = Retrieval(
        [lambda x: jnp.maximum(x[0] - 1.0, 0.0) + 1e-12 * x[0], lambda x: 1 - x[0] ** 2],
        length=32,
        dim=1,
        distribution="cube",
        name="flat",
    )
    with pytest.raises(InputError, match="flat"):
        find_pigeonhole(drawn(task, 1), task)
