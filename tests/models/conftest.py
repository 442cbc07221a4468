"""Tests of models use the same few shapes, so that operations are compiled once for all of their modules."""

import jax
import pytest


@pytest.fixture(autouse=True, scope="package")
def forget_programs():
    """In place of the one per module."""
    yield
    jax.clear_caches()
