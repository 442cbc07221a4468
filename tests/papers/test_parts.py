"""A part of a rank study on the command line: counted, refused, and added to by the next command."""

import pytest

from headcount.papers.base import Scale
from headcount.papers.registry import STUDIES
from headcount.store import Store

from ..helpers.commands import a_sentence, contents, headcount, strict_json
from ..helpers.pretended import Pretended

FIGURE_1 = ("reproduce", "rank-figure1", "--scale", "smoke")


@pytest.mark.parametrize(
    ("request_", "cells"),
    [
        ("rank-figure1", 12),
        ("rank-figure1 --layers 3", 6),
        ("rank-figure1 --heads 1,2 --multipliers 1", 4),
        ("rank-figure1 --ranks 8 --layers 1 --multipliers 1,4", 2),
        ("rank-figure1 --heads 1 --ranks 8", 4),
        ("rank-figure1 --dims 8 --lengths 8 --positions none", 12),
        (f"rank-figure1 --seeds {10**18}", 12),
        ("rank-figure1 --steps 7 --norms after --heads 8", 4),
        ("rank-figure-n --lengths 2", 6),
        ("rank-figure-d --dims 12 --heads 1,4", 2),
        ("rank-positions --positions additive,concatenated", 6),
        ("rank-positions --heads 1 --positions concatenated", 1),
        ("rank-in-context --heads 16", 1),
    ],
)
def test_a_part_is_counted_before_it_is_trained(tmp_path, no_training, request_, cells):
    name, *part = request_.split()
    out = tmp_path / "results"
    result = headcount("reproduce", name, "--scale", "smoke", *part, "--out", out, "--dry-run", "--json")
    assert strict_json(result.out)[name]["cells"] == cells
    assert not out.exists()


def test_the_grid_of_the_paper_is_the_sum_of_its_parts(tmp_path, no_training):
    command = ("reproduce", "rank-figure1", "--scale", "paper", "--out", tmp_path, "--dry-run", "--json")

    def cells(*part):
        return strict_json(headcount(*command, *part).out)["rank-figure1"]["cells"]

    parts = [cells("--layers", layers, "--multipliers", blocks) for layers in (1, 3, 5) for blocks in (1, 8, 64)]
    assert parts == [35] * 9
    assert sum(parts) == cells()


REFUSED = {
    "rank-figure1 --layers 2": ("[1, 3]", "[2]", "--layers"),
    "rank-figure1 --heads 1,3,5": ("[1, 2, 8]", "[3, 5]", "--heads"),
    "rank-figure1 --ranks 2": ("[1, 4, 8]", "[2]", "--ranks"),
    "rank-figure1 --multipliers 64": ("[1, 4]", "[64]", "--multipliers"),
    "rank-figure1 --lengths 9": ("[8]", "[9]", "--lengths"),
    "rank-figure-d --dims 16": ("[8, 12]", "[16]", "--dims"),
    "rank-positions --positions none,learned": ("'additive'", "'learned'", "--positions"),
    "rank-figure1 --heads 1 --ranks 1": ("rank = width / heads",),
    "rank-figure1 --norms last": ('"last"', "first, after", "--norms"),
    "rank-figure1 --layers x": ("--layers", '"x"'),
    "rank-figure1 --data .": ("--data", "rank-figure1", "cifar"),
    "rank-random-features --layers 1": ("--layers", "rank-random-features"),
    "table5 --steps 9": ("--steps", "table5"),
    "cifar --data . --layers 1 --heads 1": ("--layers", "--heads, --lengths, --seeds"),
    "all --norms first": ("--norms", "all"),
    "marco --epochs 8": ("--epochs", "--heads, --lengths, --seeds, --precision"),
    "marco-epochs --epochs 3 --dry-run": ("[1, 4]", "[3]", "--epochs"),
}


@pytest.mark.parametrize("request_", REFUSED)
def test_a_part_that_is_not_there_is_refused(tmp_path, monkeypatch, no_training, request_):
    monkeypatch.chdir(tmp_path)
    result = headcount("reproduce", *request_.split(), "--scale", "smoke")
    a_sentence(result, 2, *REFUSED[request_])
    assert contents(tmp_path) == {}


@pytest.fixture
def pretended_study(monkeypatch) -> Pretended:
    pretended = Pretended()
    monkeypatch.setattr("headcount.papers.cli.reproduce.run_sweep", pretended.run_sweep)
    return pretended


def experiments(folder) -> dict[str, int]:
    """How many cells every experiment of a folder has."""
    with Store.open_for_reading(folder) as store:
        return {each.name: len(each.places) for each in store.experiments()}


@pytest.mark.parametrize("study", [name for name in STUDIES if name.startswith("rank-")])
def test_parts_add_up_to_one_experiment(tmp_path, pretended_study, study):
    command = ("reproduce", study, "--scale", "smoke", "--out", tmp_path)
    heads = STUDIES[study].efforts[Scale.SMOKE].heads
    seen = []
    for count in heads:
        assert headcount(*command, "--heads", count).code == 0
        seen.append(experiments(tmp_path))
    whole = len(STUDIES[study].sweep(Scale.SMOKE).cells)
    assert seen == [{f"{study}-smoke": whole // len(heads) * parts} for parts in range(1, len(heads) + 1)]
    assert headcount(*command).code == 0
    assert experiments(tmp_path) == seen[-1], "nothing is left to add"


def test_other_steps_or_norms_are_another_experiment(tmp_path, pretended_study):
    command = (*FIGURE_1, "--out", tmp_path, "--heads", 1, "--layers", 3, "--multipliers", 1)
    own = STUDIES["rank-figure1"].efforts[Scale.SMOKE]
    for change in ((), ("--steps", 7), ("--norms", "after"), ("--steps", own.steps), ("--norms", "first")):
        assert headcount(*command, *change).code == 0
    assert experiments(tmp_path) == {f"rank-figure1-smoke{number}": 1 for number in ("", "-2", "-3")}
    trains = [(cell.train.steps, cell.train.warmup, cell.model["norm_first"]) for cell in pretended_study.cells]
    whole = (own.steps, own.steps // 20, True)
    assert trains == [whole, (7, 0, True), (*whole[:2], False), whole, whole]
    titles = [section["title"] for section in strict_json(headcount("show", tmp_path, "--json").out)]
    assert [title.split(", ")[1:-1] for title in titles] == [[], ["7 steps"], ["norms after sums"]]
