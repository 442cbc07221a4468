"""`headcount verify` as a person meets it, with training that gives what one says."""

import dataclasses

import jax.numpy as jnp
import pytest

from headcount import verify
from headcount.store import Cell, Outcome, Record, Store
from headcount.tasks import FunctionTask

from . import made_up
from .commands import a_sentence, contents, headcount, strict_json


@pytest.fixture
def retrained(monkeypatch):
    """Training that gives what one says: `retrained(cell)` is the record a cell comes out as."""

    def use(outcome_of) -> None:
        def pretend(sweep, store, **_):
            store.commit([outcome_of(cell) for cell in sweep.cells])

        monkeypatch.setattr(verify, "run_sweep", pretend)

    return use


def stored(cell: Cell, nmse: float) -> Record:
    return dataclasses.replace(made_up.settled(cell, nmse=nmse), provenance={"device": "another [/b] machine"})


@pytest.mark.parametrize(
    ("then", "now", "agreement"),
    [
        (0.1, 0.1, "same"),
        (0.1, 0.49, "close"),
        (0.1, 0.51, "different"),
        (0.0, 0.0, "same"),
        (0.0, 1e-9, "different"),
        (1e-9, 0.0, "different"),
        (1e-12, 1e3, "different"),
        (0.1, None, "different"),
        (None, 0.1, "different"),
        (None, None, "same"),
    ],
)
def test_a_stored_error_is_compared_with_the_one_that_comes_out_now(tmp_path, retrained, then, now, agreement):
    def outcome(cell: Cell, nmse: float | None) -> Record:
        return stored(cell, nmse) if nmse is not None else made_up.settled(cell, Outcome.DIVERGED)

    cells = made_up.study_cells("table5")[:1]
    made_up.write(tmp_path, [outcome(cell, then) for cell in cells])
    retrained(lambda cell: outcome(cell, now))
    before = contents(tmp_path)
    result = headcount("verify", tmp_path, "--json")
    (row,) = strict_json(result.out)
    assert (row["agreement"], row["stored_error"], row["error"]) == (agreement, then, now)
    assert result.code == (1 if agreement == "different" else 0)
    shown = headcount("verify", tmp_path)
    assert shown.code == result.code
    assert f"1 {agreement}" in shown.out
    assert contents(tmp_path) == before


def test_a_cell_that_fails_to_train_again_is_told_why(tmp_path, retrained):
    made_up.write(tmp_path, made_up.finished(made_up.study_cells("table5")[:2]))
    retrained(lambda cell: made_up.settled(cell, Outcome.FAILED, message="no memory"))
    result = headcount("verify", tmp_path)
    assert result.code == 1
    assert "no memory" in result.out + result.err


def test_a_seed_draws_the_same_cells_again(tmp_path, retrained):
    made_up.write(tmp_path, made_up.finished(made_up.study_cells("table5")))
    retrained(lambda cell: made_up.settled(cell, nmse=made_up.sharp(cell)))
    drawn = {
        (seed, count): [row["key"] for row in strict_json(result.out)]
        for seed, count in ((0, 3), (1, 3), (0, 99))
        if (result := headcount("verify", tmp_path, "--cells", count, "--seed", seed, "--json")).code == 0
    }
    assert drawn[0, 3] == [row["key"] for row in strict_json(headcount("verify", tmp_path, "--cells", 3, "--json").out)]
    assert drawn[0, 3] != drawn[1, 3]
    assert len(drawn[0, 99]) == len(set(drawn[0, 99])) == 10


@pytest.mark.parametrize("name", ["rank-figure-d", "rank-in-context"])
def test_encoders_of_several_tasks_are_verified(tmp_path, retrained, name):
    cells = made_up.study_cells(name)
    made_up.write(tmp_path, made_up.finished(cells))
    retrained(lambda cell: made_up.settled(cell, nmse=made_up.sharp(cell)))
    rows = strict_json(headcount("verify", tmp_path, "--cells", 99, "--json").out)
    assert sorted(row["key"] for row in rows) == sorted(cell.key for cell in cells)
    assert {row["agreement"] for row in rows} == {"same"}
    assert "same" in headcount("verify", tmp_path).out


def test_a_study_beside_an_own_task_says_which_task_it_needs(tmp_path, retrained):
    records = made_up.finished(made_up.study_cells("table5") + made_up.own_cells())
    made_up.write(tmp_path, records)
    retrained(lambda cell: made_up.settled(cell, nmse=made_up.sharp(cell)))
    a_sentence(headcount("verify", tmp_path, "--cells", 99), 2, '"own"', "--task")


def test_an_own_task_is_verified_where_its_file_is(tmp_path, retrained):
    (tmp_path / "mine.py").write_text(
        "import jax.numpy as jnp\nimport headcount as hc\n"
        "task = hc.FunctionTask(function=lambda tokens: jnp.max(tokens), length=8, dim=1, name='mine')\n"
        "other = hc.FunctionTask(function=lambda tokens: jnp.min(tokens), length=8, dim=1, name='mine')\n"
    )
    task = FunctionTask(function=lambda tokens: jnp.max(tokens), length=8, dim=1, name="mine")
    made_up.write(tmp_path / "results", made_up.finished(made_up.own_cells(task=task.spec())))
    retrained(lambda cell: made_up.settled(cell, nmse=made_up.sharp(cell)))
    assert headcount("verify", tmp_path / "results", "--task", f"{tmp_path}/mine.py:task").code == 0
    wrong = headcount("verify", tmp_path / "results", "--task", f"{tmp_path}/mine.py:other")
    a_sentence(wrong, 2, "differs in fingerprint")


def test_every_cell_is_verified_in_a_folder_that_is_thrown_away(tmp_path, retrained, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    made_up.write(tmp_path / "results", made_up.finished(made_up.study_cells("table5")))
    retrained(lambda cell: made_up.settled(cell, nmse=made_up.sharp(cell)))
    with Store.open_for_writing(tmp_path / "results"):
        assert headcount("verify", tmp_path / "results").code == 0
    assert list((tmp_path / "temporary").iterdir()) == []
