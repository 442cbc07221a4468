"""Faults by causing them: kills, full disks, damaged, foreign and newer files, second writers, unwritable places."""

import contextlib
import fcntl
import os
import resource
import sqlite3
import threading
from pathlib import Path

import numpy as np
import pytest

from headcount.cli.running import settled
from headcount.errors import StoreError
from headcount.store import FILE_NAME as FILE
from headcount.store import Store
from headcount.store.database import holds_tables

from .records import an_experiment, bucket
from .spoiling import OPENINGS, another_process, files_in, in_every_cell, seeds_in


def test_a_commit_that_returned_survives_a_kill_and_frees_the_folder(root):
    script = (
        "store = Store.open_for_writing(root); store.begin(an_experiment(100), 'typed'); store.commit(bucket(100, 101))"
    )
    with another_process(script, root):
        with pytest.raises(StoreError, match="in use"):
            Store.open_for_writing(root)
        assert seeds_in(root) == {*range(20), 100, 101}
    with Store.open_for_writing(root) as store:
        assert len(store.settled_keys()) == 22
        assert store.experiments() == [an_experiment(100)]
        assert [(progress.done, progress.runs[0][0]) for progress in store.progress()] == [(1, "typed")]
        store.commit(bucket(102))
    assert seeds_in(root) == {*range(20), 100, 101, 102}


@pytest.mark.parametrize("opening", [Store.open_for_reading, Store.open_for_writing], ids=["read", "write"])
def test_a_kill_in_mid_transaction_loses_that_transaction_alone(root, opening):
    script = (
        "store = Store.open_for_writing(root); store.commit(bucket(100, 101))\n"
        "insert(store, bucket(*range(200, 260), padding=2000))"
    )
    with another_process(script, root):
        pass
    assert (root / f"{FILE}-journal").stat().st_size, "the transaction never reached the disk, so nothing was tested"
    with opening(root) as store:
        assert {record.cell.seed for record in store.records()} == {*range(20), 100, 101}
    assert not (root / f"{FILE}-journal").exists()
    assert seeds_in(root) == {*range(20), 100, 101}


def test_a_second_writer_in_the_same_process_is_refused(root):
    with Store.open_for_writing(root), pytest.raises(StoreError, match="in use"):
        Store.open_for_writing(root)
    Store.open_for_writing(root).close()


def test_asking_whether_a_folder_is_held_keeps_no_run_from_it(root):
    with open(root / "lock", "ab") as asking:
        fcntl.flock(asking, fcntl.LOCK_SH)
        answered = threading.Timer(0.02, fcntl.flock, (asking, fcntl.LOCK_UN))
        answered.start()
        Store.open_for_writing(root).close()
        answered.join()


@pytest.mark.parametrize("kind", ["rows", "weights"])
def test_a_full_disk_is_told_and_costs_nothing_that_was_committed(root, kind):
    # A file size limit is how a process without rights meets a full disk.
    script = (
        "import numpy as np\nstore = Store.open_for_writing(root); store.commit(bucket(100))\n"
        "sys.dont_write_bytecode = True\n"  # Python would keep a module's first half, and others would import it
        "resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, resource.RLIM_INFINITY))\n"
        "rows, weights = (bucket(101, 102, padding=100_000), None) if sys.argv[2] == 'rows' else "
        "(bucket(101), {bucket(101)[0].cell.key: {'a': np.zeros(20_000)}})\n"
        "try:\n    store.commit(rows, weights)\nexcept StoreError as error:\n    print(error)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))\n"
        "store.commit(bucket(103))"
    )
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    with another_process(script, root, kind) as said:
        assert len(said) == 1
        assert "cannot be written" in said[0]
        assert "earlier results are safe" in said[0]
    assert seeds_in(root) == {*range(20), 100, 103}
    assert not list(root.glob("weights/*"))


def test_a_file_that_may_not_grow_is_told(root):
    with Store.open_for_writing(root) as store:
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
        store._connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreError, match=r"full.*earlier results are safe"):
            store.commit(bucket(*range(100, 140), padding=2000))
    assert seeds_in(root) == set(range(20))


@OPENINGS
@pytest.mark.parametrize("version", [3, 4, 6])
def test_a_store_of_another_format_is_refused_untouched(root, opening, version):
    with contextlib.closing(sqlite3.connect(root / FILE)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    before = files_in(root)
    with pytest.raises(StoreError, match=rf"format {version}, this one reads 5"):
        opening(root)
    assert files_in(root) == before


@OPENINGS
def test_a_folder_from_before_experiments_were_stored_is_refused_untouched(tmp_path, opening):
    """The tables of format 1, as they were."""
    with contextlib.closing(sqlite3.connect(tmp_path / FILE)) as connection:
        connection.executescript(
            "CREATE TABLE cells (key TEXT PRIMARY KEY, spec TEXT NOT NULL, outcome TEXT NOT NULL,"
            " metrics TEXT NOT NULL, curve TEXT NOT NULL, provenance TEXT NOT NULL, message TEXT NOT NULL);"
            "CREATE TABLE sweeps (id INTEGER PRIMARY KEY, command TEXT NOT NULL, keys TEXT NOT NULL);"
            "INSERT INTO cells VALUES ('k', '{}', 'finished', '{}', '[]', '{}', ''); PRAGMA user_version = 1;"
        )
    before = files_in(tmp_path)
    with pytest.raises(StoreError, match=rf"{FILE}.*format 1, this one reads 5"):
        opening(str(tmp_path))
    assert files_in(tmp_path) == before


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def cut_to_the_header(path: Path) -> None:
    os.truncate(path, 60)


def overwritten(path: Path) -> None:
    path.write_bytes(np.random.default_rng(0).bytes(path.stat().st_size))


def torn(path: Path) -> None:
    """The first page stays, garbage follows."""
    path.write_bytes(path.read_bytes()[:4096] + np.random.default_rng(0).bytes(path.stat().st_size - 4096))


def another_program(path: Path) -> None:
    path.unlink()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE letters (text); INSERT INTO letters VALUES ('mine');")


@OPENINGS
@pytest.mark.parametrize("damage", [truncated, cut_to_the_header, overwritten, torn, another_program])
def test_a_damaged_or_foreign_file_is_refused_untouched(root, opening, damage):
    damage(root / FILE)
    before = files_in(root)
    with pytest.raises(StoreError, match=rf"{FILE} is damaged"):
        opening(root)
    assert files_in(root) == before


@pytest.mark.parametrize("column", ["task", "model", "train", "origin"])
@pytest.mark.parametrize("value", ["'{broken'", "'[]'", "999"])
def test_a_shared_text_that_makes_no_sense_is_told(root, column, value):
    with contextlib.closing(sqlite3.connect(root / FILE)) as connection, connection:
        (used,) = connection.execute(f"SELECT {column} FROM cells").fetchone()
        if value == "999":
            connection.execute("DELETE FROM texts WHERE id = ?", (used,))
        else:
            connection.execute(f"UPDATE texts SET text = {value} WHERE id = ?", (used,))
    with Store.open_for_reading(root) as store, pytest.raises(StoreError, match=FILE):
        store.records()


@pytest.mark.parametrize("column", ["length", "seed", "removed", "outcome", "metrics", "provenance", "curve"])
@pytest.mark.parametrize("value", ["'{broken'", "x'00ff'", "'[1]'"])
def test_a_row_that_makes_no_sense_is_told(root, column, value):
    if (column, value) == ("removed", "'[1]'"):
        return
    in_every_cell(root, column, value)
    with Store.open_for_reading(root) as store, pytest.raises(StoreError, match=FILE):
        assert [record.curve for record in store.records()]


def test_a_place_that_cannot_be_a_folder_is_told(tmp_path):
    (tmp_path / "file.txt").write_text("mine")
    for place in (tmp_path / "file.txt" / "below", tmp_path / "file.txt"):
        with pytest.raises(StoreError, match=r"file\.txt"):
            Store.open_for_writing(place)
    assert (tmp_path / "file.txt").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write where permissions forbid it")
def test_a_read_only_folder_can_be_read_and_not_written(root):
    root.chmod(0o500)
    (root / FILE).chmod(0o400)
    try:
        assert seeds_in(root) == set(range(20))
        with pytest.raises(StoreError, match="cannot be written"):
            Store.open_for_writing(root)
    finally:
        root.chmod(0o700)


@pytest.mark.parametrize("there", [False, True], ids=["missing", "empty"])
def test_a_folder_without_results_says_what_makes_them(tmp_path, there):
    folder = tmp_path / "none"
    if there:
        folder.mkdir()
    with pytest.raises(StoreError, match=rf"{folder}.+{FILE}"):
        Store.open_for_reading(folder)
    assert folder.exists() == there


def test_a_schema_that_is_no_text_any_more_is_told(root):
    """SQLite quotes it in its message, which Python then cannot decode."""
    path = root / FILE
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE cells", b"CREATE TABL\xcc cells"))
    with pytest.raises(StoreError, match=f"{FILE} is damaged"):
        Store.open_for_reading(root)


def test_a_run_killed_before_its_first_table_holds_nothing(root, tmp_path):
    (tmp_path / FILE).touch()
    assert not holds_tables(tmp_path / FILE)
    assert settled(tmp_path) == set()
    with pytest.raises(StoreError, match="holds no results"):
        Store.open_for_reading(tmp_path)
    assert holds_tables(root / FILE)
    Store.open_for_writing(tmp_path).close()
    assert holds_tables(tmp_path / FILE)
