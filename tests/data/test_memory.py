"""A small file that would need a lot of memory is refused, or read, with little: by its header, or counted before."""

import contextlib
import tracemalloc
import zipfile
from collections.abc import Iterator

import numpy as np
import pytest

from headcount.data.files import read_examples
from headcount.tasks.arrays import ArrayTask

from ..helpers.refusals import refused
from .written import ARRAY_KINDS, TABLE_KINDS, write_text_table

MANY = 10**9
X, Y, ROWS = np.ones((100, 3, 2)), np.arange(100.0), 5000
WIDE = "w" * 20_000
OF_NOTHING = {
    "x with lengths": {"x": np.empty((100, MANY, 0)), "lengths": np.full(100, 2)},
    "x in two parts, whose sizes have no sum": dict.fromkeys(("x", "x_validation"), np.empty((MANY, MANY, 0)))
    | dict.fromkeys(("y", "y_validation"), np.empty((MANY, 0))),
    "y of two axes": {"y": np.empty((100, MANY, 0))},
}


POOLS = []
"""They outlive what they have allocated, which the traceback of an error may hold."""


@contextlib.contextmanager
def memory_below(megabytes: float) -> Iterator[None]:
    """Fail where Python and NumPy, or Arrow, take more in between."""
    pyarrow = pytest.importorskip("pyarrow")
    before = pyarrow.default_memory_pool()
    pool = pyarrow.proxy_memory_pool(before)
    POOLS.append(pool)
    pyarrow.set_memory_pool(pool)
    tracemalloc.start()
    try:
        yield
        taken = tracemalloc.get_traced_memory()[1] / 1e6, pool.max_memory() / 1e6
    finally:
        tracemalloc.stop()
        pyarrow.set_memory_pool(before)
    assert max(taken) < megabytes


@pytest.mark.parametrize("words", OF_NOTHING)
@pytest.mark.parametrize("ending", [".npz", ".safetensors"])
def test_sizes_whose_product_is_0(tmp_path, ending, words):
    path = ARRAY_KINDS[ending](tmp_path / f"mine{ending}", {"x": X, "y": Y} | OF_NOTHING[words])
    with memory_below(10), refused("mine", f"{MANY}", "empty"):
        read_examples(path)


def test_values_of_no_bytes(tmp_path):
    path = tmp_path / "mine.npz"
    header = f"{{'descr': '|S0', 'fortran_order': False, 'shape': ({MANY},), }}".encode()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with memory_below(10), refused("mine.npz", "x.npy", f"{MANY:,} bytes"):
        read_examples(path)


def test_an_array_in_memory_whose_sizes_have_the_product_0():
    with memory_below(10), refused(f"{MANY}", "empty"):
        ArrayTask(np.empty((100, MANY, 0)), Y)


def _classes(wide: str) -> dict[str, list]:
    return {"a": [0.5] * ROWS, "b": [1.5] * ROWS, "y": [wide, *(f"c{row % 3}" for row in range(ROWS - 1))]}


@pytest.mark.parametrize("kind", [".csv", ".parquet", ".arrow", ".feather"])
def test_one_wide_word_among_the_classes_of_a_table(tmp_path, monkeypatch, kind):
    path = TABLE_KINDS[kind](tmp_path / f"mine{kind}", _classes(WIDE))
    monkeypatch.setenv("HEADCOUNT_MAX_GB", "0.1")
    with memory_below(20), refused("mine", "20,000 letters", "HEADCOUNT_MAX_GB"):
        read_examples(path)
    assert len(read_examples(TABLE_KINDS[kind](tmp_path / f"good{kind}", _classes("c0"))).y) == ROWS


@pytest.mark.parametrize("kind", [".json", ".jsonl"])
@pytest.mark.parametrize("of_x", [True, False])
def test_one_wide_word_in_json(tmp_path, monkeypatch, kind, of_x):
    words = _classes(WIDE)["y"]
    arrays = {"x": [[[word]] for word in words], "y": [1.0] * ROWS} if of_x else {"x": [[1.0]] * ROWS, "y": words}
    path = ARRAY_KINDS[kind](tmp_path / f"mine{kind}", arrays)
    monkeypatch.setenv("HEADCOUNT_MAX_GB", "0.1")
    with memory_below(20), refused("mine", "20,000 letters", "HEADCOUNT_MAX_GB"):
        read_examples(path)


def test_wide_words_in_a_column_that_is_no_target(tmp_path):
    path = write_text_table(tmp_path / "mine.csv", {"a": _classes(WIDE)["y"], "b": [0.5] * ROWS, "y": [0.5] * ROWS})
    with memory_below(20), pytest.raises(ValueError, match=r"column a holds text, such as 'w{40}'"):
        read_examples(path)


def test_many_short_words(tmp_path, monkeypatch):
    """An object in memory is far larger than the two letters that it stands for in the file."""
    path = tmp_path / "mine.csv"
    path.write_text("a,b,y\n" + "".join(f"{row},1,{row:x}w\n" for row in range(100_000)))
    monkeypatch.setenv("HEADCOUNT_MAX_GB", "0.005")
    with memory_below(20), refused("mine.csv", "HEADCOUNT_MAX_GB"):
        read_examples(path)


@pytest.mark.parametrize("kind", [".parquet", ".feather"])
@pytest.mark.parametrize("of_codes", [True, False])
def test_a_word_that_occurs_often_is_in_memory_once(tmp_path, monkeypatch, kind, of_codes):
    pyarrow = pytest.importorskip("pyarrow")
    words = pyarrow.array([WIDE, WIDE + "!"]).dictionary_encode()
    codes = words.take(pyarrow.array(np.arange(ROWS) % 2))
    if not of_codes and kind == ".feather":
        pytest.skip("a Feather file of text has every word as often as it occurs")
    table = pyarrow.table({"a": [0.5] * ROWS, "y": codes if of_codes else codes.cast(pyarrow.large_string())})
    path = tmp_path / f"mine{kind}"
    if kind == ".parquet":
        pytest.importorskip("pyarrow.parquet").write_table(table, path)
    else:
        pytest.importorskip("pyarrow.feather").write_feather(table, str(path))
    del table, codes
    monkeypatch.setenv("HEADCOUNT_MAX_GB", "0.1")
    with memory_below(20), refused("mine", "20,001 letters", "HEADCOUNT_MAX_GB"):
        read_examples(path)


def test_a_code_for_a_missing_word(tmp_path):
    pyarrow, feather = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.feather")
    words = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0, 0, 1, 0]), pyarrow.array(["a", None]))
    table = pyarrow.table({"a": [0.5] * 4, "y": words})
    feather.write_feather(table, str(tmp_path / "mine.feather"))
    with refused("mine.feather", "1 of 4", "row 3", "column y"):
        read_examples(tmp_path / "mine.feather")
    feather.write_feather(table.take([0, 1, 3]), str(tmp_path / "good.feather"))
    assert read_examples(tmp_path / "good.feather").y.tolist() == ["a", "a", "a"]


def test_lists_are_counted_by_the_footer(tmp_path, monkeypatch):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    lists = pyarrow.ListArray.from_arrays(np.arange(0, 10**7 + 1, 10**5, dtype=np.int32), np.zeros(10**7))
    parquet.write_table(pyarrow.table({"x": lists, "y": np.arange(100.0)}), tmp_path / "mine.parquet")
    del lists
    monkeypatch.setenv("HEADCOUNT_MAX_GB", "0.03")
    with memory_below(5), refused("mine.parquet", "HEADCOUNT_MAX_GB"):
        read_examples(tmp_path / "mine.parquet")


def test_a_tensor_of_one_number_that_stands_for_many(tmp_path):
    torch = pytest.importorskip("torch")
    torch.save({"x": torch.zeros(1).expand(MANY, MANY), "y": torch.zeros(1).expand(MANY)}, tmp_path / "mine.pt")
    with refused("mine.pt", "HEADCOUNT_MAX_GB"):
        read_examples(tmp_path / "mine.pt")


@pytest.mark.parametrize("kind", ["dictionary", "plain", "of one size"])
def test_wide_values_of_a_parquet_file_are_refused_by_its_header(tmp_path, monkeypatch, kind):
    """40 MB of text in a few kB, and 20 kB that stand for 5,000 values of one size."""
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    wide = [WIDE] * ROWS if kind == "of one size" else [f"{WIDE}{row}" for row in range(2000)]
    values = pyarrow.array(wide)
    if kind == "of one size":
        values = values.cast(pyarrow.binary()).cast(pyarrow.binary(len(wide[0])))
    path, table = tmp_path / "mine.parquet", pyarrow.table({"a": values, "y": [0.5] * len(wide)})
    options = {"dictionary_pagesize_limit": 10**9, "compression": "zstd", "use_dictionary": kind != "plain"}
    parquet.write_table(table, path, **options)
    del table, values
    monkeypatch.setenv("HEADCOUNT_MAX_GB", "0.03")
    with memory_below(20), refused("mine.parquet", "HEADCOUNT_MAX_GB"):
        read_examples(path)
