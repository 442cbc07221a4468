"""Ticks of any axis: within its limits, told apart, and labels that do not overlap."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headcount.report.render.ticks import far_enough, linear_ticks, log_ticks, tick_text

from ..store.drawn import law

positive = st.floats(1e-300, 1e300)


@law
@given(positive, positive)
def test_ticks_of_a_logarithmic_axis_lie_within_its_limits(one, other):
    low, high = sorted((one, other))
    first, last, ticks = log_ticks(low, high)
    assert first < low <= high < last
    assert all(first <= tick <= last for tick in ticks)
    assert 2 <= len(ticks) <= 9
    assert len({tick_text(tick, ticks, log=True) for tick in ticks}) == len(ticks)


@law
@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_ticks_of_a_linear_axis_show_zero_and_every_value(one, other):
    low, high = sorted((one, other))
    first, last, ticks = linear_ticks(low, high)
    slack = 1e-6 * (last - first)
    assert first - slack <= min(low, 0) <= max(high, 0) <= last + slack
    assert 2 <= len(ticks) <= 12


@law
@given(st.lists(st.tuples(st.floats(0, 400), st.floats(1, 40)), min_size=1))
def test_labels_that_are_kept_do_not_overlap(labels):
    labels = sorted(labels)
    places, widths = np.array([place for place, _ in labels]), [width for _, width in labels]
    kept = far_enough(places, widths)
    assert kept[0] == 0
    for i, j in pairwise(kept):
        assert places[j] - widths[j] / 2 >= places[i] + widths[i] / 2 - 1e-9


def test_thousands_are_written_plainly():
    _, _, ticks = linear_ticks(0, 2300)
    assert [tick_text(tick, ticks, log=False) for tick in ticks] == ["0", "500", "1,000", "1,500", "2,000", "2,500"]
    assert tick_text(250_000.0, [250_000.0], log=False) == "2.5e+05"
