"""`headcount report`: a page and figures of folders of every kind, and places that cannot be written."""

import os
from pathlib import Path

import pytest

from headcount.papers.base import Scale
from headcount.papers.registry import STUDIES

from ..helpers import fabricated
from ..helpers.commands import a_sentence, contents, headcount, strict_json
from ..report.laws import check_page

NASTY = """<script>alert("1")</script> & 'quotes'"""


def test_a_report_shows_what_is_there_and_says_what_is_missing(own, tmp_path):
    before = contents(own)
    result = headcount("report", own, "-o", tmp_path / "new" / "page.html")
    assert (result.code, result.out) == (0, "")
    assert "page.html" in result.err
    said = check_page((tmp_path / "new" / "page.html").read_text()).said
    assert "23 of 24 models" in said
    assert "headcount measure own" in said
    assert contents(own) == before
    assert headcount("report", own).code == 0
    assert (own / "report.html").read_text() == (tmp_path / "new" / "page.html").read_text()


@pytest.mark.parametrize("opens", [True, False])
def test_a_page_is_opened_in_a_browser_or_its_address_is_said(own, tmp_path, monkeypatch, opens):
    asked = []
    monkeypatch.setattr("webbrowser.open", lambda address: asked.append(address) or opens)
    result = headcount("report", own, "-o", tmp_path / "page.html", "--open")
    assert result.code == 0
    assert asked == [(tmp_path / "page.html").as_uri()]
    assert (asked[0] in result.err.replace("\n", "")) == (not opens)


def test_a_report_of_a_half_finished_study_names_it(table5, tmp_path):
    answer = strict_json(headcount("report", table5, "-o", tmp_path / "page.html", "--json").out)
    assert [section["name"] for section in answer["found"]] == ["table5"]
    assert len(answer["found"][0]["claims"]) == 5
    assert "5 of 10 models" in check_page((tmp_path / "page.html").read_text()).said


@pytest.mark.parametrize("form", ["svg", *(pytest.param(form, marks=pytest.mark.slow) for form in (".pdf", "png"))])
def test_every_figure_is_a_file_of_its_own(own, tmp_path, form):
    where = tmp_path / "figures"
    result = headcount("report", own, "-o", tmp_path / "page.html", "--figures", where, "--format", form, "--json")
    drawn = [Path(path) for path in strict_json(result.out)["figures"]]
    assert sorted(where.iterdir()) == sorted(drawn)
    assert {path.suffix for path in drawn} == {f".{form.removeprefix('.')}"}
    assert {path.stem for path in drawn} == {
        "own-error-against-heads", "own-heads-by-length", "own-training-error"
    }  # fmt: skip


def test_figures_of_two_scales_do_not_overwrite_each_other(tmp_path):
    begun = {scale.value: fabricated.study_sweep(STUDIES["table5"], scale) for scale in (Scale.SMOKE, Scale.LAPTOP)}
    records = [record for made in begun.values() for record in fabricated.finished(made)]
    root = fabricated.write(tmp_path / "both", records, begun)
    result = headcount("report", root, "-o", tmp_path / "page.html", "--figures", tmp_path / "f", "--json")
    drawn = strict_json(result.out)["figures"]
    assert len(drawn) == len(set(drawn)) == len(list((tmp_path / "f").iterdir())) == 4


@pytest.mark.parametrize("figures", [[], ["--figures", "figures"]], ids=["", "figures"])
def test_an_unknown_format_is_refused_before_anything_is_written(own, tmp_path, monkeypatch, figures):
    monkeypatch.chdir(tmp_path)
    before = contents(tmp_path)
    a_sentence(headcount("report", own, "-o", "page.html", *figures, "--format", "bmp"), 2, "bmp")
    assert contents(tmp_path) == before


def test_a_page_that_cannot_be_written_is_told(own, tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "directory").mkdir()
    before = contents(tmp_path)
    for path in (tmp_path / "file" / "page.html", tmp_path / "directory", Path("/proc/none/page.html")):
        a_sentence(headcount("report", own, "-o", path), 1, str(path))
    a_sentence(headcount("report", own, "-o", own / "results.sqlite"), 2, str(own / "results.sqlite"))
    assert contents(tmp_path) == before
    figures = headcount("report", own, "-o", tmp_path / "page.html", "--figures", tmp_path / "file")
    a_sentence(figures, 1, str(tmp_path / "file"))
    assert (tmp_path / "file").read_text() == "mine"
    assert not list(tmp_path.rglob("*.unfinished"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write where permissions forbid it")
def test_a_read_only_place_is_told(own, tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    a_sentence(headcount("report", own, "-o", tmp_path / "closed" / "page.html"), 1, "Permission denied")


@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.parametrize(
    "task",
    [
        NASTY,
        "..",
        *(pytest.param(n, marks=pytest.mark.slow) for n in ("costs $^$", "a/b", "\u4efb\u52a1", "[bold]", "")),
    ],
)
def test_a_task_may_have_any_name(tmp_path, task):
    made = fabricated.sweep(task=task)
    fabricated.write(tmp_path / "results", fabricated.finished(made), {f"headcount measure '{task}'": made})
    result = headcount("report", tmp_path / "results", "-o", tmp_path / "page.html", "--figures", tmp_path / "f")
    assert result.code == 0, result.err
    reader = check_page((tmp_path / "page.html").read_text())
    assert task in reader.said
    assert {path.name for path in tmp_path.iterdir()} == {"results", "page.html", "f"}
    assert headcount("show", tmp_path / "results").code == 0
