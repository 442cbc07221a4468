"""The support dimension: right where D is known, proved where it says so, refused where there is no gradient."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.errors import InputError
from headcount.tasks import ArrayTask, FunctionTask, Retrieval, average, max_plus_min, preset, sum_of_maxima
from headcount.theory import retrieval_of, support_dim
from headcount.theory.intervals import EnclosureError, ball, enclose
from headcount.theory.support.pieces import decided_on
from headcount.theory.support.search import distinct_places

from .generated import generated


def function(of, length=6, **options) -> FunctionTask:
    return FunctionTask(function=of, length=length, dim=2, **options)


def quick(task, **options):
    return support_dim(task, **{"starts": 16, "rounds": 5, **options})


@pytest.mark.parametrize("number", [7, *(pytest.param(each, marks=pytest.mark.slow) for each in (15, 37))])
def test_generated_tasks_have_the_support_they_were_made_with(number):
    """Copies and idle components, windows, a line of two outputs; the slow tier has fifty."""
    known = generated(number)
    support = support_dim(known.task)
    assert (support.value, support.certified) == (known.support, True), known.made_of
    assert support.exact == (support.components == known.support)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(50))
def test_fifty_generated_tasks(number):
    known = generated(number)
    support = support_dim(known.task)
    assert (support.value, support.certified) == (known.support, True), known.made_of


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value", "sequence"),
    [
        ("sum-of-maxima", 4, True),
        ("max-plus-min", 2, True),
        ("quadratic-basins", 3, True),
        ("average", 16, True),
        ("nearest-neighbour", 1, False),
        ("farthest-point", 1, False),
        ("biased-nearest-neighbour", 1, False),
        ("in-context-regression", 17, False),
    ],
)
def test_every_named_task(name, value, sequence):
    support = support_dim(preset(name))
    assert support.value == value
    assert support.certified == (name != "in-context-regression")  # a singular value decomposition has no enclosure
    assert support.every_token == (name in ("average", "in-context-regression"))
    assert (support.answered_at == "sequence") == sequence


@pytest.mark.slow
def test_an_approximate_representation_has_the_support_of_its_function_at_drawn_sequences():
    """Theorem 1's selector mixes tokens that nearly tie: more matter there, and it is not the function itself."""
    task = retrieval_of(lambda x: jnp.atleast_1d(jnp.max(x) + jnp.min(x)), length=8, dim=1, q=1e6)
    support = support_dim(task)
    assert (support.components, support.typical) == (56, 2)
    assert not support.exact


def test_the_certificate_is_about_the_gradient_at_the_witness():
    support = quick(max_plus_min(length=8))
    task, matter = max_plus_min(length=8), support.gradients > 0
    with jax.enable_x64(True):
        slopes = np.asarray(jax.grad(lambda x: task.target(x)[0])(jnp.asarray(support.witness)))
    np.testing.assert_array_equal(np.any(slopes != 0, axis=-1), matter)
    assert matter.sum() == support.value == support.proved == 2
    assert 0 <= support.witness.min() <= support.witness.max() <= 1
    assert support.exact
    assert support.as_dict()["witness"] == support.witness.tolist()


def test_a_target_of_every_token_has_no_one_number_of_components():
    support = quick(average(length=4))
    assert support.every_token
    assert support.by_length == {4: 4, 8: 8}
    assert "every token matters" in support.sentence
    assert not support.consequence
    assert not quick(average(length=4), lengths=()).every_token
    window = quick(function(lambda x: jnp.sum(x[: len(x) // 2] ** 2)))
    assert window.grows
    assert not window.every_token


@pytest.mark.parametrize("components", [5, 8])
def test_more_components_than_half_the_tokens_do_not_grow_with_the_length(components):
    """A length with fewer tokens than components has a smaller count for want of tokens."""
    turns = 2 * np.pi * np.arange(components) / components
    directions = np.stack([np.cos(turns), np.sin(turns)])
    support = support_dim(function(lambda x: jnp.sum(jnp.max(x @ directions, axis=0)), length=8), starts=64)
    assert (support.value, support.proved) == (components, components)
    assert set(support.by_length) == ({8, 16, 32} if components == 8 else {4, 8, 16})
    assert not support.grows
    assert not support.every_token
    assert "may be larger" in support.consequence


def test_heads_that_are_enough_are_the_components_also_where_fewer_tokens_matter():
    """Clause 2.4 fails: the two maxima never matter at once, and one head cannot find both."""
    ends = Retrieval(
        [lambda x: x[0], lambda x: 1 - x[0]],
        lambda z: jnp.sum(jax.nn.relu(z - 0.6) ** 2),
        length=8,
        dim=1,
        distribution="cube",
    )
    support = quick(ends)
    assert (support.value, support.components) == (1, 2)
    assert "2 heads are enough" in support.consequence
    assert "it has a representation" in quick(function(lambda x: jnp.max(x[:, 0]))).consequence


def test_stopped_gradients_are_gradients_of_the_target():
    stopped = jax.jit(jax.lax.stop_gradient)
    cancels = Retrieval(
        [lambda x: x[0], lambda x: 1 - x[0]],
        lambda z: z[0] + z[1] - stopped(z[1]),
        length=8,
        dim=1,
        distribution="cube",
    )
    support = quick(cancels)
    assert (support.value, support.proved) == (1, 1)
    with pytest.raises(InputError, match="zero"):
        quick(function(lambda x: jnp.sum(x + stopped(jnp.round(x) - x))))
    tokens = np.array([[0.3, 0.0]])
    with jax.enable_x64(True):
        slopes = enclose(
            jax.grad(decided_on(lambda x: x[0, 0] - stopped(x[0, 0]), ball(tokens, 1e-9))), ball(tokens, 1e-9)
        )
    assert slopes.mignitude.max() == 0


@pytest.mark.parametrize(
    "of",
    [
        lambda x: jax.lax.cond(x[0, 0] > 9, jnp.sum, lambda x: jax.lax.stop_gradient(jnp.max(x)) + jnp.min(x), x),
        lambda x: (
            jnp.min(x)
            + jax.lax.scan(lambda most, y: (jnp.maximum(most, jax.lax.stop_gradient(y[0])), 0), jnp.array(-9.0), x)[0]
        ),
    ],
    ids=["cond", "scan"],
)
def test_gradients_stopped_in_branches_and_loops_are_gradients_of_the_target(of):
    assert quick(function(of), lengths=()).value == 2


def test_the_sentence_leads_with_what_is_proved():
    def rounding(x):
        return jnp.sum(jnp.sin(2 * x[:, 0]) - 2 * jnp.sin(x[:, 0]) * jnp.cos(x[:, 0]))

    task = FunctionTask(function=lambda x: jnp.max(x[:, 0]) + 1e12 * rounding(x), length=8, dim=1, distribution="cube")
    noise = support_dim(task, lengths=())
    assert (noise.value, noise.proved) == (8, 1)
    assert noise.sentence.startswith("support dimension at least 1 (proved): a search computed gradients at 8 of 8")
    assert "8 was found by a search, not proved" in noise.consequence
    small = quick(function(lambda x: jnp.max(x[:, 0]) + 1e-9 * jnp.sum(x)), lengths=())
    assert small.sentence.startswith("support dimension at least 1 (proved): 1 of 6")
    looped = quick(
        function(lambda x: jax.lax.scan(lambda most, y: (jnp.maximum(most, y[0]), 0), jnp.array(-9.0), x)[0]),
        lengths=(),
    )
    assert looped.sentence.startswith("support dimension not proved: a search computed gradients at 1 of 6")
    assert quick(max_plus_min(length=8)).sentence.startswith("support dimension 2: ")


def test_a_custom_derivative_that_is_not_the_targets_own_is_refused():
    rounded = jax.custom_vjp(lambda x: jnp.round(x))
    rounded.defvjp(lambda x: (jnp.round(x), None), lambda _, slope: (slope,))
    with pytest.raises(InputError, match="6 of 6"):
        quick(function(lambda x: jnp.sum(rounded(x))))


def test_a_function_that_is_written_for_one_length_is_counted_at_that():
    weights = np.arange(1.0, 9.0)
    support = quick(function(lambda x: jnp.max(weights * x[:, 0]), length=8))
    assert (support.value, support.by_length) == (1, {8: 1})


def test_components_bound_the_value_and_a_redundant_one_is_seen():
    twice = Retrieval(
        [lambda x: 1 - x[0], lambda x: x[0], lambda x: x[0]],
        lambda z: 1 - z[0] + (z[1] + z[2]) / 2,
        length=12,
        dim=1,
        distribution="cube",
    )
    support = quick(twice)
    assert (support.value, support.proved, support.at_most, support.exact) == (2, 2, 3, False)
    assert any("search" in words for words in support.not_covered)


@pytest.mark.parametrize(
    ("of", "offending"),
    [
        (lambda x: jnp.argmax(x[:, 0]), "int32"),
        (lambda x: 1.0 * jnp.argmax(x[:, 0]), "zero"),
        (lambda x: np.asarray(x).sum(), "jax.numpy"),
        (lambda x: {}["missing"], "KeyError"),
        (lambda x: jnp.max(jnp.nextafter(x[:, 0], 2.0)), "nextafter"),
        (lambda x: jax.lax.while_loop(lambda y: y < 9, lambda y: 2 * y + 1, jnp.max(x)), "while_loop"),
    ],
)
def test_a_target_without_a_gradient_is_refused(of, offending):
    with pytest.raises(InputError, match=offending):
        quick(function(of, name="mine"))


def test_stored_examples_are_refused_with_what_would_be_right():
    x = np.random.default_rng(0).normal(size=(120, 4, 2))
    with pytest.raises(InputError, match="estimate_support"):
        support_dim(ArrayTask(x, x[:, 0, 0]))


PIECES = {
    "maximum": lambda x: jnp.max(x[:, 0]) * jnp.min(x[:, 1]),
    "sort": lambda x: jnp.sort(x[:, 0])[2] * x[0, 1],
    "top": lambda x: jnp.sum(jax.lax.top_k(x[:, 0], 2)[0]) * x[1, 1],
    "read": lambda x: x[jnp.argmax(x[:, 0]), 1],
    "median": lambda x: jnp.median(x[:, 0]),
    "relu": lambda x: jnp.sum(jax.nn.relu(x)),
}


@pytest.mark.parametrize("of", PIECES.values(), ids=PIECES)
@settings(max_examples=2, deadline=None)
@given(seed=st.integers(0, 99))
def test_the_enclosed_gradient_of_a_piece_holds_the_gradient(of, seed):
    tokens = np.random.default_rng(seed).normal(size=(5, 2))
    with jax.enable_x64(True):
        box = ball(tokens, 1e-9)
        slopes = enclose(jax.grad(decided_on(of, box)), box)
        exact = np.asarray(jax.grad(of)(jnp.asarray(tokens)))
    assert np.all(slopes.low <= exact)
    assert np.all(exact <= slopes.high)


@pytest.mark.parametrize("of", [jnp.max, lambda x: jnp.sum(jnp.sort(x, axis=0)[0]), lambda x: jnp.floor(x[0, 0])])
def test_a_comparison_that_the_box_leaves_open_is_not_decided(of):
    tied = np.ones((4, 2))
    with jax.enable_x64(True), pytest.raises(EnclosureError, match="not decided"):
        enclose(jax.grad(decided_on(of, ball(tied, 1e-9))), ball(tied, 1e-9))


def test_sequences_may_be_longer_than_the_pool_that_starts_are_drawn_from():
    assert support_dim(max_plus_min(length=600), starts=8, rounds=0).exact


def test_components_get_distinct_places_of_their_sets():
    task = sum_of_maxima(length=8, intrinsic_dim=3, windows=[(0, 0.25), (0, 0.25), (0, 1)])
    places = distinct_places(task, np.random.default_rng(0))
    assert len(set(places)) == 3
    assert all(place in task.position_sets[i] for i, place in enumerate(places))
    crowded = sum_of_maxima(length=4, intrinsic_dim=2, windows=[(0, 0.25), (0, 0.25)])
    assert sorted(distinct_places(crowded, np.random.default_rng(0)))[0] == -1
