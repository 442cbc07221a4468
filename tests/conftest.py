"""Every annotated shape is checked while the tests run, and only then."""

from jaxtyping import install_import_hook

install_import_hook("headcount", "tests.shape_checks.check")
