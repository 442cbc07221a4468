"""`deterministic_jit` compiles the same function, and asks a GPU to be deterministic."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount import _compile

GPU_OPTIONS = {"xla_gpu_deterministic_ops": True}


def test_a_deterministic_program_computes_what_it_is_told():
    program = _compile.deterministic_jit(lambda x, y: jnp.dot(x, y))
    assert program(np.arange(3.0), np.ones(3)) == 3.0


def test_an_argument_can_be_given_away():
    program = _compile.deterministic_jit(lambda x: x + 1, donate=(0,))
    given = jnp.zeros(4)
    assert np.array_equal(program(given), np.ones(4))
    assert given.is_deleted()


@pytest.mark.parametrize(
    ("light", "options"), [(False, [None, GPU_OPTIONS]), (True, [{"xla_backend_optimization_level": 1}, GPU_OPTIONS])]
)
def test_only_a_gpu_is_asked_to_be_deterministic_and_only_a_cpu_to_hurry(monkeypatch, light, options):
    asked = []
    monkeypatch.setattr(jax, "jit", lambda function, **options: asked.append(options["compiler_options"]) or function)
    for backend in ("cpu", "gpu"):
        monkeypatch.setattr(jax, "default_backend", lambda backend=backend: backend)
        _compile.deterministic_jit(lambda x: x, light=light)
    assert asked == options


def test_what_is_compiled_ahead_is_not_compiled_again():
    traced = []
    program = _compile.deterministic_jit(lambda x: traced.append(x) or x + 1, light=True)
    _compile.compile_ahead(program, np.zeros(3, np.float32))
    assert np.array_equal(program(np.ones(3, np.float32)), np.full(3, 2))
    assert len(traced) == 1
