"""The back ends that are here; one that is not is skipped with its reason, unless it was asked for or built."""

import os
import sys
from pathlib import Path

import jax
import pytest

from headcount._choices import BACKENDS
from headcount.backends import VARIABLE, kernels_here


@pytest.fixture(scope="session")
def fused() -> str:
    """The fused back end, which must be here."""
    available = kernels_here()
    if available.problem:
        asked_for = os.environ.get(VARIABLE) == "fused"  # as for wheels
        built = (Path(sys.prefix) / "kernels").exists() and jax.default_backend() == "cpu"  # by make, for this Python
        (pytest.fail if asked_for or built else pytest.skip)(available.problem)
    return "fused"


@pytest.fixture(scope="session", params=BACKENDS)
def backend(request) -> str:
    return request.getfixturevalue("fused") if request.param == "fused" else "reference"
