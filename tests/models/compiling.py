"""How the tests of models, tasks and the engine compile: programs run a few times on a few numbers."""

import functools

import jax
import pytest

import headcount.engine.train
import headcount.tasks.base
from headcount.engine.train import program

OPTIONS = {"xla_cpu_use_fusion_emitters": False}
"""Programs that are slower, and compiled in half the time or less."""
compiled = functools.partial(jax.jit, compiler_options=OPTIONS)


def replace_jit(patched: pytest.MonkeyPatch) -> None:
    """The library's programs are compiled so too; on a CPU they are as deterministic."""

    def quick_jit(function, *, donate=()):
        return compiled(function, donate_argnums=donate)

    for module in (headcount.engine.train, headcount.tasks.base):
        patched.setattr(module, "deterministic_jit", quick_jit)


@pytest.fixture(autouse=True, scope="module")
def jit_quickly():
    """A module that is to be compiled as for a user has a fixture of this name that does nothing."""
    with pytest.MonkeyPatch.context() as patched:
        replace_jit(patched)
        yield
    program.cache_clear()
    headcount.tasks.base._program.cache_clear()
