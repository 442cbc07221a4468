"""The one chart renderer, for the page and for files: whatever the numbers are, they can be drawn and told apart."""

import dataclasses
import io
import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount._errors import InputError
from headcount.analysis import ErrorTable, RankTable, answer_from_table, bottleneck
from headcount.report.chart import Chart, HeatMap, Line, Series, Span
from headcount.report.charts import error_chart, rank_chart, rank_map
from headcount.report.charts import heat_map as heat_map_of
from headcount.report.render import FORMATS, save_chart
from headcount.report.render.figure import GROUND, INK, PAGE_SIZE, QUIET, RULE, draw
from headcount.report.render.inline import inlined
from headcount.report.render.pictures import PairPicture, save_pair
from headcount.report.render.ticks import far_enough, linear_ticks, log_ticks, tick_text

from ..store.laws import law, unchecked_randomness
from .laws import check_drawing

WIDTH, HEIGHT = PAGE_SIZE
errors = st.floats(1e-12, 1e3) | st.sampled_from([0.0, np.nan, np.inf, 1e-12, 1e3])
NASTY = """<script>alert("1")</script> & 'quotes'"""


@st.composite
def charts(draw) -> Chart:
    ticks = tuple(sorted(draw(st.sets(st.integers(1, 500), min_size=1, max_size=40))))
    values = st.lists(errors, min_size=len(ticks), max_size=len(ticks)).map(tuple)
    series = []
    for place in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(["measured", "published", "fit"]))
        low, high = (draw(values), draw(values)) if draw(st.booleans()) else (None, None)
        series.append(Series(f"line {place}", ticks, draw(values), place=place, kind=kind, low=low, high=high))
    first, at, last = sorted(draw(st.lists(st.sampled_from(ticks), min_size=3, max_size=3)))
    return a_chart(
        x_ticks=ticks,
        series=tuple(series),
        log_x=draw(st.booleans()),
        log_y=draw(st.booleans()),
        span=Span("enough", at, first, last) if draw(st.booleans()) else None,
    )


def a_chart(**changes) -> Chart:
    plain = {"name": "a", "title": "a chart", "x_label": "heads", "y_label": "error", "x_ticks": (1, 2), "caption": "c"}
    return Chart(**(plain | {"series": (Series("one", (1, 2), (0.1, 0.2)),)} | changes))


def a_heat_map(values, **changes) -> HeatMap:
    rows, columns = (tuple(range(1, count + 1)) for count in np.shape(values))
    plain = {"name": "a", "title": "a map", "row_label": "heads", "column_label": "length", "unit": "NMSE"}
    return HeatMap(rows=rows, columns=columns, values=np.asarray(values, float), caption="c", **(plain | changes))


def a_table(heads: int = 3, lengths: int = 3, seeds: int = 2, error: float = 1e-2) -> ErrorTable:
    nmse = np.full((heads, lengths, seeds), error)
    nmse[heads // 2 :] *= 1e-3
    return ErrorTable(
        heads=tuple(range(1, heads + 1)),
        lengths=tuple(8 * 2**j for j in range(lengths)),
        seeds=tuple(range(seeds)),
        errors=nmse,
    )


def drawn(chart: Chart | HeatMap):
    """The chart as the page has it, checked."""
    return check_drawing(inlined(chart, "c").svg)


@unchecked_randomness
@law
@given(charts())
def test_any_chart_is_drawn_inside_its_frame(chart):
    drawing = drawn(chart)
    shown = np.isfinite([y for s in chart.series for y in s.y if s.kind != "fit" and (y > 0 or not chart.log_y)])
    points = [element for element in drawing.iter("g") if element.get("class") == "point"]
    assert len(points) == shown.sum()
    for point in points:
        (mark,) = point.iter("use")
        assert 0 <= float(mark.get("x")) <= WIDTH
        assert 0 <= float(mark.get("y")) <= HEIGHT
        assert point.find("title").text == point.get("data-tip")
    ids = [element.get("id") for element in drawing.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    assert {element.get("href") for element in drawing.iter("use")} <= {f"#{name}" for name in ids}


@settings(law, max_examples=8)
@given(st.sampled_from([1, 7, 20]), st.sampled_from([1, 5, 12]), errors, errors)
def test_a_heat_map_of_any_size_is_drawn(rows, columns, one, other):
    values = np.full((rows, columns), one)
    values[0, 0] = other
    drawing = drawn(a_heat_map(values))
    assert sum(element.get("class") == "cell" for element in drawing.iter("rect")) == rows * columns


@pytest.mark.parametrize("count", [6, 200])
@pytest.mark.parametrize("axis", ["rows", "columns"])
def test_labels_of_a_heat_map_do_not_run_into_each_other(axis, count):
    values = np.full((count, 1) if axis == "rows" else (1, count), 0.1)
    drawing = drawn(a_heat_map(values))
    anchor, coordinate, least = {"rows": ("end", "y", 10), "columns": ("middle", "x", 10)}[axis]
    ticks = [e for e in drawing.iter("text") if e.get("class") == "tick" and e.get("text-anchor") == anchor]
    places = sorted(float(tick.get(coordinate)) for tick in ticks)
    assert len(places) >= 2
    assert np.diff(places).min() >= least


def test_no_two_measured_lines_of_a_chart_look_alike():
    table = a_table(lengths=12)
    series = error_chart(table, answer_from_table(table)).series
    assert len({(line.colour, line.marker) for line in series}) == 12


def test_a_chart_without_lines_is_an_empty_frame():
    drawing = drawn(a_chart(series=()))
    assert [element.text for element in drawing.iter("text") if element.get("class") == "label"] == ["heads", "error"]


def test_names_are_shown_as_they_are():
    chart = a_chart(
        title=NASTY, x_label=NASTY, y_label=NASTY, series=(Series(NASTY, (1,), (0.1,)),), span=Span(NASTY, 1, 1, 1)
    )
    line = Line(NASTY, NASTY, ((0.0, 0.0), (1.0, 1.0)))
    plan = a_heat_map(np.ones((2, 2)), title=NASTY, row_label=NASTY, column_label=NASTY, unit=NASTY, lines=(line,))
    for text in (inlined(chart, "c").svg, inlined(plan, "c").svg):
        drawing = check_drawing(text)
        assert "<script" not in text
        assert NASTY in drawing.get("aria-label")
        assert any(NASTY in (element.text or "") for element in drawing.iter("title"))


def with_values(table: ErrorTable, value: float) -> ErrorTable:
    nmse = table.errors.copy()
    nmse[0] = value
    return dataclasses.replace(table, errors=nmse)


TABLES = {
    "one of all": a_table(1, 1, 1),
    "twenty head counts": a_table(heads=20),
    "twelve lengths": a_table(lengths=12),
    "tiny": a_table(error=1e-12),
    "huge": a_table(error=1e3),
    "some zero": with_values(a_table(), 0.0),
    "some lost": with_values(a_table(), np.nan),
    "all zero": a_table(error=0.0),
    "all lost": a_table(error=np.nan),
}


@pytest.mark.parametrize("name", TABLES)
def test_any_table_is_drawn_for_the_page_and_for_files(name):
    table = TABLES[name]
    for chart in (error_chart(table, answer_from_table(table, resamples=2)), heat_map_of(table)):
        drawn(chart)
        if name in ("one of all", "some lost", "all lost"):  # title, legend and caption are all that is added
            draw(chart).savefig(io.BytesIO(), format="svg")


@pytest.mark.parametrize("title", ["costs $^$", "a_b^c <b>", "100 % back\\slash"])
def test_a_title_for_paper_is_shown_as_it_is(title):
    written = io.BytesIO()
    draw(a_chart(), title).savefig(written, format="svg")
    assert f"<!-- {title.replace('<', '&lt;').replace('>', '&gt;')} -->" in written.getvalue().decode()


def a_rank_table(heads=(1, 2, 4, 8), ranks=(1, 2, 4, 8), lengths=(8, 16), seeds: int = 2, low=0.05) -> RankTable:
    """Errors that fall from 0.5 to `low` at the last rank."""
    nmse = np.full((len(heads), len(ranks), len(lengths), seeds), 0.5)
    nmse[:, -1] = low
    return RankTable(heads=tuple(heads), ranks=tuple(ranks), lengths=lengths, seeds=tuple(range(seeds)), errors=nmse)


RANK_TABLES = {
    "plain": a_rank_table(),
    "counts that are no powers": a_rank_table(heads=range(1, 8), ranks=(1, 2, 3, 5)),
    "one of all": a_rank_table((2,), (4,), (8,), 1),
    "twenty head counts": a_rank_table(heads=range(1, 21), ranks=(1, 2)),
    "tiny": a_rank_table(low=1e-12),
    "some zero": a_rank_table(low=0.0),
    "some lost": a_rank_table(low=np.nan),
    "some infinite": a_rank_table(low=np.inf),
}


@pytest.mark.parametrize("name", RANK_TABLES)
def test_any_map_of_heads_and_rank_is_drawn_for_the_page_and_for_files(name):
    table = RANK_TABLES[name]
    found = bottleneck(table, resamples=2)
    chart, plan = rank_chart(table, found), rank_map(table, found)
    drawn(chart)
    drawing = drawn(plan)
    assert sum(element.get("class") == "equal" for element in drawing.iter("g")) == len(plan.lines)
    if name in ("one of all", "some lost"):
        for each in (chart, plan):
            draw(each).savefig(io.BytesIO(), format="svg")


@law
@given(st.sets(st.integers(1, 64), min_size=1, max_size=6), st.sets(st.integers(1, 64), min_size=1, max_size=6))
def test_lines_of_a_map_join_exactly_the_models_of_one_product(heads, ranks):
    table = a_rank_table(sorted(heads), sorted(ranks))
    plan = rank_map(table, bottleneck(table, resamples=2))
    products = [heads * rank for heads in table.heads for rank in table.ranks]
    shared = {product for product in products if products.count(product) > 1}
    assert {line.name for line in plan.lines} == {f"heads x rank = {product}" for product in shared}
    for line in plan.lines:
        sizes = [(plan.rows[int(row)], plan.columns[int(column)]) for column, row in line.points]
        assert [h * r for h, r in sizes] == [int(line.label)] * products.count(int(line.label))


def test_lines_of_a_map_stay_inside_it_and_off_the_values():
    table = a_rank_table()
    drawing = drawn(rank_map(table, bottleneck(table)))
    boxes = [element for element in drawing.iter("rect") if element.get("class") == "cell"]
    sides = [[float(box.get(name)) for name in ("x", "y", "width", "height")] for box in boxes]
    middles = [(x + width / 2, y + height / 2) for x, y, width, height in sides]
    assert len(middles) == 16
    lines = [group for group in drawing.iter("g") if group.get("class") == "equal"]
    strokes = [path for group in lines for path in group.iter("path") if "fill:none" in path.get("style")]
    ends = [tuple(map(float, pair)) for p in strokes for pair in re.findall(r"([\d.]+) ([\d.]+)", p.get("d"))]
    assert len(ends) == 2 * 2 * 9  # nine steps on the five diagonals, each a light and a dark stroke
    for x, y in ends:
        assert 0 <= x <= WIDTH
        assert 0 <= y <= HEIGHT
        assert min(abs(x - a) + abs(y - b) for a, b in middles) > 10


def test_a_map_shows_what_the_verdict_judges():
    table = a_rank_table()
    harder = table.errors * np.array([1.0, 3.0])[:, None] * np.array([1.0, 1.1])
    plan = rank_map(dataclasses.replace(table, errors=harder / 3), bottleneck(table))
    np.testing.assert_allclose(plan.values, table.worst)
    assert (plan.rows, plan.columns) == (table.heads, table.ranks)
    assert plan.caption.endswith("lines join models of equal heads x rank; solved from 1 head of rank 8 on")
    assert "at the worst of the lengths 8, 16" in plan.caption


def test_error_against_rank_has_a_line_per_head_count_and_marks_the_rank_that_is_needed():
    table = a_rank_table()
    chart = rank_chart(table, bottleneck(table))
    assert [series.name for series in chart.series] == ["1 head", "2 heads", "4 heads", "8 heads"]
    assert chart.log_x
    assert chart.span is not None
    assert (chart.span.at, chart.span.low, chart.span.high) == (8, 5, 8)
    solved = dataclasses.replace(table, errors=np.full_like(table.errors, 1e-4))
    assert rank_chart(solved, bottleneck(solved)).span is None


def test_a_heat_map_tells_its_values_by_the_names_of_its_axes():
    drawing = drawn(a_heat_map([[0.1, np.nan]], column_label="rank of a head (numbers)"))
    titles = [element.text for element in drawing.iter("title")]
    assert titles == ["heads 1, rank of a head 1: NMSE 1.00e-01", "heads 1, rank of a head 2: nothing finished"]


@pytest.mark.parametrize("ending", FORMATS)
def test_a_map_is_saved_in_every_format_and_twice_the_same(ending, tmp_path):
    table = a_rank_table((1, 2), (1, 2))
    plan = rank_map(table, bottleneck(table, resamples=2))
    for name in ("one", "two"):
        save_chart(plan, tmp_path / f"{name}{ending}")
    assert (tmp_path / f"one{ending}").read_bytes() == (tmp_path / f"two{ending}").read_bytes() != b""


def test_an_unknown_ending_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"chart\.bmp"):
        save_chart(a_chart(), tmp_path / "chart.bmp")


def test_two_charts_on_one_page_share_no_id():
    one, two = (inlined(a_chart(), prefix).svg for prefix in ("one", "two"))
    assert re.sub('(["#])one-', r"\1two-", one) == two
    assert one != two


def test_the_page_colours_a_chart_by_variables_alone():
    """But for the colours of values, which mean the same in every theme."""
    published = Series("theirs", (1, 2), (0.1, 0.2), place=6, kind="published")
    band = Series("ours", (1, 2), (0.1, 0.2), low=(0.1, 0.1), high=(0.3, 0.3))
    text = inlined(a_chart(series=(band, published), span=Span("enough", 1, 1, 2)), "c").svg
    assert re.findall("#[0-9a-f]{6}", text) == []
    assert set(re.findall(r"var\(--([^)]*)\)", text)) == {"p0", "ink", "quiet", "rule", "raised"}
    plan = inlined(a_heat_map([[0.1, np.nan], [1.0, 0.2]]), "c").svg
    assert not set(re.findall("#[0-9a-f]{6}", plan)) & {INK, QUIET, RULE}
    assert GROUND in plan  # a light value on a dark cell


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


@pytest.mark.parametrize("layers", [1, 2])
def test_a_pair_of_sequences_is_drawn(layers, tmp_path):
    picture = PairPicture(
        title="costs $^$",
        caption="a pair",
        tokens=np.linspace(-1, 1, 12).reshape(2, 3, 2),
        weights=np.full((2, 3, 2), 0.5) if layers == 1 else None,
        outputs=np.ones((2, 4)),
        targets=np.zeros((2, 1)),
    )
    save_pair(picture, tmp_path / "pair.svg")
    assert (tmp_path / "pair.svg").read_bytes().startswith(b"<?xml")
