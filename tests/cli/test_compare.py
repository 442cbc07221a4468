"""`headcount compare` and `headcount status PARENT`: several results folders at once."""

import errno
import os

import pytest

from headcount.report.compare import comparison_document, differing, joined_tables
from headcount.report.experiment import experiment_document
from headcount.store import Store

from ..helpers import fabricated
from ..helpers.commands import a_sentence, contents, headcount, strict_json


def folder(root, error=fabricated.sharp, *, axes=fabricated.LINE, task="own", **train):
    made = fabricated.sweep(axes, task=task, **train)
    return fabricated.write(root, fabricated.finished(made, error), {f"headcount measure {task}": made})


def worse(at):
    return 10 * fabricated.sharp(at)


@pytest.fixture
def three(tmp_path):
    folder(tmp_path / "a")
    folder(tmp_path / "b", worse, steps=7)
    folder(tmp_path / "below" / "c", task="other", axes=fabricated.LINE | {"heads": (4, 5)})
    return tmp_path


def test_answers_and_errors_stand_side_by_side_and_differences_are_marked(three):
    result = headcount("compare", three / "a", three / "b")
    assert (result.code, result.err) == (0, "")
    lines = [line.split() for line in result.out.splitlines()]
    assert lines.count(["heads", "a", "b"]) == 2
    assert [len(line) for line in lines if line[:1] == ["4"]] == [3, 3]
    assert "steps differs" in result.out
    content = strict_json(headcount("compare", three / "a", three / "b", "--json").out)
    assert [each["needs"]["heads"][0] for each in content["experiments"]] == [4, 4]
    (table,) = content["tables"]
    assert len(table["cells"]) == 12
    for cell in table["cells"]:
        assert cell["best"]["b"] == pytest.approx(10 * cell["best"]["a"])
        assert cell["differs"] == ["b"]


def test_a_folder_differs_from_itself_nowhere_and_missing_errors_are_none(three):
    made = fabricated.sweep()
    documents = {name: experiment_document(made.experiment, fabricated.finished(made)) for name in ("one", "two")}
    assert comparison_document({name: [each] for name, each in documents.items()}).notes == ()
    (table,) = joined_tables(documents)
    assert not differing(table).any()
    table = strict_json(headcount("compare", three / "a", three / "below" / "c", "--json").out)["tables"][0]
    assert {cell["best"]["c"] is None for cell in table["cells"] if cell["heads"] < 4} == {True}


def test_other_tasks_and_metrics_are_said_and_never_in_one_table(three, tmp_path):
    made = fabricated.sweep(task="labels")
    labels = fabricated.write(
        tmp_path / "labels",
        fabricated.graded(made, lambda at: {"error": 0.5 / at["heads"], "baseline": 0.5}),
        {"": made},
    )
    content = strict_json(headcount("compare", three / "a", labels, "--json").out)
    assert [list(table["cells"][0]["best"]) for table in content["tables"]] == [["a"], ["labels"]]
    assert "own" in content["notes"][0]
    assert "labels" in content["notes"][0]
    refused = headcount("compare", three / "a", labels, "--figure", tmp_path / "both.svg")
    assert (refused.code, (tmp_path / "both.svg").exists()) == (2, False)


def test_a_figure_shows_all_of_them(three, tmp_path):
    result = headcount("compare", three / "a", three / "b", "--figure", tmp_path / "both.svg")
    assert result.code == 0, result.err
    text = (tmp_path / "both.svg").read_text()
    for line in ("a, 8 tokens", "b, 16 tokens"):
        assert line in text


def test_one_result_is_nothing_to_compare(three, tmp_path):
    a_sentence(headcount("compare", three / "a"), 2, "a")
    (three / "link").symlink_to(three / "a")
    for same in ("a", "link", "below/../a"):
        a_sentence(headcount("compare", three / "a", three / same), 2, str(three / same), "show")
    a_sentence(headcount("compare", three / "a", tmp_path / "nowhere"), 1, "nowhere")


def test_a_parent_lists_all_folders_below_and_which_are_running(three, tmp_path):
    (three / "broken").mkdir()
    (three / "broken" / "results.sqlite").write_text("mine")
    before = contents(three)
    with Store.open_for_writing(three / "b"):
        rows = strict_json(headcount("status", three, "--json").out)["folders"]
    state = {row["folder"].removeprefix(f"{three}/"): row for row in rows}
    assert list(state) == ["a", "b", "below/c", "broken"]
    assert [row["running"] for row in rows] == [False, True, False, False]
    assert state["below/c"]["experiments"] == [{"experiment": "other", "task": "other", "cells": 8, "done": 8}]
    assert "damaged" in state["broken"]["problem"]
    shown = headcount("status", three)
    assert (shown.code, shown.err) == (0, "")
    words = [line.split() for line in shown.out.splitlines()]
    assert ["a", "own", "24/24", "done"] in [line[:4] for line in words]
    assert contents(three).keys() == before.keys()


def test_a_folder_that_may_not_be_read_costs_no_other(three, monkeypatch):
    stat = os.stat

    def refusing(path, *rest, **options):
        if os.fspath(path) == str(three / "a" / "results.sqlite"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return stat(path, *rest, **options)

    monkeypatch.setattr(os, "stat", refusing)
    rows = strict_json(headcount("status", three, "--json").out)["folders"]
    assert [row["folder"].removeprefix(f"{three}/") for row in rows] == ["b", "below/c"]
    a_sentence(headcount("status", three / "a"), 1, str(three / "a"))
