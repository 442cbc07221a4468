"""`show`, `status` and `export`: what a results folder says in a terminal, as JSON and as a table."""

import csv
import io
from collections import Counter
from dataclasses import replace

import pytest

import headcount as hc
from headcount.store import Outcome, Store

from ..helpers import fabricated
from ..helpers.commands import a_sentence, contents, headcount, strict_json

READERS = ("status", "show", "report", "export", "verify", "collide")


def test_status_counts_cells_and_says_how_to_go_on(own):
    before = contents(own)
    status = strict_json(headcount("status", own, "--json").out)
    assert status["cells"] == {"finished": 23, "diverged": 0, "failed": 0}
    (experiment,) = status["experiments"]
    assert (experiment["experiment"], experiment["cells"], experiment["done"]) == ("own", 24, 23)
    assert [run["command"] for run in experiment["runs"]] == ["headcount measure own"]
    assert status["backends"] == {"reference": 23}  # of records that do not say it
    first, backend, *lines = headcount("status", own).out.splitlines()
    lines = [first, *lines]
    assert backend.strip() == "back end: reference"
    assert "23 of 24 cells" in lines[1]
    assert lines[2].strip() == "headcount measure own"
    assert "1 missing" in lines[3]
    assert contents(own) == before


def test_status_of_a_run_from_python_names_no_command(tmp_path):
    made = fabricated.sweep()
    assert (
        "run from Python" in headcount("status", fabricated.write(tmp_path, fabricated.finished(made), {"": made})).out
    )


def test_show_has_the_errors_and_the_answer(own):
    shown = headcount("show", own)
    assert (shown.code, shown.err) == (0, "")
    assert "T = 16" in shown.out
    (content,) = strict_json(headcount("show", own, "--json").out)
    assert shown.out.splitlines()[-1] == content["verdict"]
    assert (content["name"], content["heads"], content["high"]) == ("own", 4, 4)
    assert content["settings"]["task"] == {"task": "own"}
    assert len(content["cells"]) == 12
    errors = {(row["heads"], row["length"]): row for row in content["errors"]}
    assert errors.keys() == {(heads, length) for heads in range(1, 7) for length in (8, 16)}
    for (heads, length), row in errors.items():
        best = fabricated.sharp({"heads": heads, "length": length})
        assert (row["best"], row["seeds"]) == (pytest.approx(best), 1 if (heads, length) == (6, 16) else 2)
        assert row["median"] >= row["best"]


def test_models_are_counted_by_back_end(tmp_path):
    made, fused = fabricated.sweep(), "fused 0.1.0, AVX-512"
    plain = fabricated.finished(made)
    origins = [{} if place < 4 else {"backend": fused} for place in range(len(plain))]
    records = [replace(each, provenance=origin) for each, origin in zip(plain, origins, strict=True)]
    root = fabricated.write(tmp_path / "mixed", records, {"": made})
    counts = {fused: len(plain) - 4, "reference": 4}
    assert strict_json(headcount("status", root, "--json").out)["backends"] == counts
    assert strict_json(headcount("show", root, "--json").out)[0]["backends"] == counts
    words = f"{fused} ({len(plain) - 4} models); reference (4 models)"
    assert f"back end: {words}" in headcount("status", root).out
    assert words in " ".join(headcount("show", root).out.split())
    headcount("report", root, "--out", tmp_path / "page.html")
    assert words in (tmp_path / "page.html").read_text()
    timed = csv.DictReader(io.StringIO(headcount("export", root, "--timing").out))
    assert Counter(row["backend"] for row in timed) == counts
    # Without --timing, the same bytes whatever computed the same numbers.
    one = fabricated.write(tmp_path / "one", plain, {"": made})
    assert headcount("export", root).out == headcount("export", one).out


@pytest.mark.parametrize("ending", ["svg", "pdf", "png"])
def test_equal_results_make_equal_figures(own, tmp_path, ending):
    drawn = [tmp_path / f"{name}.{ending}" for name in "ab"]
    assert [headcount("show", own, "--figure", path).code for path in drawn] == [0, 0]
    assert drawn[0].stat().st_size > 1000
    assert drawn[0].read_bytes() == drawn[1].read_bytes()


def test_a_figure_is_refused_before_anything_is_read(own, tmp_path):
    a_sentence(headcount("show", own, "--figure", tmp_path / "picture.gif"), 2, "picture.gif", ".svg")
    a_sentence(headcount("show", own, "--figure", own / "results.sqlite.svg"), 2, "results.sqlite.svg")


def test_an_export_is_a_table_of_all_cells(own, tmp_path):
    plain, timed = (headcount("export", own, *extra).out for extra in ([], ["--timing"]))
    rows = list(csv.DictReader(io.StringIO(plain)))
    as_json = strict_json(headcount("export", own, "--format", "json").out)
    assert as_json == strict_json(headcount("export", own, "--json").out)
    assert [row["key"] for row in rows] == [row["key"] for row in as_json]
    assert [float(row["nmse"]) for row in rows] == [row["nmse"] for row in as_json]
    assert {(row["experiment"], row["outcome"]) for row in rows} == {("own", "finished")}
    places = [(row["heads"], row["length"], row["seed"]) for row in as_json]
    assert len(set(places)) == 23
    assert set(places) < {(h, t, s) for h in range(1, 7) for t in (8, 16) for s in (0, 1)}
    added = csv.DictReader(io.StringIO(timed)).fieldnames[-4:]
    assert added == ["seconds", "device", "backend", "finished"]
    assert not set(added) & rows[0].keys()
    assert headcount("export", own, "-o", tmp_path / "table.csv").out == ""
    assert (tmp_path / "table.csv").read_text() == plain
    a_sentence(
        headcount("export", own, "-o", tmp_path / "table.csv" / "below"), 1, str(tmp_path / "table.csv" / "below")
    )
    a_sentence(headcount("export", own, "-o", own / "results.sqlite"), 2, "results.sqlite")


@pytest.mark.parametrize("verb", READERS)
def test_a_name_that_no_folder_can_have_is_told(verb):
    a_sentence(headcount(verb, "x" * 300), 1, "xxx", "choose another")


@pytest.mark.parametrize("verb", READERS)
@pytest.mark.parametrize("kind", ["missing", "empty", "a file", "foreign", "unused", "only asked", "all failed"])
def test_a_folder_without_results_is_told_and_left_alone(tmp_path, monkeypatch, verb, kind):
    monkeypatch.chdir(tmp_path)
    root, made = tmp_path / "results", fabricated.sweep()
    if kind == "a file":
        root.write_text("mine")
    elif kind != "missing":
        root.mkdir()
    if kind == "foreign":
        (root / "results.sqlite").write_text("mine")
    if kind in ("unused", "only asked", "all failed"):
        records = fabricated.lost(made.cells, Outcome.FAILED, "no luck") if kind == "all failed" else []
        fabricated.write(root, records, {} if kind == "unused" else {"headcount measure own": made})
    before = contents(tmp_path)
    result = headcount(verb, root)
    if kind in ("unused", "only asked", "all failed"):
        if verb in ("status", "export", "show"):
            assert (result.code, verb == "show") == (0, bool(result.err))
        else:
            a_sentence(result, 2)
        if verb in ("show", "report"):
            assert ("no luck" in result.err) == (kind == "all failed")
            assert ("headcount measure TASK" if kind == "unused" else "headcount measure own") in result.err
    else:
        a_sentence(result, 1, "results")
    assert contents(tmp_path) == before


def test_a_folder_of_results_folders_is_not_one(own):
    a_sentence(headcount("show", own.parent), 2, str(own))


@pytest.fixture
def part(tmp_path):
    """An interrupted sweep: 6 of 24 cells."""
    made = fabricated.sweep()
    return fabricated.write(tmp_path / "part", fabricated.finished(made)[:6], {COMMAND: made})


COMMAND = "headcount measure own --seeds 2"


def test_an_answer_from_a_part_says_so_first(part, own, tmp_path):
    for result in (headcount("show", part), headcount("compare", part, own)):
        assert result.code == 0
        first = result.out[: result.out.index("validation error")]
        assert "6 of 24" in first
        assert COMMAND in " ".join(first.split())
    (content,) = strict_json(headcount("show", part, "--json").out)
    assert (content["complete"], content["missing"], content["command"]) == (False, 18, COMMAND)
    assert list(content).index("warning") < list(content).index("headline")
    assert "6 of 24" in content["warning"]
    compared = strict_json(headcount("compare", part, own, "--json").out)["experiments"]
    assert [(each["complete"], each["missing"]) for each in compared] == [(False, 18), (False, 1)]
    (reported,) = strict_json(headcount("report", part, "--out", tmp_path / "page.html", "--json").out)["found"]
    assert (reported["complete"], reported["missing"]) == (False, 18)
    page = (tmp_path / "page.html").read_text()
    assert page.index("6 of 24 models") < page.index('class="answer')
    (status,) = strict_json(headcount("status", part, "--json").out)["experiments"]
    assert status["missing"] == 18
    (loaded,) = hc.load(part)
    assert (loaded.coverage.complete, loaded.coverage.missing, loaded.coverage.command) == (False, 18, COMMAND)
    assert "6 of 24" in str(loaded).splitlines()[0]
    assert loaded._repr_html_().index("6 of 24") < loaded._repr_html_().index(loaded.answer().sentence)


def test_an_answer_from_all_models_says_nothing_of_parts(tmp_path):
    made = fabricated.sweep()
    root = fabricated.write(tmp_path / "whole", fabricated.finished(made), {COMMAND: made})
    (content,) = strict_json(headcount("show", root, "--json").out)
    assert (content["complete"], content["missing"]) == (True, 0)
    assert "models are trained" not in headcount("show", root).out
    (loaded,) = hc.load(root)
    assert str(loaded) == loaded.answer().sentence


def test_a_part_of_a_study_says_so_first(table5):
    first = headcount("show", table5).out
    assert first.startswith("5 of 10 models")
    (content,) = strict_json(headcount("show", table5, "--json").out)
    assert (content["complete"], content["missing"]) == (False, 5)


@pytest.mark.parametrize("ended", ["", "budget", "settled"])
def test_a_question_that_was_stopped_between_its_rounds_is_a_part(tmp_path, ended):
    made = fabricated.sweep()
    root = fabricated.write(tmp_path / "asked", fabricated.finished(made), {COMMAND: made})
    with Store.open_for_writing(root) as store:
        store.put(made.experiment.name, "effort", {"level": "normal", "ended": ended})
    (content,) = strict_json(headcount("show", root, "--json").out)
    assert (content["complete"], content["missing"]) == (ended == "settled", 0)
    assert ("24 models are trained" in headcount("show", root).out) == (ended != "settled")


def test_failed_models_are_missing_from_an_answer(tmp_path):
    made = fabricated.sweep()
    records = fabricated.finished(made)[:-2] + fabricated.lost(made.cells[-2:], Outcome.FAILED, "no memory")
    root = fabricated.write(tmp_path / "failed", records, {COMMAND: made})
    (content,) = strict_json(headcount("show", root, "--json").out)
    assert (content["complete"], content["missing"]) == (False, 2)


def test_while_a_run_trains_the_others_no_second_one_is_advised(part):
    with Store.open_for_writing(part):
        shown = headcount("show", part).out
    assert shown.startswith("6 of 24")
    assert COMMAND not in shown[: shown.index("validation error")]


@pytest.mark.parametrize("command", ['headcount measure "own', "headcount measure own --heads '1:6", "\\"])
def test_a_stored_command_with_an_unclosed_quotation_mark(tmp_path, command):
    made = fabricated.sweep()
    folder = fabricated.write(tmp_path / "own", fabricated.finished(made), {command: made})
    for reader in ("show", "status"):
        shown = headcount(reader, folder)
        assert (shown.code, shown.err) == (0, "")
    assert headcount("report", folder, "--out", tmp_path / "page.html").code == 0
    assert strict_json(headcount("show", folder, "--json").out)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("extreme", [1.7e308, 5e-324])
@pytest.mark.parametrize("everywhere", [True, False])
def test_errors_that_no_axis_has_a_place_for(tmp_path, extreme, everywhere):
    made = fabricated.sweep()
    errors = fabricated.finished(made, lambda at: extreme if everywhere or at["heads"] == 2 else fabricated.sharp(at))
    folder = fabricated.write(tmp_path / "own", errors, {"headcount measure own": made})
    result = headcount("report", folder, "--out", tmp_path / "page.html")
    assert result.code == 0
    assert "<svg" in (tmp_path / "page.html").read_text()
