"""A retrieval's target is F0 of D minima, each over its own position set, whatever the components and the sets."""

import jax.numpy as jnp
import jax.random as jr
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.tasks import Retrieval

from ..helpers.compiling import compile_quickly  # noqa: F401
from ..helpers.tolerance import assert_close, assert_trees_equal
from .laws import Construction, GeneratedTaskLaws

CENTRES = np.array([[0.2, 0.9, 0.1], [0.7, 0.3, 0.8], [0.5, 0.5, 0.4]], np.float32)
HALVES = [(0.0, 0.5), (0.5, 1.0)]


def bowls(count: int, dim: int):
    """x -> (|x - c_1|^2, .., |x - c_D|^2)."""
    centres = jnp.asarray(CENTRES[:count, :dim])
    return lambda token: jnp.sum((token - centres) ** 2, axis=1)


def uneven(z):
    """An outer map that tells every z_i from every other."""
    return jnp.sum(z * jnp.arange(1, z.shape[0] + 1)) + z[0] * z[-1]


def both_ways(z):
    return jnp.stack([uneven(z), uneven(z[::-1]), jnp.max(z)])


def user_functions():
    """What a user may write: separate Python functions of a token, one of them returning shape (1,)."""
    return [lambda x: x[0] ** 2, lambda x: jnp.abs(x[1] - 1), lambda x: -x[:1]]


class TestRetrieval(GeneratedTaskLaws):
    constructions = {  # noqa: RUF012
        "whole": Construction(lambda: Retrieval(bowls(2, 2), uneven, length=8, dim=2)),
        "cube": Construction(lambda: Retrieval(bowls(2, 2), length=8, dim=2, distribution="cube")),
        "vector outer": Construction(lambda: Retrieval(bowls(2, 2), both_ways, length=8, dim=2), outputs=3),
        "windows": Construction(lambda: Retrieval(bowls(2, 2), uneven, length=8, dim=2, windows=HALVES)),
        "sets": Construction(
            lambda: Retrieval(bowls(2, 2), uneven, length=8, dim=2, position_sets=[[0, 3, 5], [1, 2]]),
            other_length=None,
        ),
        "user functions": Construction(lambda: Retrieval(user_functions(), uneven, length=8, dim=2)),
    }


def slow_minima(tokens: np.ndarray, count: int, sets) -> list[float]:
    """z_i by loops over places and numbers, in float64."""
    minima = []
    for i in range(count):
        best = float("inf")
        for t in sets[i]:
            best = min(best, sum((float(tokens[t][j]) - float(CENTRES[i][j])) ** 2 for j in range(len(tokens[t]))))
        minima.append(best)
    return minima


def slow_uneven(z: list[float]) -> float:
    return sum((i + 1) * value for i, value in enumerate(z)) + z[0] * z[-1]


@st.composite
def cases(draw):
    """D, d, T and a window a component: at least half of the sequence, so that every rounding keeps a quarter."""
    count, dim, length = (draw(st.sampled_from(sizes)) for sizes in ([1, 3], [1, 3], [5, 8]))
    starts = draw(st.lists(st.integers(0, 10), min_size=count, max_size=count))
    stops = [draw(st.integers(start + 10, 20)) for start in starts]
    return count, dim, length, [(start / 20, stop / 20) for start, stop in zip(starts, stops, strict=True)]


@settings(deadline=None, max_examples=25)
@given(case=cases(), seed=st.integers(0, 2**16))
def test_target_is_what_a_slow_loop_says(case, seed):
    count, dim, length, windows = case
    task = Retrieval(bowls(count, dim), uneven, length=length, dim=dim, windows=windows)
    tokens = np.asarray(task.sample(jr.key(seed)))
    sets = [range(round(start * length), round(stop * length)) for start, stop in windows]
    minima = slow_minima(tokens, count, sets)
    assert_close(task.retrieved(tokens), np.array(minima))
    assert_close(task.target(tokens), np.array([slow_uneven(minima)]))


@settings(deadline=None, max_examples=15)
@given(sets=st.lists(st.sets(st.integers(0, 7), min_size=2), min_size=2, max_size=2), seed=st.integers(0, 2**16))
def test_explicit_sets_are_what_a_slow_loop_says(sets, seed):
    task = Retrieval(bowls(2, 2), uneven, length=8, dim=2, position_sets=[list(places) for places in sets])
    tokens = np.asarray(task.sample(jr.key(seed)))
    assert_close(task.target(tokens), np.array([slow_uneven(slow_minima(tokens, 2, sets))]))


@settings(deadline=None, max_examples=10)
@given(order=st.permutations(range(8)), seed=st.integers(0, 2**16))
def test_order_is_of_no_account_without_windows(order, seed):
    task = Retrieval(bowls(3, 2), uneven, length=8, dim=2)
    tokens = np.asarray(task.sample(jr.key(seed)))
    assert not task.uses_positions
    assert_trees_equal(task.target(tokens[np.array(order)]), task.target(tokens))


def test_order_is_of_account_with_windows():
    task = Retrieval(bowls(2, 2), uneven, length=8, dim=2, windows=HALVES)
    tokens = np.asarray(task.sample(jr.key(0)))
    assert task.uses_positions
    assert not np.array_equal(task.target(tokens[::-1]), task.target(tokens))


@settings(deadline=None, max_examples=10)
@given(case=cases(), seed=st.integers(0, 2**16))
def test_tokens_outside_a_set_do_not_reach_its_minimum(case, seed):
    count, dim, length, windows = case
    task = Retrieval(bowls(count, dim), length=length, dim=dim, windows=windows)
    tokens = np.asarray(task.sample(jr.key(seed)))
    before = np.asarray(task.retrieved(tokens))
    for i, places in enumerate(task.position_sets):
        inside = np.isin(np.arange(length), places)[:, None]
        # Every other token would win the minimum, were it looked at; the tokens inside then do win it.
        assert task.retrieved(np.where(inside, tokens, CENTRES[i, :dim]))[i] == before[i]
        assert task.retrieved(np.where(inside, CENTRES[i, :dim], tokens))[i] == 0


def test_windows_that_share_an_edge_part_every_length_between_them():
    thirds = [(0.0, 1 / 3), (1 / 3, 2 / 3), (2 / 3, 1.0)]
    for length in range(6, 30):
        task = Retrieval(bowls(3, 1), length=length, dim=1, windows=thirds)
        assert sorted(t for places in task.position_sets for t in places) == list(range(length))
        assert np.array_equal(np.sum(task.mask, axis=1), np.ones(length))


def test_sets_that_leave_nothing_out_serve_every_length():
    task = Retrieval(bowls(2, 1), length=3, dim=1, position_sets=[[2, 1, 0], [0, 1, 2, 2]])
    assert not task.uses_positions
    assert task.at(9).spec() == task.spec() == Retrieval(bowls(2, 1), length=8, dim=1).spec()


def test_a_list_of_functions_is_the_function_of_the_list():
    def stacked(x):
        return jnp.stack([x[0] ** 2, jnp.abs(x[1] - 1), -x[0]])

    separate = Retrieval(user_functions(), uneven, length=8, dim=2)
    together = Retrieval(stacked, uneven, length=8, dim=2)
    tokens = together.sample(jr.key(1))
    assert separate.intrinsic_dim == together.intrinsic_dim == 3
    assert_close(separate.target(tokens), together.target(tokens))


def test_spec_tells_tasks_apart():
    shared = {"length": 8, "dim": 2}
    tasks = [
        Retrieval(bowls(2, 2), uneven, **shared),
        Retrieval(bowls(3, 2), uneven, **shared),
        Retrieval(bowls(2, 2), both_ways, **shared),
        Retrieval(bowls(2, 2), uneven, distribution="cube", **shared),
        Retrieval(bowls(2, 2), uneven, windows=HALVES, **shared),
        Retrieval(bowls(2, 2), uneven, windows=[(0.0, 0.25), (0.5, 1.0)], **shared),
        Retrieval(bowls(2, 2), uneven, position_sets=[[0, 1], [2, 3]], **shared),
        Retrieval(bowls(2, 2), uneven, position_sets=[[0, 1], [2, 4]], **shared),
        Retrieval(bowls(2, 3), uneven, length=8, dim=3),
    ]
    assert len({str(task.spec()) for task in tasks}) == len(tasks)
