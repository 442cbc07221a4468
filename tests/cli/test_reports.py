"""`report` and `reproduce` as a person meets them, in folders of every kind and on machines that refuse."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from headcount.engine import run
from headcount.store import Outcome
from headcount.studies import COMPUTED, LABELLED, STUDIES, Scale

from . import made_up
from .commands import a_sentence, contents, headcount, strict_json
from .report.laws import check_page

NASTY = """<script>alert("1")</script> & 'quotes'"""


@pytest.fixture
def folder(tmp_path) -> Path:
    """An own experiment, one cell of which is missing."""
    cells = made_up.own_cells()
    return made_up.write(tmp_path / "results", made_up.finished(cells[:-1]), {"headcount measure own": cells})


@pytest.fixture
def table5(tmp_path) -> Path:
    """A study, half of whose cells are there."""
    cells = made_up.study_cells("table5")
    command = "headcount reproduce table5 --scale smoke"
    return made_up.write(tmp_path / "table5", made_up.finished(cells[:5]), {command: cells})


def test_a_report_shows_what_is_there_and_says_what_is_missing(folder, tmp_path):
    before = contents(folder)
    result = headcount("report", folder, "-o", tmp_path / "new" / "page.html")
    assert (result.code, result.out) == (0, "")
    assert "page.html" in result.err.replace("\n", "")
    said = check_page((tmp_path / "new" / "page.html").read_text()).said
    assert "1 of 12 models are not trained yet" in said
    assert "headcount measure own" in said
    assert contents(folder) == before


def test_a_report_of_a_half_finished_study_names_it(table5, tmp_path):
    result = headcount("report", table5, "-o", tmp_path / "page.html", "--json")
    assert result.code == 0
    answer = strict_json(result.out)
    assert [section["name"] for section in answer["found"]] == ["table5"]
    assert len(answer["found"][0]["claims"]) == 5
    assert "5 of 10 models are not trained yet" in check_page((tmp_path / "page.html").read_text()).said


@pytest.mark.parametrize("form", ["pdf", ".pdf", "svg", "png"])
def test_every_figure_is_a_file_of_its_own(folder, tmp_path, form):
    where = tmp_path / "figures"
    result = headcount("report", folder, "-o", tmp_path / "page.html", "--figures", where, "--format", form, "--json")
    assert result.code == 0
    drawn = [Path(path) for path in strict_json(result.out)["figures"]]
    assert sorted(where.iterdir()) == sorted(drawn)
    assert {path.suffix for path in drawn} == {f".{form.removeprefix('.')}"}
    assert len(drawn) == 2


def test_figures_of_two_scales_do_not_overwrite_each_other(tmp_path):
    asked = {scale.value: made_up.study_cells("table5", scale) for scale in (Scale.SMOKE, Scale.LAPTOP)}
    made_up.write(tmp_path / "both", made_up.finished(cell for cells in asked.values() for cell in cells), asked)
    result = headcount("report", tmp_path / "both", "-o", tmp_path / "page.html", "--figures", tmp_path / "f", "--json")
    drawn = strict_json(result.out)["figures"]
    assert len(drawn) == len(set(drawn)) == len(list((tmp_path / "f").iterdir())) == 4


@pytest.mark.parametrize("figures", [[], ["--figures", "figures"]], ids=["", "figures"])
def test_an_unknown_format_is_refused_before_anything_is_written(folder, tmp_path, monkeypatch, figures):
    monkeypatch.chdir(tmp_path)
    before = contents(tmp_path)
    result = headcount("report", folder, "-o", "page.html", *figures, "--format", "bmp")
    assert result.code == 2
    assert "bmp" in result.err
    assert contents(tmp_path) == before


@pytest.mark.parametrize("verb", ["report", "verify"])
@pytest.mark.parametrize("kind", ["missing", "empty", "a file", "foreign", "unused store", "only asked", "all failed"])
def test_a_folder_without_results_is_told(tmp_path, monkeypatch, verb, kind):
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "results"
    cells = made_up.study_cells("table5")
    if kind == "a file":
        root.write_text("mine")
    elif kind != "missing":
        root.mkdir()
    if kind == "foreign":
        (root / "results.sqlite").write_text("mine")
    if kind in ("unused store", "only asked", "all failed"):
        records = made_up.lost(cells, Outcome.FAILED, "no luck") if kind == "all failed" else []
        made_up.write(root, records, {} if kind == "unused store" else {"headcount reproduce table5": cells})
    before = contents(tmp_path)
    result = headcount(verb, root)
    assert result.code in (1, 2)
    a_sentence(result, result.code, "results" if verb == "report" or kind in ("missing", "a file") else "")
    assert contents(tmp_path) == before


def test_a_page_that_cannot_be_written_is_told(folder, tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "directory").mkdir()
    for path in (tmp_path / "file" / "page.html", tmp_path / "directory", Path("/proc/none/page.html")):
        a_sentence(headcount("report", folder, "-o", path), 1, "cannot be written", str(path))
    figures = headcount("report", folder, "-o", tmp_path / "page.html", "--figures", tmp_path / "file")
    assert figures.code == 1
    assert "cannot be written" in figures.err.splitlines()[-1]
    assert (tmp_path / "file").read_text() == "mine"
    assert not list(tmp_path.rglob("*.unfinished"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write where permissions forbid it")
def test_a_read_only_place_is_told(folder, tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    a_sentence(headcount("report", folder, "-o", tmp_path / "closed" / "page.html"), 1, "Permission denied")


def test_a_page_never_replaces_the_results(folder):
    before = contents(folder)
    result = headcount("report", folder, "-o", folder / "results.sqlite")
    assert contents(folder) == before
    a_sentence(result, 2, "results.sqlite")


@pytest.mark.parametrize("what", ["page", "figure"])
def test_a_full_disk_is_told_and_leaves_nothing_half_written(folder, tmp_path, what):
    # A file size limit is how a process without rights meets a full disk.
    page, figures, before = tmp_path / "page.html", tmp_path / "figures", contents(folder)
    assert headcount("report", folder, "-o", page, "--figures", figures, "--format", "pdf").code == 0
    (whole,) = {path.stat().st_size for path in figures.glob("*heads-by-length*")}
    page.write_text("old")
    shutil.rmtree(figures)
    script = (
        "import resource, sys\nfrom headcount.cli import main, results\n"
        "if sys.argv[-1] == '.pdf':\n    results.write_page = lambda text, path: None\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({whole // 2}, resource.RLIM_INFINITY))\nmain()"
    )
    extra = ["--figures", figures, "--format", ".pdf"] if what == "figure" else []
    command = [sys.executable, "-c", script, "report", folder, "-o", page, *extra]
    ended = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "Traceback" not in ended.stderr
    assert "cannot be written" in ended.stderr
    assert "File too large" in ended.stderr
    assert page.read_text() == "old"
    assert not list(tmp_path.glob("*.unfinished"))
    assert not [path for path in tmp_path.glob("figures/*") if b"%%EOF" not in path.read_bytes()], "a torn figure"
    assert contents(folder) == before


@pytest.mark.parametrize("name", ["with [brackets]", "closing[/b]", "<b>&amp;", "not-utf8\udcff"])
def test_a_folder_may_have_any_name(folder, name):
    named = Path(shutil.copytree(folder, folder.parent / name))
    assert headcount("report", named, "-o", named / "page.html", "--figures", named / "figures").code == 0
    said = check_page((named / "page.html").read_text()).said
    assert not name.isascii() or str(named) in said


@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.parametrize("task", [NASTY, "costs $^$", "a/b", "..", "\u4efb\u52a1", "[bold]", ""])
def test_a_task_may_have_any_name(tmp_path, task):
    cells = made_up.own_cells(task={"task": task})
    made_up.write(tmp_path / "results", made_up.finished(cells), {f"headcount measure '{task}'": cells})
    result = headcount("report", tmp_path / "results", "-o", tmp_path / "page.html", "--figures", tmp_path / "f")
    assert result.code == 0
    reader = check_page((tmp_path / "page.html").read_text())
    assert task in reader.said
    assert reader.tags.count("script") == 1
    assert {path.name for path in tmp_path.iterdir()} == {"results", "page.html", "f"}


BAD = [
    ("reproduce tabel2", 'Did you mean "table2"?'),
    ("reproduce figur1a", 'Did you mean "figure1a"?'),
    ("reproduce nothing-like-it", "Known: table2"),
    ("reproduce rank-figure2", 'Did you mean "rank-figure1"?'),
    ("reproduce random-features", 'Did you mean "rank-random-features"?'),
    ("reproduce table2 --scale huge", "huge"),
    ("reproduce table2 --scale smok", "smoke"),
    ("reproduce table2 --out {file}", "cannot be written"),
    ("reproduce table2 --out {file}/below", "cannot be written"),
    ("verify {folder} --cells 0", "at least 1 cell"),
    ("verify {folder} --cells -3", "at least 1 cell"),
    ("verify {folder} --cells many", "--cells"),
    ("verify {folder} --seed -1", "--seed"),
    ("verify {folder}", "--task FILE.py:NAME"),
    ("verify {folder} --task missing.npz", "there is no file"),
    ("verify {folder} --task missing.py:task", "there is no file"),
    ("verify {folder} --task max-plus-mins", 'Did you mean "max-plus-min"?'),
    ("verify {folder} --task max-plus-min", "is not the task these results are of"),
    ("verify {folder} --task {data}", "is not the task these results are of"),
    ("verify {folder} --task {data} --targets missing.npy", "missing.npy"),
]


@pytest.mark.parametrize(("request_", "words"), BAD, ids=[request_ for request_, _ in BAD])
def test_a_request_that_cannot_be_right_is_told_and_trains_nothing(folder, tmp_path, monkeypatch, request_, words):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "program", lambda *_: pytest.fail("trained"))
    (tmp_path / "file").write_text("mine")
    generator = np.random.default_rng(0)
    np.savez(tmp_path / "data.npz", x=generator.normal(size=(120, 8, 2)), y=generator.normal(size=120))
    before = contents(tmp_path)
    parts = request_.format(folder=folder, file=tmp_path / "file", data=tmp_path / "data.npz").split()
    result = headcount(*parts)
    assert (result.code, result.out) == (1 if "--out" in request_ else 2, "")
    assert words in re.sub(r"[\s\u2502]+", " ", result.err)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("there", [False, True], ids=["missing", "empty"])
@pytest.mark.parametrize("arguments", [["table5", "--scale", "smoke", "--dry-run"], []], ids=["dry run", "list"])
def test_costs_are_told_without_training_or_writing(tmp_path, monkeypatch, there, arguments):
    monkeypatch.setattr(run, "program", lambda *_: pytest.fail("trained"))
    root = tmp_path / "results"
    if there:
        root.mkdir()
    result = headcount("reproduce", *arguments, "--out", root, "--json")
    assert result.code == 0
    listed = strict_json(result.out)
    assert list(listed) == (["table5"] if arguments else [*STUDIES, *COMPUTED, *LABELLED])
    for study in () if arguments else listed.values():
        costs = [study["costs"][scale]["expected_seconds"] for scale in ("smoke", "laptop", "paper")]
        assert costs == sorted(costs)
        assert min(cost["cells"] for cost in study["costs"].values()) > 0
    assert contents(tmp_path) == {}


def test_the_cost_of_every_study_is_told_at_once(tmp_path):
    plans = strict_json(headcount("reproduce", "all", "--scale", "smoke", "--out", tmp_path, "--dry-run", "--json").out)
    assert list(plans) == [*STUDIES, *COMPUTED]
    assert {name: plan["cells"] for name, plan in plans.items() if name in STUDIES} == {
        name: len(made_up.study_cells(name)) for name in STUDIES
    }
    assert {plan["already_done"] for plan in plans.values()} == {0}
    assert contents(tmp_path) == {}


def test_a_dry_run_counts_what_is_done(table5):
    before = contents(table5)
    result = headcount("reproduce", "table5", "--scale", "smoke", "--out", table5, "--dry-run", "--json")
    assert strict_json(result.out)["table5"]["already_done"] == 5
    assert contents(table5) == before


def test_a_finished_study_is_told_again_without_training(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "program", lambda *_: pytest.fail("trained"))
    made_up.write(tmp_path, made_up.finished(made_up.study_cells("table5")))
    again = [
        headcount("reproduce", "table5", "--scale", "smoke", "--out", tmp_path, *json) for json in ([], ["--json"])
    ]
    assert [result.code for result in again] == [0, 0]
    assert "2 heads" in again[0].out
    (answer,) = strict_json(again[1].out)
    assert (answer["name"], answer["scale"], len(answer["claims"])) == ("table5", "smoke", 5)
    assert answer["headline"] in check_page((tmp_path / "report.html").read_text()).said


def broken(*_):
    raise ValueError("no luck")


def test_a_study_all_of_whose_cells_fail_says_why(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "program", broken)
    result = headcount("reproduce", "table5", "--scale", "smoke", "--out", tmp_path)
    assert result.code in (1, 3)
    assert "no luck" in result.err
    assert strict_json(headcount("status", tmp_path, "--json").out)["cells"]["failed"] == 10


def test_a_study_some_of_whose_cells_fail_tells_the_rest(table5, monkeypatch):
    monkeypatch.setattr(run, "program", broken)
    result = headcount("reproduce", "table5", "--scale", "smoke", "--out", table5)
    assert result.code == 3
    assert "no luck" in result.err
    said = check_page((table5 / "report.html").read_text()).said
    assert "5 failed" in said
    assert "no luck" in said


def test_a_study_that_diverged_throughout_is_told(tmp_path):
    made_up.write(tmp_path, made_up.lost(made_up.study_cells("table5"), Outcome.DIVERGED, "not finite after step 3"))
    result = headcount("reproduce", "table5", "--scale", "smoke", "--out", tmp_path)
    assert result.code in (0, 1)
    assert "diverged" in result.err + result.out


def test_a_page_that_cannot_be_written_costs_no_result(table5):
    made_up.write(table5, made_up.finished(made_up.study_cells("table5")))
    (table5 / "report.html").mkdir()
    result = headcount("reproduce", "table5", "--scale", "smoke", "--out", table5)
    assert result.code == 1
    assert "report.html" in result.err.splitlines()[-1]
    assert strict_json(headcount("status", table5, "--json").out)["cells"]["finished"] == 10
