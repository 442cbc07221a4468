"""The back ends that are here; one that is not is skipped with its reason."""

import pytest

from headcount._choices import BACKENDS
from headcount.backends import kernels_here


@pytest.fixture(scope="session")
def fused() -> str:
    """The fused back end, which must be here."""
    available = kernels_here()
    if available.library is None:
        pytest.skip(available.problem)
    return "fused"


@pytest.fixture(scope="session", params=BACKENDS)
def backend(request) -> str:
    return request.getfixturevalue("fused") if request.param == "fused" else "reference"
