"""What a certificate says is true: checked with fifty digits, by a transformer written down again from its weights."""

import dataclasses
import math
from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from headcount._precision import in_double
from headcount.errors import InputError
from headcount.keys import named_generator
from headcount.tasks import FunctionTask, Retrieval, max_plus_min
from headcount.theory import Certificate, Domain, certify, construct, find_collisions
from headcount.theory.bounds import steep_net_size
from headcount.theory.collisions.certificates import _min_gap
from headcount.theory.collisions.heads import fold_heads
from headcount.theory.collisions.observables import CentredOutputs, ClassOutputs, HeadOutputs, Moments, mixing_of
from headcount.theory.intervals import point
from headcount.theory.intervals.rules import RULES
from tests.theory.collisions.digits import DIGITS, difference, exact_pair, plain_class_output, plain_target, precise
from tests.theory.collisions.examples import (
    DIM,
    DOMAINS,
    LENGTH,
    TASKS,
    close_pair,
    collision_at,
    head_observables,
    model,
)

from ...helpers import textbook


def without_norm(weights):
    return dataclasses.replace(weights, spec=dataclasses.replace(weights.spec, final_norm=False))


def drawn(name: str, seed: int, width: float = 0.6) -> np.ndarray:
    domain = DOMAINS[name]
    middle, half = (domain.low + domain.high) / 2, (domain.high - domain.low) / 2
    generator = np.random.default_rng(seed)
    first, step = generator.uniform(-1, 1, (2, LENGTH, DIM))
    return middle + width * half * np.stack([first, first + 0.3 * step])


@dataclasses.dataclass(frozen=True)
class Case:
    task: str = "maxima"
    seed: int = 0
    kind: type = HeadOutputs
    shared: tuple[int, ...] = ()
    width: float = 0.6
    shape: tuple[tuple[str, object], ...] = ()

    @property
    def weights(self):
        return model(self.seed, **dict(self.shape))

    def observables(self):
        """Use under `jax.enable_x64(True)`."""
        if self.kind is ClassOutputs:
            return ClassOutputs(model=in_double(self.weights))
        if self.kind is CentredOutputs:
            outputs = head_observables(HeadOutputs, self.weights)
            mixing = jnp.asarray(mixing_of(self.weights, outputs.coordinates))
            return CentredOutputs(outputs=outputs, mixing=mixing[1:] - mixing[0])
        return head_observables(self.kind, self.weights, self.shared)


SLOW = (
    "basins",
    "two heads",
    "concatenated positions",
    "two layers",
    "tokens that lie together",
    "moments with a shared place",
    "a norm after two layers",
)
CASES = {
    "one head": Case(),
    "basins": Case(task="basins", seed=1),
    "moments with a shared place": Case(kind=Moments, shared=(1,), seed=3),
    "two heads": Case(shape=(("heads", 2),), seed=1),
    "added positions": Case(shape=(("positions", "additive"),), seed=4),
    "concatenated positions": Case(shape=(("positions", "concatenated"),), kind=Moments, seed=5),
    "tokens that lie together": Case(width=1e-2, shape=(("head_dim", 6),), seed=6),
    "two layers": Case(kind=ClassOutputs, shape=(("layers", 2),), seed=7),
    "a norm": Case(shape=(("final_norm", True),), seed=0),
    "a norm that merges": Case(kind=CentredOutputs, shape=(("final_norm", True), ("head_dim", 3)), seed=1),
    "a norm after two layers": Case(kind=ClassOutputs, shape=(("final_norm", True), ("layers", 2)), seed=7),
}


EVERY_CASE = [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in CASES]


@cache
def certificate(name: str) -> Certificate:
    case = CASES[name]
    with jax.enable_x64(True):
        observables = case.observables()
        pair = close_pair(observables, drawn(case.task, case.seed, case.width))
    return certify(collision_at(pair, observables), case.weights, TASKS[case.task], DOMAINS[case.task])


@pytest.mark.parametrize("name", EVERY_CASE)
def test_within_the_radius_lies_a_collision_to_forty_digits_and_its_targets_are_the_gap_apart(name):
    case, proof = CASES[name], certificate(name)
    assert proof.exact
    assert 0 <= proof.radius <= 1e-6
    assert proof.contraction < 1
    with mpmath.workdps(DIGITS):
        start = precise(proof.pair)
        pair, left = exact_pair(case.weights, start)
        assert left < mpmath.mpf(10) ** -40
        assert max(abs(number) for number in (pair - start).ravel()) <= proof.radius
        assert min(pair.ravel()) >= proof.domain.low
        assert max(pair.ravel()) <= proof.domain.high
        true = abs(plain_target(case.task, pair[0]) - plain_target(case.task, pair[1]))
        assert proof.gap <= true <= proof.gap + 1e-6
    assert proof.estimated == ""


@pytest.mark.parametrize("name", EVERY_CASE)
def test_the_distance_bounds_the_true_one_and_the_gap_is_no_larger_than_the_true_one(name):
    """At the pair itself, and at two sequences that do not collide, whose certificate must be a near one."""
    case = CASES[name]
    with jax.enable_x64(True):
        observables = case.observables()
        pair = np.asarray(observables.tied(jnp.asarray(drawn(case.task, 100 + case.seed))))
    apart = certify(collision_at(pair, observables), case.weights, TASKS[case.task], DOMAINS[case.task])
    assert not apart.exact
    assert apart.radius is None
    # A norm enlarges what rounding leaves of a distance at most 1 / sqrt(1e-5) times.
    rounding = 1e-11 * (316.3 if case.weights.spec.final_norm else 1.0)
    for proof in (certificate(name), apart):
        with mpmath.workdps(DIGITS):
            true = mpmath.norm(list(difference(case.weights, precise(proof.pair))))
            assert true <= proof.distance <= true * (1 + 1e-9) + rounding
            targets = [plain_target(case.task, sequence) for sequence in precise(proof.pair)]
            assert proof.gap <= abs(targets[0] - targets[1]) + (1e-6 if proof.exact else 0)
            if not proof.exact:
                assert proof.gap >= abs(targets[0] - targets[1]) - 1e-9


@pytest.mark.parametrize("name", ["one head", pytest.param("basins", marks=pytest.mark.slow)])
def test_no_readout_answers_both_sequences_better_than_the_floor(name):
    case, proof, generator = CASES[name], certificate(name), np.random.default_rng(0)
    with jax.enable_x64(True):
        weights, task = in_double(case.weights), in_double(TASKS[case.task])
        other = jax.tree.map(lambda leaf: jnp.asarray(generator.standard_normal(leaf.shape)), weights.readout_in)
        weights = eqx.tree_at(lambda m: m.readout_in, weights, other)
        one, two = (jnp.asarray(tokens) for tokens in proof.pair)
        answers = [textbook.predict(weights, tokens) for tokens in (one, two)]
        # The best that a constant can be added to this readout: halfway between the targets.
        middle = (task.target(one) + task.target(two)) / 2 - answers[0]
        errors = [
            abs(float((answer + middle - task.target(x))[0])) for answer, x in zip(answers, (one, two), strict=True)
        ]
    assert max(errors) >= proof.floor() - 1e-9
    assert max(errors) <= proof.floor() + 1e-6
    assert proof.floor() == proof.floor(0.0) == proof.floor(1e9) == proof.gap / 2


@pytest.mark.parametrize("slope", [0.0, 0.5, 7.0, 1e9, math.inf])
def test_a_near_certificate_speaks_of_readouts_of_bounded_slope(slope):
    proof = dataclasses.replace(certificate("one head"), radius=None, distance=0.25, gap=2.0)
    wanted = 0.0 if math.isinf(slope) else max(0.0, (2.0 - slope * 0.25) / 2)
    assert proof.floor(slope) == wanted
    assert dataclasses.replace(proof, radius=1e-9).floor(slope) == 1.0


def test_a_negative_slope_and_an_error_beyond_the_floor_are_refused():
    proof = certificate("one head")
    with pytest.raises(InputError, match="slope must not be negative"):
        proof.floor(-1.0)
    with pytest.raises(InputError, match="eps must be less than half of the gap"):
        proof.size_needed(proof.gap / 2)


def test_the_size_needed_is_lemma_four():
    proof = dataclasses.replace(certificate("one head"), distance=1e-3, gap=2.0)
    assert proof.size_needed(0.25) == pytest.approx(1.5 / (1e-3 * math.sqrt(proof.seen)))
    assert proof.size_needed(0.0) == steep_net_size(2.0, 1e-3, proof.seen)
    assert proof.seen == 2


def test_a_pair_that_leaves_the_domain_is_refused():
    proof = certificate("one head")
    with jax.enable_x64(True):
        collision = collision_at(proof.pair, CASES["one head"].observables())
    with pytest.raises(InputError, match=r"\[0, 0\.5\], got values from"):
        certify(collision, model(0), TASKS["maxima"], Domain(0.0, 0.5))


def test_a_collision_whose_ball_leaves_the_domain_is_not_exact():
    proof = certificate("one head")
    with jax.enable_x64(True):
        collision = collision_at(proof.pair, CASES["one head"].observables())
    tight = Domain(float(proof.pair.min()), float(proof.pair.max()))
    assert not certify(collision, model(0), TASKS["maxima"], tight).exact


def test_a_model_of_other_tokens_is_refused():
    with jax.enable_x64(True):
        collision = collision_at(certificate("one head").pair, CASES["one head"].observables())
    with pytest.raises(InputError, match="dim 2, max-plus-min has dim 1"):
        certify(collision, model(0), max_plus_min(length=LENGTH), Domain(0.0, 1.0))


@pytest.mark.parametrize(
    ("function", "words"),
    [(lambda x: jnp.cumsum(x[:, 0])[2], "cumsum"), (lambda x: jnp.abs(jnp.fft.rfft(x[:, 0]))[1], "fft")],
)
def test_a_target_that_cannot_be_enclosed_is_estimated_and_says_why(function, words):
    task = FunctionTask(function=function, length=LENGTH, dim=DIM)
    proof = certificate("one head")
    with jax.enable_x64(True):
        collision = collision_at(proof.pair, CASES["one head"].observables())
        values = [float(function(jnp.asarray(tokens))) for tokens in proof.pair]
    estimated = certify(collision, model(0), task, DOMAINS["maxima"])
    assert f'"{words}"' in estimated.estimated
    assert "not enclosed" in estimated.estimated
    assert estimated.exact
    assert estimated.gap < abs(values[0] - values[1]) or estimated.gap == 0
    assert estimated.gap == pytest.approx(abs(values[0] - values[1]), abs=1e-4)


def test_a_task_with_a_weighted_sum_of_its_minima_is_enclosed():
    weights = np.array([1.0, -2.0])
    task = Retrieval([lambda x: x[0], lambda x: x[1]], lambda z: weights @ z, length=LENGTH, dim=DIM)
    with jax.enable_x64(True):
        collision = collision_at(certificate("one head").pair, CASES["one head"].observables())
    assert certify(collision, model(0), task, DOMAINS["maxima"]).estimated == ""


def test_a_fault_of_a_rule_is_raised(monkeypatch):
    """Only what cannot be enclosed is estimated: a fault of the program must be seen."""
    monkeypatch.setitem(RULES, "reduce_min", lambda *_, **__: 1 / 0)
    with jax.enable_x64(True), pytest.raises(ZeroDivisionError):
        _min_gap(in_double(TASKS["maxima"]), [point(tokens) for tokens in drawn("maxima", 0)])


@pytest.mark.slow
def test_a_norm_keeps_every_collision_and_adds_those_that_differ_by_a_common_shift():
    """Proved with the norm, a pair of class outputs that differ by a shift is none without it, and far from one."""
    names = ("a norm", "a norm that merges")
    with jax.enable_x64(True):
        collisions = [collision_at(certificate(name).pair, CASES[name].observables()) for name in names]
    kept, merged = (
        certify(collision, without_norm(CASES[name].weights), TASKS["maxima"], DOMAINS["maxima"])
        for name, collision in zip(names, collisions, strict=True)
    )
    assert kept.exact
    assert not merged.exact
    assert merged.distance > 1e6 * certificate("a norm that merges").distance
    outputs = [plain_class_output(CASES["a norm that merges"].weights, precise(x)) for x in merged.pair]
    shift = (outputs[0] - outputs[1]).astype(float)
    assert np.ptp(shift) < 1e-12 < abs(shift[0])


# What a certificate says must rest on the model it is asked about, whatever the collision was found with.


def certified_or_refused(collision, weights, task: str = "maxima") -> bool:
    """Whether an exact collision is claimed."""
    try:
        return certify(collision, weights, TASKS[task], DOMAINS[task]).exact
    except InputError:
        return False


@pytest.mark.slow
def test_sequences_that_differ_at_a_shared_place_are_no_exact_collision():
    case, proof = CASES["moments with a shared place"], certificate("moments with a shared place")
    pair = proof.pair.copy()
    pair[1, 1] = -0.5 * pair[1, 1]
    with jax.enable_x64(True):
        collision = collision_at(pair, case.observables())
    assert not certified_or_refused(collision, case.weights)


def test_coordinates_that_the_observables_omit_but_the_model_reads_are_not_taken_to_agree():
    weights = model(0)
    with jax.enable_x64(True):
        heads = jax.tree.map(jnp.asarray, fold_heads(weights, ((0, 0),), LENGTH)[0])
        observables = HeadOutputs(heads=heads, coordinates=((0, 0),))
        collision = collision_at(close_pair(observables, drawn("maxima", 3)), observables)
    assert not certified_or_refused(collision, weights)


@pytest.mark.slow
def test_a_collision_of_another_deep_model_is_not_taken_for_this_ones():
    with jax.enable_x64(True):
        collision = collision_at(certificate("two layers").pair, CASES["two layers"].observables())
    assert not certified_or_refused(collision, model(0, layers=2))


def test_a_collision_of_another_model_of_one_layer_is_not_taken_for_this_ones():
    with jax.enable_x64(True):
        collision = collision_at(certificate("one head").pair, CASES["one head"].observables())
    assert not certified_or_refused(collision, model(1))


@pytest.fixture(scope="module")
def built():
    return construct(max_plus_min(length=LENGTH), 0.1)


def floor_of(weights, start: np.ndarray) -> float:
    """What is proved by the pair nearest to the start."""
    with jax.enable_x64(True):
        observables = head_observables(HeadOutputs, weights)
        collision = collision_at(np.clip(close_pair(observables, start), 0, 1), observables)
    return certify(collision, weights, max_plus_min(length=LENGTH), Domain(0.0, 1.0)).floor()


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_construction_with_enough_heads_has_no_floor_above_what_is_promised(built, seed):
    generator = np.random.default_rng(seed)
    first = generator.uniform(0.2, 0.8, (LENGTH, 1))
    start = np.stack([first, first + generator.uniform(-0.1, 0.1, (LENGTH, 1))])
    assert floor_of(built.model, start) <= built.promised


@pytest.mark.slow
def test_no_search_finds_a_floor_above_what_is_promised(built):
    task, domain = max_plus_min(length=LENGTH), Domain(0.0, 1.0)
    (own,) = find_collisions([built.model], task, domain)
    assert max(certify(one, built.model, task, domain).floor() for one in own) <= built.promised


def test_the_construction_with_one_head_cut_off_errs_by_half(built):
    """Only the largest is read: sequences of one largest number and any others look alike."""
    cut = eqx.tree_at(
        lambda m: m.attention[0].output, built.model, built.model.attention[0].output * np.array([1.0, 0.0])[:, None]
    )
    start = np.array([[0.99, 0.98, 0.985, 0.99], [0.99, 0.01, 0.02, 0.01]])[..., None]
    assert 0.45 <= floor_of(cut, start) <= 0.5


@pytest.mark.slow
def test_shared_places_cancel_in_moments_only():
    """What is certified of head outputs does not rest on places called shared: a observables that calls them so is read
    without."""
    weights = model(0, head_dim=6)
    with jax.enable_x64(True):
        alone, shared = head_observables(HeadOutputs, weights), head_observables(HeadOutputs, weights, (0,))
        pair = drawn("basins", 0)
        pair[1] = 0.5 * pair[0] + 0.5 * pair[1]
        pair[1, 0] = pair[0, 0]
    first, second = (
        certify(collision_at(pair, observables), weights, TASKS["basins"], DOMAINS["basins"])
        for observables in (alone, shared)
    )
    assert (first.exact, first.contraction) == (second.exact, second.contraction)


@pytest.mark.slow
def test_places_that_hardly_matter_still_keep_all_numbers():
    weights = model(2, positions="additive", head_dim=6)
    tiny = eqx.tree_at(lambda one: one.position_table, weights, 1e-22 * np.asarray(weights.position_table, np.float64))
    with jax.enable_x64(True):
        observables = head_observables(HeadOutputs, tiny)
        start = 0.4 + 0.01 * named_generator(0, "together").standard_normal((2, LENGTH, DIM))
        pair = close_pair(observables, start)
    assert not certify(collision_at(pair, observables), tiny, TASKS["basins"], DOMAINS["basins"]).exact


def test_a_model_whose_units_are_all_off_is_blind():
    weights = model(0)
    dead = eqx.tree_at(lambda one: one.encoder_in.bias, weights, np.full(8, -50.0))
    with jax.enable_x64(True):
        observables = head_observables(HeadOutputs, dead)
    found_one = certify(collision_at(drawn("basins", 0), observables), dead, TASKS["basins"], DOMAINS["basins"])
    assert found_one.exact
    assert found_one.distance < 1e-12
    assert found_one.floor() == pytest.approx(found_one.gap / 2)
