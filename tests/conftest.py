"""Every annotated shape is checked while the tests run, and only then."""

import os

# One process a core runs the tests; threads of small linear algebra would only wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import hypothesis
import jax
import jaxtyping
import pytest

import tests.shape_checks

# Most of what examples find is found by the first few; `make slow-test` tries many more.
hypothesis.settings.register_profile("quick", max_examples=40)
hypothesis.settings.register_profile("thorough", max_examples=300)
hypothesis.settings.load_profile("quick")

jaxtyping.jaxtyped = tests.shape_checks.checked  # the hook finds both by name
jaxtyping.install_import_hook("headcount", "tests.shape_checks.check")


@pytest.fixture(autouse=True, scope="module")
def forget_programs():
    """No module runs another's programs: kept, they add up to gigabytes, and slow down whatever comes later."""
    yield
    jax.clear_caches()
