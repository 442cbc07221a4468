"""`headcount verify`, with training that gives what one says."""

import dataclasses
from collections.abc import Callable

import pytest

from headcount.backends import Kernels
from headcount.engine import sweep
from headcount.papers.base import Scale
from headcount.papers.registry import STUDIES
from headcount.store import Cell, Outcome, Record, Store
from headcount.tasks.find import find_task

from ..helpers import fabricated
from ..helpers.commands import a_sentence, contents, headcount, strict_json
from ..helpers.sweeps import TRAIN, class_token


@pytest.fixture
def retrained(monkeypatch):
    """Training that gives what one says: `retrained(record_of)` has the record a cell comes out as."""

    def use(record_of: Callable[[Cell], Record]) -> None:
        def pretend(sweep, store, **_):
            store.commit([record_of(cell) for cell in sweep.cells])

        monkeypatch.setattr("headcount.verify.run_sweep", pretend)

    return use


def stored(cell: Cell, nmse: float | None) -> Record:
    if nmse is None:
        return fabricated.record(cell, Outcome.DIVERGED)
    return dataclasses.replace(fabricated.record(cell, nmse=nmse), provenance={"device": "another [/b] machine"})


def write_study(root, name: str = "table5", count: int | None = None):
    """A folder of a study's first cells, all with the error that `same` gives again."""
    made = STUDIES[name].sweep(Scale.SMOKE)
    cells = made.cells[:count]
    fabricated.write(root, map(same, cells), {f"headcount reproduce {name}": made})
    return cells


def same(cell: Cell) -> Record:
    return fabricated.record(cell, nmse=0.1)


@pytest.mark.parametrize(
    ("then", "now", "agreement"),
    [
        (0.1, 0.1, "same"),
        (0.1, 0.49, "close"),
        (0.1, 0.51, "different"),
        (0.0, 0.0, "same"),
        (0.0, 1e-9, "different"),
        (1e-9, 0.0, "different"),
        (0.1, None, "different"),
        (None, 0.1, "different"),
        (None, None, "same"),
    ],
)
def test_a_stored_error_is_compared_with_the_one_that_comes_out_now(tmp_path, retrained, then, now, agreement):
    made = STUDIES["table5"].sweep(Scale.SMOKE)
    fabricated.write(tmp_path, [stored(made.cells[0], then)], {"headcount": made})
    retrained(lambda cell: stored(cell, now))
    before = contents(tmp_path)
    result = headcount("verify", tmp_path, "--json")
    (row,) = strict_json(result.out)
    assert (row["agreement"], row["stored_error"], row["error"]) == (agreement, then, now)
    assert (row["experiment"], row["heads"], row["length"]) == ("table5-smoke", 1, 8)
    assert result.code == (1 if agreement == "different" else 0)
    shown = headcount("verify", tmp_path)
    assert shown.code == result.code
    assert f"1 {agreement}" in shown.out
    assert contents(tmp_path) == before


@pytest.mark.parametrize("here", [True, False])
def test_the_back_end_of_then_is_offered_only_where_it_is(tmp_path, retrained, monkeypatch, here):
    made = STUDIES["table5"].sweep(Scale.SMOKE)
    then = dataclasses.replace(same(made.cells[0]), provenance={"backend": "fused 0.1.0, AVX2"})
    fabricated.write(tmp_path, [then], {"headcount": made})
    retrained(same)
    available = Kernels(problem="" if here else "they are not installed")
    monkeypatch.setattr("headcount.cli.verify.kernels_here", lambda: available)
    shown = headcount("verify", tmp_path).out
    assert ("--backend fused" in shown) == here
    assert ("they are not installed" in shown) != here


def test_a_cell_that_fails_to_train_again_is_told_why(tmp_path, retrained):
    write_study(tmp_path, count=2)
    retrained(lambda cell: fabricated.record(cell, Outcome.FAILED, "no memory"))
    result = headcount("verify", tmp_path)
    assert result.code == 1
    assert "no memory" in result.out


def test_a_seed_draws_the_same_cells_again(tmp_path, retrained):
    write_study(tmp_path)
    retrained(same)

    def drawn(*options: object) -> list[str]:
        return [row["key"] for row in strict_json(headcount("verify", tmp_path, *options, "--json").out)]

    assert drawn("--cells", 3) == drawn("--cells", 3, "--seed", 0) != drawn("--cells", 3, "--seed", 1)
    assert len(drawn("--cells", 99)) == len(set(drawn("--cells", 99))) == 10


@pytest.mark.parametrize("name", ["rank-figure-d", "rank-in-context"])
def test_encoders_of_several_tasks_are_verified(tmp_path, retrained, name):
    cells = write_study(tmp_path, name)
    retrained(same)
    rows = strict_json(headcount("verify", tmp_path, "--cells", 99, "--json").out)
    assert sorted(row["key"] for row in rows) == sorted(cell.key for cell in cells)
    assert {row["agreement"] for row in rows} == {"same"}


def test_a_users_own_task_is_verified_where_its_file_is(tmp_path, files, retrained):
    reference = f"{files}/mine.py:task"
    made = sweep(find_task(reference), axes={"heads": [1], "seed": [0]}, model=class_token, train=TRAIN)
    root = fabricated.write(tmp_path / "results", map(same, made.cells), {"headcount measure": made})
    retrained(same)
    assert headcount("verify", root, "--task", reference).code == 0
    a_sentence(headcount("verify", root, "--task", f"{files}/mine.py:other"), 2, "mine.py:other", "code")
    a_sentence(headcount("verify", root), 2, '"mine"', "--task")
    write_study(root)
    a_sentence(headcount("verify", root, "--cells", 99), 2, '"mine"', "--task")


def test_cells_are_trained_again_in_a_folder_that_is_thrown_away(tmp_path, retrained, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    write_study(tmp_path / "results")
    retrained(same)
    with Store.open_for_writing(tmp_path / "results"):
        assert headcount("verify", tmp_path / "results").code == 0
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_stopped_verification_says_so(tmp_path, monkeypatch):
    write_study(tmp_path)

    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("headcount.verify.run_sweep", stopped)
    result = headcount("verify", tmp_path)
    assert (result.code, result.out) == (130, "")
    assert "Nothing was verified" in result.err


BAD = {
    "--cells 0": ("--cells", "0"),
    "--cells -3": ("--cells", "-3"),
    "": ('"own"', "--task"),
    "--task missing.npz": ("missing.npz",),
    "--task missing.py:task": ("missing.py",),
    "--task max-plus-mins": ('"max-plus-min"',),
    "--task max-plus-min": ("max-plus-min",),
    "--task {files}/good.npz": ("good.npz",),
    "--task {files}/good.npz --targets missing.npy": ("missing.npy",),
}


@pytest.mark.parametrize("options", BAD)
def test_a_request_that_cannot_be_right_is_told_and_trains_nothing(own, files, no_training, options):
    before = contents(own)
    result = headcount("verify", own, *options.format(files=files).split())
    a_sentence(result, 2, *BAD[options])
    assert contents(own) == before


@pytest.mark.parametrize(("flag", "value"), [("--cells", "many"), ("--seed", "-1")])
def test_numbers_that_are_none_are_named(own, flag, value):
    result = headcount("verify", own, flag, value)
    assert (result.code, result.out) == (2, "")
    assert flag in result.err
