"""Where a folder lies and what becomes of its files: shared file systems, files that are taken away, readers beside."""

import contextlib
import json
import os
import shutil
import sqlite3
import time
from pathlib import Path

import numpy as np
import pytest

from headcount.errors import StoreError
from headcount.store import FILE_NAME as FILE
from headcount.store import Store, filesystem
from headcount.store.filesystem import SHARED, shared_filesystem
from headcount.store.live import FORMAT, LIVE_FILE

from .records import an_experiment, bucket
from .test_faults import another_process, seeds_in

LIVE = {
    "format": FORMAT, "pid": 7, "host": "another", "command": "", "started": 1.0, "beat": 2.0, "phase": "training",
    "why": "", "programs": [0, 0], "steps": [0, 0], "seconds_left": None, "early": None, "curves": [], "ended": "",
}  # fmt: skip


def mounted(monkeypatch, tmp_path: Path, **kinds: str) -> None:
    """Pretend that the folders of these names below `tmp_path` are mounts of these kinds; all else is ext4."""
    points = {"/": "ext4"} | {str(tmp_path / name): kind for name, kind in kinds.items()}
    lines = [
        f"{number} 1 0:{number} / {point.replace(' ', chr(92) + '040')} rw,relatime shared:1 - {kind} source rw"
        for number, (point, kind) in enumerate(points.items(), start=20)
    ]
    (tmp_path / "mountinfo").write_text("\n".join([*lines, "a line of another kernel"]))
    monkeypatch.setattr(filesystem, "MOUNTS", tmp_path / "mountinfo")


@pytest.mark.parametrize(
    "kind", [*sorted(SHARED), "fuse", "fuse.sshfs", "fuse.s3fs", "ext4", "xfs", "overlay", "tmpfs"]
)
def test_the_innermost_mount_says_whether_machines_share_a_folder(monkeypatch, tmp_path, kind):
    mounted(monkeypatch, tmp_path, **{"far": kind, "far/near": "ext4", "far away": "ext4"})
    shared = kind in SHARED or kind.startswith("fuse")
    assert shared_filesystem(tmp_path / "far" / "results" / "not there yet") == (kind if shared else "")
    for near in ("far/near/results", "far away/results", "farther", ""):
        assert shared_filesystem(tmp_path / near) == ""


@pytest.mark.parametrize("kind", ["fuseblk", "fuse.ntfs-3g", "fuse.gocryptfs"])
def test_a_disk_in_user_space_is_not_shared(monkeypatch, tmp_path, kind):
    mounted(monkeypatch, tmp_path, far=kind)
    assert shared_filesystem(tmp_path / "far") == ""
    monkeypatch.setattr(filesystem, "MOUNTS", tmp_path / "nowhere")  # a system that does not say
    assert shared_filesystem(tmp_path / "far") == ""


def journal(store: Store) -> str:
    return store._connection.execute("PRAGMA journal_mode").fetchone()[0]


def test_on_a_shared_file_system_there_is_no_write_ahead_log(monkeypatch, tmp_path):
    mounted(monkeypatch, tmp_path, far="nfs4")
    root = tmp_path / "far"
    with Store.open_for_writing(root) as store:
        assert journal(store) == "delete"
        store.begin(an_experiment(0, 1), "typed")
        store.commit(bucket(0), {bucket(0)[0].cell.key: {"a": np.zeros(3)}})
        assert seeds_in(root) == {0}  # a reader beside the writer
        store.commit(bucket(1))
        assert seeds_in(root) == {0, 1}
        with pytest.raises(StoreError, match="in use"):
            Store.open_for_writing(root)
    assert not list(root.glob(f"{FILE}-*"))
    # Copied to a disk of this machine and back, with a log that a killed run left.
    mounted(monkeypatch, tmp_path)
    with another_process("store = Store.open_for_writing(root); store.commit(bucket(2))", root):
        pass
    assert (root / f"{FILE}-wal").exists()
    mounted(monkeypatch, tmp_path, far="lustre")
    with Store.open_for_writing(root) as store:
        assert journal(store) == "delete"
    assert not (root / f"{FILE}-wal").exists()
    assert seeds_in(root) == {0, 1, 2}


@pytest.mark.parametrize("reads", [True, False])
def test_a_run_killed_in_mid_commit_on_a_shared_file_system_loses_that_commit_alone(monkeypatch, tmp_path, reads):
    mounted(monkeypatch, tmp_path, far="nfs")
    root = tmp_path / "far"
    script = (
        "from headcount.store import filesystem\nfilesystem.MOUNTS = pathlib.Path(sys.argv[2])\n"
        "store = Store.open_for_writing(root); store.commit(bucket(0, 1, padding=9000))\n"
        "insert(store, bucket(*range(200, 260), padding=2000))"
    )
    with another_process(script, root, tmp_path / "mountinfo"):
        pass
    assert (root / f"{FILE}-journal").exists(), "the unfinished transaction never reached the disk"
    if not reads:
        Store.open_for_writing(root).close()
    assert seeds_in(root) == {0, 1}
    assert not (root / f"{FILE}-journal").exists()


def test_a_run_on_another_machine_keeps_its_folder(monkeypatch, tmp_path):
    mounted(monkeypatch, tmp_path, far="fuse.sshfs")
    for name in ("far", "near"):
        (tmp_path / name).mkdir()
        (tmp_path / name / LIVE_FILE).write_text(json.dumps(LIVE | {"beat": time.time()}))
    with pytest.raises(StoreError, match="another"):
        Store.open_for_writing(tmp_path / "far")
    Store.open_for_writing(tmp_path / "near").close()  # there the lock says all
    (tmp_path / "far" / LIVE_FILE).write_text(json.dumps(LIVE))
    Store.open_for_writing(tmp_path / "far").close()  # silent for years


# Files that are taken away while a run writes.


def overwrite(file, content):
    """As `cp` does: in place, at some later time."""
    before = file.stat().st_mtime_ns
    file.write_bytes(content)
    os.utime(file, ns=(before + 10**6, before + 10**6))


def merge_log(root):
    """As another program may: the results are then in the file alone."""
    with contextlib.closing(sqlite3.connect(root / FILE)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def overwrite_merged(root):
    merge_log(root)
    overwrite(root / FILE, bytes(2**17))


TAKEN = {
    "the results": lambda root: (root / FILE).unlink(),
    "the log": lambda root: (root / f"{FILE}-wal").unlink(),
    "the lock": lambda root: (root / "lock").unlink(),
    "the weights": lambda root: shutil.rmtree(root / "weights"),
    "the folder": shutil.rmtree,
    "moved": lambda root: root.rename(root.with_name("moved")),
    "replaced": lambda root: os.replace(shutil.copy(root / FILE, root / "copy"), root / FILE),
    "overwritten": overwrite_merged,
    "an overwritten log": lambda root: overwrite(root / f"{FILE}-wal", bytes(2**20)),
    "emptied": lambda root: os.truncate(root / FILE, 0),
    "an emptied log": lambda root: os.truncate(root / f"{FILE}-wal", 0),
}


@pytest.mark.parametrize("then", ["commit", "begin", "attach", "close"])
@pytest.mark.parametrize("kind", TAKEN)
def test_files_that_are_taken_away_are_noticed(tmp_path, kind, then):
    root, key = tmp_path / "results", bucket(0)[0].cell.key
    with pytest.raises(StoreError) as refused, Store.open_for_writing(root) as store:  # noqa: PT012
        store.begin(an_experiment(0, 1))
        store.commit(bucket(0), {key: {"a": np.zeros(3)}})
        TAKEN[kind](root)
        {
            "commit": lambda: store.commit(bucket(1)),
            "begin": lambda: store.begin(an_experiment(0, 1, 2)),
            "attach": lambda: store.attach("mine", "a", 1),
            "close": lambda: None,
        }[then]()
        assert then == "close", "nothing was noticed"
    assert str(root) in str(refused.value)
    assert "safe" not in str(refused.value)


def test_what_is_in_the_log_survives_an_overwritten_file(tmp_path):
    with Store.open_for_writing(tmp_path) as store:
        store.commit(bucket(0))
        overwrite(tmp_path / FILE, bytes(2**17))
        store.commit(bucket(1))
    assert seeds_in(tmp_path) == {0, 1}


def test_an_undisturbed_run_notices_nothing(tmp_path):
    with Store.open_for_writing(tmp_path) as store:
        store._connection.execute("PRAGMA wal_autocheckpoint = 2")
        for seed in range(30):
            store.commit(bucket(seed, padding=5000), {bucket(seed)[0].cell.key: {"a": np.zeros(3)}})
    assert seeds_in(tmp_path) == set(range(30))


# Readers beside a writer.


def test_a_writer_never_waits_for_a_reader_and_its_log_does_not_grow_without_end(tmp_path):
    with Store.open_for_writing(tmp_path) as store:
        store._connection.execute("PRAGMA busy_timeout = 0")  # whoever had to wait would fail
        store._connection.execute("PRAGMA wal_autocheckpoint = 20")
        store.commit(bucket(0))
        log = tmp_path / f"{FILE}-wal"
        with Store.open_for_reading(tmp_path) as reader:
            reader._connection.execute("BEGIN")
            assert len(reader.records()) == 1
            for seed in range(1, 101):
                store.commit(bucket(seed))
            assert len(reader.records()) == 1  # what it began to read
            reader._connection.execute("COMMIT")
        store.commit(bucket(101))  # after which all of the log can be merged
        grown = log.stat().st_size
        for seed in range(102, 201):
            store.commit(bucket(seed))
        assert log.stat().st_size <= grown
    assert seeds_in(tmp_path) == set(range(201))
    assert not log.exists()


def test_a_file_that_is_written_while_it_is_read_as_one_that_is_not(tmp_path):
    with Store.open_for_writing(tmp_path) as store:
        store.commit(bucket(0))
    # Without a log it is read without locks.
    with pytest.raises(StoreError, match="again"), Store.open_for_reading(tmp_path) as reader:  # noqa: PT012
        reader.records()
        with Store.open_for_writing(tmp_path) as store:
            store.commit(bucket(1))
    with sqlite3.connect(tmp_path / FILE) as connection:
        assert connection.execute("SELECT count(*) FROM cells").fetchone() == (2,)
