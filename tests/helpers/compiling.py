"""Compilation in tests."""

import jax
import pytest


@pytest.fixture(autouse=True, scope="module")
def compile_quickly():
    """For modules whose programs run once, on a few numbers, so that compiling is all they cost; import it there."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
