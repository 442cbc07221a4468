"""Programs of the engine's tests train a few models for a few steps: most of their time is compiling."""

import jax
import pytest

import headcount.engine.train
import headcount.tasks.base
from headcount.engine.train import program


def quick_jit(function, *, donate=()):
    """In place of `deterministic_jit`: compiled in half the time, and as deterministic on a CPU."""
    return jax.jit(function, donate_argnums=donate, compiler_options={"xla_cpu_use_fusion_emitters": False})


def replace_jit(patched: pytest.MonkeyPatch) -> None:
    for module in (headcount.engine.train, headcount.tasks.base):
        patched.setattr(module, "deterministic_jit", quick_jit)


@pytest.fixture(autouse=True, scope="module")
def jit_quickly():
    """A module that is to be compiled as for a user has a fixture of this name that does nothing."""
    with pytest.MonkeyPatch.context() as patched:
        replace_jit(patched)
        yield
    program.cache_clear()
