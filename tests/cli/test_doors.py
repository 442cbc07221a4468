"""Python and the command line are two doors to one house: the same cells, the same answer, the same refusals."""

import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest

import headcount as hc
from headcount.errors import StoreError
from headcount.store import FILE_NAME, Store

from ..data.written import write_text_table
from ..helpers import fabricated
from ..helpers.commands import a_sentence, contents, headcount, strict_json
from ..helpers.real_data import lines, tiny_bert
from ..papers.data.texts import write_records
from ..report.laws import check_page

READERS = ("status", "show", "report", "export", "verify", "collide")


def error_rates(at) -> dict[str, float]:
    return {"error": 0.3 if at["heads"] < 2 else 0.1, "final_error": 0.3, "baseline": 0.5, "baseline_noise": 0.01}


@pytest.fixture(scope="module")
def passages(tmp_path_factory) -> tuple[Path, Path]:
    """A file of queries with their answers and negatives, and the embeddings to read it with."""
    folder = tmp_path_factory.mktemp("passages")
    return write_records(folder / "mine.jsonl", lines(negatives=15)), tiny_bert(folder / "bert")


@pytest.fixture
def both(pretended, tmp_path):
    """The keys that each door trains for one question, and those its folder holds."""

    def ask(*words, **arguments) -> tuple[list[str], ...]:
        task, *flags = words
        result = headcount("measure", task, *flags, "--out", tmp_path / "cli")
        assert result.code == 0, result.err
        by_command = len(pretended.sweeps)
        options = {name: arguments.pop(name) for name in ("dim", "embeddings", "answered_at") if name in arguments}
        measurement = hc.measure(hc.find_task(str(task), **options), out=tmp_path / "python", **arguments)
        assert str(measurement) == result.out.strip()
        doors = {"cli": pretended.sweeps[:by_command], "python": pretended.sweeps[by_command:]}
        asked = [[cell.key for sweep in sweeps for cell in sweep.cells] for sweeps in doors.values()]
        stored = [sorted(r.cell.key for m in hc.load(tmp_path / door) for r in m.records) for door in doors]
        assert stored == [sorted(set(keys)) for keys in asked]
        return tuple(asked)

    return ask


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("sum-of-maxima --lengths 8,16", {"lengths": [8, 16]}),
        pytest.param(
            "sum-of-maxima --lengths 8 --effort thorough",
            {"lengths": [8], "effort": "thorough"},
            marks=pytest.mark.slow,
        ),
        ("sum-of-maxima --seeds 2", {"seeds": 2}),
        pytest.param("sum-of-maxima --ranks 4 --lengths 8", {"ranks": [4], "lengths": [8]}, marks=pytest.mark.slow),
        pytest.param("farthest-point --dim 4", {"dim": 4}, marks=pytest.mark.slow),
        ("farthest-point --dim 4 --ranks 1,2 --steps 9", {"dim": 4, "ranks": [1, 2], "steps": 9}),
    ],
)
def test_a_preset_is_one_question_from_both_doors(both, words, arguments):
    one, other = both(*words.split(), **arguments)
    assert one == other


def test_images_are_one_question_from_both_doors(both, pretended, images):
    pretended.metrics = error_rates
    one, other = both(images, "--heads", "1,2", heads=[1, 2])
    assert one == other


def test_a_table_and_arrays_are_one_question_from_both_doors(both, tmp_path):
    x, y = np.random.default_rng(0).normal(size=(2, 120, 4))
    write_text_table(tmp_path / "mine.csv", {f"t{token}": x[:, token] for token in range(4)} | {"y": y[:, 0]})
    one, other = both(
        tmp_path / "mine.csv", "--heads", "1,2", "--answered-at", "query", heads=[1, 2], answered_at="query"
    )
    assert one == other
    noted = headcount("measure", tmp_path / "mine.csv", "--dry-run").err
    assert "mine.csv: the target is the column y" in noted
    arrays = hc.measure(
        x, y[:, 0], name="mine", answered_at="query", heads=[1, 2], out=tmp_path / "arrays", progress=False
    )
    assert {record.cell.key for record in arrays.records} == set(one)


def test_passages_are_one_question_from_both_doors(both, pretended, passages):
    pretended.metrics = error_rates
    mine, bert = passages
    one, other = both(mine, "--embeddings", bert, "--heads", "1,2", embeddings=bert, heads=[1, 2])
    assert one == other


def test_widths_that_follow_the_heads_are_one_experiment_with_one_sentence(tmp_path, pretended):
    measurement = hc.measure(
        "max-plus-min", model=lambda h: hc.ClassTokenSpec(heads=h, hidden=8 * h), out=tmp_path / "results"
    )
    sentence = str(measurement)
    assert sentence.startswith("needs 4 heads")
    assert headcount("show", tmp_path / "results").out.splitlines()[-1].strip() == sentence
    (shown,) = strict_json(headcount("show", tmp_path / "results", "--json").out)
    page = headcount("report", tmp_path / "results", "-o", tmp_path / "page.html", "--json")
    (section,) = strict_json(page.out)["found"]
    assert shown["verdict"] == section["verdict"] == sentence
    assert sentence in check_page((tmp_path / "page.html").read_text()).said
    (again,) = hc.load(str(tmp_path / "results"))
    assert str(again) == sentence


def test_two_tasks_in_one_folder_are_two_experiments(tmp_path, pretended):
    """One needs four heads, the other one."""
    grid = ("--seeds", 2, "--lengths", 8, "--out", tmp_path)
    headcount("measure", "sum-of-maxima", *grid)
    pretended.metrics = lambda at: {"nmse": 1e-4 * (1 + 0.1 * at["seed"]), "baseline": 1.0}
    headcount("measure", "max-plus-min", *grid)
    answers = {each["name"]: each["verdict"] for each in strict_json(headcount("show", tmp_path, "--json").out)}
    assert answers.keys() == {"sum-of-maxima", "max-plus-min"}
    assert answers["sum-of-maxima"].startswith("needs 4 heads")
    assert not answers["max-plus-min"].startswith("needs 4 heads")
    assert [each["cells"] for each in strict_json(headcount("status", tmp_path, "--json").out)["experiments"]] == [
        12,
        12,
    ]
    a_sentence(headcount("show", tmp_path, "--figure", tmp_path / "one.svg"), 2, "2")


def test_a_folder_may_be_given_as_text(own):
    assert [str(each) for each in hc.load(str(own))] == [str(each) for each in hc.load(own)]
    with Store.open_for_reading(str(own)) as store:
        assert len(store.records()) == 23
    with Store.open_for_writing(str(own)) as store:
        assert len(store.settled_keys()) == 23


@pytest.fixture
def homeless(monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    for name in ("XDG_CACHE_HOME", "HEADCOUNT_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", no_home)


def test_a_user_without_a_home_can_use_every_verb(homeless, own, tmp_path, monkeypatch, pretended, passages):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("headcount.theory.cli.prove.CLAIMS", ())
    monkeypatch.setattr("headcount.doctor.examine", list)
    pretended.metrics = lambda at: error_rates(at) | {"nmse": 0.5}
    mine, bert = passages
    commands = {
        "measure": ("max-plus-min", "--lengths", 8, "--out", tmp_path / "new"),
        "show": (own,),
        "status": (own,),
        "report": (own,),
        "export": (own,),
        "reproduce": ("marco", "--data", mine, "--embeddings", bert, "--scale", "smoke", "--dry-run"),
        "bounds": ("--heads", 2, "--length", 128, "--intrinsic-dim", 4),
        "prove": (),
        "tasks": (),
        "doctor": (),
    }
    for verb, arguments in commands.items():
        result = headcount(verb, *arguments)
        assert result.code == 0, (verb, result.err)
    for verb in ("verify", "collide"):  # the fabricated task is nobody's: refused, not a traceback
        a_sentence(headcount(verb, own), 2)


@pytest.mark.parametrize("verb", [*READERS, "measure"])
def test_a_folder_of_the_old_format_gets_one_sentence(own, no_training, verb):
    connection = sqlite3.connect(own / FILE_NAME)
    connection.execute("PRAGMA user_version = 1")
    connection.commit()
    connection.close()
    before = contents(own)
    arguments = ("measure", "max-plus-min", "--out", own) if verb == "measure" else (verb, own)
    a_sentence(headcount(*arguments), 1, FILE_NAME, "format 1", "new folder")
    assert contents(own).items() >= before.items()
    with pytest.raises(StoreError, match="format 1"):
        hc.load(own)


@pytest.mark.parametrize("name", ["with [brackets]", "closing[/b]", "<b>&amp;", "not-utf8\udcff"])
def test_a_folder_may_have_any_name(tmp_path, pretended, name):
    named = tmp_path / name
    measure = ("measure", "max-plus-min", "--seeds", 2, "--lengths", 8, "--out", named)
    assert headcount(*measure, "--dry-run").code == 0
    result = headcount(*measure)
    assert result.code == 0, result.err
    status = headcount("status", named)
    assert status.code == 0
    for verb in ("show", "export"):
        assert headcount(verb, named).code == 0
    page = headcount("report", named, "-o", named / "page.html", "--figures", named / "figures")
    assert page.code == 0
    said = check_page((named / "page.html").read_text()).said
    if name.isascii():
        assert name in result.err.replace("\n", "")
        assert status.out.count(name) >= 2, "once as the folder, once in the command that made it"
        assert name in said


def test_answers_of_both_doors_are_the_folders(own):
    (measurement,) = hc.load(own)
    (shown,) = strict_json(headcount("show", own, "--json").out)
    content = json.loads(json.dumps(measurement.answer().as_dict()))
    assert content == {name: shown[name] for name in content}
    assert measurement.table.axes == fabricated.LINE
