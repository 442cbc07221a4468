"""`headcount measure` without seeds: smaller models descend from larger ones until the answer is settled."""

import csv
import io
import shutil

import pytest

from ..helpers.commands import a_sentence, contents, headcount, strict_json
from ..helpers.compiling import compile_quickly  # noqa: F401
from ..search.test_run import Timer

TINY = "--steps 30 --batch 16 --head-dim 2 --hidden 8 --heads 1:4 --train-examples 200 --validation-examples 200"
ASK = ("measure", "max-plus-min", *TINY.split(), "--effort", "quick")


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """A folder of models that were really trained and descended, and what was said meanwhile."""
    folder = tmp_path_factory.mktemp("asked") / "results"
    return folder, headcount(*ASK, "--lengths", 4, "--out", folder)


def starts(folder) -> list[str]:
    return [row["start"] for row in csv.DictReader(io.StringIO(headcount("export", folder).out))]


def test_a_question_is_answered_from_models_that_descend(asked):
    folder, result = asked
    assert result.code == 0, result.err
    assert result.out.count("\n") == 1
    assert "up to 4 heads" in result.err
    assert "looks like" in result.err
    assert set(starts(folder)) == {"random", "descended"}


def test_the_same_question_again_trains_nothing(asked, no_training):
    folder, result = asked
    before = contents(folder / "weights")
    printed = headcount(*ASK, "--lengths", 4, "--out", folder, "--json")
    again, told = strict_json(printed.out), " ".join(printed.err.split())
    assert f"{len(starts(folder))} models of these already" in told
    assert "usually at least" not in told
    assert (again["trained"], again["already_done"], again["ended"]) == ({}, len(starts(folder)), "settled")
    assert again["verdict"] + "\n" == result.out
    assert again["early"]["heads"] >= 1
    (shown,) = strict_json(headcount("show", folder, "--json").out)
    assert again["errors"] == shown["errors"] != []
    assert contents(folder / "weights") == before


def test_descended_models_verify_to_the_last_bit_from_their_stored_parents(asked):
    folder, _ = asked
    rows = strict_json(headcount("verify", folder, "--cells", 99, "--json").out)
    assert [row["agreement"] for row in rows] == ["same"] * len(starts(folder))


def test_a_lost_parent_is_one_sentence_and_costs_nothing(asked, tmp_path):
    folder = shutil.copytree(asked[0], tmp_path / "results")
    shutil.rmtree(folder / "weights")
    before = contents(folder)
    a_sentence(headcount("verify", folder, "--cells", 99), 1, "weights")
    assert contents(folder) == before


def test_a_dry_run_says_what_it_may_cost_and_writes_nothing(tmp_path, no_training):
    result = headcount(*ASK, "--out", tmp_path / "results", "--dry-run", "--json")
    plan = strict_json(result.out)
    assert 0 < plan["least"]["cells"] <= plan["most"]["cells"]
    assert plan["least"]["expected_seconds"] <= plan["most"]["expected_seconds"]
    shown = headcount(*ASK, "--out", tmp_path / "results", "--dry-run").out
    assert str(plan["most"]["cells"]) in shown
    assert not (tmp_path / "results").exists()


def test_a_question_whose_models_all_fail_is_told_why(tmp_path, broken_training):
    result = headcount(*ASK, "--lengths", 4, "--out", tmp_path)
    assert (result.code, result.out.count("\n")) == (3, 1), result.err
    assert "ValueError: no luck" in result.err


def test_minutes_that_train_nothing_are_told(tmp_path, no_training):
    result = headcount(*ASK, "--minutes", 1e-9, "--out", tmp_path)
    a_sentence(result, 4, "--minutes")
    assert contents(tmp_path / "weights") == {}


def test_minutes_that_are_over_leave_an_answer_and_say_how_to_go_on(tmp_path, pretended, monkeypatch):
    def over_in_the_third_round(sweep, store, *, stop, **options):
        if len(pretended.sweeps) == 2:
            Timer.over.function()
            raise KeyboardInterrupt
        return pretended.run_sweep(sweep, store, **options)

    command = (*ASK, "--heads", "1:12", "--lengths", 8, "--minutes", "5", "--out", tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr("headcount.search.run.threading.Timer", Timer)
        patched.setattr("headcount.search.run.run_sweep", over_in_the_third_round)
        result = headcount(*command)
    assert result.code == 4, result.err
    assert result.out.startswith(("needs ", "no transition found"))
    assert result.err.splitlines()[-1].strip() == f"headcount {' '.join(map(str, command))}"
    again = headcount(*command, "--json")
    assert (again.code, strict_json(again.out)["ended"], strict_json(again.out)["heads"]) == (0, "settled", 4)
    assert strict_json(again.out)["already_done"] > 0
