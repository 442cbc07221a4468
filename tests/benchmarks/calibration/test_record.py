"""What counts as right, and how it is added up."""

import csv
import io
import json
import statistics
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.calibration.record import Share, by_family, by_intrinsic_dim, overview, result_from_dict, summarise
from benchmarks.calibration.run import to_csv

from .results import KNOWN, UNKNOWN, every_result, result

ALL = every_result()


@pytest.mark.parametrize(
    ("outcome", "exact", "held", "claimed", "missed"),
    [
        (result(KNOWN, 3), True, True, False, False),
        (result(KNOWN, 4), False, False, False, False),
        (result(KNOWN, 4, low=3), False, True, False, False),
        (result(KNOWN, 2, high=3), False, True, False, False),
        (result(KNOWN, 5, low=4, high=6), False, False, False, False),
        (result(KNOWN, None), False, False, False, True),
        (result(UNKNOWN, None), False, False, False, False),
        (result(UNKNOWN, 1), False, False, True, False),
    ],
)
def test_what_counts_as_right(outcome, exact, held, claimed, missed):
    assert (outcome.exact, outcome.held, outcome.claimed, outcome.missed) == (exact, held, claimed, missed)
    assert outcome.right == (exact or (outcome.task.intrinsic_dim is None and not claimed))


@given(st.integers(1, 200).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total))))
def test_wilsons_interval_is_every_share_that_would_not_be_rejected(counts):
    count, total = counts
    p = np.linspace(0, 1, 20_001)
    kept = p[np.abs(count / total - p) <= 1.959964 * np.sqrt(p * (1 - p) / total) + 1e-12]
    low, high = Share(count, total).interval
    assert low == pytest.approx(kept.min(), abs=1e-4)
    assert high == pytest.approx(kept.max(), abs=1e-4)
    assert 0 <= low <= Share(count, total).value <= high <= 1


def test_a_summary_counts_what_a_loop_counts():
    summary = summarise(ALL)
    known = [each for each in ALL if each.task.intrinsic_dim is not None]
    right = [each for each in known if each.heads == each.task.intrinsic_dim]
    assert (summary.tasks, summary.exact.total, summary.claims.total) == (193, 169, 24)
    assert Fraction(summary.exact.count, summary.exact.total) == Fraction(len(right), len(known))
    assert summary.held.count == sum(
        each.heads is not None and each.low <= each.task.intrinsic_dim <= each.high for each in known
    )
    assert summary.median_seconds == statistics.median([each.seconds for each in ALL])
    assert summary.worst_seconds == max(each.seconds for each in ALL)
    assert summary.early_right.count == sum(each.early == each.task.intrinsic_dim for each in known)
    assert summary.early_agrees.total == sum(each.heads is not None and each.early is not None for each in ALL)


def test_groups_add_up_to_all():
    parts, whole = overview(ALL), summarise(ALL)
    for groups in (["D <= 8", "D = 9, 10", "no answer exists"], ["held out", "open"]):
        assert sum(parts[name].tasks for name in groups) == whole.tasks
        assert sum(parts[name].exact.count for name in groups) == whole.exact.count
        assert sum(parts[name].claims.total for name in groups) == whole.claims.total
    assert sum(row.exact.count for row in by_family(ALL).values()) == whole.exact.count
    assert sum(row.held.count for row in by_intrinsic_dim(ALL).values()) == whole.held.count
    assert list(by_intrinsic_dim(ALL)) == list(range(1, 11))


def test_nothing_measured_has_no_share_and_no_time():
    empty = summarise([])
    assert empty.exact == Share(0, 0)
    assert empty.exact.interval == (0, 1)
    assert (empty.median_seconds, empty.worst_seconds) == (None, None)
    json.dumps(empty.as_dict(), allow_nan=False)


def test_times_of_continued_measurements_are_left_out():
    results = [result(KNOWN, 3, seconds=4.0), result(KNOWN, 3), result(KNOWN, 3, seconds=6.0)]
    assert summarise(results).median_seconds == 5
    assert summarise([result(KNOWN, 3)]).worst_seconds is None


def test_a_result_is_read_as_it_was_written():
    for each in ALL[::20]:
        assert result_from_dict(json.loads(json.dumps(each.as_dict()))) == each


def test_the_table_has_a_row_per_task():
    rows = list(csv.DictReader(io.StringIO(to_csv(ALL))))
    assert [row["name"] for row in rows] == [each.task.name for each in ALL]
    assert [row["exact"] == "True" for row in rows] == [each.exact for each in ALL]
    assert {row["intrinsic_dim"] for row in rows if row["family"] == "median"} == {""}
    assert to_csv([]) == ""
