"""The programs of these tests run once, on a few numbers: compiling is most of what they cost."""

import jax
import pytest


@pytest.fixture(autouse=True, scope="package")
def compile_quickly():
    """XLA without most optimisations."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
