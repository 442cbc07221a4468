"""The search for collisions: the same every time, inside the domain, near the constraint, and refusing in words."""

from itertools import chain

import equinox as eqx
import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from headcount._precision import in_double
from headcount.errors import InputError
from headcount.models import ClassTokenSpec, folded
from headcount.tasks import ArrayTask, max_plus_min, quadratic_basins, sum_of_maxima
from headcount.theory import Domain, certify, domain_of, find_collisions
from headcount.theory.collisions.domain import anchored_starts, free_starts, shared_places
from tests.theory.collisions.digits import DIGITS, exact_pair, plain_target, precise
from tests.theory.collisions.examples import DIM, DOMAINS, LENGTH, STARTS, STEPS, TASKS, found, model

pytestmark = pytest.mark.slow  # many compiled programs; what they find is certified by the default tests

TASK, DOMAIN = TASKS["maxima"], DOMAINS["maxima"]
SEEDS = (0, 1)


@pytest.fixture(scope="module")
def pairs():
    """All pairs of two models."""
    return found("maxima", SEEDS)


def class_outputs(seed: int, pair: np.ndarray, **shape) -> np.ndarray:
    with jax.enable_x64(True):
        weights = in_double(model(seed, **shape))
        return np.asarray(jax.jit(jax.vmap(lambda x: folded.class_output(weights, x)))(jnp.asarray(pair)))


def test_the_same_seed_finds_the_same_pairs_to_the_last_bit(pairs):
    again = find_collisions([model(seed) for seed in SEEDS], TASK, DOMAIN, starts=STARTS, steps=STEPS)
    assert [len(own) for own in again] == [len(own) for own in pairs]
    for one, other in zip(chain(*again), chain(*pairs), strict=True):
        assert np.array_equal(one.pair, other.pair)
        assert (one.distance, one.gap) == (other.distance, other.gap)


def test_another_seed_finds_other_pairs(pairs):
    other = find_collisions([model(seed) for seed in SEEDS], TASK, DOMAIN, starts=STARTS, steps=STEPS, seed=1)
    assert not np.array_equal(other[0][0].pair, pairs[0][0].pair)


def test_pairs_lie_inside_the_domain_the_largest_gap_first(pairs):
    for own in pairs:
        assert [one.gap for one in own] == sorted((one.gap for one in own), reverse=True)
        for collision in own:
            assert collision.pair.shape == (2, LENGTH, DIM)
            assert collision.pair.dtype == np.float64
            assert collision.pair.min() >= DOMAIN.inner[0]
            assert collision.pair.max() <= DOMAIN.inner[1]


def test_some_pairs_of_every_model_collide_with_a_large_gap(pairs):
    for own in pairs:
        close = [one for one in own if one.distance <= 1e-12]
        assert len(close) >= 3
        assert max(one.gap for one in close) > 1.0


def test_a_small_distance_is_one_of_class_outputs_too(pairs):
    for seed, own in zip(SEEDS, pairs, strict=True):
        close = np.concatenate([one.pair for one in own if one.distance <= 1e-12])
        seen = class_outputs(seed, close)
        assert np.max(np.abs(seen[0::2] - seen[1::2])) <= 1e-10


def test_the_gap_is_that_of_the_targets(pairs):
    with jax.enable_x64(True):
        task = in_double(TASK)
        for collision in pairs[0][:4]:
            one, other = (task.target(jnp.asarray(tokens)) for tokens in collision.pair)
            assert float(jnp.max(jnp.abs(one - other))) == pytest.approx(collision.gap, rel=1e-12)


def test_shared_places_hold_the_same_token_to_the_last_bit(pairs):
    tied = [one for own in pairs for one in own if one.observables.shared]
    assert tied
    for collision in tied:
        places = list(collision.observables.shared)
        assert np.array_equal(collision.pair[0, places], collision.pair[1, places])


def test_pairs_are_certified_and_hold_to_forty_digits(pairs):
    best = next(proof for proof in (certify(one, model(0), TASK, DOMAIN) for one in pairs[0]) if proof.exact)
    with mpmath.workdps(DIGITS):
        pair, left = exact_pair(model(0), precise(best.pair))
        assert left < mpmath.mpf(10) ** -40
        assert max(abs(number) for number in (pair - precise(best.pair)).ravel()) <= best.radius
        assert best.gap <= abs(plain_target("maxima", pair[0]) - plain_target("maxima", pair[1]))


def test_deep_models_collide_on_the_cube():
    (own,) = found("basins", (0,), layers=2)
    assert min(one.pair.min() for one in own) >= 0
    assert max(one.pair.max() for one in own) <= 1
    close = [one for one in own if one.distance <= 1e-12]
    assert max(one.gap for one in close) > 0.05
    one, other = class_outputs(0, close[0].pair, layers=2)
    assert np.max(np.abs(one - other)) <= 1e-12


@pytest.fixture(scope="module")
def anchored():
    anchors = np.random.default_rng(0).uniform(-2, 2, (2, LENGTH, DIM))
    (own,) = find_collisions([model(0)], TASK, DOMAIN, anchors=anchors, starts=STARTS, steps=STEPS)
    return anchors, own


def test_an_anchor_is_kept_to_the_last_bit(anchored):
    anchors, own = anchored
    for collision in own:
        assert any(np.array_equal(collision.pair[0], anchor) for anchor in anchors)


def test_every_anchor_has_a_partner_it_collides_with(anchored):
    anchors, own = anchored
    for anchor in anchors:
        mine = [one for one in own if np.allclose(one.pair[0], anchor, atol=1e-9)]
        assert max(one.gap for one in mine if one.distance <= 1e-12) > 0.1
        assert min(one.distance for one in mine) <= 1e-12


def test_one_model_alone_finds_what_it_finds_beside_others(anchored):
    first = anchored[0][:1]
    _, beside = find_collisions([model(0), model(1)], TASK, DOMAIN, anchors=first, starts=STARTS, steps=STEPS)
    twice = np.concatenate([first, first])
    (alone,) = find_collisions([model(1)], TASK, DOMAIN, anchors=twice, starts=STARTS, steps=STEPS)
    assert len(alone) == 2 * len(beside)
    for collision in beside:
        assert any(np.array_equal(collision.pair, other.pair) for other in alone)


def test_starts_lie_inside_the_domain_and_are_the_same_for_the_same_seed():
    domain = Domain(0.0, 1.0)
    starts = free_starts(TASK, domain, 40, 3)
    assert starts.shape == (40, 2, LENGTH, DIM)
    assert starts.min() >= 0
    assert starts.max() <= 1
    assert np.array_equal(starts, free_starts(TASK, domain, 40, 3))
    assert not np.array_equal(starts, free_starts(TASK, domain, 40, 4))
    assert np.all(np.any(starts[:, 0] != starts[:, 1], axis=(1, 2)))


def test_anchored_starts_begin_with_their_anchor():
    anchors = np.random.default_rng(0).uniform(-2, 2, (3, LENGTH, DIM))
    for which in range(3):
        starts = anchored_starts(anchors, which, DOMAIN, 7, 0)
        assert np.array_equal(starts[:, 0], np.broadcast_to(anchors[which], (7, LENGTH, DIM)))
        assert np.all(np.any(starts[:, 0] != starts[:, 1], axis=(1, 2)))


@pytest.mark.parametrize("length", range(1, 9))
@pytest.mark.parametrize("heads", [1, 2, 3, 8])
def test_shared_places_are_one_a_head_and_leave_others_free(heads, length):
    places = shared_places(heads, length)
    assert len(places) < length
    assert len(places) in (0, heads)
    assert all(0 <= place < length for place in places)


def test_the_domain_is_the_cube_or_a_box_around_gaussian_tokens():
    assert domain_of(quadratic_basins(length=4)) == Domain(0.0, 1.0)
    assert domain_of(TASK, radius=2.5) == Domain(-2.5, 2.5)
    low, high = Domain(-1.0, 3.0).inner
    assert -1 < low < high < 3


def stored_task() -> ArrayTask:
    generator = np.random.default_rng(0)
    x = generator.standard_normal((100, LENGTH, DIM))
    return ArrayTask(x, x.max(axis=(1, 2)), name="mine")


@pytest.mark.parametrize("radius", [0.0, -1.0, float("inf"), float("nan")])
def test_a_radius_that_bounds_nothing_is_refused(radius):
    with pytest.raises(InputError, match="radius must be positive and finite"):
        domain_of(TASK, radius=radius)


def test_a_task_of_stored_examples_has_no_domain():
    with pytest.raises(InputError, match="mine has stored examples"):
        domain_of(stored_task())


@pytest.mark.parametrize(("low", "high"), [(1.0, 1.0), (2.0, -2.0), (float("nan"), 1.0)])
def test_an_empty_domain_is_refused(low, high):
    with pytest.raises(InputError, match="a domain needs finite ends with low < high"):
        Domain(low, high)


WRONG = {
    "no starts": ({"starts": 0}, "starts must be a whole number of at least 1, got 0"),
    "no steps": ({"steps": 0}, "steps must be a whole number of at least 1, got 0"),
    "no model": ({"models": []}, "at least one model"),
    "two shapes": ({"models": [model(0), model(0, heads=2)]}, "must have one shape, got 2"),
    "another token": ({"task": max_plus_min(length=LENGTH)}, "dim 2, max-plus-min has dim 1"),
    "another length": (
        {"models": [model(0, positions="additive")], "task": sum_of_maxima(length=7, intrinsic_dim=2, dim=DIM)},
        "length 4, sum-of-maxima has length 7",
    ),
    "flat anchors": ({"anchors": np.zeros((LENGTH, DIM))}, r"must have shape \(any, 4, 2\), got \(4, 2\)"),
    "no anchors": ({"anchors": np.zeros((0, LENGTH, DIM))}, r"must have shape \(any, 4, 2\), got \(0, 4, 2\)"),
    "long anchors": ({"anchors": np.zeros((1, 9, DIM))}, r"must have shape \(any, 4, 2\), got \(1, 9, 2\)"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_searched_is_refused_in_a_sentence(name):
    changed, words = WRONG[name]
    arguments = {"models": [model(0)], "task": TASK, "domain": DOMAIN} | changed
    with pytest.raises(InputError, match=words) as error:
        find_collisions(**arguments)
    assert str(error.value).endswith(".")


def test_models_of_as_many_numbers_but_other_kinds_of_positions_are_refused_together():
    one, other = (
        ClassTokenSpec(heads=1, head_dim=8, hidden=8, positions=kind).init(0, length=LENGTH, dim=DIM, outputs=1)
        for kind in ("additive", "none")
    )
    with pytest.raises(InputError, match="one shape"):
        find_collisions([one, other], TASK, DOMAIN)


def test_weights_that_are_no_numbers_are_refused():
    broken = eqx.tree_at(lambda m: m.encoder_in.bias, model(0), replace_fn=lambda bias: np.full_like(bias, np.nan))
    with pytest.raises(InputError, match="are the model's weights finite"):
        find_collisions([broken, broken], TASK, DOMAIN, starts=STARTS, steps=STEPS)
