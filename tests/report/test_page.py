"""The report's page: it needs nothing but itself, says all that is there, and lets nothing in a name become markup."""

import re
import subprocess
import sys
from dataclasses import replace
from importlib.resources import files

import pytest

from headcount.report.provenance import provenance
from headcount.report.render import write_report
from headcount.report.render.html import page, summary
from headcount.report.render.rows import error_rows, other_draws
from headcount.report.render.words import number
from headcount.report.section import Grid, Section, experiment_section, with_provenance
from headcount.store import Outcome, Store

from ..helpers import fabricated
from ..helpers.fabricated import LINE, MAP, descent, finished, graded, lost, sharp, sharp_in_rank, sweep, write
from .laws import Reader, check_page

NASTY = """<script>alert("1")</script> & 'quotes' <!-- ]]> </section>"""
STARTED = "2026-01-01T00:00:00"


def a_section(made, records, missing: int = 0, command: str = "headcount measure") -> Section:
    origin = provenance(records, missing=missing, runs=[(command, STARTED)])
    return with_provenance(experiment_section(made.experiment, records), origin)


def some_lost(axes, gone, outcome: Outcome, message: str, error=sharp):
    """A sweep and its records; cells at `gone` coordinates did not finish."""
    made = sweep(axes)
    records = finished(made, error)
    for i, (cell, at) in enumerate(zip(made.cells, made.coordinates(), strict=True)):
        if gone.items() <= at.items():
            (records[i],) = lost([cell], outcome, message)
    return made, records


def whole(axes, error=sharp):
    made = sweep(axes)
    return made, finished(made, error)


KINDS = {
    "plain": whole(LINE),
    "one cell": whole({"heads": (2,), "length": (8,), "seed": (0,)}),
    "twenty head counts": whole(LINE | {"heads": range(1, 21)}),
    "twelve lengths": whole(LINE | {"heads": (1, 2), "length": range(4, 16)}),
    "errors of 0": whole(LINE, lambda _: 0.0),
    "errors of 0 for one seed": whole(LINE, lambda at: sharp(at) * at["seed"]),
    "a seed lost": some_lost(LINE, {"seed": 1}, Outcome.DIVERGED, "not finite"),
    "a head count lost": some_lost(LINE, {"heads": 1}, Outcome.FAILED, "no memory"),
    "another axis": whole({"hidden": (8, 16, 32), "length": (8, 16), "seed": (0, 1)}),
    "words": whole({"kind": ("plain", "wide"), "length": (8,), "seed": (0, 1)}),
    "rank": whole(MAP, sharp_in_rank),
    "heads, not rank": whole(MAP | {"length": (8, 16)}),
    "one seed of heads and rank": whole(MAP | {"seed": (0,)}),
    "a rank lost": some_lost(MAP, {"rank": 4}, Outcome.DIVERGED, "not finite"),
    "descended": (descent(), finished(descent())),
    "a cell of heads and rank lost": some_lost(MAP, {"heads": 1, "rank": 1, "seed": 0}, Outcome.FAILED, "no memory"),
}
DRAWN = ("plain", "a head count lost", "words", "rank", "descended")
"""The charts of the others are drawn no differently; drawing them costs most of a page."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_says_everything_that_is_there(kind):
    made, records = KINDS[kind]
    section = a_section(made, records, missing=3, command="headcount measure own")
    text = page([section if kind in DRAWN else replace(section, charts=())], folder="results")
    reader = check_page(text)
    errors = error_rows(section)
    for column in errors.columns:
        assert f'<th scope="col">{column}</th>' in text
    for row in errors.rows:
        assert f'<th scope="row">{row.value}</th>' in text
        assert all(number(cell.best) in reader.words for cell in row.cells)
    for said in (section.headline, section.asks, "headcount measure own", *section.answer.notes):
        assert said in reader.said
    assert all(record.message in reader.said for record in records)
    assert f"3 of {len(records) + 3} models are not trained yet" in reader.said
    assert ("and of which rank" in reader.said) == ("rank" in made.experiment.axes)
    assert text.count('<svg viewBox="0 0') == (len(section.charts) if kind in DRAWN else 0)


def test_a_page_tells_descended_models_and_draws_of_the_data_apart():
    section = a_section(*KINDS["descended"])
    text = page([section], folder="results")
    reader = check_page(text)
    assert ("data-kind", "descended") in reader.attributes
    assert text.count('class="series descended"') == 2  # one per length
    assert "draw 2 of 2 of the data" in reader.said
    assert [row.value for row in error_rows(section).rows] == [1, 3, 4, 5, 8]
    assert [row.value for table in other_draws(section) for row in table.rows] == [3, 4, 5, 8]
    assert "missing" not in reader.said


def test_errors_are_what_the_experiments_of_a_page_measured():
    made = sweep(LINE, task="labelled")
    labelled = experiment_section(
        made.experiment, graded(made, lambda at: {"error": 0.5 / at["heads"], "baseline": 0.5})
    )
    plain = a_section(*KINDS["plain"])
    for sections, shares, variance in (
        ([labelled], True, False),
        ([plain], False, True),
        ([labelled, plain], True, True),
    ):
        said = check_page(page([replace(each, charts=()) for each in sections], folder="results")).said
        assert ("shares of wrong answers." in said) == shares
        assert ("over the variance" in said) == variance


def test_a_page_holds_several_results_and_an_overview_that_leads_to_each():
    sections = [a_section(*KINDS[kind]) for kind in ("plain", "rank")]
    sections += [replace(sections[0], name=name, charts=()) for name in ("own", "theme", "tip", NASTY)]
    reader = check_page(page(sections, folder="results"))
    assert len(set(reader.links)) == len(reader.links) == len(sections)
    assert all(section.headline in reader.said for section in sections)


def test_a_grid_is_a_table_whose_first_column_names_its_rows():
    grids = tuple(
        Grid(title=f"{kind} {NASTY}", columns=("", f"rank 1 {NASTY}"), rows=(("one layer", "0.5 (0.7)"), (NASTY, "-")))
        for kind in ("first", "second")
    )
    text = page([Section(name="s", title="t", asks="a", headline="h", grids=grids)], folder="results")
    reader = check_page(text)
    assert [f"{kind} {NASTY}" in reader.said for kind in ("first", "second")] == [True, True]
    assert text.count('<th scope="row">one layer</th><td>0.5 (0.7)</td>') == 2
    assert (reader.tags.count("caption"), reader.tags.count("table")) == (2, 2)


def test_a_section_needs_no_table():
    check_page(page([Section(name="bare", title="t", asks="a", headline="h")], folder="results"))


@pytest.mark.parametrize("place", ["task", "word", "message", "command", "folder", "warning", "device", "version"])
def test_what_others_wrote_is_shown_as_it_is(place, monkeypatch):
    names = ("task", "word", "message", "command", "folder", "warning", "device", "version")
    given = {name: NASTY if name == place else "plain" for name in names}
    origin = {"device": given["device"], "versions": {given["version"]: "1"}, "seconds": 1.0}
    monkeypatch.setattr(fabricated, "PROVENANCE", origin)
    made = sweep({"kind": (given["word"], "other"), "length": (8,), "seed": (0, 1)}, task=given["task"])
    records = finished(made)[:-1] + lost(made.cells[-1:], Outcome.FAILED, given["message"])
    section = replace(a_section(made, records, command=given["command"]), charts=())
    text = page([section, section], folder=given["folder"], warnings=[given["warning"]])
    assert "<!--" not in text
    assert NASTY in check_page(text).said


def test_equal_results_make_equal_pages(tmp_path):
    made, records = KINDS["a seed lost"]
    pages = []
    for order in (1, -1):
        root = write(tmp_path / f"{order}", records[::order], {"headcount measure": made})
        with Store.open_for_reading(root) as store:
            (experiment,) = store.experiments()
            pages.append(page([a_section(replace(made, experiment=experiment), store.records())], folder="results"))
    assert pages[0] == pages[1]


def test_every_colour_of_a_page_is_defined_for_every_theme():
    style = (files("headcount.report") / "assets" / "page.css").read_text()
    defined = [set(re.findall(r"(--[\w-]+):", block)) for block in re.findall(r":root[^{]*\{([^}]*)\}", style)]
    light, dark, dark_by_choice_of_the_system, printed = defined
    assert printed == light == dark == dark_by_choice_of_the_system >= set(re.findall(r"var\((--[\w-]+)\)", style))


def test_the_summary_for_a_notebook_is_short_and_shows_names_as_they_are():
    axes = {"kind": (NASTY, "other"), "length": (8, 16), "seed": (0, 1)}
    for made, records, said in ((*KINDS["plain"], "own needs 4 heads"), (*whole(axes), NASTY)):
        reader = Reader(text := summary(made.experiment, records))
        assert said in reader.said
        assert reader.tags[0] == "div"
        assert not {"script", "svg", "style", "section"} & set(reader.tags)
        assert len(text) < 1000
        errors = error_rows(experiment_section(made.experiment, records))
        assert all(number(cell.best) in reader.words for row in errors.rows for cell in row.cells)


def test_a_page_is_written_in_every_script(tmp_path):
    section = Section(name="s", title="t", asks="a", headline="\u00e9 \u4e2d \U0001f600 \udcff")
    write_report([section], tmp_path / "new" / "report.html", folder="results")
    assert "\u00e9 \u4e2d \U0001f600 ?" in (tmp_path / "new" / "report.html").read_text(encoding="utf-8")


def test_nothing_that_draws_is_imported_before_something_is_drawn():
    code = "import sys, headcount.cli; print(sorted({'matplotlib', 'jinja2'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
