"""Two representations of one function have one D, unless a clause fails or the sequence is short."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount.errors import InputError
from headcount.tasks import Retrieval, max_plus_min, quadratic_basins, sum_of_maxima
from headcount.theory.collisions.uniqueness import RepresentationVerdict, compare_representations

pytestmark = pytest.mark.slow  # many compiled programs, of code that nothing else uses

CENTRES = jnp.asarray([[0.2, 0.3], [0.7, 0.6]])


def bowl(centre):
    return lambda x: jnp.mean((x - centre) ** 2)


def basins(*centres, outer=jnp.sum, length=16, **others) -> Retrieval:
    return Retrieval([bowl(centre) for centre in centres], outer, length=length, dim=2, distribution="cube", **others)


def compare(first, second, **options):
    return compare_representations(first, second, **{"starts": 16, "steps": 60, **options})


@pytest.mark.slow
def test_a_component_written_twice_fails_the_clause_of_distinct_minimisers():
    plain = max_plus_min(length=16)
    twice = Retrieval(
        [lambda x: 1 - x[0], lambda x: x[0], lambda x: x[0]],
        lambda z: 1 - z[0] + (z[1] + z[2]) / 2,
        length=16,
        dim=1,
        distribution="cube",
    )
    found = compare(plain, twice)
    assert found.verdict is RepresentationVerdict.CLAUSE_FAILS
    assert found.dims == (2, 3)
    assert "2.2" in found.failing[1]
    assert found.failing[0] == ()  # 1 - x has no curvature, which D does not need
    assert found.supports is not None
    assert [support.value for support in found.supports] == [2, 2]
    assert found.difference < 1e-12
    assert "2.2" in found.sentence
    assert "support dimension 2" in found.sentence


@pytest.mark.slow
def test_a_component_that_never_matters_fails_the_clause_of_slopes():
    plain = basins(*CENTRES)
    idle = basins(*CENTRES, jnp.asarray([0.5, 0.1]), outer=lambda z: z[0] + z[1])
    found = compare(plain, idle)
    assert found.verdict is RepresentationVerdict.CLAUSE_FAILS
    assert found.failing == ((), ("2.4",))
    assert "2.4 fails for the second (D = 3)" in found.sentence


def test_components_in_another_order_are_one_function_with_one_d():
    found = compare(basins(*CENTRES), basins(*CENTRES[::-1]))
    assert found.verdict is RepresentationVerdict.ONE_DIM
    assert found.failing == ((), ())
    assert found.difference < 1e-12
    assert "one D = 2" in found.sentence


def test_different_tasks_come_with_a_sequence_that_tells_them_apart():
    first, second = basins(*CENTRES), basins(CENTRES[0], jnp.asarray([0.7, 0.5]))
    found = compare(first, second)
    assert found.verdict is RepresentationVerdict.DIFFERENT
    assert found.where.min() >= 0
    assert found.where.max() <= 1
    with jax.enable_x64(True):
        one, other = (task.target(jnp.asarray(found.where)) for task in (first, second))
    assert abs(float(one[0] - other[0])) == pytest.approx(found.difference, rel=1e-5)
    # The second bowls are (0.6 - y)^2 / 2 and (0.5 - y)^2 / 2 up to a shared part: furthest apart with all tokens at
    # y = 0.
    assert found.difference == pytest.approx((0.6**2 - 0.5**2) / 2, rel=1e-3)


@pytest.mark.slow
def test_a_difference_in_a_corner_of_the_space_of_long_sequences_is_found():
    """A third minimum that counts only where all tokens are far from its basin: uniform sequences never are."""
    length = 650
    first = basins(*CENTRES, length=length)
    second = basins(
        *CENTRES,
        jnp.asarray([0.5, 0.1]),
        outer=lambda z: z[0] + z[1] + 10 * jnp.maximum(z[2] - 0.3, 0.0) ** 2,
        length=length,
    )
    uniform = jnp.asarray(np.random.default_rng(0).random((64, length, 2), np.float32))
    assert jnp.array_equal(jax.vmap(first.target)(uniform), jax.vmap(second.target)(uniform))
    assert compare(first, second, starts=32, steps=20).verdict is RepresentationVerdict.DIFFERENT


@pytest.mark.slow
def test_a_short_sequence_may_have_two_d():
    """Sets of one place each: (f + g) / 2 is one component or two, and no clause fails."""
    one = Retrieval(
        [lambda x: (bowl(CENTRES[0])(x) + bowl(CENTRES[1])(x)) / 2],
        lambda z: 2 * z[0],
        length=4,
        dim=2,
        distribution="cube",
        position_sets=[[0]],
    )
    two = basins(*CENTRES, length=4, position_sets=[[0], [0]])
    found = compare(one, two)
    assert found.verdict is RepresentationVerdict.TOO_SHORT
    assert found.failing == ((), ())
    assert found.least_length == 8
    assert "length 8 or more" in found.sentence


@pytest.mark.slow
def test_a_difference_that_the_search_cannot_see_is_proved_by_the_tokens_that_matter():
    """Two tasks that do differ, seen through a tolerance that hides it."""
    first, second = basins(*CENTRES), basins(*CENTRES, jnp.asarray([0.5, 0.1]))
    hidden = compare(first, second, steps=5, tolerance=10.0)
    assert hidden.verdict is RepresentationVerdict.DIFFERENT
    assert hidden.supports is not None
    assert [support.proved for support in hidden.supports] == [2, 3]
    assert "3 tokens" in hidden.sentence


@pytest.mark.slow
def test_a_contradiction_would_be_called_one(monkeypatch):
    """The same two tasks, with certificates that prove nothing."""
    path = "headcount.theory.support.dimension._certify"
    monkeypatch.setattr(path, lambda *_: (0, 0.0, "not tried"))
    first, second = basins(*CENTRES), basins(*CENTRES, jnp.asarray([0.5, 0.1]))
    hidden = compare(first, second, steps=5, tolerance=10.0)
    assert hidden.verdict is RepresentationVerdict.CONTRADICTION


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (quadratic_basins(length=8), "same length, got 16"),
        (quadratic_basins(dim=3), "same dim, got 2"),
        (sum_of_maxima(dim=2), "same distribution, got cube"),
        (basins(*CENTRES, outer=lambda z: z), "targets, got 1"),
    ],
)
def test_what_cannot_be_compared_is_refused(second, message):
    with pytest.raises(InputError, match=message):
        compare(quadratic_basins(length=16), second)


def test_tasks_off_the_cube_and_empty_searches_are_refused():
    with pytest.raises(InputError, match='set distribution="cube"'):
        compare(sum_of_maxima(dim=2), sum_of_maxima(dim=2))
    for options, message in (({"starts": 0}, "starts"), ({"steps": 0}, "steps"), ({"tolerance": 0.0}, "tolerance")):
        with pytest.raises(InputError, match=message):
            compare(quadratic_basins(), quadratic_basins(), **options)
