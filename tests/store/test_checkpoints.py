"""The write-ahead log while a run writes: merged and emptied by another program, or cut."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from headcount.errors import StoreError
from headcount.store import FILE_NAME as FILE
from headcount.store import Store

from .records import an_experiment, bucket
from .spoiling import seeds_in

MERGE = (
    "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); print(c.execute(sys.argv[2]).fetchone()[0]); "
    "print(c.execute('SELECT count(*) FROM cells').fetchone()[0])"
)


def merge(root: Path, mode: str) -> int:
    """Merge the log as another program does; how many cells that program sees."""
    command = [sys.executable, "-S", "-c", MERGE, str(root / FILE), f"PRAGMA wal_checkpoint({mode})"]
    busy, cells = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert busy == "0"
    return int(cells)


@pytest.mark.parametrize("mode", ["TRUNCATE", "RESTART"])
def test_another_program_may_merge_the_log(tmp_path, mode):
    with Store.open_for_writing(tmp_path) as store:
        store.commit(bucket(*range(20), padding=500))
        assert merge(tmp_path, mode) == 20
        store.begin(an_experiment(0))
        store.commit(bucket(100), {bucket(100)[0].cell.key: {"a": np.zeros(3)}})
        assert merge(tmp_path, mode) == 21
        assert len(store.records()) == 21
    assert seeds_in(tmp_path) == {*range(20), 100}


@pytest.mark.parametrize("part", [0.0, 0.5, 0.9])
def test_a_log_that_was_cut_is_noticed(tmp_path, part):
    log = tmp_path / f"{FILE}-wal"
    with pytest.raises(StoreError, match=log.name) as refused, Store.open_for_writing(tmp_path) as store:  # noqa: PT012
        store.commit(bucket(*range(20), padding=500))
        os.truncate(log, int(log.stat().st_size * part))
        store.commit(bucket(100))
    assert "safe" not in str(refused.value)


def test_a_log_that_was_cut_after_it_was_merged_has_lost_nothing(tmp_path):
    with Store.open_for_writing(tmp_path) as store:
        store.commit(bucket(*range(20), padding=500))
        assert merge(tmp_path, "PASSIVE") == 20
        os.truncate(tmp_path / f"{FILE}-wal", 0)
        store.commit(bucket(100))
    assert seeds_in(tmp_path) == {*range(20), 100}
