"""The one chart renderer, for the page and for files: whatever the numbers are, they can be drawn and told apart."""

import io
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.answer.words import decimal
from headcount.errors import InputError
from headcount.report.chart import Chart, Drop, HeatMap, Level, Line, Series, Span
from headcount.report.files import FORMATS
from headcount.report.render import save_chart
from headcount.report.render.cells import colour_of, ink_on
from headcount.report.render.figure import draw_figure
from headcount.report.render.ink import FONT, GROUND, INK, PAGE_SIZE, QUIET, RULE
from headcount.report.render.inline import inlined
from headcount.report.render.lines import apart
from headcount.report.render.pictures import save_pair

from ..store.drawn import law, unchecked_randomness
from .laws import check_drawing, contrast

WIDTH, HEIGHT = PAGE_SIZE
errors = st.floats(1e-12, 1e3) | st.sampled_from([0.0, np.nan, np.inf, 1e-12, 1e3])
NASTY = """<script>alert("1")</script> & 'quotes'"""


@st.composite
def charts(draw) -> Chart:
    ticks = tuple(sorted(draw(st.sets(st.integers(1, 500), min_size=1, max_size=40))))
    values = st.lists(errors, min_size=len(ticks), max_size=len(ticks)).map(tuple)
    series = []
    for place in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(["measured", "descended", "published", "fit"]))
        low, high = (draw(values), draw(values)) if draw(st.booleans()) else (None, None)
        points = tuple(zip(ticks, draw(values), strict=True)) if draw(st.booleans()) else ()
        thin = draw(st.booleans())
        series.append(Series(f"line {place}", ticks, draw(values), place, kind, low, high, points, thin))
    first, at, last = sorted(draw(st.lists(st.sampled_from(ticks), min_size=3, max_size=3)))
    return a_chart(
        x_ticks=ticks,
        series=tuple(series),
        log_x=draw(st.booleans()),
        log_y=draw(st.booleans()),
        span=Span("enough", at, first, last) if draw(st.booleans()) else None,
        levels=tuple(
            Level(f"level {k}", "w", at) for k, at in enumerate(draw(st.lists(st.floats(1e-9, 2), max_size=5)))
        ),
        drop=Drop("less", at, 0.5, 1e-3) if draw(st.booleans()) else None,
    )


def a_chart(**changes) -> Chart:
    plain = {"name": "a", "title": "a chart", "x_label": "heads", "y_label": "error", "x_ticks": (1, 2), "caption": "c"}
    return Chart(**(plain | {"series": (Series("one", (1, 2), (0.1, 0.2)),)} | changes))


def a_heat_map(values, **changes) -> HeatMap:
    rows, columns = (tuple(range(1, count + 1)) for count in np.shape(values))
    plain = {"name": "a", "title": "a map", "row_label": "heads", "column_label": "length", "unit": "NMSE"}
    plain |= {"rows": rows, "columns": columns, "caption": "c"}
    return HeatMap(values=np.asarray(values, float), **(plain | changes))


def drawn(chart: Chart | HeatMap):
    """The chart as the page has it, checked."""
    return check_drawing(inlined(chart, "c").svg)


@unchecked_randomness
@settings(law, max_examples=12)
@given(charts())
def test_any_chart_is_drawn_inside_its_frame(chart):
    drawing = drawn(chart)
    lines = [s for s in chart.series if s.kind != "fit" and not s.thin]
    shown = np.isfinite([y for s in lines for y in s.y if y > 0 or not chart.log_y])
    points = [element for element in drawing.iter("g") if element.get("class") == "point"]
    assert len(points) == shown.sum()
    for point in points:
        (mark,) = point.iter("use")
        assert 0 <= float(mark.get("x")) <= WIDTH
        assert 0 <= float(mark.get("y")) <= HEIGHT
        assert point.find("title").text == point.get("data-tip")
    names = [text for level in drawing.iter("g") if level.get("class") == "level" for text in level.iter("text")]
    assert len(names) == len(chart.levels)
    heights = sorted(float(name.get("y")) for name in names)
    assert all(0 <= height <= HEIGHT for height in heights)
    assert min(np.diff(heights), default=10) > 9  # no two run into each other
    ids = [element.get("id") for element in drawing.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    assert {element.get("href") for element in drawing.iter("use")} <= {f"#{name}" for name in ids}


@unchecked_randomness
@settings(law, max_examples=100)
@given(st.data(), st.lists(st.floats(0, 1), min_size=1, max_size=6).map(sorted))
def test_texts_are_moved_apart_by_as_little_as_can_be(data, wanted):
    sizes = data.draw(st.lists(st.floats(0.01, 0.2), min_size=len(wanted), max_size=len(wanted)))
    between = (np.array(sizes[:-1]) + np.array(sizes[1:])) / 2
    places = np.array(apart(wanted, sizes))
    assert np.all(np.diff(places) >= between - 1e-9)
    room = between.sum() <= 1
    assert not room or (places.min() >= 0 and places.max() <= 1 + 1e-9)
    # No other way to place them is nearer: those on the way to any places that are allowed are not.
    spare = np.diff(np.sort(data.draw(st.lists(st.floats(0, 1), min_size=len(wanted) + 1, max_size=len(wanted) + 1))))
    others = np.cumsum([0.0, *between]) + np.cumsum(spare) * max(0.0, 1 - between.sum())
    for share in (1e-3, 0.1, 1.0):
        moved = places + share * (others - places)
        assert not room or np.sum((places - wanted) ** 2) <= np.sum((moved - wanted) ** 2) + 1e-9


levels = st.floats(1e-12, 1e3) | st.floats(0.9, 1.1)


@unchecked_randomness
@settings(law, max_examples=15)
@given(st.lists(levels, min_size=1, max_size=5), st.booleans())
def test_the_names_of_levels_stand_at_their_own_lines(values, log_y):
    """In their order, apart from each other, and led to by a hairline from each line of theirs."""
    given = tuple(Level(f"name {k}", f"words {k}", at, decimal(at), anchor=k == 0) for k, at in enumerate(values))
    groups = [group for group in drawn(a_chart(levels=given, log_y=log_y)).iter("g") if group.get("class") == "level"]
    groups.sort(key=lambda group: values[int(re.search(r"\d+", group.get("data-tip"))[0])])
    baselines, before = [], np.inf
    for group in groups:  # from the lowest value
        texts = [(float(text.get("y")), text.text.replace("\xa0", " ")) for text in group.iter("text")]
        words = " ".join(text for _, text in texts)
        named = [level for level in given if level.name in words]
        assert group.get("data-tip") == "; ".join(level.words for level in sorted(named, key=lambda each: each.at))
        assert {level.value for level in named} == {words.split()[-2 if words[-1] in "\u2191\u2193" else -1]}
        paths = [np.array(re.findall(r"-?[\d.]+", path.get("d")), float) for path in group.iter("path")]
        lines, hairlines = paths[::2], paths[1::2]
        assert len(lines) == len(hairlines) == (0 if words[-1] in "\u2191\u2193" else len(named))
        middle = np.mean([y for y, _ in texts]) - 0.36 * FONT["level"]
        for (_, y, end, _), (from_x, from_y, _, to_y) in zip(lines, hairlines, strict=True):
            assert (from_x, from_y) == pytest.approx((end, y), abs=0.02)
            assert to_y == pytest.approx(middle, abs=1.0)
        assert texts[0][0] <= before
        before = texts[-1][0]
        baselines += [y for y, _ in texts]
    assert sum(len(group.get("data-tip").split("; ")) for group in groups) == len(given)
    assert min(-np.diff(np.sort(baselines)[::-1]), default=10) > 9


@settings(law, max_examples=5)
@given(st.sampled_from([1, 7]), st.sampled_from([1, 5, 12]), errors, errors)
def test_a_heat_map_of_any_size_is_drawn(rows, columns, one, other):
    values = np.full((rows, columns), one)
    values[0, 0] = other
    drawing = drawn(a_heat_map(values))
    assert sum(element.get("class") == "cell" for element in drawing.iter("rect")) == rows * columns


@pytest.mark.parametrize(("axis", "anchor", "coordinate"), [("rows", "end", "y"), ("columns", "middle", "x")])
def test_labels_of_a_heat_map_do_not_run_into_each_other(axis, anchor, coordinate):
    drawing = drawn(a_heat_map(np.full((100, 1) if axis == "rows" else (1, 100), 0.1)))
    ticks = [e for e in drawing.iter("text") if e.get("class") == "tick" and e.get("text-anchor") == anchor]
    places = sorted(float(tick.get(coordinate)) for tick in ticks)
    assert len(places) >= 2
    assert np.diff(places).min() >= 10


def test_a_chart_without_lines_is_an_empty_frame():
    drawing = drawn(a_chart(series=()))
    assert [element.text for element in drawing.iter("text") if element.get("class") == "label"] == ["heads", "error"]


def test_names_are_shown_as_they_are():
    chart = a_chart(
        title=NASTY, x_label=NASTY, y_label=NASTY, series=(Series(NASTY, (1,), (0.1,)),), span=Span(NASTY, 1, 1, 1)
    )
    line = Line(NASTY, NASTY, ((0.0, 0.0), (1.0, 1.0)))
    words = {"rows": (NASTY, "plain"), "title": NASTY, "row_label": NASTY, "column_label": NASTY, "unit": NASTY}
    for text in (inlined(chart, "c").svg, inlined(a_heat_map(np.ones((2, 2)), lines=(line,), **words), "c").svg):
        drawing = check_drawing(text)
        assert "<script" not in text
        assert NASTY in drawing.get("aria-label")
        assert any(NASTY in (element.text or "") for element in drawing.iter("title"))


@pytest.mark.parametrize("title", ["costs $^$ a_b^c <b> 100 % back\\slash"])
def test_a_title_for_paper_is_shown_as_it_is(title):
    written = io.BytesIO()
    draw_figure(a_chart(), title).savefig(written, format="svg")
    assert f"<!-- {title.replace('<', '&lt;').replace('>', '&gt;')} -->" in written.getvalue().decode()


def test_a_long_title_stays_inside_the_figure_and_off_the_legend():
    figure = draw_figure(a_chart(), "no transition found: every head count reaches the same error, " * 3)
    figure.savefig(io.BytesIO(), format="png")
    (title,), (legend,) = figure.texts[:1], figure.legends
    shown = title.get_window_extent()
    assert shown.x1 <= figure.bbox.x1
    assert shown.y1 <= figure.bbox.y1
    assert not shown.overlaps(legend.get_window_extent())


@pytest.mark.parametrize("chart", [a_chart(series=()), a_heat_map([[np.nan]])], ids=["no line", "no value"])
def test_what_holds_nothing_is_drawn_for_paper_too(chart):
    draw_figure(chart).savefig(io.BytesIO(), format="svg")


def test_lines_of_a_map_stay_inside_it_and_off_the_values():
    diagonals = [
        Line(f"{k}", f"{k}", tuple((float(j), float(k - j)) for j in range(4) if 0 <= k - j < 4)) for k in (2, 3)
    ]
    drawing = drawn(a_heat_map(np.full((4, 4), 0.5), lines=tuple(diagonals)))
    boxes = [element for element in drawing.iter("rect") if element.get("class") == "cell"]
    sides = [[float(box.get(name)) for name in ("x", "y", "width", "height")] for box in boxes]
    middles = [(x + width / 2, y + height / 2) for x, y, width, height in sides]
    lines = [group for group in drawing.iter("g") if group.get("class") == "equal"]
    assert (len(middles), len(lines)) == (16, 2)
    strokes = [path for group in lines for path in group.iter("path") if "fill:none" in path.get("style")]
    ends = [tuple(map(float, pair)) for p in strokes for pair in re.findall(r"([\d.]+) ([\d.]+)", p.get("d"))]
    assert len(ends) == 2 * 2 * 5  # five steps on the two diagonals, each a light and a dark stroke
    for x, y in ends:
        assert 0 <= x <= WIDTH
        assert 0 <= y <= HEIGHT
        assert min(abs(x - a) + abs(y - b) for a, b in middles) > 10


def test_a_heat_map_tells_its_values_by_the_names_of_its_axes():
    drawing = drawn(a_heat_map([[0.1, np.nan]], rows=("wide",), row_label="kind", column_label="rank (numbers)"))
    titles = [element.text for element in drawing.iter("title")]
    assert titles == ["kind wide, rank 1: NMSE 0.10", "kind wide, rank 2: nothing finished"]


@pytest.mark.parametrize("ending", FORMATS)
def test_a_map_is_saved_in_every_format_and_twice_the_same(ending, tmp_path):
    for name in ("one", "two"):
        save_chart(a_heat_map([[0.1, 0.2]]), tmp_path / f"{name}{ending}")
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
    seeds = Series("ours", (1, 2), (0.1, 0.2), points=((1, 0.3),), kind="descended")
    marked = {"span": Span("enough", 1, 1, 2), "levels": (Level("a", "b", 0.2),), "drop": Drop("less", 1, 0.2, 0.1)}
    text = inlined(a_chart(series=(band, published, seeds), **marked), "c").svg
    assert re.findall("#[0-9a-f]{6}", text) == []
    assert set(re.findall(r"var\(--([^)]*)\)", text)) == {"p0", "ink", "quiet", "rule", "raised"}
    plan = inlined(a_heat_map([[0.1, np.nan], [1.0, 1e-5]]), "c").svg
    assert not set(re.findall("#[0-9a-f]{6}", plan)) & {INK, QUIET, RULE}
    assert GROUND in plan  # a light value on a dark cell


@pytest.mark.parametrize("share", np.linspace(0, 1, 21))
def test_a_value_can_be_read_on_every_colour(share):
    assert contrast(ink_on(share), colour_of(share)) >= 4.5


@pytest.mark.parametrize("layers", [1, 2])
def test_a_pair_of_sequences_is_drawn(layers, tmp_path):
    save_pair(
        tmp_path / "pair.svg",
        title="costs $^$",
        caption="a pair",
        tokens=np.linspace(-1, 1, 12).reshape(2, 3, 2),
        weights=np.full((2, 3, 2), 0.5) if layers == 1 else None,
        outputs=np.ones((2, 4)),
        targets=np.zeros((2, 1)),
    )
    assert (tmp_path / "pair.svg").read_bytes().startswith(b"<?xml")
