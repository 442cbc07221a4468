"""`headcount reproduce`: costs before training, finished studies, failures, closed-form studies."""

import re

import pytest

from headcount.papers.base import Scale
from headcount.papers.rank import random_features
from headcount.papers.registry import CLOSED_FORM, REAL_DATA, STUDIES
from headcount.store import FILE_NAME, Outcome, Store

from ..helpers import fabricated
from ..helpers.commands import a_sentence, contents, headcount, strict_json
from ..report.laws import check_page

TABLE5 = ("reproduce", "table5", "--scale", "smoke")
FEATURES = ("reproduce", "rank-random-features", "--scale", "smoke")


@pytest.mark.parametrize(
    ("there", "arguments"),
    [(False, ["table5", "--scale", "smoke", "--dry-run"]), pytest.param(True, [], marks=pytest.mark.slow)],
    ids=["dry run", "list"],
)
def test_costs_are_told_without_training_or_writing(tmp_path, no_training, there, arguments):
    root = tmp_path / "results"
    if there:
        root.mkdir()
    result = headcount("reproduce", *arguments, "--out", root, "--json")
    assert result.code == 0
    listed = strict_json(result.out)
    assert list(listed) == (["table5"] if arguments else [*STUDIES, *CLOSED_FORM, *REAL_DATA])
    for study in () if arguments else listed.values():
        costs = [study["costs"][scale]["expected_seconds"] for scale in ("smoke", "laptop", "paper")]
        assert costs == sorted(costs)
        assert min(cost["cells"] for cost in study["costs"].values()) > 0
    assert contents(tmp_path) == {}


@pytest.mark.slow
def test_studies_are_listed_with_their_costs():
    result = headcount("reproduce")
    assert result.code == 0
    names = {line.split()[0] for line in result.out.splitlines() if line.split()}
    assert {*STUDIES, *CLOSED_FORM, *REAL_DATA} <= names
    assert re.search(r"^ *cifar .*\d (s|min|h|days|years) .*\d (h|days|years)", result.out, re.MULTILINE), "their costs"


def test_the_cost_of_every_study_is_told_at_once(tmp_path):
    plans = strict_json(headcount("reproduce", "all", "--scale", "smoke", "--out", tmp_path, "--dry-run", "--json").out)
    assert list(plans) == [*STUDIES, *CLOSED_FORM]
    assert all(plans[name]["cells"] == len(study.sweep(Scale.SMOKE).cells) for name, study in STUDIES.items())
    assert {plan["already_done"] for plan in plans.values()} == {0}
    assert contents(tmp_path) == {}


def test_a_dry_run_counts_what_is_done(table5):
    before = contents(table5)
    plan = strict_json(headcount(*TABLE5, "--out", table5, "--dry-run", "--json").out)["table5"]
    assert (plan["cells"], plan["already_done"]) == (10, 5)
    assert contents(table5) == before


@pytest.mark.parametrize("name", ["table5", "rank-figure1", "rank-figure-d", "figure3", "memorise"])
def test_a_finished_study_is_told_again_without_training(tmp_path, no_training, name):
    study = STUDIES[name]
    made = study.sweep(Scale.SMOKE)
    fabricated.write(tmp_path, fabricated.finished(made), {"headcount": made})
    (answer,) = strict_json(headcount("reproduce", name, "--scale", "smoke", "--out", tmp_path, "--json").out)
    assert (answer["name"], answer["scale"]) == (name, "smoke")
    shown = headcount("reproduce", name, "--scale", "smoke", "--out", tmp_path)
    assert shown.code == 0
    assert answer["headline"] in shown.out
    assert answer["claims"]
    assert answer["headline"] in check_page((tmp_path / "report.html").read_text()).said
    (experiment,) = strict_json(headcount("status", tmp_path, "--json").out)["experiments"]
    assert (experiment["experiment"], experiment["done"]) == (f"{study.trained_by}-smoke", len(made.cells))


def test_a_study_all_of_whose_cells_fail_says_why(tmp_path, broken_training):
    result = headcount(*TABLE5, "--out", tmp_path)
    assert (result.code, result.out) == (3, "")
    assert "no luck" in result.err
    assert strict_json(headcount("status", tmp_path, "--json").out)["cells"]["failed"] == 10


def test_a_study_some_of_whose_cells_fail_tells_the_rest(table5, broken_training):
    result = headcount(*TABLE5, "--out", table5)
    assert result.code == 3
    assert "no luck" in result.err
    said = check_page((table5 / "report.html").read_text()).said
    assert "5 failed" in said
    assert "no luck" in said


def test_a_study_that_diverged_throughout_is_told(tmp_path, no_training):
    made = STUDIES["table5"].sweep(Scale.SMOKE)
    fabricated.write(tmp_path, fabricated.lost(made.cells, Outcome.DIVERGED, "not finite after step 3"))
    result = headcount(*TABLE5, "--out", tmp_path)
    assert (result.code, result.out) == (1, "")
    assert "10 diverged" in result.err


def test_a_page_that_cannot_be_written_costs_no_result(table5, no_training):
    fabricated.write(table5, fabricated.finished(STUDIES["table5"].sweep(Scale.SMOKE)))
    (table5 / "report.html").mkdir()
    result = headcount(*TABLE5, "--out", table5)
    assert result.code == 1
    assert "report.html" in result.err.splitlines()[-1]
    assert strict_json(headcount("status", table5, "--json").out)["cells"]["finished"] == 10


BAD = {
    "reproduce tabel2": (2, '"tabel2"', '"table2"'),
    "reproduce figur1a": (2, '"figur1a"', '"figure1a"'),
    "reproduce nothing-like-it": (2, "nothing-like-it", "table2"),
    "reproduce rank-figure2": (2, "rank-figure2", '"rank-figure1"'),
    "reproduce random-features": (2, "random-features", '"rank-random-features"'),
    "reproduce table2 --out {file}": (1, "file"),
    "reproduce table2 --out {file}/below": (1, "file"),
    "reproduce table2 --patch 4": (2, "--patch"),
    "reproduce marco --patch 4": (2, "--patch", "marco"),
    "reproduce cifar --patch 5": (2, "--patch", "5"),
    "reproduce cifar --scale smoke": (2, "cifar", "--data"),
    "reproduce marco --scale smoke": (2, "marco", "--data"),
    "reproduce cifar --data . --heads x": (2, "--heads", '"x"'),
} | {
    f"reproduce {name} --scale smoke {option}": (2, name, option.split()[0])
    for name, option in [
        *(("table5", option) for option in ("--data .", "--embeddings .", "--ranks 1")),
        ("rank-random-features", "--heads 1"),
        ("all", "--data ."),
    ]
}


@pytest.mark.parametrize("request_", BAD)
def test_a_request_that_cannot_be_right_is_told_and_trains_nothing(tmp_path, monkeypatch, no_training, request_):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("mine")
    code, *words = BAD[request_]
    result = headcount(*request_.format(file=tmp_path / "file").split())
    a_sentence(result, code, *words)
    assert contents(tmp_path) == {tmp_path / "file": b"mine"}


def test_a_scale_that_is_none_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = headcount("reproduce", "table2", "--scale", "huge")
    assert (result.code, result.out) == (2, "")
    assert "huge" in result.err
    assert "smoke" in result.err
    assert contents(tmp_path) == {}


# A study that trains nothing.


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    """The smoke scale with 64 heads instead of 1,024."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(random_features.MAX_HEADS, Scale.SMOKE, 64)
        folder = tmp_path_factory.mktemp("features") / "results"
        yield folder, headcount(*FEATURES, "--out", folder)


def test_a_closed_form_study_is_computed_and_told(features):
    folder, result = features
    assert result.code == 0, result.err
    assert "64 rank-one heads leave an error of" in result.out
    assert {path.name for path in folder.iterdir()} == {FILE_NAME, "lock", "report.html"}
    assert "64 rank-one heads" in check_page((folder / "report.html").read_text()).said


def test_a_closed_form_study_is_told_again_without_computing(features, monkeypatch):
    folder, _ = features
    monkeypatch.setattr(random_features, "_compute", lambda *_: pytest.fail("computed"))
    (answer,) = strict_json(headcount(*FEATURES, "--out", folder, "--json").out)
    assert (answer["name"], answer["scale"], len(answer["claims"])) == ("rank-random-features", "smoke", 4)
    plan = strict_json(headcount(*FEATURES, "--out", folder, "--dry-run", "--json").out)
    assert plan == {"rank-random-features": {"cells": 12, "already_done": 12, "expected_seconds": 0.0}}


def test_a_closed_form_study_is_reported_from_its_folder(features, tmp_path):
    folder, _ = features
    before = contents(folder)
    page = headcount("report", folder, "-o", tmp_path / "page.html", "--figures", tmp_path / "f", "--json")
    (section,) = strict_json(page.out)["found"]
    assert section["name"] == "rank-random-features-smoke"
    assert [path.name for path in (tmp_path / "f").iterdir()] == ["rank-random-features-smoke-random-features.svg"]
    assert section["headline"] in " ".join(headcount("show", folder).out.split())
    assert "rank-random-features, 12 pieces computed" in headcount("status", folder).out
    rows = strict_json(headcount("export", folder, "--json").out)
    assert len(rows) == 12
    assert all(row["piece"].startswith("d = ") and len(row["errors"]) == 7 for row in rows)
    a_sentence(headcount("verify", folder), 2, str(folder))  # it needs trained models, and so does collide
    a_sentence(headcount("collide", folder), 2, "no model to search")
    assert contents(folder) == before


def test_a_dry_run_of_a_closed_form_study_computes_and_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(random_features, "_compute", lambda *_: pytest.fail("computed"))
    result = headcount(*FEATURES, "--out", tmp_path / "results", "--dry-run")
    assert result.code == 0
    assert "12 pieces, 0 of them done" in result.out
    assert contents(tmp_path) == {}


def test_damaged_pieces_are_refused_and_kept(tmp_path):
    with Store.open_for_writing(tmp_path) as store:
        name = store.begin(random_features.STUDY.experiment(Scale.SMOKE)).name
        store.put(name, "d = 8, draw 0", {"errors": "none"})
    for verb in ("report", "show"):
        a_sentence(headcount(verb, tmp_path), 1, str(tmp_path))
    with Store.open_for_reading(tmp_path) as store:
        assert store.get(name, "d = 8, draw 0") == {"errors": "none"}


@pytest.mark.parametrize("below", ["", "below"])
def test_a_place_that_a_closed_form_study_cannot_write_to_is_told(features, tmp_path, below):
    (tmp_path / "file").write_text("mine")
    result = headcount(*FEATURES, "--out", tmp_path / "file" / below)
    assert (result.code, result.out) == (1, "")
    assert str(tmp_path / "file") in result.err.splitlines()[-1]
    assert (tmp_path / "file").read_text() == "mine"


def test_a_stopped_computation_keeps_its_pieces_and_says_so(features, tmp_path, monkeypatch):
    whole, drawn = random_features._compute, []

    def stops_at_the_third(*arguments):
        drawn.append(arguments)
        if len(drawn) == 3:
            raise KeyboardInterrupt  # not a signal: a garbage collector's callback may swallow what its handler raises
        return whole(*arguments)

    monkeypatch.setattr(random_features, "_compute", stops_at_the_third)
    result = headcount(*FEATURES, "--out", tmp_path)
    assert (result.code, result.out) == (130, "")
    assert f"kept in {tmp_path}" in result.err
    plan = strict_json(headcount(*FEATURES, "--out", tmp_path, "--dry-run", "--json").out)
    assert plan["rank-random-features"]["already_done"] == 2
    assert headcount("report", tmp_path, "-o", tmp_path / "page.html").code == 0
    assert headcount(*FEATURES, "--out", tmp_path).code == 0
