"""The spectrum of sign(u . y): eigenvalues, the plane's formula, the share of degree one."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.theory.rank.harmonics import (
    first_degree_error,
    harmonics,
    plane_correlation,
    sign_correlation,
    sign_eigenvalue,
)


@given(st.floats(0, math.pi))
def test_in_the_plane_the_series_is_the_published_formula(angle):
    wanted = plane_correlation(np.array(angle)) if abs(angle - math.pi / 2) > 1e-9 else 0.5
    # Terms are 16 / (pi l)^3 in the plane, and half of what is left after 200 degrees is 1.6e-6.
    assert 0.5 + sign_correlation(2, np.array(math.cos(angle))) / 2 == pytest.approx(float(wanted), abs=2e-6)


@pytest.mark.parametrize("dim", [2, 3, 5, 16, 64])
def test_the_eigenvalues_are_those_of_a_sign(dim):
    """The first is E|u_1|, all squares together make E[sign^2] = 1, even degrees vanish."""
    first = math.exp(math.lgamma(dim / 2) - math.lgamma((dim + 1) / 2)) / math.sqrt(math.pi)
    assert sign_eigenvalue(dim, 1) == pytest.approx(first)
    assert sign_eigenvalue(dim, 4) == 0
    total = sum(sign_eigenvalue(dim, degree) ** 2 * harmonics(dim, degree) for degree in range(1, 20_001, 2))
    assert total == pytest.approx(1, abs=0.06)  # squares fall as 1 / degree^2 only, with dim in front


@pytest.mark.parametrize("dim", [2, 3, 8, 64])
def test_the_first_degree_leaves_what_the_best_linear_answer_leaves(dim):
    """The best answer linear in y is a multiple of u . y in place of the sign: 1 - d E|u_1|^2 of its square is left."""
    heights = np.linspace(-1, 1, 200_001)[1:-1]
    density = (1 - heights**2) ** ((dim - 3) / 2)
    first = np.sum(np.abs(heights) * density) / np.sum(density)
    assert first_degree_error(dim) == pytest.approx((1 - dim * first**2) / 2, abs=1e-3)
