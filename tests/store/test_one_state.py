"""A reader beside a writer sees the folder as it was after some commit, never parts of two states."""

import pytest

from headcount.store import Cell, Outcome, Store

from .records import a_cell, a_record, an_experiment

READS = ("experiments", "records", "progress", "outcomes", "backends")


def commit(store: Store, cells: list[Cell]) -> None:
    """Another experiment with a cell that failed; the cell that failed before is finished. `cells` gets the new one."""
    number = len(cells)
    finished = [a_record(cell=cell) for cell in cells[-1:]]
    cells.append(a_cell(task={"task": f"task {number}"}, parent="p", removed=(number,)))
    failed = a_record(Outcome.FAILED, cell=cells[-1], message="why", provenance={"backend": f"backend {number}"})
    store.begin(an_experiment(task=f"task {number}", places={cells[-1].key: (number,)}), f"run {number}")
    store.commit([*finished, failed])
    store.attach("mine", f"fact {number}", number)


@pytest.mark.parametrize("read", READS)
def test_an_answer_is_of_one_state_whatever_is_committed_between_its_queries(tmp_path, read):
    with Store.open_for_writing(tmp_path) as writer, Store.open_for_reading(tmp_path) as reader:
        cells: list[Cell] = []
        commit(writer, cells)
        states = [getattr(writer, read)()]

        def commit_before(statement: str) -> None:
            if statement.startswith("SELECT"):
                commit(writer, cells)
                states.append(getattr(writer, read)())

        reader._connection.set_trace_callback(commit_before)
        seen = getattr(reader, read)()
        reader._connection.set_trace_callback(None)
        assert len(states) > 1, "nothing was committed meanwhile"
        assert seen in states
        assert getattr(reader, read)() == states[-1]
