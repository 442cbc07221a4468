"""What an executor has trained is committed: several buckets at once, each once, also where a commit is interrupted."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from headcount.engine import plan_sweep, run_sweep
from headcount.engine.executors import Executor
from headcount.engine.records import failure
from headcount.engine.trainer import Trained
from headcount.errors import InputError
from headcount.store import Outcome, Store

from ..helpers.sweeps import CPU, swept

SWEEP = swept(length=[4], seed=range(20))
KEYS = {cell.key for cell in SWEEP.cells}


class Given(Executor):
    """Gives results that need no training, one cell at a time, in groups of these sizes; then perhaps an error."""

    machine = CPU

    def __init__(self, sizes: Sequence[int], error: Exception | None = None):
        self.sizes, self.error = sizes, error

    def trained(self, job):
        cells = iter([cell for bucket in job.buckets for cell in bucket.cells])
        for size in self.sizes:
            group = [next(cells) for _ in range(size)]
            records = [replace(failure(cell, ""), outcome=Outcome.DIVERGED) for cell in group]
            yield [Trained((record,), {}) for record in records]
        if self.error is not None:
            raise self.error


@pytest.fixture
def commits(monkeypatch) -> list[int]:
    """How many records each commit had, in order."""
    counts, commit = [], Store.commit

    def counting(store, records, weights=None):
        commit(store, records, weights)
        counts.append(len(list(records)))

    monkeypatch.setattr(Store, "commit", counting)
    return counts


def done_by(root, executor: Executor):
    with Store.open_for_writing(root) as store:
        plan = plan_sweep(SWEEP, store.settled_keys(), CPU)
        return run_sweep(SWEEP, store, plan=plan, executor=executor)


def keys_in(root) -> set[str]:
    with Store.open_for_reading(root) as store:
        return store.settled_keys()


def test_buckets_that_finished_together_are_committed_together(tmp_path, commits):
    summary = done_by(tmp_path, Given([1, 3, 36]))
    assert commits == [1, 3, 36]
    assert summary.outcomes == {Outcome.DIVERGED: 40}
    assert keys_in(tmp_path) == KEYS


def test_what_finished_before_an_error_is_kept(tmp_path, commits):
    with pytest.raises(InputError, match="mine"):
        done_by(tmp_path, Given([5, 2], InputError("mine")))
    assert commits == [5, 2]
    assert len(keys_in(tmp_path)) == 7


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_commit_that_is_interrupted_is_made_again(tmp_path, monkeypatch, after):
    commit, interrupts = Store.commit, [KeyboardInterrupt]

    def interrupted(store, records, weights=None):
        if after or not interrupts:
            commit(store, records, weights)
        if interrupts:
            raise interrupts.pop()

    monkeypatch.setattr(Store, "commit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        done_by(tmp_path, Given([4, 6, 30]))
    assert keys_in(tmp_path) == KEYS
