"""What is written in any kind of file is read back equal; what is not read is never ignored."""

import json
import math
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.data.files import are_examples, read_examples
from headcount.errors import HeadcountError
from headcount.tasks.find import find_task

from ..helpers.refusals import refused
from .written import (
    ARRAY_KINDS,
    TABLE_KINDS,
    arrow_table,
    write_dataset,
    write_dataset_dict,
    write_json_lines,
    write_text_table,
)

finite = st.floats(-1e6, 1e6, width=32)
QUICK = settings(max_examples=8, deadline=None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One folder for all files that are overwritten."""
    return tmp_path_factory.mktemp("files")


def written(folder, kind, write, content):
    """The path of a file of this kind, under a name that no other test has."""
    place = len(list(folder.iterdir()))
    return write(folder / f"mine {place} ü{kind}", content)


def needs_torch(kind):
    return pytest.param(kind, marks=pytest.mark.skipif(not _has_torch(), reason="no torch")) if kind == ".pt" else kind


def _has_torch() -> bool:
    try:
        import torch  # noqa: F401
    except ImportError:
        return False
    return True


def same(read, wanted) -> bool:
    if isinstance(read, list):
        return len(read) == len(wanted) and all(map(np.array_equal, read, wanted))
    return np.array_equal(read, wanted)


shapes = st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 3))


@pytest.mark.parametrize("kind", [needs_torch(kind) for kind in ARRAY_KINDS])
@given(data=st.data())
@QUICK
def test_arrays_are_read_back(folder, kind, data):
    shape = data.draw(shapes)
    x = np.array(data.draw(st.lists(finite, min_size=math.prod(shape), max_size=math.prod(shape)))).reshape(shape)
    y = np.array(data.draw(st.lists(finite, min_size=len(x), max_size=len(x))))
    loaded = read_examples(written(folder, kind, ARRAY_KINDS[kind], {"x": x, "y": y}))
    assert same(loaded.x, x)
    assert same(loaded.y, y)
    assert (loaded.mask, loaded.held_out) == (None, None)


@pytest.mark.parametrize("kind", [".json", ".jsonl", needs_torch(".pt")])
@given(lengths=st.lists(st.integers(1, 4), min_size=2, max_size=5), ids=st.booleans())
@QUICK
def test_sequences_of_unequal_lengths_are_read_back(folder, kind, lengths, ids):
    x = [np.arange(n) if ids else np.arange(2.0 * n).reshape(n, 2) for n in lengths]
    loaded = read_examples(written(folder, kind, ARRAY_KINDS[kind], {"x": x, "y": np.array(lengths)}))
    assert same(list(loaded.x), x)
    assert loaded.y.tolist() == lengths


@pytest.mark.parametrize("kind", TABLE_KINDS)
@given(rows=st.lists(st.tuples(finite, finite, finite, st.sampled_from(["cat", "dög", "a,b"])), min_size=1, max_size=4))
@QUICK
def test_wide_tables_are_read_back(folder, kind, rows):
    a, b, c, label = map(list, zip(*rows, strict=True))
    columns = {"b_0": b, "a_0": a, "b_1": c, "a_1": a, "label": label}
    loaded = read_examples(written(folder, kind, TABLE_KINDS[kind], columns))
    assert np.array_equal(loaded.x, np.array([[b, a], [c, a]]).transpose(2, 0, 1))
    assert loaded.y.tolist() == label
    assert "label" in loaded.notes[0]


@pytest.mark.parametrize("kind", TABLE_KINDS)
@given(lengths=st.lists(st.integers(1, 3), min_size=1, max_size=4), shuffle=st.randoms(use_true_random=False))
@QUICK
def test_long_tables_are_read_back_whatever_the_order_of_sequences(folder, kind, lengths, shuffle):
    """The rows of a sequence keep their order; sequences come in the order of their first rows."""
    order = [sequence for sequence, length in enumerate(lengths) for _ in range(length)]
    shuffle.shuffle(order)
    tokens = {sequence: [] for sequence in dict.fromkeys(order)}
    for row, sequence in enumerate(order):
        tokens[sequence].append([row / 4, -row / 4])
    columns = {
        "who": [("7", "a", "7b", "1.5")[sequence] for sequence in order],
        "u": [row / 4 for row in range(len(order))],
        "v": [-row / 4 for row in range(len(order))],
        "price": [sequence / 2 for sequence in order],
    }
    path = written(folder, kind, TABLE_KINDS[kind], columns)
    loaded = read_examples(path, targets="price", sequence="who")
    assert same(list(loaded.x), [np.array(values) for values in tokens.values()])
    assert loaded.y.tolist() == [sequence / 2 for sequence in tokens]


@pytest.mark.parametrize("kind", [".parquet", ".arrow", ".feather", ""])
@given(lengths=st.lists(st.integers(1, 4), min_size=2, max_size=5), ids=st.booleans())
@QUICK
def test_lists_in_cells_are_read_back(folder, kind, lengths, ids):
    x = [np.arange(n) if ids else np.arange(2.0 * n).reshape(n, 2) for n in lengths]
    columns = {"tokens": [row.tolist() for row in x], "y": lengths}
    loaded = read_examples(written(folder, kind, TABLE_KINDS[kind], columns))
    assert same(list(loaded.x), x)
    assert loaded.y.tolist() == lengths


def test_several_lists_are_the_numbers_of_a_token(tmp_path):
    columns = {"u": [[1.0, 2.0], [3.0]], "v": [[4.0, 5.0], [6.0]], "y": [0.5, 1.5]}
    loaded = read_examples(write_dataset(tmp_path / "mine", columns))
    assert same(list(loaded.x), [np.array([[1.0, 4.0], [2.0, 5.0]]), np.array([[3.0, 6.0]])])


def test_a_tokenised_dataset_with_splits_and_class_names(tmp_path):
    """As `datasets` writes it after a tokenizer: ids, a mask, and labels whose names are stored with the schema."""
    train = {"input_ids": [[5, 1], [7, 0]], "attention_mask": [[1, 1], [1, 0]], "label": [1, 0]}
    test = {"input_ids": [[2, 2]], "attention_mask": [[1, 1]], "label": [1]}
    features = {"label": {"_type": "ClassLabel", "names": ["good", "bad"]}}
    loaded = read_examples(write_dataset_dict(tmp_path / "mine", {"train": train, "test": test}, features))
    assert loaded.x.tolist() == [[5, 1], [7, 0], [2, 2]]
    assert loaded.mask.tolist() == [[True, True], [True, False], [True, True]]
    assert loaded.y.tolist() == ["bad", "good", "bad"]
    assert loaded.held_out == 1
    assert any("test" in note for note in loaded.notes)


def test_fixed_sizes_and_dictionaries_of_arrow(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pairs = pa.FixedSizeListArray.from_arrays(pa.array([1.0, 2.0, 3.0, 4.0], pa.float32()), 2)
    table = pa.table({"x": pairs, "y": pa.array(["a", "b"]).dictionary_encode()})
    pq.write_table(table, tmp_path / "mine.parquet")
    loaded = read_examples(tmp_path / "mine.parquet")
    assert loaded.x.tolist() == [[1, 2], [3, 4]]
    assert loaded.y.tolist() == ["a", "b"]


@pytest.mark.parametrize("kind", [".npz", ".json", ".safetensors"])
def test_validation_lengths_and_masks(tmp_path, kind):
    x, y = np.arange(12.0).reshape(2, 3, 2), np.array([1.0, 2.0])
    arrays = {"x": x, "y": y, "lengths": np.array([3, 1]), "x_validation": x[:1], "y_validation": y[:1]}
    path = ARRAY_KINDS[kind](tmp_path / f"mine{kind}", arrays | {"mask_validation": np.array([[True, False, True]])})
    loaded = read_examples(path)
    assert loaded.held_out == 1
    assert loaded.mask.tolist() == [[True, True, True], [True, False, False], [True, False, True]]
    assert same(loaded.x, np.concatenate([x, x[:1]]))


def test_what_a_mask_leaves_out_may_be_anything(tmp_path):
    x = np.array([[1.0, np.nan], [2.0, 3.0]])
    path = ARRAY_KINDS[".npz"](tmp_path / "mine.npz", {"x": x, "y": [1, 2], "lengths": [1, 2]})
    assert read_examples(path).mask.tolist() == [[True, False], [True, True]]


@pytest.mark.parametrize(
    "text",
    [
        "a,b,y\n1,2,3\n4,5,6\n",
        "a,b,y\r\n1,2,3\r\n4,5,6\r\n",
        "\ufeffa,b,y\n1,2,3\n4,5,6",
        "a;b;y\n1;2;3\n4;5;6\n",
        "a\tb\ty\n1\t2\t3\n4\t5\t6\n",
        '"a" , "b" ,"y"\n 1,"2",3\n\n4 ,5,6\n'.replace('" , "', '","').replace('" ,"', '","'),
        "0,1,y\n1,2,3\n4,5,6\n",
        "x_2,x_10,y\n1,2,3\n4,5,6\n",
        "x_10,x_2,y\n2,1,3\n5,4,6\n",
    ],
)
def test_text_that_other_programs_write(tmp_path, text):
    path = tmp_path / "a name with spaces, ü.CSV"
    path.write_text(text, newline="")
    loaded = read_examples(path)
    assert loaded.x.tolist() == [[[1], [2]], [[4], [5]]]
    assert loaded.y.tolist() == [3, 6]


@pytest.mark.parametrize(
    ("y", "validation", "kinds"),
    [
        ([0, "a"] * 50, None, "numbers, words"),
        ([True, "b", 1.5, 2] * 25, None, "booleans, numbers, words"),
        ([True, 0.5] * 50, None, "booleans, numbers"),
        (["a", "b"] * 50, [1] * 20, "words but y_validation numbers"),
    ],
)
def test_targets_of_several_kinds_are_never_made_one(tmp_path, y, validation, kinds):
    arrays = {"x": np.ones((100, 2, 1)), "y": y}
    arrays |= {} if validation is None else {"x_validation": np.ones((20, 2, 1)), "y_validation": validation}
    path = ARRAY_KINDS[".json"](tmp_path / "mine.json", arrays)
    with refused("mine.json", "y", kinds):
        find_task(str(path))


def test_targets_may_be_several_columns(tmp_path):
    path = write_text_table(tmp_path / "mine.tsv", {"u": [1, 2], "a": [3, 4], "b": [5, 6]})
    assert read_examples(path, targets="b,a").y.tolist() == [[5, 3], [6, 4]]


def test_a_target_per_token(tmp_path):
    columns = {"who": [0, 0, 1, 1], "u": [1, 2, 3, 4], "y": [5, 6, 7, 8]}
    path = write_text_table(tmp_path / "mine.csv", columns)
    assert read_examples(path, sequence="who", per_token=True).y.tolist() == [[5, 6], [7, 8]]
    with refused("mine.csv", "line 3", "answered_at"):
        read_examples(path, sequence="who")


def test_labels_of_the_tokens_of_unequal_sequences(tmp_path):
    columns = {"who": [0, 0, 1, 1, 1] * 60, "u": list(range(300)), "y": ["a", "b", "a", "b", "b"] * 60}
    columns["who"] = [who + 2 * (place // 5) for place, who in enumerate(columns["who"])]
    path = write_text_table(tmp_path / "mine.csv", columns)
    task = find_task(str(path), sequence="who", answered_at="tokens")
    assert task.classes == ("a", "b")
    assert task.y[:2].tolist() == [[0, 1, -1], [0, 1, 1]]
    lines = [{"x": [place, 2][: 1 + place % 2], "y": ["a", "b"][: 1 + place % 2]} for place in range(120)]
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert find_task(str(tmp_path / "mine.jsonl")).y[:2].tolist() == [[0, -1], [0, 1]]


def test_a_pair_that_torch_saved(tmp_path):
    torch = pytest.importorskip("torch")
    torch.save((torch.ones(2, 3, 1, dtype=torch.bfloat16), torch.tensor([1, 2])), tmp_path / "pair.pth")
    loaded = read_examples(tmp_path / "pair.pth")
    assert (loaded.x.shape, loaded.y.tolist()) == ((2, 3, 1), [1, 2])


@pytest.mark.parametrize(("package", "name"), [("pyarrow", "mine.parquet"), ("torch", "mine.pt")])
def test_a_package_that_is_not_installed_is_named(tmp_path, monkeypatch, package, name):
    (tmp_path / name).write_bytes(b"anything")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(HeadcountError, match=r"pip install 'headcount\["):
        read_examples(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "write"), [("mine.npz", ARRAY_KINDS[".npz"]), ("mine.json", ARRAY_KINDS[".json"]),
    ("mine.jsonl", write_json_lines), ("mine.csv", write_text_table), ("mine.csv.gz", write_text_table)],
)  # fmt: skip
def test_what_does_not_fit_in_memory_is_not_read(tmp_path, monkeypatch, name, write):
    path = write(tmp_path / name, {"x": [[1.0]], "y": [1.0]})
    monkeypatch.setenv("HEADCOUNT_MAX_GB", "9e-9")
    with refused(name, "memory"):
        read_examples(path)


def test_a_packed_table_is_refused_by_what_is_unpacked(tmp_path, monkeypatch):
    path = write_text_table(tmp_path / "mine.csv.gz", {"u": [1] * 10_000, "y": [2] * 10_000})
    monkeypatch.setenv("HEADCOUNT_MAX_GB", str(8 * path.stat().st_size / 2**30))
    with refused("mine.csv.gz", "memory"):
        read_examples(path)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (["yes", "no", "nan"], ["line 4", '"nan"']),
        (["nan", "yes", "nan"], ["line 2", "nan"]),
        (["yes", "no", "7"], ["line 4", '"7"']),
        (["1", "two", "3"], ["line 3", '"two"']),
    ],
)
def test_a_cell_that_is_not_like_the_first_is_named(tmp_path, labels, words):
    with refused("mine.csv", "column y", *words):
        read_examples(write_text_table(tmp_path / "mine.csv", {"u": [1, 2, 3], "y": labels}))


def test_long_columns_are_read_in_blocks(tmp_path, monkeypatch):
    """Kinds may change from block to block in the column of sequences alone; a quoted cell keeps its line ends."""
    monkeypatch.setattr("headcount.data.text_tables.BLOCK_CELLS", 6)
    monkeypatch.setattr("headcount.data.text_tables.BLOCK_ROWS", 2)
    columns = {"who": ["1", "2", "a", "b", "3"], "u": [1, 2, 3, 4, 5.5], "y": ["c\n\nd", "e", "c\n\nd", "f", "g"]}
    loaded = read_examples(write_text_table(tmp_path / "mine.csv", columns), sequence="who")
    assert loaded.x.ravel().tolist() == columns["u"]
    assert loaded.y.tolist() == columns["y"]
    for labels, line in (("abcd5", 6), ("a2345", 3), ("1234e", 6)):
        path = write_text_table(tmp_path / "mine.csv", columns | {"y": list(labels)})
        with refused(f"line {line}", f'"{labels[line - 2]}"', f'"{labels[0]}" on line 2'):
            read_examples(path, sequence="who")


def test_json_lines_are_told_apart_by_their_keys(tmp_path):
    examples = write_json_lines(tmp_path / "examples.jsonl", {"x": [[1.0]], "y": [2.0]})
    passages = write_json_lines(tmp_path / "passages.jsonl", {"query": ["q"], "positive": ["p"]})
    assert are_examples(examples)
    assert not are_examples(passages)


def test_features_that_say_nothing_of_classes_are_no_labels(tmp_path):
    import pyarrow.parquet as pq

    features = {"y": {"dtype": "int64", "_type": "Value"}, "x": [1]}
    pq.write_table(arrow_table({"x": [[1, 2]], "y": [3]}, features), tmp_path / "a.parquet")
    assert read_examples(tmp_path / "a.parquet").y.tolist() == [3]


def test_a_folder_of_files_is_told_to_be_one(tmp_path):
    write_text_table(tmp_path / "one.csv", {"u": [1], "y": [2]})
    with refused(str(tmp_path), "one.csv"):
        find_task(str(tmp_path))
