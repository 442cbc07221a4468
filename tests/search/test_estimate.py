"""The estimate from one elimination: the number of heads before the first large jump, above what is noise."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.models.base import HeadElimination
from headcount.search.results import heads_of


def eliminated(*distances: float) -> HeadElimination:
    return HeadElimination(tuple(range(len(distances))), distances)


@given(distinct=st.integers(1, 8), copies=st.integers(0, 4), small=st.floats(0, 3e-3), large=st.floats(0.1, 1.0))
def test_heads_that_repeat_others_are_not_counted(distinct, copies, small, large):
    distances = [small] * copies + [large] * (distinct - 1)
    if copies or distinct == 1 or large > 0.5:
        assert heads_of(eliminated(*distances)) == distinct


@pytest.mark.parametrize(
    ("distances", "heads"),
    [
        ((), 1),
        ((1e-4, 1e-4, 1e-4), 1),
        ((0.3, 0.5, 0.8), 4),
        ((1e-4, 2e-4, 0.4), 2),
        ((1e-12, 1e-3, 0.1), 2),
        ((1e-12, 2e-3, 2.5e-3), 1),
        ((1e-3, 0.02, 0.8), 3),
        ((1e-3, 0.008, 0.9), 2),
        ((0.0, 0.9, 1.7), 3),
    ],
    ids=[
        "one head",
        "one",
        "all",
        "two",
        "a jump below the noise",
        "only noise",
        "two large jumps",
        "a small one first",
        "past the variance",
    ],
)
def test_the_first_large_jump_decides(distances, heads):
    assert heads_of(eliminated(*distances)) == heads
