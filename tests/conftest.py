"""Every annotated shape is checked while the tests run, and only then."""

from jaxtyping import install_import_hook

import tests.shape_checks  # noqa: F401 - the hook finds it by name

install_import_hook("headcount", "tests.shape_checks.check")
