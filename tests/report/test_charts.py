"""What the charts of a table show, whatever its axes and values are; nothing is drawn here."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.analysis import ERROR_RATE, NMSE, ErrorTable, answer
from headcount.report.chart import Chart
from headcount.report.charts import charts_of, error_chart, heat_map, rank_chart, rank_map
from headcount.report.render.rows import error_rows
from headcount.report.section import Section, experiment_section

from ..helpers.fabricated import descent, finished, sharp, sweep
from ..store.drawn import law

TRIED = {
    "heads": (1, 2, 4),
    "rank": (1, 8),
    "hidden": (8, 16),
    "kind": ("plain", "wide"),
    "steps": (10, 20),
    "learning_rate": (0.01, 0.1),
}


def a_table(metric=NMSE, error: float = 1e-2, **axes) -> ErrorTable:
    """Errors that are all alike."""
    axes |= {"length": axes.get("length", (8, 16)), "seed": axes.get("seed", (0, 1))}
    return ErrorTable(axes=axes, errors=np.full([len(values) for values in axes.values()], error), metric=metric)


def a_rank_table(heads=(1, 2, 4, 8), ranks=(1, 2, 4, 8)) -> ErrorTable:
    """Errors that fall from 0.5 to 0.05 at the last rank and are twice as large at the second of two lengths."""
    nmse = np.full((len(heads), len(ranks), 2, 2), 0.5)
    nmse[:, -1] = 0.05
    axes = {"heads": tuple(heads), "rank": tuple(ranks), "length": (8, 16), "seed": (0, 1)}
    return ErrorTable(axes=axes, errors=nmse * np.array([0.5, 1.0])[:, None] * np.array([1.0, 1.1]))


@law
@given(st.fixed_dictionaries({}, optional={axis: st.just(values) for axis, values in TRIED.items()}))
def test_an_experiment_over_any_axes_has_charts_and_rows(axes):
    made = sweep(axes | {"length": (4, 8), "seed": (0, 1)})
    section = experiment_section(made.experiment, finished(made, lambda at: sharp(at) * (1 + at.get("hidden", 0))))
    rows = error_rows(section)
    assert rows is not None
    assert 1 <= len(section.charts) <= 2
    for chart in section.charts:
        low, high = chart.limits()
        assert 0 < low <= high < np.inf
    if "heads" in axes and "rank" in axes:
        assert (rows.axis, rows.columns) == ("heads", ("rank 1", "rank 8"))
        assert [chart.name for chart in section.charts] == ["heads-by-rank", "error-against-rank"]
        return
    others = [axis for axis in axes if axis != "learning_rate"]
    main = "heads" if "heads" in axes else (others or ["model"])[0]
    assert (rows.axis, rows.columns) == (main, ("T = 4", "T = 8"))
    assert [row.value for row in rows.rows] == list(axes.get(main, [1]))
    best = section.table.reduced("seed")
    for axis in [axis for axis in others if axis != main]:
        best = best.reduced(axis)
    np.testing.assert_allclose([[cell.best for cell in row.cells] for row in rows.rows], best.errors.reshape(-1, 2))
    names = ["error-against-" + main] * (main != "kind") + [f"{main}-by-length"]
    assert [chart.name for chart in section.charts] == names


def test_an_axis_of_one_value_is_not_what_an_experiment_is_about():
    made = sweep({"heads": (4,), "hidden": (8, 16, 32), "length": (8,), "seed": (0, 1)})
    section = experiment_section(made.experiment, finished(made))
    assert [chart.name for chart in section.charts] == ["error-against-hidden", "hidden-by-length"]
    assert "only one head count" in section.headline
    made = sweep({"heads": (4,), "data_seed": (0, 1, 2), "length": (8,), "seed": (0, 1)})
    section = experiment_section(made.experiment, finished(made))
    assert [chart.name for chart in section.charts] == ["error-against-data_seed", "data_seed-by-length"]
    assert [row.value for row in error_rows(section).rows] == [0, 1, 2]
    assert all(cell.lost == 0 for row in error_rows(section).rows for cell in row.cells)


@pytest.mark.parametrize("error", [1e-12, 1e3, 0.0, np.nan])
def test_charts_of_equal_errors_have_limits(error):
    for axes in ({"heads": (1, 2, 3)}, {"heads": (1,)}, {"heads": (1, 2), "rank": (1, 2)}):
        table = a_table(error=error, **axes)
        for chart in charts_of(table, answer(table, resamples=2)):
            low, high = chart.limits()
            assert 0 < low <= high < np.inf
            assert low == error or not error > 0


def test_no_two_measured_lines_of_a_chart_look_alike():
    table = a_table(heads=(1, 2), length=tuple(range(4, 16)))
    series = error_chart(table, answer(table, resamples=2)).series
    assert len({(line.colour, line.marker) for line in series}) == 12


def test_descended_models_are_lines_of_their_own():
    made = descent()
    section = experiment_section(made.experiment, finished(made))
    chart, _ = section.charts
    assert [(line.name, line.kind, line.place) for line in chart.series] == [
        ("8 tokens", "measured", 0),
        ("8 tokens, descended", "descended", 0),
        ("16 tokens", "measured", 1),
        ("16 tokens, descended", "descended", 1),
    ]
    tried = [[x for x, y in zip(line.x, line.y, strict=True) if np.isfinite(y)] for line in chart.series]
    assert tried == [[1, 3, 8], [3, 4, 5]] * 2
    assert "descended" in chart.caption
    assert "2 draws" in chart.caption
    for line in chart.series:
        assert (line.low is None) == (line.kind == "descended")
        here = [at for at in made.coordinates() if at["data_seed"] == 0 and f"{at['length']} tokens" in line.name]
        kind = "descended" if line.kind == "descended" else "random"
        for x, y in zip(line.x, line.y, strict=True):
            errors = [sharp(at) for at in here if (at["heads"], at["start"]) == (x, kind)]
            assert y == min(errors) if errors else np.isnan(y)


def test_a_labelled_experiment_says_that_errors_are_shares_of_wrong_answers():
    table = a_table(metric=ERROR_RATE, error=0.3, heads=(1, 2))
    assert "wrong answers" in error_chart(table, answer(table, resamples=2)).y_label
    assert heat_map(table).unit == "error rate"
    section = Section(name="s", title="t", asks="a", headline="h", table=table)
    assert "wrong answers" in error_rows(section).label
    assert not section.counts_variance


@law
@given(st.sets(st.integers(1, 64), min_size=1, max_size=6), st.sets(st.integers(1, 64), min_size=1, max_size=6))
def test_lines_of_a_map_join_exactly_the_models_of_one_product(heads, ranks):
    table = a_rank_table(sorted(heads), sorted(ranks))
    plan = rank_map(table, answer(table, resamples=2))
    products = [heads * rank for heads in table.values("heads") for rank in table.values("rank")]
    shared = {product for product in products if products.count(product) > 1}
    assert {line.name for line in plan.lines} == {f"heads x rank = {product}" for product in shared}
    for line in plan.lines:
        sizes = [(plan.rows[int(row)], plan.columns[int(column)]) for column, row in line.points]
        assert [h * r for h, r in sizes] == [int(line.label)] * products.count(int(line.label))


def test_a_map_shows_what_the_verdict_judges():
    """The best seed at the worst length."""
    table = a_rank_table()
    plan = rank_map(table, answer(table))
    np.testing.assert_allclose(plan.values, table.errors[:, :, 1, 0])
    assert (plan.rows, plan.columns) == (table.values("heads"), table.values("rank"))
    assert "solved from 1 head of rank 8 on" in plan.caption
    assert "worst of the lengths 8, 16" in plan.caption


def test_error_against_rank_has_a_line_per_head_count_and_marks_the_rank_that_is_needed():
    table = a_rank_table()
    found = answer(table)
    chart = rank_chart(table, found)
    assert isinstance(chart, Chart)
    assert [series.name for series in chart.series] == ["1 head", "2 heads", "4 heads", "8 heads"]
    assert chart.log_x
    assert chart.span is not None
    assert (chart.span.at, chart.span.low, chart.span.high) == (8, 5, 8)
    solved = a_table(error=1e-4, heads=(1, 2), rank=(1, 2))
    assert rank_chart(solved, answer(solved)).span is None
