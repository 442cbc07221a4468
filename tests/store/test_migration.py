"""Folders of older formats: what they say is the same before, while and after they are brought up."""

import contextlib
import sqlite3
import struct
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.errors import StoreError
from headcount.report.export import to_csv, to_json
from headcount.store import FILE_NAME as FILE
from headcount.store import Outcome, Store

from ..helpers import fabricated
from ..helpers.commands import unchecked
from .drawn import experiments, law, several, unchecked_randomness
from .records import OLDER, a_cell, a_record, an_experiment, bucket
from .spoiling import another_process
from .test_filesystem import mounted

pytestmark = unchecked_randomness
FORMATS = pytest.mark.parametrize("version", OLDER)


def format_of(root: Path) -> int:
    with contextlib.closing(sqlite3.connect(f"{(root / FILE).as_uri()}?mode=ro", uri=True)) as connection:
        return connection.execute("PRAGMA user_version").fetchone()[0]


def content_of(store: Store) -> dict[str, object]:
    """All that can be asked of a folder."""
    records, begun = store.records(), store.experiments()
    weights = {key: store.weights(key) for key in records.keys if store.weights_path(key).exists()}
    return {
        "records": list(records),
        "experiments": begun,
        "progress": store.progress(),
        "outcomes": store.outcomes(),
        "backends": store.backends(),
        "settled": store.settled_keys(),
        "attachments": [store.attachments(each.name) for each in begun],
        "weights": {key: {name: array.tolist() for name, array in arrays.items()} for key, arrays in weights.items()},
        "exported": [write(begun, records, timing=True) for write in (to_csv, to_json)],
    }


def require_equal_throughout(root: Path, version: int) -> None:
    """The folder is read in this format, in the older one, by whoever brings it up, and after that."""
    with Store.open_for_reading(root) as store:
        content = content_of(store)
    OLDER[version](root)
    assert format_of(root) == version
    for opening, left in ((Store.open_for_reading, version), (Store.open_for_writing, 5), (Store.open_for_reading, 5)):
        with opening(root) as store:
            assert content_of(store) == content
        assert format_of(root) == left


@FORMATS
def test_an_older_folder_reads_the_same_before_and_after(tmp_path, version):
    """Searches from above with parents and removed heads, cells that diverged and failed, weights and attachments."""
    descent, graded = fabricated.descent(), fabricated.sweep(task="graded", axes={"heads": (1, 2), "seed": (0, 1)})
    records = fabricated.finished(descent)[4:] + fabricated.graded(graded, lambda at: {"error": 0.5 / at["heads"]})
    records += fabricated.lost(descent.cells[:2], Outcome.DIVERGED) + fabricated.lost(
        descent.cells[2:4], Outcome.FAILED, "it ran out of memory: Größe > 3"
    )
    with Store.open_for_writing(tmp_path) as store:
        for command, made in {"measure own": descent, "measure graded": graded}.items():
            store.begin(made.experiment, command)
        store.attach("own", "effort", {"level": "normal"})
        store.commit(records, {records[0].cell.key: {"a": np.arange(3.0)}, records[1].cell.key: {"a": np.ones(2)}})
        store.commit([a_record(cell=a_cell(probe="0123456789abcdef"), metrics={"nmse": 1e-300, "mrr": np.inf})])
    require_equal_throughout(tmp_path, version)


@law
@given(st.sampled_from(sorted(OLDER)), several, experiments())
def test_whatever_was_stored_reads_the_same_before_and_after(version, committed, experiment):
    with tempfile.TemporaryDirectory() as folder:
        with Store.open_for_writing(folder) as store:
            store.begin(experiment, "typed")
            store.begin(an_experiment(places={record.cell.key: (0,) for record in committed}, question="Whose?"))
            store.commit(committed)
        require_equal_throughout(Path(folder), version)


@FORMATS
@pytest.mark.parametrize("kind", ["ext4", "nfs"])
def test_a_kill_in_the_middle_leaves_the_older_format(monkeypatch, tmp_path, version, kind):
    mounted(monkeypatch, tmp_path, far=kind)
    root = tmp_path / "far"
    with Store.open_for_writing(root) as store:
        store.begin(an_experiment(*range(40)), "typed")
        store.commit(bucket(*range(40), padding=3000))
    OLDER[version](root)
    with Store.open_for_reading(root) as store:
        content = content_of(store)
    # Killed when half of the cells are changed, with a cache so small that they are on disk.
    script = (
        "from headcount.store import database, filesystem, migration, rows\n"
        "filesystem.MOUNTS = pathlib.Path(sys.argv[2])\n"
        "changed, packed, set_journal = [], rows.packed, database.set_journal\n"
        "def small_cache(connection, path):\n"
        "    set_journal(connection, path)\n    connection.execute('PRAGMA cache_size = 1')\n"
        "def stopping(*cell):\n    changed.append(cell)\n"
        "    if len(changed) == 20:\n        print('ready', flush=True)\n        sys.stdin.read()\n"
        "    return packed(*cell)\n"
        "migration.BATCH, database.set_journal = 5, small_cache\n"
        "rows.packed = migration.packed = stopping\n"
        "Store.open_for_writing(root)\nprint('it was not stopped')"
    )
    with another_process(script, root, tmp_path / "mountinfo") as printed:
        assert printed == []
    left = root / f"{FILE}-{'wal' if kind == 'ext4' else 'journal'}"
    assert left.stat().st_size > 5000, "nothing had reached the disk"
    with Store.open_for_reading(root) as store:
        assert content_of(store) == content
    assert format_of(root) == version
    with Store.open_for_writing(root) as store:
        assert content_of(store) == content
    assert format_of(root) == 5


# Metrics that are not what was stored.

NUMBERS = {
    "too short": struct.pack("<d", 1.0),
    "too long": struct.pack("<3d", 1.0, 2.0, 3.0),
    "part of a number": b"1234567",
    "empty": b"",
    "a text": '{"nmse": 0.25, "mrr": 0.5}',
    "a number": 7,
}
NAMES = ('{"mrr": 1, "nmse": 2}', '"ab"', "[1, 2]", '["mrr", null]', '["nmse"]', "[", "7", "null", "[" * 9999)


@pytest.fixture
def two_metrics(tmp_path) -> Path:
    with Store.open_for_writing(tmp_path) as store:
        store.commit([a_record(cell=a_cell(seed=seed), metrics={"nmse": 0.25, "mrr": 0.5}) for seed in range(3)])
    return tmp_path


def change(root: Path, statement: str, *values: object) -> None:
    with contextlib.closing(sqlite3.connect(root / FILE)) as connection, connection:
        assert connection.execute(statement, values).rowcount > 0


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_that_do_not_fit_their_names_are_told(two_metrics, kind):
    change(two_metrics, "UPDATE cells SET metrics = ? WHERE seed = 0", NUMBERS[kind])
    with Store.open_for_reading(two_metrics) as store, pytest.raises(StoreError, match=FILE):
        store.records()


def test_numbers_of_one_cell_do_not_make_up_for_those_of_another(two_metrics):
    for seed, kind in enumerate(("too short", "too long")):
        change(two_metrics, "UPDATE cells SET metrics = ? WHERE seed = ?", NUMBERS[kind], seed)
    with Store.open_for_reading(two_metrics) as store, pytest.raises(StoreError, match="2 numbers"):
        store.records()


@pytest.mark.parametrize("names", NAMES)
def test_names_of_metrics_that_are_no_list_of_texts_are_told(two_metrics, names):
    change(two_metrics, "UPDATE texts SET text = ? WHERE id IN (SELECT names FROM cells)", names)
    with Store.open_for_reading(two_metrics) as store, pytest.raises(StoreError, match=FILE):
        store.records()


@FORMATS
@pytest.mark.parametrize(
    "metrics",
    ["[1]", "[0]", "7", "{broken", '{"nmse": "x"}', '{"nmse": null}', '{"nmse": 1' + "0" * 400 + "}", b"\xff"],
)
def test_older_metrics_that_are_no_numbers_are_told_and_left(two_metrics, version, metrics):
    OLDER[version](two_metrics)
    change(two_metrics, "UPDATE cells SET metrics = ? WHERE key = ?", metrics, a_cell().key)
    for opening in (Store.open_for_reading, Store.open_for_writing):
        with unchecked(), pytest.raises(StoreError, match=FILE):
            opening(two_metrics)
        assert format_of(two_metrics) == version
