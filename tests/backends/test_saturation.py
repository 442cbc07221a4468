"""Where one token has all the weight, the gradient of a score is 0: its rounding must not meet a large direction."""

import numpy as np
import pytest

from ..helpers.compiling import compile_quickly  # noqa: F401
from .test_pool import run
from .textbook_pool import Case, gradients


@pytest.mark.parametrize(("length", "hidden"), [(8, 32), (40, 300)])  # of the second, hidden vectors come in blocks
@pytest.mark.parametrize("scale", [1e6, 1e30])
def test_gradients_of_saturated_attention(backend, length, hidden, scale):
    generator = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return generator.standard_normal(shape).astype(np.float32)

    direction = np.float32(scale) * normal(2, hidden)
    case = Case(normal(9, length, 3), normal(hidden, 3), normal(1, hidden), direction, np.zeros((0, 2), np.float32))
    changes = normal(9, 2, hidden), normal(9, length, 2)
    _, slopes = run(backend, False, case, *changes)
    for name, got, want in zip(("weight", "bias", "direction"), slopes, gradients(case, *changes), strict=False):
        error = np.linalg.norm(np.asarray(got, np.float64) - want)
        assert error <= 1e-5 * max(np.linalg.norm(want), 1e-30), name
