"""What the charts of a table show, whatever its axes and values are; nothing is drawn here."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.answer import ERROR_RATE, NMSE, ErrorTable, answer, error_table
from headcount.answer.baselines import Baseline
from headcount.answer.words import decimal
from headcount.report.chart import SCALE, Chart, HeatMap, Series
from headcount.report.charts import charts_of, error_chart, heat_map, rank_chart, rank_map
from headcount.report.experiment import experiment_document, study_document
from headcount.report.render.inline import inlined

from ..helpers.documents import bests, error_grids
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


def check_numbers(chart: Chart | HeatMap) -> None:
    """What is drawn has a place on its scale."""
    if isinstance(chart, Chart):
        low, high = chart.limits()
        assert low > 0 or not chart.log_y
        assert 0 <= low <= high < np.inf
    else:
        shares = chart.colour_shares()
        np.testing.assert_array_equal(np.isnan(shares), np.isnan(chart.values))
        assert np.all((shares >= 0) & (shares <= 1) | np.isnan(shares))


@law
@given(st.fixed_dictionaries({}, optional={axis: st.just(values) for axis, values in TRIED.items()}))
def test_an_experiment_over_any_axes_has_charts_and_rows(axes):
    made = sweep(axes | {"length": (4, 8), "seed": (0, 1)})
    document = experiment_document(made.experiment, finished(made, lambda at: sharp(at) * (1 + at.get("hidden", 0))))
    (grid,), charts = error_grids(document), [each for each in document.charts if "training" not in each.name]
    assert document.source is not None
    assert 1 <= len(charts) <= 2
    for chart in charts:
        check_numbers(chart)
    if "heads" in axes and "rank" in axes:
        assert grid.columns == ("heads", "rank 1", "rank 8")
        assert [chart.name for chart in charts] == ["heads-by-rank", "error-against-rank"]
        return
    others = [axis for axis in axes if axis != "learning_rate"]
    main = "heads" if "heads" in axes else (others or ["model"])[0]
    assert grid.columns == (main, "T = 4", "T = 8")
    assert [row[0] for row in grid.rows] == list(map(str, axes.get(main, [1])))
    best = document.source.table.reduced("seed")
    for axis in [axis for axis in others if axis != main]:
        best = best.reduced(axis)
    assert bests(grid) == [[decimal(error) for error in row] for row in best.errors.reshape(-1, 2)]
    names = ["error-against-" + main] * (main != "kind") + [f"{main}-by-length"]
    assert [chart.name for chart in charts] == names


def test_an_axis_of_one_value_is_not_what_an_experiment_is_about():
    made = sweep({"heads": (4,), "hidden": (8, 16, 32), "length": (8,), "seed": (0, 1)})
    section = experiment_document(made.experiment, finished(made))
    assert [chart.name for chart in section.charts] == ["error-against-hidden", "training-error"]
    assert "only one head count" in section.headline
    made = sweep({"heads": (4,), "data_seed": (0, 1, 2), "length": (8,), "seed": (0, 1)})
    section = experiment_document(made.experiment, finished(made))
    assert [chart.name for chart in section.charts] == ["error-against-data_seed", "training-error"]
    (grid,) = error_grids(section)
    assert [row[0] for row in grid.rows] == ["0", "1", "2"]
    assert not any("missing" in line for row in grid.rows for entry in row[1:] for line in entry.below)


@pytest.mark.parametrize("error", [1e-12, 1e3, 0.0, np.nan])
def test_charts_of_equal_errors_have_limits(error):
    for axes in ({"heads": (1, 2, 3)}, {"heads": (1,)}, {"heads": (1, 2), "rank": (1, 2)}):
        table = a_table(error=error, **axes)
        for chart in charts_of(table, answer(table, resamples=2)):
            check_numbers(chart)
            assert isinstance(chart, HeatMap) or chart.limits()[0] == error or not error > 0


def test_no_two_measured_lines_of_a_chart_look_alike():
    table = a_table(heads=(1, 2), length=tuple(range(4, 16)))
    series = error_chart(table, answer(table, resamples=2)).series
    assert len({(line.colour, line.marker) for line in series}) == 12


def test_every_seed_is_a_point_and_the_best_of_all_starts_are_joined():
    made = descent()
    chart, *_ = experiment_document(made.experiment, finished(made)).charts
    assert [(line.name, line.kind, line.place) for line in chart.series] == [
        ("8 tokens", "measured", 0),
        ("8 tokens, descended", "descended", 0),
        ("16 tokens", "measured", 1),
        ("16 tokens, descended", "descended", 1),
    ]
    assert "descended" in chart.caption
    assert "2 draws" in chart.caption
    for line in chart.series:
        here = [at for at in made.coordinates() if at["data_seed"] == 0 and line.name.startswith(f"{at['length']} ")]
        starts = {"measured": "random", "descended": "descended"}
        points = sorted((at["heads"], sharp(at)) for at in here if at["start"] == starts[line.kind])
        assert sorted(line.points) == points
        for x, y in zip(line.x, line.y, strict=True):
            joined = min(sharp(at) for at in here if at["heads"] == x)
            assert np.isnan(y) if line.kind == "descended" else y == joined


def test_of_very_many_seeds_a_band_is_drawn():
    table = a_table(heads=(1, 2), length=(8,), seed=tuple(range(400)))
    (line,) = error_chart(table, answer(table, resamples=2)).series
    assert line.points == ()
    assert line.low is not None


def test_the_drop_and_the_baselines_are_marked_with_what_they_are():
    made = sweep({"heads": (1, 2, 4, 5), "length": (8, 16), "seed": (0, 1)})
    table = error_table(made.experiment, finished(made))
    found = answer(table)
    beside = [
        Baseline("constant", "predicting the mean", 1.0),
        Baseline("pooled", "a pooled model", 3.8e-20),
        Baseline("linear", "a linear model", 31.0),
    ]
    chart = error_chart(table, found, baselines=beside)
    assert (chart.drop.at, chart.drop.words) == (4, "4 heads: 200 times less")
    assert chart.drop.high == table.at(heads=2, length=16, seed=0)
    assert chart.drop.low == table.at(heads=4, length=16, seed=0)
    assert [(level.words, level.value, level.at) for level in chart.levels] == [
        ("predicting the mean: 1.0", "1.0", 1.0),
        ("a pooled model: below 1e-9", "< 1e-9", 3.8e-20),
        ("a linear model: 31", "31", 31.0),
    ]
    # Of the models and the constant: one tiny baseline would press all errors into the top of the axis.
    assert chart.limits() == (table.errors.min(), 1.0)
    flat = a_table(heads=(1, 2, 4))
    assert error_chart(flat, answer(flat, resamples=2)).drop is None


@law
@given(st.floats(1e-9, 10.0), st.floats(0.01, 1.0))
def test_a_colour_means_the_same_share_of_the_baseline_on_every_map(share, baseline):
    maps = [
        HeatMap(name="m", title="t", rows=(1,), columns=(1,), row_label="r", column_label="c", unit="u", caption="c",
                values=np.array([[share * level]]), baseline=level)
        for level in (1.0, baseline)
    ]  # fmt: skip
    one, other = (float(each.colour_shares()[0, 0]) for each in maps)
    assert abs(one - other) < 1e-6
    assert one == 0.0 or share > SCALE[0] * (1 - 1e-9)


def test_errors_of_0_are_on_the_chart():
    """A label objective can reach it, and a logarithmic axis has no place for it."""
    table = a_table(metric=ERROR_RATE, error=0.0, heads=(1, 2))
    chart = error_chart(table, answer(table, resamples=2))
    assert np.isfinite(chart.drawable(chart.series[0].y)).all()


def test_a_labelled_experiment_says_that_errors_are_shares_of_wrong_answers():
    table = a_table(metric=ERROR_RATE, error=0.3, heads=(1, 2))
    assert "wrong answers" in error_chart(table, answer(table, resamples=2)).y_label
    assert heat_map(table).unit == "error rate"
    document = study_document(name="s", title="t", question="a", headline="h", table=table)
    assert "wrong answers" in error_grids(document)[0].title
    assert document.unit == ERROR_RATE.unit


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


@pytest.mark.parametrize("log", [True, False])
@pytest.mark.parametrize("value", [float("inf"), float("nan"), -float("inf"), 1.7e308, 5e-324, 0.0, -1.0])
def test_a_mark_that_has_no_place_is_left_out_with_what_it_says(value, log):
    def chart(x, y, ticks) -> Chart:
        labels = {"name": "c", "title": "c", "caption": "", "x_label": "x", "y_label": "y"}
        return Chart(x_ticks=ticks, series=(Series("s", x, y),), log_x=log, log_y=log, **labels)

    for drawn in (
        chart((1.0, value, 3.0), (0.1, 0.2, 0.3), (1.0, 3.0)),
        chart((1.0, value, 3.0), (0.1, 0.2, 0.3), (1.0, value, 3.0)),
        chart((1.0, 2.0, 3.0), (0.1, value, 0.3), (1.0, 2.0, 3.0)),
        chart((1.0, 2.0, 300.0), (0.1, 0.2, 0.3), (1.0, 2.0)),
        chart((value,), (value,), (value,)),
    ):
        marks = int(np.isfinite(drawn.heights(drawn.series[0])).sum())
        assert inlined(drawn, "p").svg.count('class="point"') == marks
