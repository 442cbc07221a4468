"""Weights in packs, one per commit."""

import os
from pathlib import Path

import numpy as np
import pytest

from headcount.errors import StoreError
from headcount.store import Store, weights

from .records import a_cell, bucket
from .spoiling import another_process, seeds_in


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
    monkeypatch.setattr(weights, "MAX_BYTES", 60)
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
        "import numpy as np\nfrom headcount.store import rows, store as module\n"
        "store = Store.open_for_writing(root)\nweights = lambda seed: {bucket(seed)[0].cell.key: {'a': np.ones(3)}}\n"
        "store.commit(bucket(100), weights(100))\n"
        "module.insert = lambda *given: (rows.insert(*given), print('ready', flush=True), sys.stdin.read())\n"
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
