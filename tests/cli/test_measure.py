"""`headcount measure`: what is said where, what is trained and kept, and how heads and ranks are asked for."""

import csv
import io
import json
import shutil
import signal
from pathlib import Path

import pytest

from headcount import load
from headcount.heads_read import ATTACHMENT, heads_read
from headcount.store import Store

from ..helpers import fabricated
from ..helpers.commands import a_sentence, contents, headcount, strict_json
from ..report.laws import check_page

TINY = ["--steps", 4, "--batch", 4, "--head-dim", 2, "--hidden", 4, "--lengths", "4,5", "--heads", "1:2", "--seeds", 2]
TINY = [*map(str, TINY), "--train-examples", "24", "--validation-examples", "20"]
MEASURE = ("measure", "max-plus-min", *TINY)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A folder of eight models that were really trained, and what was said meanwhile."""
    folder = tmp_path_factory.mktemp("measured") / "results"
    return folder, headcount(*MEASURE, "--out", folder)


@pytest.fixture
def copied(measured, tmp_path) -> Path:
    return Path(shutil.copytree(measured[0], tmp_path / "results"))


def test_the_answer_alone_goes_to_stdout_and_messages_to_stderr(measured):
    folder, result = measured
    assert result.code == 0, result.err
    assert result.out.count("\n") == 1
    assert result.out.startswith(("no transition found: ", "needs "))
    assert f"8 models into {folder}" in result.err.replace("\n", "")
    assert "T = 4" in result.err


def test_the_same_command_again_trains_nothing(measured, copied, no_training):
    before = contents(copied / "weights")
    again = headcount(*MEASURE, "--out", copied, "--json")
    answer = strict_json(again.out)
    assert (again.code, answer["already_done"], answer["trained"], answer["out"]) == (0, 8, {}, str(copied))
    assert answer["verdict"] + "\n" == measured[1].out
    assert contents(copied / "weights") == before
    assert headcount("export", copied).out == headcount("export", measured[0]).out
    plan = strict_json(headcount(*MEASURE, "--out", copied, "--dry-run", "--json").out)
    assert (plan["cells"], plan["already_done"], plan["buckets"], plan["model_steps"]) == (8, 8, [], 0)


def test_what_is_measured_verifies_to_the_last_bit(measured):
    folder, _ = measured
    before = contents(folder)
    rows = strict_json(headcount("verify", folder, "--cells", 9, "--json").out)
    assert [row["agreement"] for row in rows] == ["same"] * 8
    assert {(row["experiment"], row["heads"]) for row in rows} == {("max-plus-min", 1), ("max-plus-min", 2)}
    assert contents(folder) == before


def test_a_dry_run_trains_and_writes_nothing(tmp_path, no_training):
    result = headcount(*MEASURE, "--out", tmp_path / "results", "--dry-run")
    assert (result.code, result.err) == (0, "")
    assert "8 models, 0 already done" in result.out
    assert not (tmp_path / "results").exists()


def test_without_a_folder_results_go_under_the_tasks_name(tmp_path, monkeypatch, pretended, files):
    monkeypatch.chdir(tmp_path)
    assert headcount("measure", f"{files}/mine.py:task").code == 0
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["mine"]


def test_a_folder_that_cannot_be_used_is_refused_and_left_alone(own, tmp_path, no_training):
    (tmp_path / "file").touch()
    a_sentence(headcount(*MEASURE, "--out", tmp_path / "file" / "below"), 1, str(tmp_path / "file"))
    before = contents(own)
    with Store.open_for_writing(own):
        a_sentence(headcount(*MEASURE, "--out", own), 1, str(own), "in use")
    assert contents(own).items() >= before.items()
    (own / "results.sqlite").write_bytes(b"garbage" * 1000)
    a_sentence(headcount(*MEASURE, "--out", own), 1, str(own / "results.sqlite"), "damaged")


def test_a_task_that_nothing_can_be_learned_from_is_refused_before_anything_is_stored(own, files):
    before = headcount("status", own).out
    result = headcount("measure", f"{files}/mine.py:constant", *TINY, "--out", own)
    assert (result.code, result.out) == (2, "")
    assert "1" in result.err.splitlines()[-1]
    assert headcount("status", own).out == before


def test_failed_cells_are_explained_and_can_be_trained_again(tmp_path, broken_training):
    result = headcount(*MEASURE, "--out", tmp_path)
    assert (result.code, result.out.count("\n")) == (3, 1)
    assert "8 cells failed; the first: ValueError: no luck" in result.err
    assert strict_json(headcount("status", tmp_path, "--json").out)["cells"]["failed"] == 8
    shown = headcount("show", tmp_path)
    assert shown.code == 0
    assert "no luck" in shown.err
    plan = headcount(*MEASURE, "--out", tmp_path, "--dry-run", "--json").out
    assert strict_json(plan)["already_done"] == 0


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_a_stopped_run_keeps_what_is_done_and_says_how_to_go_on(tmp_path, monkeypatch, number):
    commit, raised = Store.commit, []

    def stopped(*arguments):
        commit(*arguments)
        if not raised:  # a second Ctrl-C ends the process
            raised.append(number)
            signal.raise_signal(number)

    monkeypatch.setattr(Store, "commit", stopped)
    result = headcount(*MEASURE, "--lengths", "4,5,6", "--out", tmp_path)
    assert (result.code, result.out) == (130, "")
    (experiment,) = strict_json(headcount("status", tmp_path, "--json").out)["experiments"]
    assert 0 < experiment["done"] <= experiment["cells"] == 12
    command = f"headcount {' '.join(MEASURE)} --lengths 4,5,6 --out {tmp_path}"
    stopped_at = f"Stopped. {experiment['done']} of 12 cells are kept in {tmp_path}."
    assert stopped_at in result.err
    assert result.err.splitlines()[-1].strip() == command
    assert command in headcount("status", tmp_path).out


def test_stopped_when_all_is_trained_the_answer_is_given(measured, copied, monkeypatch):
    """What the heads read is looked at in the folder that is open already, and can be given up."""
    with Store.open_for_reading(copied) as store:
        (experiment,) = store.experiments()
        assert "key" in store.get(experiment.name, ATTACHMENT)
    with Store.open_for_writing(copied) as store:
        store.put(experiment.name, ATTACHMENT, {})
    read, in_use = heads_read, []

    def stopped(*arguments, stop):
        signal.raise_signal(signal.SIGINT)
        assert stop.wait(timeout=30)
        in_use.append(headcount("measure", "max-plus-min", "--out", copied).code)
        return read(*arguments, stop=stop)

    monkeypatch.setattr("headcount.heads_read.heads_read", stopped)
    result = headcount(*MEASURE, "--out", copied)
    assert (result.code, result.out, in_use) == (0, measured[1].out, [1])
    with Store.open_for_reading(copied) as store:
        assert "skipped" in store.get(experiment.name, ATTACHMENT)


# Heads and ranks.

SMALL = ["--dim", 4, "--lengths", 4, "--steps", 20, "--batch", 8, "--hidden", 8, "--validation-examples", 20]
FARTHEST = ("farthest-point", *map(str, SMALL))
MAP = ("measure", *FARTHEST, "--heads", "1,2", "--ranks", "1,2,4", "--seeds", "2")


@pytest.fixture
def ranked(pretended, tmp_path):
    """A folder of heads by rank, whose errors fall at rank 4."""
    pretended.metrics = lambda at: {"nmse": (0.6 if at["rank"] < 4 else 0.02) * (1 + 0.02 * at["seed"])}
    return tmp_path / "map", headcount(*MAP, "--out", tmp_path / "map", "--figure", tmp_path / "measure.svg")


def test_heads_and_ranks_are_a_table_an_answer_and_a_map(ranked, pretended, tmp_path):
    folder, result = ranked
    assert result.code == 0, result.err
    assert result.out == "needs rank 4 [3, 4]: from rank 4 on one head is enough, below it 2 heads are not\n"
    shown = headcount("show", folder, "--figure", tmp_path / "show.svg")
    for text in (result.err, shown.out):
        rows = [line.split() for line in text.splitlines()]
        assert ["heads", "rank", "1", "rank", "2", "rank", "4"] in rows
        assert ["1", "0.60", "0.60", "0.020"] in rows
    assert result.out in shown.out
    drawn = [tmp_path / name for name in ("measure.svg", "show.svg")]
    assert drawn[0].read_bytes() == drawn[1].read_bytes()
    assert {(m["heads"], m["rank"], m["width"], m["hidden"]) for m in pretended.models} == {
        (h, r, 4, 8) for h in (1, 2) for r in (1, 2, 4)
    }
    assert {cell.train.train_examples for cell in pretended.sweeps[0].cells} == {0}


def test_heads_and_ranks_as_json_page_and_table(ranked, tmp_path):
    folder, _ = ranked
    answer = strict_json(headcount(*MAP, "--out", folder, "--json").out)
    assert (answer["limit"], answer["rank"], answer["heads"], answer["at"]) == ("rank", 4, 1, [1, 4])
    (shown,) = strict_json(headcount("show", folder, "--json").out)
    assert {name: shown[name] for name in shown if name in answer} == {
        name: answer[name] for name in shown if name in answer
    }
    assert shown["settings"]["task"]["task"] == "farthest-point"
    page = headcount("report", folder, "-o", tmp_path / "page.html", "--figures", tmp_path / "f", "--json")
    (section,) = strict_json(page.out)["found"]
    assert (section["limit"], section["rank"]) == ("rank", 4)
    assert f"headcount {' '.join(MAP)}" in check_page((tmp_path / "page.html").read_text()).said
    rows = list(csv.DictReader(io.StringIO(headcount("export", folder).out)))
    assert sorted((int(row["heads"]), int(row["rank"]), int(row["seed"])) for row in rows) == [
        (h, r, s) for h in (1, 2) for r in (1, 2, 4) for s in (0, 1)
    ]


@pytest.mark.parametrize(
    ("options", "models"),
    [
        ("--heads 1,2 --ranks 2", [{"heads": 1, "rank": 2}, {"heads": 2, "rank": 2}]),
        ("--heads 1,2", [{"heads": 1, "rank": 4}, {"heads": 2, "rank": 4}]),
        ("--heads 1,4 --total-dim 4", [{"heads": 1, "rank": 4}, {"heads": 4, "rank": 1}]),
        (
            "--multiplier 3 --layers 2 --positions concatenated --head-dim 2 --train-examples 40 --heads 1 --ranks 8",
            [{"rank": 8, "width": 4, "head_dim": 2, "multiplier": 3, "layers": 2, "positions": "concatenated"}],
        ),
    ],
)
def test_what_an_encoder_is_made_of_can_be_said(tmp_path, pretended, options, models):
    result = headcount("measure", *FARTHEST, *options.split(), "--seeds", 1, "--out", tmp_path, "--json")
    assert result.code == 0, result.err
    assert [
        {name: model[name] for name in wanted} for model, wanted in zip(pretended.models, models, strict=True)
    ] == models
    assert strict_json(result.out)["limit"] != "rank"


@pytest.mark.parametrize(
    ("options", "task"),
    [
        ("nearest-neighbour --dim 3 --lengths 4 --points orthogonal", {"dim": 3, "points": "orthogonal"}),
        pytest.param(
            "nearest-neighbour --dim 3 --lengths 5 --points doubled",
            {"dim": 3, "points": "doubled"},
            marks=pytest.mark.slow,
        ),
        pytest.param("biased-nearest-neighbour --dim 3 --terms 5", {"dim": 3, "terms": 5}, marks=pytest.mark.slow),
        pytest.param(
            "in-context-regression --inputs 2 --noise 0.5 --lengths 7",
            {"inputs": 2, "noise": 0.5},
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "farthest-point --dim 4 --lengths 2 --points orthogonal",
            {"points": "orthogonal"},
            marks=pytest.mark.slow,
        ),
        ("sum-of-maxima --intrinsic-dim 2 --task-seed 3 --distribution cube", {"task_seed": 3, "distribution": "cube"}),
        pytest.param("max-plus-min --windows 0:0.5,0.5:1", {"windows": [[0, 0.5], [0.5, 1]]}, marks=pytest.mark.slow),
    ],
)
def test_tasks_take_their_options(tmp_path, pretended, options, task):
    result = headcount("measure", *options.split(), "--heads", "1,2", "--steps", 20, "--out", tmp_path)
    assert result.code == 0, result.err
    for cell in pretended.sweeps[0].cells:
        assert task.items() <= cell.task.items(), json.dumps(cell.task)


def test_heads_of_a_class_token_model_may_have_any_rank(tmp_path, pretended):
    result = headcount(*MEASURE, "--heads", 2, "--ranks", "1,4", "--out", tmp_path)
    assert result.code == 0, result.err
    assert {(m["kind"], m["heads"], m["rank"]) for m in pretended.models} == {("class-token", 2, r) for r in (1, 4)}
    assert "rank 1" in headcount("show", tmp_path).out


def test_heads_that_share_a_width_are_one_experiment(tmp_path, pretended):
    shared = [part for place, part in enumerate(MEASURE) if "--head-dim" not in MEASURE[place - 1 : place + 1]]
    result = headcount(*shared, "--total-dim", 8, "--heads", "1,2,4", "--out", tmp_path, "--json")
    assert result.code == 0, result.err
    (shown,) = strict_json(headcount("show", tmp_path, "--json").out)
    assert shown["verdict"] == strict_json(result.out)["verdict"]
    assert {m["head_dim"] for m in pretended.models} == {8, 4, 2}


def test_learning_rates_are_an_axis_of_which_the_best_counts(tmp_path, pretended):
    pretended.metrics = lambda at: {"nmse": fabricated.sharp(at) if at["learning_rate"] == 0.01 else 0.9}
    options = ("--heads", "1:6", "--seeds", 4, "--learning-rates", "0.01,0.003", "--out", tmp_path, "--json")
    answer = strict_json(headcount(*MEASURE, *options).out)
    assert (answer["heads"], answer["low"], answer["high"]) == (4, 4, 4)


@pytest.mark.parametrize(("task", "agrees"), [("sum-of-maxima", True), ("max-plus-min", False)])
def test_the_support_dimension_is_told_before_training_and_compared_after(
    tmp_path, pretended, support_search, task, agrees
):
    asked = ("--lengths", 8, "--seeds", 2, "--out", tmp_path / "out")
    result = headcount("measure", task, *asked)
    before, after = " ".join(result.err.split()).split("models into", 1)
    assert "support dimension" in before
    assert "(proved)" in before
    assert ("the answer agrees" in after) == agrees
    assert ("the answer differs, 4 heads" in after) != agrees
    assert "support dimension" in headcount("show", tmp_path / "out").out
    (section,) = strict_json(headcount("show", tmp_path / "out", "--json").out)
    assert ("agrees" in section["support_dimension"]) == agrees
    (measurement,) = load(tmp_path / "out")
    support = measurement.support()
    assert support is not None
    assert support["exact"]
    assert support["length"] == 8


def test_a_target_without_a_gradient_is_measured_without_a_word_of_support(tmp_path, pretended, support_search):
    mine = tmp_path / "mine.py"
    mine.write_text(
        "import jax.numpy as jnp\nimport headcount as hc\n"
        "task = hc.FunctionTask(function=lambda x: 1.0 * jnp.argmax(x[:, 0]), length=8, dim=1, name='jumps')\n"
    )
    result = headcount("measure", f"{mine}:task", "--lengths", 8, "--seeds", 2, "--out", tmp_path / "out")
    assert result.code == 0
    assert "support" not in result.err
