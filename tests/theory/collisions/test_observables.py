"""What a readout can see: derivatives are those of the numbers, and where the numbers agree the class outputs do."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount._choices import POSITIONS
from headcount._precision import in_double
from headcount.errors import InputError
from headcount.models import ClassTokenSpec, folded
from headcount.tasks import sum_of_maxima
from headcount.theory.collisions.certificates import is_steady, reduced_observables
from headcount.theory.collisions.observables import ClassOutputs, HeadOutputs, Moments, check_fit
from headcount.theory.intervals.arithmetic import ball
from tests.helpers.tolerance import assert_close
from tests.theory.collisions import examples

pytestmark = pytest.mark.slow  # many compiled programs; what they find is certified by the default tests

LENGTH, DIM, HEADS = 5, 2, 2


@pytest.fixture(autouse=True)
def _in_double():
    with jax.enable_x64(True):
        yield


def random_model(positions: str = "none", seed: int = 0, **spec):
    shape = {"heads": HEADS, "head_dim": 4, "hidden": 9, "beta": 2.0} | spec
    return ClassTokenSpec(positions=positions, **shape).init(seed, length=LENGTH, dim=DIM, outputs=1)  # pyright: ignore


head_observables = partial(examples.head_observables, length=LENGTH)
OBSERVABLES = {
    "class outputs": lambda model: ClassOutputs(model=in_double(model)),
    "head outputs": partial(head_observables, HeadOutputs),
    "moments": partial(head_observables, Moments),
    "moments with shared places": partial(head_observables, Moments, shared=(0, 3)),
}


def together(seed: int = 0, width: float = 1e-3) -> np.ndarray:
    """Two sequences whose tokens all lie in a small ball."""
    generator = np.random.default_rng(seed)
    return generator.standard_normal(DIM) + width * generator.uniform(-1, 1, (2, LENGTH, DIM))


def apart(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((2, LENGTH, DIM))


def assert_derivative(observables, pair: np.ndarray) -> None:
    @jax.jit
    def both(pair):
        scale = observables.scale(pair)
        return observables.jacobian(pair[0], scale), jax.jacobian(lambda x: observables.observe(x, scale))(pair[0])

    assert_close(*both(jnp.asarray(pair)), "derivative")


@pytest.mark.parametrize(
    ("name", "positions"),
    [*zip(OBSERVABLES, ["none", *POSITIONS], strict=True), ("moments with shared places", "none")],
)
def test_the_derivative_is_that_of_the_numbers(name, positions):
    assert_derivative(OBSERVABLES[name](random_model(positions)), apart())


@pytest.mark.parametrize("name", ["head outputs", "moments", "moments with shared places"])
def test_the_derivative_of_fewer_numbers_is_that_of_the_fewer_numbers(name):
    pair = together()
    observables = reduced_observables(OBSERVABLES[name](random_model()), pair)
    assert observables.features is not None
    assert_derivative(observables, pair)


@pytest.mark.parametrize("name", ["head outputs", "moments with shared places"])
def test_the_linearised_difference_is_the_derivative_with_respect_to_the_pair(name):
    observables, pair = OBSERVABLES[name](random_model()), jnp.asarray(apart(3))

    @jax.jit
    def both(pair):
        scale = jax.lax.stop_gradient(observables.scale(pair))
        parted = observables.observe(pair[0], scale) - observables.observe(pair[1], scale)
        return (
            observables.linearised(pair),
            parted,
            jax.jacobian(lambda moved: observables.difference(moved, scale))(pair),
        )

    (difference, rows), parted, wanted = both(pair)
    assert_close(rows, wanted.reshape(len(rows), -1))
    assert_close(difference, parted)


@pytest.mark.parametrize(("name", "seed"), list(zip(OBSERVABLES, range(4), strict=True)))
def test_sequences_in_another_order_look_alike_to_models_without_positions(name, seed):
    model = random_model(seed=seed)
    observables = OBSERVABLES[name](model)
    tokens, generator = apart(seed)[0], np.random.default_rng(seed)
    order = np.arange(LENGTH)
    loose = [place for place in range(LENGTH) if place not in observables.shared]
    order[loose] = generator.permutation(loose)
    pair = jnp.asarray(np.stack([tokens, tokens[order]]))
    difference = jax.jit(lambda pair: observables.difference(pair, observables.scale(pair)))(pair)
    assert np.max(np.abs(difference)) <= 1e-12
    one, other = jax.jit(jax.vmap(lambda x: folded.class_output(in_double(model), x)))(pair)
    assert_close(one, other, "class outputs")


@pytest.mark.parametrize(("name", "positions"), list(zip([*OBSERVABLES][1:], POSITIONS, strict=True)))
def test_class_outputs_agree_to_first_order_along_directions_that_leave_the_numbers_as_they_are(name, positions):
    """Where the numbers of observables agree the class outputs do: so no direction moves these without those."""
    model = random_model(positions, hidden=5, head_dim=1)
    observables, wide = OBSERVABLES[name](model), in_double(model)
    tokens = jnp.asarray(apart(1)[0])
    pair = jnp.stack([tokens, tokens])
    seen = jax.jit(lambda x: observables.jacobian(x, observables.scale(pair)))(tokens).reshape(-1, LENGTH * DIM)
    outputs = jax.jit(jax.jacobian(lambda x: folded.class_output(wide, x)))(tokens)
    held = np.isin(np.arange(LENGTH), observables.shared)
    outputs = jnp.where(held[:, None], 0.0, outputs).reshape(-1, LENGTH * DIM)
    _, sizes, right = np.linalg.svd(seen)
    blind = right[np.sum(sizes > 1e-10) :]
    assert len(blind) > 0
    assert np.max(np.abs(outputs @ blind.T)) <= 1e-12


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", [HeadOutputs, Moments])
def test_fewer_numbers_tell_all_that_the_model_reads_for_every_value_is_an_affine_function_of_them(kind, seed):
    full, pair = head_observables(kind, random_model(seed=seed, head_dim=6)), together(seed)
    observables = reduced_observables(full, pair)
    assert observables.features is not None
    assert len(observables.coordinates) < len(full.coordinates)
    assert set(observables.owners) == set(full.owners)
    tokens = jnp.asarray(pair.reshape(-1, DIM))
    features, values = (
        np.asarray(jax.vmap(lambda x, one=one: one.token_values(x, 0))(tokens)) for one in (observables, full)
    )
    features, values = (
        1e3 * (array - array.mean(axis=0)) for array in (features[:, : len(observables.features)], values)
    )
    assert len(observables.features) + 1 < len(tokens)
    assert_close(features @ np.linalg.lstsq(features, values)[0], values, "values from features")


def test_tokens_that_lie_apart_keep_all_numbers():
    observables = head_observables(HeadOutputs, random_model(head_dim=2))
    assert reduced_observables(observables, apart(0)) is observables


def test_class_outputs_are_never_made_fewer():
    observables = ClassOutputs(model=in_double(random_model()))
    assert reduced_observables(observables, together()) is observables


@pytest.mark.parametrize("seed", range(2))
def test_a_unit_that_could_flip_is_not_steady(seed):
    pair = together(seed, width=1e-4)
    observables = reduced_observables(head_observables(HeadOutputs, random_model(seed=seed)), pair)
    heads = observables.heads
    before = pair.reshape(-1, DIM) @ np.asarray(heads.inwards).T + np.asarray(heads.bias)[0]
    others = np.setdiff1d(np.arange(9), np.array(observables.features) - DIM)
    nearest = np.min(np.abs(before[:, others]) / np.abs(np.asarray(heads.inwards))[others].sum(axis=1))
    assert is_steady(observables, [ball(tokens, 0.9 * nearest - 1e-6) for tokens in pair])
    assert not is_steady(observables, [ball(tokens, 1.1 * nearest) for tokens in pair])


def test_a_pair_moved_to_where_a_unit_has_flipped_is_not_steady():
    pair = together(1, width=1e-4)
    observables = reduced_observables(head_observables(HeadOutputs, random_model(seed=1)), pair)
    far = pair.copy()
    far[0, 0] = -3 * far[0, 0]
    assert is_steady(observables, [ball(tokens, 1e-9) for tokens in pair])
    assert not is_steady(observables, [ball(tokens, 1e-9) for tokens in far])


def test_sights_of_all_numbers_are_always_steady():
    boxes = [ball(tokens, 1e9) for tokens in apart()]
    assert is_steady(head_observables(HeadOutputs, random_model()), boxes)
    assert is_steady(ClassOutputs(model=in_double(random_model())), boxes)


@pytest.mark.parametrize("shared", [(), (1,), (0, 4)])
def test_tying_copies_the_first_sequences_tokens_to_the_shared_places_and_no_others(shared):
    observables = head_observables(Moments, random_model(), shared)
    pair = apart(2)
    tied = np.asarray(observables.tied(jnp.asarray(pair)))
    wanted = pair.copy()
    wanted[1, list(shared)] = pair[0, list(shared)]
    assert np.array_equal(tied, wanted)
    assert np.array_equal(observables.tied(jnp.asarray(tied)), tied)


def test_shared_tokens_do_not_move_the_moments_but_move_the_head_outputs():
    model = random_model()
    shared, plain = head_observables(Moments, model, (1,)), head_observables(HeadOutputs, model)
    tokens = apart(0)[0]
    moved = tokens.copy()
    moved[1] += 0.5
    scale = shared.scale(jnp.asarray(apart(0)))
    assert np.array_equal(shared.observe(jnp.asarray(tokens), scale), shared.observe(jnp.asarray(moved), scale))
    assert np.max(np.abs(plain.observe(jnp.asarray(tokens), None) - plain.observe(jnp.asarray(moved), None))) > 1e-6


def test_moments_are_numerators_and_denominators_of_the_head_outputs():
    model = random_model()
    moments, outputs = head_observables(Moments, model), head_observables(HeadOutputs, model)
    pair = jnp.asarray(apart(5))
    for tokens in pair:
        found = moments.observe(tokens, moments.scale(pair))
        below, above = found[:HEADS], found[HEADS:]
        assert_close(above / below[moments.owners], outputs.observe(tokens, None))


def test_a_steeper_score_has_a_shorter_reach():
    pair = jnp.asarray(apart())
    reaches = [float(head_observables(HeadOutputs, random_model(beta=beta)).reach(pair)) for beta in (1.0, 10.0)]
    assert reaches[0] == pytest.approx(10 * reaches[1], rel=1e-6)
    assert float(ClassOutputs(model=in_double(random_model())).reach(pair)) == np.inf


@pytest.mark.parametrize("positions", POSITIONS)
def test_a_model_that_fits_its_task_is_let_through(positions):
    check_fit(random_model(positions), sum_of_maxima(length=LENGTH, dim=DIM))


@pytest.mark.parametrize(
    ("positions", "length", "dim", "words"),
    [
        ("none", LENGTH, 3, "dim 2, sum-of-maxima has dim 3"),
        ("concatenated", LENGTH, 3, "dim 2, sum-of-maxima has dim 3"),
        ("additive", 8, DIM, "length 5, sum-of-maxima has length 8"),
        ("concatenated", 8, DIM, "length 5, sum-of-maxima has length 8"),
    ],
)
def test_a_model_that_cannot_read_the_tasks_sequences_is_refused(positions, length, dim, words):
    with pytest.raises(InputError, match=words):
        check_fit(random_model(positions), sum_of_maxima(length=length, dim=dim))


def test_a_model_without_positions_reads_any_length():
    check_fit(random_model(), sum_of_maxima(length=17, dim=DIM))


def test_observables_rest_on_the_heads_it_is_given():
    observables, tokens = head_observables(HeadOutputs, random_model()), jnp.asarray(apart()[0])
    doubled = eqx.tree_at(lambda s: (s.heads.value_weight, s.heads.value_bias), observables, replace_fn=lambda x: 2 * x)
    assert_close(doubled.observe(tokens, None), 2 * observables.observe(tokens, None))
