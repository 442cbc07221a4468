"""Weights in packs, one per commit, and folders from before there were any."""

import contextlib
import os
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from headcount.errors import StoreError
from headcount.store import FILE_NAME as FILE
from headcount.store import Outcome, Store, packs

from .records import a_cell, a_record, an_experiment, bucket, to_format_3
from .spoiling import OPENINGS, another_process, files_in, in_every_cell, seeds_in


def packed(root: Path, *seeds: int) -> list[str]:
    """Commit cells with weights; their keys."""
    keys = [a_cell(seed=seed).key for seed in seeds]
    with Store.open_for_writing(root) as store:
        store.commit(bucket(*seeds), {key: {"a": np.full(3, seed)} for key, seed in zip(keys, seeds, strict=True)})
    return keys


def test_a_commit_is_one_file_of_weights(root):
    keys = packed(root, 100, 101, 102)
    assert len(list((root / "weights").iterdir())) == 1
    with Store.open_for_reading(root) as store:
        assert [store.weights(key)["a"].tolist() for key in keys] == [[100] * 3, [101] * 3, [102] * 3]
        assert len({store.weights_path(key) for key in keys}) == 1


def test_large_weights_are_several_packs(root, monkeypatch):
    monkeypatch.setattr(packs, "MAX_BYTES", 60)
    keys = packed(root, 100, 101, 102)
    assert len(list((root / "weights").iterdir())) == 2
    with Store.open_for_reading(root) as store:
        assert [store.weights(key)["a"].tolist() for key in keys] == [[100] * 3, [101] * 3, [102] * 3]


def test_a_pack_that_no_row_names_is_removed_by_the_next_writer_alone(root):
    (key,) = packed(root, 100)
    kept = {*os.listdir(root / "weights"), "0123456789abcdef0123.safetensors", "statistics-x.safetensors"}
    for name in kept | {"pack-0123456789abcdef0123.safetensors", "pack-01.unfinished"}:
        (root / "weights" / name).open("ab").close()
    Store.open_for_reading(root).close()
    assert len(os.listdir(root / "weights")) == len(kept) + 2
    with Store.open_for_writing(root) as store:
        assert set(os.listdir(root / "weights")) == kept
        assert store.weights(key)["a"].tolist() == [100] * 3


def test_a_kill_between_a_pack_and_its_rows_loses_that_commit_alone(root):
    script = (
        "import numpy as np\nfrom headcount.store import rows, table\n"
        "store = Store.open_for_writing(root)\nweights = lambda seed: {bucket(seed)[0].cell.key: {'a': np.ones(3)}}\n"
        "store.commit(bucket(100), weights(100))\n"
        "table.insert = lambda *given: (rows.insert(*given), print('ready', flush=True), sys.stdin.read())\n"
        "store.commit(bucket(101), weights(101))"
    )
    with another_process(script, root):
        pass
    assert len(os.listdir(root / "weights")) == 2
    assert seeds_in(root) == {*range(20), 100}
    packed(root, 102)
    assert len(os.listdir(root / "weights")) == 2
    packed(root, 101)
    assert seeds_in(root) == {*range(20), 100, 101, 102}


@pytest.mark.parametrize("cut", [0, 4, 40, -2])
def test_a_truncated_pack_is_told(root, cut):
    (key,) = packed(root, 100)
    with Store.open_for_reading(root) as store:
        path = store.weights_path(key)
        path.write_bytes(path.read_bytes()[:cut])
        with pytest.raises(StoreError, match=f"{key}.*cannot be read"):
            store.weights(key)
        path.unlink()
        with pytest.raises(StoreError, match=key):
            store.weights(key)


# Folders of format 3.


@pytest.fixture
def old(root) -> Path:
    packed(root, 100, 101)
    with Store.open_for_writing(root) as store:
        store.begin(an_experiment(100, 101), "typed")
        store.commit([a_record(Outcome.FAILED, cell=a_cell(seed=102), message="why")])
    to_format_3(root)
    return root


def content_of(store: Store) -> tuple:
    weights = {key: store.weights(key)["a"].tolist() for key in (a_cell(seed=100).key, a_cell(seed=101).key)}
    return store.records(), store.experiments(), store.progress(), store.outcomes(), store.backends(), weights


def test_a_folder_of_format_3_is_read_as_it_is_and_migrated_by_the_next_writer(old):
    before = files_in(old / "weights"), (old / FILE).read_bytes()
    with Store.open_for_reading(old) as store:
        as_it_was = content_of(store)
    assert (files_in(old / "weights"), (old / FILE).read_bytes()) == before
    assert {record.cell.seed for record in as_it_was[0]} == {*range(20), 100, 101, 102}
    with Store.open_for_writing(old) as store:
        assert content_of(store) == as_it_was
        store.commit([a_record(cell=a_cell(seed=102))])
    with Store.open_for_reading(old) as store:
        assert store.outcomes()["failed"] == 0
        assert content_of(store)[5] == as_it_was[5]


@OPENINGS
def test_a_row_of_format_3_that_makes_no_sense_leaves_the_folder_as_it_is(old, opening):
    in_every_cell(old, "provenance", "'{broken'")
    before = files_in(old)
    with pytest.raises(StoreError, match=FILE):
        opening(old)
    with contextlib.closing(sqlite3.connect(old / FILE)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (3,)
        assert connection.execute("SELECT count(*) FROM cells WHERE provenance = '{broken'").fetchone() == (23,)
    assert files_in(old).keys() == before.keys()
