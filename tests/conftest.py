"""Every annotated shape is checked while the tests run, and only then; what is compiled is kept for all of them."""

import os
from pathlib import Path

# One process per core runs the tests; threads of small linear algebra would only wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Most of the time of these tests is compiling. Both workers, all modules and every subprocess share what they compile.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parent.parent / ".pytest_cache" / "compiled"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")

import hypothesis
import jax
import jaxtyping
import pytest

import tests.helpers.shape_checks

# Most of what examples find is found by the first few; `make slow-test` tries many more.
hypothesis.settings.register_profile("quick", max_examples=25, deadline=None)
hypothesis.settings.register_profile("thorough", max_examples=300, deadline=None)
hypothesis.settings.load_profile("quick")

jaxtyping.jaxtyped = tests.helpers.shape_checks.checked  # the hook finds both by name
jaxtyping.install_import_hook("headcount", "tests.helpers.shape_checks.check")


@pytest.fixture(autouse=True, scope="module")
def forget_programs():
    """No module keeps another's programs in memory: they add up to gigabytes. On disk they stay."""
    yield
    jax.clear_caches()
