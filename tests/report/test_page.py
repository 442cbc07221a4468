"""The report's page: it needs nothing but itself, says all that is there, and lets nothing in a name become markup."""

import contextlib
import os
import stat
import subprocess
import sys
from dataclasses import replace

import pytest

from headcount._errors import HeadcountError
from headcount.analysis import experiments
from headcount.report.provenance import provenance
from headcount.report.render import write_page
from headcount.report.render.html import page
from headcount.report.section import Grid, Section, experiment_section, with_provenance
from headcount.store import Cell, Outcome

from .. import made_up
from .laws import check_page

NASTY = """<script>alert("1")</script> & 'quotes' <!-- ]]> </section>"""


def a_section(records, name: str = "experiment-1", missing: int = 0, command: str = "headcount measure") -> Section:
    (experiment,) = experiments(records)
    sweep = {"command": command, "started": "2026-01-01T00:00:00", "keys": []}
    return with_provenance(experiment_section(experiment, name), provenance(records, missing=missing, sweeps=[sweep]))


def zero_for_one_seed(cell: Cell) -> float:
    return 0.0 if cell.seed == 0 else made_up.sharp(cell)


KINDS = {
    "plain": made_up.finished(made_up.own_cells()),
    "one cell": made_up.finished(made_up.own_cells((2,), (8,), (0,))),
    "one length": made_up.finished(made_up.own_cells(lengths=(8,))),
    "one head count": made_up.finished(made_up.own_cells(heads=(2,))),
    "twenty head counts": made_up.finished(made_up.own_cells(heads=range(1, 21))),
    "twelve lengths": made_up.finished(made_up.own_cells(heads=(1, 2), lengths=range(4, 16))),
    "errors of 0": made_up.finished(made_up.own_cells(), lambda _: 0.0),
    "errors of 0 for one seed": made_up.finished(made_up.own_cells(), zero_for_one_seed),
    "some lost": made_up.finished(made_up.own_cells(seeds=(0,)))
    + made_up.lost(made_up.own_cells(seeds=(1,)), Outcome.DIVERGED, "not finite"),
    "a head count lost": made_up.finished(made_up.own_cells((2, 3)))
    + made_up.lost(made_up.own_cells((1,)), Outcome.FAILED, "no memory"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_says_everything_that_is_there(kind):
    records = KINDS[kind]
    section = a_section(records, missing=3, command="headcount measure own")
    text = page([section], folder="results")
    reader = check_page(text)
    for record in records:
        assert f'<th scope="row">{record.cell.model.heads}</th>' in text
        assert f"T = {record.cell.length}" in reader.said
        assert record.message in reader.said
    assert section.headline in reader.said
    assert "headcount measure own" in reader.said
    assert f"3 of {len(records) + 3} models are not trained yet" in reader.said


MAPS = {
    "rank": made_up.finished(made_up.map_cells(), made_up.sharp_in_rank),
    "heads": made_up.finished(made_up.map_cells(lengths=(8, 16))),
    "unknown": made_up.finished(made_up.map_cells(seeds=(0,))),
    "a rank lost": made_up.finished(made_up.map_cells(ranks=(1, 2)))
    + made_up.lost(made_up.map_cells(ranks=(4,)), Outcome.DIVERGED, "not finite"),
    "a seed lost": made_up.finished(made_up.map_cells(seeds=(0, 1, 2)))[1:]
    + made_up.lost(made_up.map_cells((1,), (1,), seeds=(0,)), Outcome.FAILED, "no memory"),
}


@pytest.mark.parametrize("kind", MAPS)
def test_a_page_of_heads_and_rank_says_everything_that_is_there(kind):
    records = MAPS[kind]
    section = a_section(records, missing=3, command="headcount map own")
    assert (section.table, section.answer) == (None, None)
    text = page([section], folder="results")
    reader = check_page(text)
    for record in records:
        assert f'<th scope="row">{record.cell.model.heads}</th>' in text
        assert f'<th scope="col">rank {record.cell.model.rank}</th>' in text
        assert record.message in reader.said
    for said in (section.headline, "headcount map own", "and of which rank", *section.bottleneck.notes):
        assert said in reader.said
    assert [chart.name for chart in section.charts] == ["heads-by-rank", "error-against-rank"]
    if kind in ("rank", "heads"):
        assert section.bottleneck.limit == kind
        assert section.headline == f"own {section.bottleneck.sentence}"


def test_a_page_holds_sweeps_over_heads_and_over_rank_side_by_side():
    sections = [a_section(KINDS["plain"], "one"), a_section(MAPS["rank"], "two")]
    reader = check_page(page(sections, folder="results"))
    assert all(section.headline in reader.said for section in sections)


def test_a_grid_is_a_table_whose_first_column_names_its_rows():
    grids = tuple(
        Grid(title=f"{kind} {NASTY}", columns=("", f"rank 1 {NASTY}"), rows=(("one layer", "0.5 (0.7)"), (NASTY, "-")))
        for kind in ("first", "second")
    )
    text = page([Section(name="s", title="t", asks="a", headline="h", grids=grids)], folder="results")
    reader = check_page(text)
    assert [f"{kind} {NASTY}" in reader.said for kind in ("first", "second")] == [True, True]
    assert reader.said.count("0.5 (0.7)") == 2
    assert text.count('<th scope="row">one layer</th><td>0.5 (0.7)</td>') == 2
    assert (reader.tags.count("caption"), reader.tags.count("table")) == (2, 2)


def test_a_section_needs_no_table():
    check_page(page([Section(name="bare", title="t", asks="a", headline="h")], folder="results"))


@pytest.mark.parametrize("place", ["task", "message", "command", "folder", "warning", "device", "version"])
def test_what_others_wrote_is_shown_as_it_is(place, monkeypatch):
    given = {name: NASTY if name == place else "plain" for name in ("task", "message", "command", "folder", "warning")}
    device, version = (NASTY if name == place else "plain" for name in ("device", "version"))
    monkeypatch.setattr(made_up, "PROVENANCE", {"device": device, "versions": {version: "1"}, "seconds": 1.0})
    cells = made_up.own_cells(task={"task": given["task"], "option": given["task"]})
    records = made_up.finished(cells[:-1]) + made_up.lost(cells[-1:], Outcome.FAILED, given["message"])
    section = replace(a_section(records, command=given["command"]), charts=())
    text = page([section, replace(section, name="two")], folder=given["folder"], warnings=[given["warning"]])
    assert "<!--" not in text
    assert NASTY in check_page(text).said


def test_an_overview_leads_to_every_section():
    records = KINDS["plain"]
    text = page([a_section(records, name) for name in ("one", "two")], folder="results")
    assert check_page(text).links == ["#one", "#two"]


def test_equal_results_make_equal_pages(tmp_path):
    pages = []
    for order in (1, -1):
        root = made_up.write(tmp_path / f"{order}", KINDS["some lost"][::order])
        with made_up.Store.open_for_reading(root) as store:
            pages.append(page([a_section(store.records())], folder="results"))
    assert pages[0] == pages[1]


def test_a_page_is_replaced_whole(tmp_path):
    for text in ("first", "second, in every script: \u00e9 \u4e2d \U0001f600"):
        write_page(text, tmp_path / "new" / "report.html")
        assert (tmp_path / "new" / "report.html").read_text(encoding="utf-8") == text
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["report.html"]


def test_a_page_that_cannot_be_finished_leaves_the_old_one(tmp_path, monkeypatch):
    write_page("old", tmp_path / "report.html")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(HeadcountError, match=r"report\.html: No space left on device\.$"):
        write_page("new", tmp_path / "report.html")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_the_longest_name_a_file_can_have_is_fine(tmp_path):
    path = tmp_path / ("a" * 250 + ".html")
    write_page("page", path)
    assert path.read_text() == "page"


def test_a_link_is_written_through(tmp_path):
    (tmp_path / "link.html").symlink_to(tmp_path / "page.html")
    write_page("page", tmp_path / "link.html")
    assert (tmp_path / "link.html").is_symlink()
    assert (tmp_path / "page.html").read_text() == "page"


def test_what_is_not_a_file_is_not_replaced_by_one(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with contextlib.suppress(HeadcountError):
        write_page("page", tmp_path / "pipe")
    os.close(reader)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_a_page_respects_the_mask_of_its_maker(tmp_path):
    before = os.umask(0o077)
    try:
        write_page("page", tmp_path / "report.html")
    finally:
        os.umask(before)
    assert (tmp_path / "report.html").stat().st_mode & 0o077 == 0


def test_nothing_that_draws_is_imported_before_something_is_drawn():
    code = "import sys, headcount.cli; print(sorted({'matplotlib', 'jinja2'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
