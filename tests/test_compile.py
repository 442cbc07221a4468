"""`deterministic_jit` compiles the same function, and asks a GPU to be deterministic."""

import jax
import jax.numpy as jnp
import numpy as np

from headcount import _compile


def test_a_deterministic_program_computes_what_it_is_told():
    program = _compile.deterministic_jit(lambda x, y: jnp.dot(x, y))
    assert program(np.arange(3.0), np.ones(3)) == 3.0


def test_an_argument_can_be_given_away():
    program = _compile.deterministic_jit(lambda x: x + 1, donate=(0,))
    given = jnp.zeros(4)
    assert np.array_equal(program(given), np.ones(4))
    assert given.is_deleted()


def test_only_a_gpu_is_asked_to_be_deterministic(monkeypatch):
    asked = []
    monkeypatch.setattr(jax, "jit", lambda function, **options: asked.append(options) or function)
    for backend in ("cpu", "gpu"):
        monkeypatch.setattr(jax, "default_backend", lambda backend=backend: backend)
        _compile.deterministic_jit(lambda x: x)
    assert [options["compiler_options"] for options in asked] == [None, {"xla_gpu_deterministic_ops": True}]
