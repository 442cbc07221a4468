"""Results on the page and in the figure."""

import pytest

from benchmarks.calibration.figure import draw_results
from benchmarks.calibration.page import BEGIN, END, percent, sentences, write_page
from headcount.report.render.figure import to_svg

from ...helpers.refusals import refused
from .results import KNOWN, UNKNOWN, every_result, result

ALL = every_result()


def test_only_what_is_between_the_markers_changes(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"# before\n\n{BEGIN}\nreplaced\n{END}\n\nafter\n")
    write_page(page, ALL, command="calibrate", figure=tmp_path / "figures" / "drawn.svg")
    first = page.read_text()
    assert first.startswith(f"# before\n\n{BEGIN}\n")
    assert first.endswith(f"{END}\n\nafter\n")
    assert "replaced" not in first
    assert "(figures/drawn.svg)" in first
    assert all(f"\n| {name} |" in first for name in ("maxima", "median", "**held out**", "10"))
    assert all(each.task.name in first for each in ALL if not each.right)
    write_page(page, ALL, command="calibrate", figure=tmp_path / "figures" / "drawn.svg")
    assert page.read_text() == first


@pytest.mark.parametrize("text", ["", BEGIN, f"{END}\n{BEGIN}", f"{BEGIN}{END}{END}", None])
def test_a_page_without_its_markers_stays_as_it_is(tmp_path, text):
    page = tmp_path / "page.md"
    if text is not None:
        page.write_text(text)
    with refused(str(page)):
        write_page(page, ALL, command="calibrate")
    assert (page.read_text() if page.exists() else None) == text


def test_no_share_but_the_whole_is_rounded_to_all_or_none():
    assert [percent(value) for value in (0, 1, 0.996, 0.004, 0.955)] == ["0 %", "100 %", "99.6 %", "0.4 %", "96 %"]


def test_sentences_say_what_there_is():
    assert sentences([]) == []
    (alone,) = sentences([result(UNKNOWN, 2)])
    assert "1 of the 1" in alone
    assert any("no memory" in line for line in sentences([result(KNOWN, None, error="no memory")]))


@pytest.mark.parametrize("results", [ALL, [], [result(UNKNOWN, 14)], [result(KNOWN, 4, low=3)]])
def test_a_figure_has_a_dot_per_task(results):
    figure = draw_results(results)
    early = any(each.early is not None for each in results)
    assert len(figure.axes) == 1 + early
    for axes in figure.axes:
        assert sum(line.get_marker() in ("o", "X") for line in axes.lines) == len(results)
    assert to_svg(figure).startswith("<?xml")
