"""Any function of a whole sequence is a task."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from headcount.engine.data import FreshExamples
from headcount.tasks import FunctionTask

from ..helpers.compiling import compile_quickly  # noqa: F401
from ..helpers.refusals import refused
from ..helpers.tolerance import assert_close
from .laws import Construction, GeneratedTaskLaws


def second_moment(tokens):
    return jnp.mean(tokens**2)


def ends(tokens):
    return jnp.stack([tokens[0, 0], tokens[-1, 0], jnp.max(tokens)])


def make(function=second_moment, **changes):
    return FunctionTask(**({"function": function, "length": 8, "dim": 2} | changes))


class TestFunctionTask(GeneratedTaskLaws):
    constructions = {  # noqa: RUF012
        "scalar": Construction(make),
        "vector of places": Construction(
            lambda: make(ends, distribution="cube", uses_positions=True, intrinsic_dim=3, name="ends"), outputs=3
        ),
    }


def test_target_is_the_function():
    tokens = np.asarray(make().sample(jr.key(0)))
    assert_close(make().target(tokens), np.array([np.mean(tokens.astype(np.float64) ** 2)]))
    assert_close(make(ends).target(tokens), np.array([tokens[0, 0], tokens[-1, 0], tokens.max()]))


def test_examples_are_drawn_with_full_products():
    seen = []

    def target(tokens):
        seen.append(jax.config.jax_default_matmul_precision)
        return jnp.max(tokens)

    FunctionTask(target, length=4, dim=1).examples(8, 8)
    assert "highest" in seen


def test_each_part_has_as_many_examples_as_asked_for():
    assert [len(part.targets) for part in make().examples(5, 7)] == [5, 7]


@pytest.mark.parametrize(("distribution", "low", "high", "mean"), [("cube", 0, 1, 0.5), ("gaussian", -9, 9, 0.0)])
def test_tokens_follow_the_distribution(distribution, low, high, mean):
    tokens = np.asarray(make(length=4000, distribution=distribution).sample(jr.key(0)))
    assert low <= tokens.min()
    assert tokens.max() <= high
    # Standard error of the mean of 8000 numbers: 0.011 at most.
    assert abs(tokens.mean() - mean) < 0.05
    assert abs(tokens.std() - {"cube": 12**-0.5, "gaussian": 1.0}[distribution]) < 0.05


def test_spec_tells_functions_apart():
    tasks = [
        make(),
        make(lambda tokens: jnp.mean(tokens**2) + 1e-3),
        make(lambda tokens: jnp.sum(tokens**2)),
        make(distribution="cube"),
        make(dim=3),
        make(uses_positions=True),
        make(name="other"),
        make(options={"power": 2}),
        make(options={"power": 3}),
    ]
    assert len({str(task.spec()) for task in tasks}) == len(tasks)


@pytest.mark.parametrize("value", [0, -1, 1.5])
@pytest.mark.parametrize("name", ["length", "dim"])
def test_a_bad_count_is_refused(name, value):
    with refused(name, repr(value)):
        make(**{name: value})


def test_a_bad_length_asked_of_a_task_is_refused():
    with refused("length", "0"):
        make().at(0)


def test_an_unknown_distribution_is_refused():
    with refused("distribution", '"uniform"', "cube"):
        make(distribution="uniform")


def test_a_constant_function_is_refused():
    with refused("function", "constant", "2.5"):
        make(lambda tokens: jnp.full((), 2.5)).examples(16, 16)


def test_a_function_that_is_not_finite_is_refused():
    with refused("train targets", "NaN", "in 16"):
        make(lambda tokens: jnp.log(tokens[0, 0])).examples(16, 16)


def test_a_function_whose_target_is_no_vector_is_refused():
    with refused("(2, 2)"):
        make(lambda tokens: tokens.T @ tokens).examples(16, 16)


@pytest.mark.parametrize("wrapped", [lambda function: function, jax.tree_util.Partial], ids=["itself", "Partial"])
def test_a_function_is_run_as_it_is_now(wrapped):
    """Even where it reads a variable that has changed since the last call."""
    powers = [1]
    task = make(wrapped(lambda tokens: jnp.sum(tokens) ** powers[0]))
    once = np.asarray(task.examples(16, 16).train.targets)
    powers[0] = 2
    assert_close(task.examples(16, 16).train.targets, once**2)


def test_fresh_examples_are_drawn_by_the_function_as_it_is_now():
    powers = [1]
    task = make(lambda tokens: jnp.sum(tokens) ** powers[0])
    batch = jax.jit(lambda data: data.batch(jr.key(0), 4)[1])
    once = np.asarray(batch(FreshExamples(task, None)))
    powers[0] = 2
    assert_close(batch(FreshExamples(task, None)), once**2)
