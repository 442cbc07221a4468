"""Every annotated shape is checked while the tests run, and only then; what is compiled is kept for all of them."""

import tests.helpers.environment  # isort: skip

import hypothesis
import jax
import jaxtyping
import pytest

import tests.helpers.shape_checks

# Most of what examples find is found by the first few; `make slow-test` tries many more.
hypothesis.settings.register_profile("quick", max_examples=10, deadline=None)
hypothesis.settings.register_profile("thorough", max_examples=300, deadline=None)
hypothesis.settings.load_profile("quick")

jaxtyping.jaxtyped = tests.helpers.shape_checks.checked  # the hook finds both by name
jaxtyping.install_import_hook("headcount", "tests.helpers.shape_checks.check")
pytest_plugins = ["tests.helpers.fixtures"]  # after the hook, because it imports headcount


@pytest.fixture(autouse=True, scope="session")
def no_support_search():
    """No search for the support dimension, half a second per measurement, but where a test is about it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headcount.api.task_facts", lambda *_: [])
        yield


@pytest.fixture(autouse=True, scope="module")
def forget_programs():
    """No module keeps another's programs in memory: they add up to gigabytes. On disk they stay."""
    yield
    from headcount import _compile  # not before the hook is in place

    for programs in _compile._kept:  # another module may compile the same program with other options
        programs.let_go()
    jax.clear_caches()
