"""Other programs and machines: files that are taken away from a run, a second machine, readers next to a writer."""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from headcount.errors import StoreError
from headcount.store import FILE_NAME as FILE
from headcount.store import Outcome, Store
from headcount.store.database import holds_tables
from headcount.store.folders import folder_status
from headcount.store.live import FORMAT, LIVE_FILE

from .records import a_cell, a_record, an_experiment, bucket
from .spoiling import seeds_in

LIVE = {
    "format": FORMAT, "pid": 7, "host": "another", "command": "", "started": 1.0, "beat": 2.0, "phase": "training",
    "why": "", "programs": [0, 0], "steps": [0, 0], "seconds_left": None, "early": None, "ended": "",
}  # fmt: skip
KEY = bucket(0)[0].cell.key


def test_a_run_on_another_machine_keeps_its_folder(tmp_path):
    """Not every file system passes locks on to other machines."""
    (tmp_path / LIVE_FILE).write_text(json.dumps(LIVE | {"beat": time.time()}))
    with pytest.raises(StoreError, match="another"):
        Store.open_for_writing(tmp_path)
    (tmp_path / LIVE_FILE).write_text(json.dumps(LIVE))
    Store.open_for_writing(tmp_path).close()  # silent for years


# Files that are taken away while a run writes.

TAKEN = {
    "the results": lambda root: (root / FILE).unlink(),
    "the lock": lambda root: (root / "lock").unlink(),
    "the weights": lambda root: shutil.rmtree(root / "weights"),
    "the folder": shutil.rmtree,
    "moved": lambda root: root.rename(root.with_name("moved")),
    "replaced": lambda root: os.replace(shutil.copy(root / FILE, root / "copy"), root / FILE),
    "overwritten": lambda root: (root / FILE).write_bytes(bytes(2**18)),
    "emptied": lambda root: os.truncate(root / FILE, 0),
}


def test_a_file_that_is_cut_within_a_commit_is_noticed_at_the_end(tmp_path):
    """The commit makes it as long again as it was, with zeros where other pages were; the writer remembers them."""
    with pytest.raises(StoreError, match=r"malformed|damaged"), Store.open_for_writing(tmp_path) as store:  # noqa: PT012
        store.begin(an_experiment(*range(200)))
        with store._writing():
            store._connection.execute("INSERT INTO texts (text) VALUES (hex(zeroblob(20000)))")
            store._connection.execute("DELETE FROM texts")
            os.truncate(tmp_path / FILE, 4096 * 3)


@pytest.mark.parametrize("then", ["commit", "begin", "put", "close"])
@pytest.mark.parametrize("kind", TAKEN)
def test_files_that_are_taken_away_are_noticed(tmp_path, kind, then):
    root = tmp_path / "results"
    with pytest.raises(StoreError) as refused, Store.open_for_writing(root) as store:  # noqa: PT012
        store.begin(an_experiment(0, 1))
        store.commit(bucket(0), {KEY: {"a": np.zeros(3)}})
        TAKEN[kind](root)
        {
            "commit": lambda: store.commit(bucket(1)),
            "begin": lambda: store.begin(an_experiment(0, 1, 2)),
            "put": lambda: store.put("mine", "a", 1),
            "close": lambda: None,
        }[then]()
        assert then == "close", "nothing was noticed"
    assert str(root) in str(refused.value)
    assert "are safe" not in str(refused.value)


def test_a_weights_folder_that_is_made_again_is_noticed(root):
    with pytest.raises(StoreError, match="weights"), Store.open_for_writing(root) as store:  # noqa: PT012
        store.commit(bucket(100), {bucket(100)[0].cell.key: {"a": np.ones(3)}})
        shutil.rmtree(root / "weights")
        (root / "weights").mkdir()
        store.commit(bucket(101))


def test_an_undisturbed_run_notices_nothing(tmp_path):
    with Store.open_for_writing(tmp_path) as store:
        for seed in range(30):
            store.commit(bucket(seed, padding=5000), {bucket(seed)[0].cell.key: {"a": np.zeros(3)}})
            assert len(seeds_in(tmp_path)) == seed + 1
    assert seeds_in(tmp_path) == set(range(30))


# Readers next to a writer.

LOCKED = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)
try:
    connection.execute("BEGIN IMMEDIATE")
except sqlite3.OperationalError as error:
    print(error)
"""


def is_locked(root: Path) -> bool:
    """Whether another process is kept from writing."""
    command = [sys.executable, "-S", "-c", LOCKED, str(root / FILE)]
    return "locked" in subprocess.run(command, capture_output=True, text=True, check=True).stdout


def read_all(root: Path) -> None:
    with Store.open_for_reading(root) as reader:
        assert len(reader.records()) == len(reader.experiments()) == len(reader.progress()) == 1


def test_a_process_that_reads_during_its_own_commit_keeps_its_lock(tmp_path):
    """On POSIX, closing any descriptor of a file would take away the locks of the whole process."""
    root = tmp_path / "results"
    (tmp_path / "link").symlink_to(root)
    reads = {
        "weights": lambda: store.weights(KEY),
        "a reader": lambda: read_all(root),
        "a reader by another name": lambda: read_all(tmp_path / "link"),
        "a status": lambda: folder_status(root),
        "a look": lambda: holds_tables(root / FILE),
    }
    with Store.open_for_writing(root) as store:
        store.begin(an_experiment(0), "typed")
        store.commit(bucket(0), {KEY: {"a": np.zeros(3)}})
        store._connection.execute("BEGIN IMMEDIATE")
        store._connection.execute("INSERT INTO packs (name) VALUES ('x')")
        assert is_locked(root)
        for name, read in reads.items():
            thread = threading.Thread(target=read)
            thread.start()
            thread.join()
            assert is_locked(root), name
        store._connection.rollback()
        assert not is_locked(root), "the test sees no locks"


@pytest.mark.parametrize("read", ["experiments", "records", "progress", "outcomes", "backends"])
def test_an_answer_is_of_one_state_whatever_is_committed_between_its_queries(tmp_path, read):
    """The writer commits as soon as it may, again and again, while the queries of one answer follow each other."""
    states, stop = [], threading.Event()
    writing, begun = threading.Lock(), threading.Event()

    def commit(number: int) -> None:
        cell = a_cell(task={"task": f"task {number}"}, parent="p", removed=(number,))
        record = a_record(Outcome.FINISHED, cell=cell, provenance={"backend": f"backend {number}"})
        store.begin(an_experiment(task=f"task {number}", places={cell.key: (number,)}), f"run {number}")
        store.commit([record])
        states.append(getattr(store, read)())

    def write() -> None:
        nonlocal store
        with Store.open_for_writing(tmp_path) as store:
            for number in range(100):
                with writing:
                    commit(number)
                begun.set()
                if stop.is_set():
                    break

    store = None
    thread = threading.Thread(target=write)
    thread.start()
    begun.wait()
    seen = []
    with Store.open_for_reading(tmp_path) as reader:
        for _ in range(5):
            seen.append(getattr(reader, read)())
    stop.set()
    thread.join()
    if read in ("records", "outcomes", "backends"):  # what a commit alone changes
        assert all(each in states for each in seen)
    for each in seen:
        assert len(each) >= 1


def test_a_reader_that_waits_for_the_writer_too_long_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("headcount.store.database.WAIT_SECONDS", 0)
    with Store.open_for_writing(tmp_path) as store:
        store.commit(bucket(0), {KEY: {"a": np.zeros(3)}})
        store._connection.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreError, match=r"locked.*run the command again"):
            store.weights(KEY)
        store._connection.rollback()
        assert store.weights(KEY)["a"].tolist() == [0, 0, 0]
