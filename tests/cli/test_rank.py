"""Heads and rank on the command line: `measure --ranks`, what is made of it, and the second paper's studies."""

import csv
import importlib
import io
from collections import Counter

import numpy as np
import pytest

import headcount as hc
from headcount.engine import RunSummary, run
from headcount.models import ClassTokenSpec, EncoderSpec
from headcount.store import Outcome, Store
from headcount.studies import Scale, rank_random_features

from . import made_up
from .commands import a_sentence, contents, headcount, strict_json, unchecked
from .report.laws import check_page
from .tasks.laws import compile_quickly  # noqa: F401

SMALL = {"--dim": 4, "--lengths": 4, "--steps": 20, "--batch": 8, "--hidden": 8, "--validation-examples": 20}
FARTHEST = ["farthest-point", *(str(part) for pair in SMALL.items() for part in pair)]
MAP = [*FARTHEST, "--heads", "1,2", "--ranks", "1,2,4", "--seeds", "2"]
FEATURES = ("reproduce", "rank-random-features", "--scale", "smoke")
BOTTLENECK = {"limit", "rank", "rank_low", "rank_high", "heads", "heads_low", "heads_high", "at", "frontier", "fold"}
KEYS = BOTTLENECK | {"verdict", "support", "notes", "out", "already_done", "trained", "seconds"}


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory, worker_id):
    base = tmp_path_factory.getbasetemp()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str((base if worker_id == "master" else base.parent) / "cache"))
        yield


def sharp_at_full_rank(cell) -> float:
    return (0.6 if cell.model.rank < 4 else 0.02) * (1 + 0.02 * cell.seed)


@pytest.fixture
def pretended(monkeypatch):
    """Training that takes no time: errors fall at rank 4. The sweeps that were asked for."""
    asked = []

    def pretend(sweep, store, *, command="", **_):
        asked.append(sweep)
        store.begin_sweep(command, sweep.cells)
        settled = store.settled_keys()
        left = [cell for cell in sweep.cells if cell.key not in settled]
        store.commit(made_up.finished(left, sharp_at_full_rank))
        outcomes = Counter({Outcome.FINISHED: len(left)} if left else {})
        return RunSummary(already_done=len(sweep.cells) - len(left), outcomes=outcomes, seconds=0.0)

    monkeypatch.setattr(importlib.import_module("headcount.measure"), "run_sweep", pretend)
    return asked


def test_heads_and_ranks_are_a_table_and_a_verdict(tmp_path, pretended):
    result = headcount("measure", *MAP, "--out", tmp_path / "map")
    assert result.code == 0, result.err
    verdict = "needs rank 4 [3, 4]: from rank 4 on one head is enough, below it 2 heads are not\n"
    assert result.out == verdict
    lines = [line.split() for line in result.err.splitlines()]
    assert ["heads", "rank", "1", "rank", "2", "rank", "4"] in lines
    assert ["1", "6.0e-01", "6.0e-01", "2.0e-02"] in lines
    (sweep,) = pretended
    assert {cell.model for cell in sweep.cells} == {
        EncoderSpec(heads=h, rank=r, width=4, hidden=8, norm_first=True) for h in (1, 2) for r in (1, 2, 4)
    }
    assert {(cell.train.train_examples, cell.train.batch, cell.length) for cell in sweep.cells} == {(0, 8, 4)}
    shown = headcount("show", tmp_path / "map")
    assert verdict in shown.out
    assert ["heads", "rank", "1", "rank", "2", "rank", "4"] in [line.split() for line in shown.out.splitlines()]


def test_its_json_is_the_bottleneck(tmp_path, pretended):
    answer = strict_json(headcount("measure", *MAP, "--out", tmp_path, "--json").out)
    assert answer.keys() == KEYS
    assert (answer["limit"], answer["rank"], answer["heads"], answer["at"]) == ("rank", 4, 1, [1, 4])
    assert (answer["already_done"], answer["trained"]) == (0, {"finished": 12})
    (shown,) = strict_json(headcount("show", tmp_path, "--json").out)
    assert shown["verdict"] == answer["verdict"]
    assert shown["settings"]["task"]["task"] == "farthest-point"
    again = strict_json(headcount("measure", *MAP, "--out", tmp_path, "--json").out)
    assert (again["already_done"], again["trained"]) == (12, {})


@pytest.mark.parametrize("verb", ["measure", "show"])
def test_its_figure_is_the_map(tmp_path, pretended, verb):
    measured = headcount("measure", *MAP, "--out", tmp_path / "map", "--figure", tmp_path / "measure.svg")
    assert measured.code == 0
    assert headcount("show", tmp_path / "map", "--figure", tmp_path / "show.svg").code == 0
    text = (tmp_path / f"{verb}.svg").read_text()
    assert "<svg" in text
    drawn = [tmp_path / name for name in ("measure.svg", "show.svg")]
    assert drawn[0].read_bytes() == drawn[1].read_bytes()
    assert not list(tmp_path.glob("*.unfinished"))


def test_its_report_and_its_export_hold_every_rank(tmp_path, pretended):
    headcount("measure", *MAP, "--out", tmp_path / "map")
    told = headcount("report", tmp_path / "map", "-o", tmp_path / "page.html", "--figures", tmp_path / "f", "--json")
    assert told.code == 0, told.err
    (found,) = strict_json(told.out)["found"]
    assert (found["limit"], found["rank"], found["title"]) == ("rank", 4, "farthest-point")
    reader = check_page((tmp_path / "page.html").read_text())
    assert "rank 4" in reader.said
    assert f"headcount measure {' '.join(MAP)}" in reader.said
    assert len(list((tmp_path / "f").iterdir())) == 2
    rows = list(csv.DictReader(io.StringIO(headcount("export", tmp_path / "map").out)))
    found = [(int(row["heads"]), int(row["rank"]), int(row["seed"])) for row in rows]
    assert sorted(found) == [(h, r, s) for h in (1, 2) for r in (1, 2, 4) for s in (0, 1)]
    status = strict_json(headcount("status", tmp_path / "map", "--json").out)
    assert status["cells"] == {"finished": 12, "diverged": 0, "failed": 0}


def test_one_rank_is_a_question_of_heads(tmp_path, pretended):
    answer = strict_json(
        headcount("measure", *FARTHEST, "--heads", "1,2", "--ranks", "2", "--out", tmp_path, "--json").out
    )
    assert "limit" not in answer
    assert {cell.model.rank for cell in pretended[0].cells} == {2}


def test_without_ranks_an_encoder_has_full_rank(tmp_path, pretended):
    result = headcount("measure", *FARTHEST, "--heads", "1,2", "--out", tmp_path, "--json")
    assert result.code == 0, result.err
    assert {(cell.model.heads, cell.model.rank) for cell in pretended[0].cells} == {(1, 4), (2, 4)}


def test_what_an_encoder_is_made_of_can_be_said(tmp_path, pretended):
    options = "--multiplier 3 --layers 2 --positions concatenated --head-dim 2 --train-examples 40 --heads 1 --ranks 8"
    result = headcount("measure", *FARTHEST, *options.split(), "--out", tmp_path)
    assert result.code == 0, result.err
    assert {cell.model for cell in pretended[0].cells} == {
        EncoderSpec(
            heads=1, rank=8, width=4, head_dim=2, multiplier=3, layers=2, hidden=8, positions="concatenated",
            norm_first=True,
        )
    }  # fmt: skip
    assert {cell.train.train_examples for cell in pretended[0].cells} == {40}


def test_heads_that_share_an_encoders_width_are_of_lower_rank(tmp_path, pretended):
    result = headcount("measure", *FARTHEST, "--heads", "1,2,4", "--total-dim", "4", "--out", tmp_path)
    assert result.code == 0, result.err
    assert {(cell.model.heads, cell.model.rank) for cell in pretended[0].cells} == {(1, 4), (2, 2), (4, 1)}


@pytest.mark.parametrize(
    ("options", "task"),
    [
        ("nearest-neighbour --dim 3 --lengths 4 --points orthogonal", {"dim": 3, "points": "orthogonal"}),
        ("nearest-neighbour --dim 3 --lengths 5 --points doubled", {"dim": 3, "points": "doubled"}),
        ("biased-nearest-neighbour --dim 3 --terms 5", {"dim": 3, "terms": 5}),
        ("in-context-regression --inputs 2 --noise 0.5 --lengths 7", {"inputs": 2, "noise": 0.5}),
    ],
)
def test_the_second_papers_tasks_take_their_options(tmp_path, pretended, options, task):
    result = headcount("measure", *options.split(), "--heads", "1", "--ranks", "1,2", "--steps", 20, "--out", tmp_path)
    assert result.code == 0, result.err
    for cell in pretended[0].cells:
        assert task.items() <= cell.task.items()
        assert cell.train.train_examples == 0
    assert {cell.model.answered_at for cell in pretended[0].cells} == {"query"}


def test_two_orthogonal_points_can_be_asked_for(tmp_path, pretended):
    options = ("farthest-point", "--points", "orthogonal", "--dim", 4, "--lengths", 2, "--heads", "1,2")
    result = headcount("measure", *options, "--out", tmp_path)
    assert result.code == 0, result.err
    assert {(cell.length, cell.task["points"]) for cell in pretended[0].cells} == {(2, "orthogonal")}


BAD = [
    ("farthest-point --dim 4 --ranks 5", "rank must be at most the width that is projected, 4; got 5"),
    ("farthest-point --dim 4 --ranks 0", "whole numbers of at least 1, got 0"),
    ("farthest-point --dim 4 --ranks x", "--ranks must look like"),
    ("farthest-point --dim 4 --ranks 2,2", "must not repeat"),
    ("farthest-point --dim 4 --ranks 1,2 --heads 0", "whole numbers of at least 1, got 0"),
    ("farthest-point --dim 4 --ranks 1,2 --total-dim 4", "give --ranks or --total-dim, which sets the rank, not both"),
    ("farthest-point --dim 4 --total-dim 4 --heads 3", "3 heads do not divide total_dim 4"),
    ("farthest-point --dim 4 --lengths 1", "the farthest of one point is no question"),
    ("farthest-point --dim 4 --beta 2", "--beta is for class-token models"),
    ("farthest-point --dim 4 --multiplier 0", "multiplier must be a whole number of at least 1, got 0"),
    ("farthest-point --dim 4 --train-examples -1", "train_examples must be a whole number of at least 0, got -1"),
    ("farthest-point --dim 4 --hidden -1", "hidden must be a whole number of at least 0, got -1"),
    ("farthest-point --dim 4 --head-dim 5", "head_dim must be at most the width that is projected, 4; got 5"),
    ("farthest-point --dim 1", "dim must be a whole number of at least 2, got 1"),
    ("farthest-point --dim 4 --points doubled", "no attention is needed"),
    ("farthest-point --dim 4 --points orthogonal --lengths 3", "use length 2 or points"),
    ("farthest-point --dim 4 --terms 3", 'has no option "terms"'),
    ("nearest-neighbour --dim 4 --lengths 2", "the nearest of fewer points is no question"),
    ("nearest-neighbour --dim 4 --lengths 6 --points orthogonal", "5 orthogonal points need as many dimensions"),
    ("nearest-neighbour --dim 4 --lengths 4 --points doubled", "doubled"),
    ("biased-nearest-neighbour --dim 4 --terms 2", "terms must be odd, got 2"),
    ("biased-nearest-neighbour --dim 4 --lengths 4", "its length is 3"),
    ("in-context-regression --inputs 2 --noise -1", "noise must be"),
    ("in-context-regression --inputs 0", "inputs must be a whole number of at least 1, got 0"),
    ("sum-of-maxima --multiplier 2", "--multiplier is for encoders, and sum-of-maxima takes none"),
    ("sum-of-maxima --ranks 1,9 --heads 1", "rank must be at most heads * head_dim = 8"),
    ("sum-of-maxima --noise 1", 'has no option "noise"'),
    ("{data} --train-examples 0", "stored examples, which cannot be drawn afresh"),
    ("farthest-pint --dim 4", 'Did you mean "farthest-point"?'),
]


@pytest.mark.parametrize(("request_", "sentence"), BAD, ids=[request_ for request_, _ in BAD])
def test_a_request_that_cannot_be_right_is_one_sentence(tmp_path, monkeypatch, request_, sentence):
    monkeypatch.setattr(run, "program", lambda *_: pytest.fail("trained"))
    generator = np.random.default_rng(0)
    np.savez(tmp_path / "data.npz", x=generator.normal(size=(120, 8, 2)), y=generator.normal(size=120))
    parts = request_.format(data=tmp_path / "data.npz").split()
    result = headcount("measure", *parts, "--out", tmp_path / "results")
    a_sentence(result, 2, sentence)
    assert not (tmp_path / "results").exists()


def test_a_mistyped_kind_of_points_meets_the_nearest_one(tmp_path):
    with unchecked():
        result = headcount(
            "measure", "farthest-point", "--dim", 4, "--points", "unifrom", "--out", tmp_path / "results"
        )
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert 'Did you mean "uniform"?' in result.err
    assert not (tmp_path / "results").exists()


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Encoders of one head and two ranks that were really trained, a little."""
    folder = tmp_path_factory.mktemp("ranks") / "results"
    command = ("measure", *FARTHEST, "--heads", 1, "--ranks", "1,4", "--seeds", 2, "--out", folder)
    return folder, command, headcount(*command, "--json")


def test_encoders_are_trained_once(trained, monkeypatch):
    folder, command, result = trained
    assert result.code == 0, result.err
    answer = strict_json(result.out)
    assert answer.keys() == KEYS
    assert answer["trained"] == {"finished": 4}
    monkeypatch.setattr(run, "program", lambda *_: pytest.fail("trained"))
    again = strict_json(headcount(*command, "--json").out)
    assert (again["already_done"], again["trained"], again["verdict"]) == (4, {}, answer["verdict"])
    plan = strict_json(headcount(*command, "--dry-run", "--json").out)
    assert (plan["cells"], plan["already_done"], plan["model_steps"]) == (4, 4, 0)
    with Store.open_for_reading(folder) as store:
        shapes = {record.cell.model.rank: store.weights(record.cell.key) for record in store.records()}
    assert all(np.isfinite(array).all() for weights in shapes.values() for array in weights.values())
    assert {rank: {array.shape for name, array in weights.items() if name.endswith("query")} for rank, weights in
            shapes.items()} == {1: {(1, 1, 4)}, 4: {(1, 4, 4)}}  # fmt: skip


def test_encoders_come_out_the_same_when_verified(trained):
    folder, *_ = trained
    before = contents(folder)
    rows = strict_json(headcount("verify", folder, "--cells", 9, "--json").out)
    assert [row["agreement"] for row in rows] == ["same"] * 4
    assert contents(folder) == before


def test_encoders_have_no_collisions_to_search(trained, tmp_path):
    folder, *_ = trained
    before = contents(folder)
    a_sentence(headcount("collide", folder, "--out", tmp_path / "c"), 2, "encoders have no single output")
    assert contents(folder) == before
    assert not (tmp_path / "c").exists()


def test_from_python_ranks_are_asked_for_the_same_way(tmp_path, pretended):
    found = hc.measure(hc.FarthestPoint(length=4, dim=4), out=tmp_path, heads=[1, 2], ranks=[1, 2, 4], seeds=2)
    assert found.answer.limit == "rank"
    assert str(found) == found.answer.sentence
    assert (found.table.heads, found.table.ranks) == ((1, 2), (1, 2, 4))


def test_heads_of_a_class_token_model_may_have_any_rank(tmp_path):
    sizes = "--lengths 4 --steps 20 --batch 8 --hidden 4 --head-dim 4 --train-examples 40 --validation-examples 20"
    command = ("measure", "sum-of-maxima", *sizes.split(), "--heads", 2, "--ranks", "1,4", "--seeds", 2)
    result = headcount(*command, "--out", tmp_path, "--json")
    assert result.code == 0, result.err
    answer = strict_json(result.out)
    assert answer.keys() == KEYS
    assert answer["trained"] == {"finished": 4}
    with Store.open_for_reading(tmp_path) as store:
        models = {record.cell.model for record in store.records()}
    assert models == {ClassTokenSpec(heads=2, head_dim=4, hidden=4, rank=rank) for rank in (1, 4)}
    assert "rank 1" in headcount("show", tmp_path).out


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    folder = tmp_path_factory.mktemp("features") / "results"
    return folder, headcount(*FEATURES, "--out", folder)


def test_a_computed_study_is_made_and_told(features):
    folder, result = features
    assert result.code == 0, result.err
    assert "1,024 rank-one heads leave an error of" in result.out
    assert "holds" in result.out
    assert "H = 1,024" in result.out
    assert {path.name for path in folder.iterdir()} == {"rank-random-features-smoke.json", "report.html"}
    assert "1,024 rank-one heads" in check_page((folder / "report.html").read_text()).said


def test_a_computed_study_is_told_again_without_computing(features, monkeypatch):
    folder, _ = features
    monkeypatch.setattr(rank_random_features, "random_heads", lambda *_, **__: pytest.fail("computed"))
    result = headcount(*FEATURES, "--out", folder, "--json")
    (answer,) = strict_json(result.out)
    assert (answer["name"], answer["scale"], len(answer["claims"])) == ("rank-random-features", "smoke", 4)
    assert [row[0] for row in answer["grids"][0]["rows"]] == ["8", "16", "32", "64"]
    plan = strict_json(headcount(*FEATURES, "--out", folder, "--dry-run", "--json").out)
    assert plan == {"rank-random-features": {"cells": 8, "already_done": 8, "expected_seconds": 0.0}}


def test_a_computed_study_is_reported_from_its_folder(features, tmp_path):
    folder, _ = features
    before = contents(folder)
    told = headcount("report", folder, "-o", tmp_path / "page.html", "--figures", tmp_path / "f", "--json")
    assert told.code == 0, told.err
    (found,) = strict_json(told.out)["found"]
    assert found["name"] == "rank-random-features-smoke"
    assert [path.name for path in (tmp_path / "f").iterdir()] == ["rank-random-features-smoke-random-features.svg"]
    check_page((tmp_path / "page.html").read_text())
    assert contents(folder) == before


@pytest.mark.parametrize("verb", ["status", "show", "export", "verify", "collide"])
def test_what_needs_trained_models_says_so_of_a_computed_study(features, verb):
    folder, _ = features
    before = contents(folder)
    a_sentence(headcount(verb, folder), 1, "results")
    assert contents(folder) == before


def test_a_dry_run_of_a_computed_study_computes_and_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(rank_random_features, "random_heads", lambda *_, **__: pytest.fail("computed"))
    result = headcount(*FEATURES, "--out", tmp_path / "results", "--dry-run")
    assert result.code == 0
    assert "8 pieces, 0 of them done; about" in result.out
    plan = strict_json(headcount(*FEATURES, "--out", tmp_path / "results", "--dry-run", "--json").out)
    assert plan["rank-random-features"]["cells"] == 8
    assert contents(tmp_path) == {}


def test_a_damaged_file_of_pieces_is_told_and_kept(tmp_path):
    path = tmp_path / "rank-random-features-smoke.json"
    path.write_text("{")
    for command in (FEATURES, (*FEATURES, "--dry-run")):
        a_sentence(headcount(*command, "--out", tmp_path), 1, "cannot be read", "move it away")
    a_sentence(headcount("report", tmp_path), 1, "cannot be read", "move it away")
    assert contents(tmp_path) == {path: b"{"}


@pytest.mark.parametrize("below", ["", "below"])
def test_a_place_that_a_computed_study_cannot_write_to_is_told(tmp_path, monkeypatch, below):
    monkeypatch.setitem(rank_random_features.MAX_HEADS, Scale.SMOKE, 4)
    (tmp_path / "file").write_text("mine")
    result = headcount(*FEATURES, "--out", tmp_path / "file" / below)
    assert (result.code, result.out) == (1, "")
    assert "cannot be written" in result.err.splitlines()[-1]
    assert (tmp_path / "file").read_text() == "mine"


def test_a_stopped_computation_keeps_its_pieces_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setitem(rank_random_features.MAX_HEADS, Scale.SMOKE, 4)
    whole, drawn = rank_random_features.random_heads, []

    def stops_at_the_third(*arguments, **options):
        drawn.append(arguments)
        if len(drawn) == 3:
            raise KeyboardInterrupt
        return whole(*arguments, **options)

    monkeypatch.setattr(rank_random_features, "random_heads", stops_at_the_third)
    result = headcount(*FEATURES, "--out", tmp_path)
    assert (result.code, result.out) == (130, "")
    assert "Stopped. What is computed is kept in" in result.err
    plan = strict_json(headcount(*FEATURES, "--out", tmp_path, "--dry-run", "--json").out)
    assert plan["rank-random-features"]["already_done"] == 2
    assert headcount("report", tmp_path, "-o", tmp_path / "page.html").code == 0
    assert headcount(*FEATURES, "--out", tmp_path).code == 0


@pytest.mark.parametrize("name", ["rank-figure1", "rank-figure-d"])
def test_a_finished_rank_study_is_told_again_without_training(tmp_path, monkeypatch, name):
    monkeypatch.setattr(run, "program", lambda *_: pytest.fail("trained"))
    made_up.write(tmp_path, made_up.finished(made_up.study_cells(name)))
    (answer,) = strict_json(headcount("reproduce", name, "--scale", "smoke", "--out", tmp_path, "--json").out)
    assert (answer["name"], answer["scale"]) == (name, "smoke")
    assert answer["grids"][0]["columns"][0] == ""
    shown = headcount("reproduce", name, "--scale", "smoke", "--out", tmp_path)
    assert shown.code == 0
    assert answer["headline"] in shown.out
    assert "rank 4" in shown.out
    assert answer["headline"] in check_page((tmp_path / "report.html").read_text()).said
