"""In-context regression asks for the best prediction from its pairs, which without noise is the line itself."""

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
import pytest

from headcount.tasks import InContextRegression

from ..helpers.compiling import compile_quickly  # noqa: F401
from ..helpers.refusals import refused
from ..helpers.tolerance import assert_close


def make(**changes):
    return InContextRegression(**({"inputs": 3, "length": 9} | changes))


@eqx.filter_jit
def draw_and_answer(task):
    tokens = jax.vmap(task.sample)(jr.split(jr.key(0), 500))
    return tokens, jax.vmap(task.target)(tokens)


def answered(task):
    """Tokens of 500 sequences, and their targets."""
    return tuple(np.asarray(part) for part in draw_and_answer(task))


@eqx.filter_jit
def answers(task, tokens):
    return jax.vmap(task.target)(tokens)


def parts(tokens):
    """x, y and the query's x of each sequence, in float64."""
    tokens = tokens.astype(np.float64)
    return tokens[:, :-1, :-1], tokens[:, :-1, -1], tokens[:, -1, :-1]


@pytest.mark.parametrize(("noise", "length"), [(0.1, 3), (0.5, 9)])
def test_with_noise_the_target_is_the_posterior_mean(noise, length):
    tokens, targets = answered(make(noise=noise, length=length))
    want = []
    for x, y, query in zip(*parts(tokens), strict=True):
        # The joint normal law of (w . query, y) given the x, w ~ N(0, I/3): condition the first on the second.
        covariance = x @ x.T / 3 + noise**2 * np.eye(len(x))
        want.append([query @ x.T / 3 @ np.linalg.solve(covariance, y)])
    assert_close(targets, np.array(want))


@pytest.mark.parametrize("length", [3, 9])
def test_without_noise_the_target_is_least_squares_of_least_norm(length):
    tokens, targets = answered(make(length=length))
    want = [[np.linalg.lstsq(x, y)[0] @ query] for x, y, query in zip(*parts(tokens), strict=True)]
    assert_close(targets, np.array(want))


def test_enough_pairs_without_noise_tell_the_line():
    tokens, targets = answered(make(inputs=8, length=17))
    x, y, query = parts(tokens)
    weights = np.stack([np.linalg.lstsq(*pairs)[0] for pairs in zip(x, y, strict=True)])
    assert_close(np.einsum("epi,ei->ep", x, weights).astype(np.float32), y)
    assert_close(targets[:, 0], np.sum(weights * query, axis=1))
    # Weights are N(0, I/8): five standard errors of 4,000 numbers.
    assert abs(weights.mean()) < 5 * (1 / 8 / weights.size) ** 0.5
    assert abs(weights.var() - 1 / 8) < 5 / 8 * (2 / weights.size) ** 0.5


def test_a_vanishing_noise_is_no_noise():
    tokens, targets = answered(make(length=3))
    assert_close(answers(make(length=3, noise=1e-4), tokens), targets)


def test_the_last_token_holds_no_answer():
    tokens, targets = answered(make())
    assert np.all(tokens[:, -1, -1] == 0)
    told = tokens.copy()
    told[:, -1, -1] = 7
    assert_close(answers(make(), told), targets)


def test_the_order_of_the_pairs_does_not_matter():
    task = make()
    tokens, targets = answered(task)
    order = [*np.roll(np.arange(8), 3), 8]
    assert_close(answers(task, tokens[:, order]), targets)
    assert not task.uses_positions


def test_a_pair_given_twice_is_one_pair():
    once, targets = answered(make(length=3))
    twice = np.concatenate([once[:, :2]] * 3 + [once], axis=1)
    assert_close(answers(make(), twice), targets)


def test_noise_is_added_to_every_answer_and_changes_nothing_else():
    (plain, _), (noisy, _) = answered(make()), answered(make(noise=0.5))
    assert np.array_equal(plain[..., :-1], noisy[..., :-1])
    added = (noisy - plain)[:, :-1, -1]
    assert abs(added.mean()) < 5 * 0.5 * added.size**-0.5
    assert abs(added.var() - 0.25) < 5 * 0.25 * (2 / added.size) ** 0.5


def test_a_token_is_an_input_and_its_answer():
    assert make(inputs=5).dim == 6
    assert InContextRegression(inputs=5).length == 11
    assert (
        make(noise=0).spec()
        == make(noise=0.0).spec()
        == {
            "task": "in-context-regression",
            "inputs": 3,
            "noise": 0.0,
        }
    )


@pytest.mark.parametrize(
    ("option", "value"), [("inputs", 0), ("inputs", 1.5), ("noise", -0.1), ("noise", np.nan), ("noise", "loud")]
)
def test_a_bad_option_is_refused(option, value):
    with refused(option, repr(value)):
        make(**{option: value})


@pytest.mark.parametrize("length", [1, 0, 2.0])
def test_a_length_with_no_pair_is_refused(length):
    with refused("length", repr(length)):
        make(length=length)
    with refused("length", "at least 2", "got 1"):
        make().at(1)
