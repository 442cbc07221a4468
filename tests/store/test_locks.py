"""Locks on a shared file system: nothing that a process does beside its own commit takes them away."""

import contextlib
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from headcount.errors import StoreError
from headcount.store import FILE_NAME as FILE
from headcount.store import Store, connections
from headcount.store.cell import RESTORE
from headcount.store.database import holds_tables
from headcount.store.folders import folder_status

from .records import an_experiment, bucket, insert
from .test_filesystem import mounted

KEY = bucket(0)[0].cell.key
LOCKED = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)
try:
    connection.execute(sys.argv[2])
except sqlite3.OperationalError as error:
    print(error)
"""


def is_locked(root: Path, statement: str = "BEGIN IMMEDIATE") -> bool:
    """Whether another process is refused."""
    command = [sys.executable, "-S", "-c", LOCKED, str(root / FILE), statement]
    return "locked" in subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def shared(monkeypatch, tmp_path) -> Path:
    """A folder on a shared file system with the weights of seed 0."""
    mounted(monkeypatch, tmp_path, far="nfs4")
    with Store.open_for_writing(tmp_path / "far") as store:
        store.begin(an_experiment(0), "typed")
        store.commit(bucket(0), {KEY: {"a": np.zeros(3)}})
    return tmp_path / "far"


def read_all(root: Path) -> None:
    with Store.open_for_reading(root) as reader:
        assert len(reader.records()) == len(reader.experiments()) == len(reader.progress()) == 1


def test_a_process_that_reads_beside_its_own_commit_keeps_its_lock(shared, tmp_path):
    (tmp_path / "link").symlink_to(shared)
    beside = {
        "weights": lambda: store.weights(KEY),
        "a reader": lambda: read_all(shared),
        "a reader by another name": lambda: read_all(tmp_path / "link"),
        "a status": lambda: folder_status(shared),
        "a look": lambda: holds_tables(shared / FILE),
    }
    with Store.open_for_writing(shared) as store:
        store._connection.execute("BEGIN IMMEDIATE")
        store._connection.execute("INSERT INTO packs (name) VALUES ('x')")
        assert is_locked(shared)
        for name, read in beside.items():
            thread = threading.Thread(target=read)
            thread.start()
            thread.join()
            assert is_locked(shared), name
        store._connection.rollback()
        assert not is_locked(shared), "the test sees no locks"


def test_a_commit_that_has_reached_the_file_is_not_rolled_back(monkeypatch, shared):
    """Pages of a large commit are in the file before it ends, and those they replace are in the journal."""
    monkeypatch.setattr(connections, "WAIT_SECONDS", 0)
    with Store.open_for_writing(shared) as store:
        insert(store, bucket(*range(200, 260), padding=2000))
        assert (shared / f"{FILE}-journal").stat().st_size
        with pytest.raises(StoreError, match="locked") as refused:
            store.weights(KEY)
        assert RESTORE not in str(refused.value)
        assert is_locked(shared, "SELECT count(*) FROM cells")
        assert (shared / f"{FILE}-journal").exists()
        store._connection.commit()
    with contextlib.closing(sqlite3.connect(shared / FILE)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("SELECT count(*) FROM cells").fetchone() == (61,)


def test_a_reader_that_began_keeps_its_lock_beside_other_readers_of_its_process(shared):
    with Store.open_for_reading(shared) as reader:
        reader._connection.execute("BEGIN")
        reader.experiments()
        read_all(shared)
        assert is_locked(shared, "BEGIN EXCLUSIVE")
        reader._connection.rollback()
        assert not is_locked(shared, "BEGIN EXCLUSIVE")


def test_a_reader_without_locks_that_ends_beside_a_commit_takes_none(monkeypatch, tmp_path):
    """The file comes from a disk of one machine, and is therefore read without locks until it is written."""
    root = tmp_path / "far"
    with Store.open_for_writing(root) as store:
        store.commit(bucket(0))
    mounted(monkeypatch, tmp_path, far="nfs4")
    reader = Store.open_for_reading(root)
    assert len(reader.records()) == 1
    with Store.open_for_writing(root) as store:
        store._connection.execute("BEGIN IMMEDIATE")
        reader.close()
        assert is_locked(root)
        store._connection.rollback()
