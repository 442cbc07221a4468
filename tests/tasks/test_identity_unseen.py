"""Functions that call back into Python are told apart by their code and state alone, or need a version."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount import FunctionTask

from ..helpers.refusals import refused


def task_of(function) -> FunctionTask:
    return FunctionTask(function=function, length=4, dim=2)


def called_back(function) -> FunctionTask:
    """The task of a function that JAX cannot trace."""
    return task_of(lambda tokens: jax.pure_callback(function, jax.ShapeDtypeStruct((), np.float32), tokens))


def key(task: FunctionTask) -> tuple[str, str]:
    return task.spec()["code"], task.probe()


class Copied:
    """Copying it loses its state."""

    def __init__(self, scale):
        self.scale = scale

    def __reduce__(self):
        return Copied, (1.0,)


class Slotted:
    __slots__ = ("scale",)

    def __init__(self, scale):
        self.scale = scale

    def __reduce__(self):
        return "the only one"


class Table(dict):
    def __init__(self, scale):
        self.scale = scale


class Values(np.ndarray):
    pass


def values(scale):
    array = np.ones(2).view(Values)
    array.scale = scale
    return array


def special(scale):
    return type("Special", (), {"__scale__": scale, "scale": property(lambda self: self.__scale__)})()


@pytest.mark.parametrize("kind", [Copied, Slotted, Table, values, special])
def test_state_counts_wherever_it_is(kind):
    one, other, same = (called_back(lambda x, of=of: of.scale * x.max()) for of in map(kind, (1.0, 2.0, 1.0)))
    assert key(one) == key(one) == key(same) != key(other)


SCALE = 1.0
UNSEEN = {
    "globals": lambda x: globals()["SCALE"] * x.max(),
    "vars": lambda x: vars(np)["max"](x),
    "getattr": lambda x: getattr(np, "m" + "ax")(x),
    "eval": lambda x: eval("SCALE") * x.max(),
    "open": lambda x: float(open("scale").read()) * x.max(),  # noqa: SIM115 - refused
}


@pytest.mark.parametrize("name", UNSEEN)
def test_what_python_reads_without_naming_it_needs_a_version(name):
    with refused("function", name, "version"):
        called_back(UNSEEN[name]).probe()


def test_what_is_traced_may_read_anything():
    assert task_of(lambda tokens: getattr(jnp, "m" + "ax")(tokens)).probe()


class Cached:
    def __init__(self, scale):
        self.scale = scale

    @functools.cached_property
    def weights(self):
        return np.full(2, self.scale)

    def __call__(self, tokens):
        return jnp.max(tokens @ self.weights)


def test_a_cached_property_changes_nothing():
    function = Cached(1.0)
    before = task_of(function).spec()
    assert key(task_of(function)) == key(task_of(Cached(1.0))) != key(task_of(Cached(2.0)))
    assert "weights" in vars(function)
    assert task_of(function).spec() == before
