"""What people hold in Python is the task that it would be from a file: the same stored identity."""

from types import SimpleNamespace

import numpy as np
import pytest

import headcount as hc
from headcount.request import task_of

from ..helpers.refusals import refused
from .written import write_dataset_dict, write_text_table

random = np.random.default_rng(0)
X = random.normal(size=(120, 4)).astype(np.float32)
LABELS = np.where(X[:, 0] > X[:, 1], "warm", "cold")
WIDE = {"rain": X[:, 0], "wind": X[:, 1], "sun": X[:, 2], "age": np.arange(120) * 7 % 11, "season": LABELS}
WHO = np.repeat(np.arange(50), 2 + np.arange(50) % 3)
LONG = {"patient": WHO, "u": random.normal(size=len(WHO)), "v": WHO % 7 + np.arange(len(WHO)) % 3, "ill": WHO % 2 == 0}
TEXTS = ["red tea is good", "No tea today!", "blue sky, red sky"] * 40
TEXT = {"text": TEXTS, "label": ["a", "b", "c"] * 40}
TABLES = {
    "wide": (WIDE, {"targets": "season"}),
    "long": (LONG, {"targets": "ill", "sequence": "patient"}),
    "text": (TEXT, {}),
    "bytes": (TEXT, {"tokens": "bytes"}),
}


def plain(columns):
    return {name: np.asarray(values).tolist() for name, values in columns.items()}


def as_frame(library, columns):
    if library == "dict":
        return columns
    module = pytest.importorskip(library)
    if library == "pyarrow":
        return module.table(plain(columns))
    if library == "datasets":
        return module.Dataset.from_dict(plain(columns))
    return module.DataFrame(plain(columns))


def without_place(notes):
    return [note.partition(": ")[2] for note in notes if ": " in note]


@pytest.mark.parametrize("library", ["dict", "pandas", "polars", "pyarrow", "datasets"])
@pytest.mark.parametrize("table", TABLES)
def test_a_table_is_the_task_of_its_csv(tmp_path, library, table):
    columns, options = TABLES[table]
    of_file = hc.find_task(write_text_table(tmp_path / "mine.csv", plain(columns)), **options)
    task = task_of(as_frame(library, columns), None, options | {"name": "mine"})
    assert task.spec() == of_file.spec()
    shared = [note for note in without_place(of_file.notes) if not note.startswith("y has")]
    assert set(shared) <= set(without_place(task.notes))


def test_another_column_is_another_task():
    other = WIDE | {"rain": X[:, 3]}
    made = [task_of(columns, None, {"targets": "season"}).spec() for columns in (WIDE, other)]
    assert made[0] != made[1]


class Items:
    """A data set of PyTorch's kind: it has a length, and examples by their place."""

    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, place):
        return self.items[place]


PAIRS = list(zip(X, LABELS, strict=True))
HELD = {
    "pair": (X, LABELS),
    "dictionary": {"x": X, "y": LABELS},
    "pairs": PAIRS,
    "records": [{"x": x, "y": y} for x, y in PAIRS],
    "data set": Items(PAIRS),
    "data set of dictionaries": Items([{"x": x, "y": y} for x, y in PAIRS]),
    "loader": SimpleNamespace(dataset=Items(PAIRS), collate_fn=None),
}


@pytest.mark.parametrize("kind", HELD)
def test_pairs_and_dictionaries_are_x_and_y(kind):
    assert task_of(HELD[kind], None, {}).spec() == hc.ArrayTask(X, LABELS).spec()


def test_data_sets_of_torch():
    torch = pytest.importorskip("torch")
    from torch.utils.data import DataLoader, Subset, TensorDataset

    y = (X[:, 0] > 0).astype(int)
    whole = TensorDataset(torch.tensor(X), torch.tensor(y))
    for given in (whole, DataLoader(whole, batch_size=7, shuffle=True), Subset(whole, range(120))):
        assert task_of(given, None, {}).spec() == hc.ArrayTask(X, y).spec()
    three = TensorDataset(torch.tensor(X), torch.tensor(y), torch.tensor(y))
    with refused("pair (x, y)", "3 parts"):
        task_of(three, None, {})


def test_splits_of_hugging_face_are_those_of_their_folder(tmp_path):
    datasets = pytest.importorskip("datasets")
    splits = {"train": TEXT, "validation": {name: values[:30] for name, values in TEXT.items()}}
    held = datasets.DatasetDict({name: datasets.Dataset.from_dict(columns) for name, columns in splits.items()})
    of_folder = hc.find_task(write_dataset_dict(tmp_path / "DatasetDict", splits))
    task = task_of(held, None, {"name": "DatasetDict"})
    assert (task.spec(), task.notes) == (of_folder.spec(), of_folder.notes)
    assert task.held_out == 30


def test_what_a_tokenizer_writes_is_read_without_its_segments():
    ids = [[5, 1, 2], [7, 1, 0], [3, 2, 1]] * 40
    mask = [[1, 1, 1], [1, 1, 0], [1, 1, 1]] * 40
    written = {"input_ids": ids, "token_type_ids": [[0] * 3] * 120, "attention_mask": mask}
    task = task_of(written, ["a", "b", "c"] * 40, {"targets": "y"})
    assert any("token_type_ids" in note for note in task.notes)
    expected = hc.ArrayTask(np.array(ids), ["a", "b", "c"] * 40, mask=np.array(mask))
    assert task.spec() == expected.spec()
    whole = task_of(written | {"labels": ["a", "b", "c"] * 40, "text": TEXTS}, None, {})
    assert (whole.spec(), any("not read: token_type_ids, text" in note for note in whole.notes)) == (
        expected.spec(),
        True,
    )


def test_validation_mask_and_lengths_of_a_dictionary():
    x = np.stack([X, X], axis=2)
    given = {"x": x[:90], "y": LABELS[:90], "x_validation": x[90:], "y_validation": LABELS[90:]}
    task = task_of(given, None, {})
    assert task.spec() == hc.ArrayTask(x, LABELS, held_out=30).spec()
    lengths = 2 + np.arange(120) % 3
    masked = hc.ArrayTask(x, LABELS, mask=np.arange(4) < lengths[:, None])
    assert task_of({"x": x, "y": LABELS, "lengths": lengths}, None, {}).spec() == masked.spec()
    assert task_of({"x": x, "lengths": lengths}, LABELS, {}).spec() == masked.spec()


def test_texts_and_labels():
    task = task_of(TEXTS, TEXT["label"], {})
    assert task.vocabulary > 2
    assert task.spec() == task_of(TEXT, None, {}).spec()
    assert any("--tokens bytes" in note for note in task.notes)
    assert task_of(TEXTS, TEXT["label"], {"tokens": "bytes"}).vocabulary == 256
    words = [text.split() for text in TEXTS]
    assert task_of(words, TEXT["label"], {}).vocabulary > 2


def test_a_word_for_every_row_of_a_long_table(tmp_path):
    columns = {"who": np.repeat(np.arange(60), 3), "word": ["Tea", "is", "hot", "tea", "was", "cold"] * 30}
    columns |= {"y": np.repeat(np.arange(60) % 2, 3)}
    task = hc.find_task(write_text_table(tmp_path / "mine.csv", plain(columns)), sequence="who")
    assert (task.length, task.vocabulary) == (3, 6)
    assert task.x[:2, :, 0].tolist() == [[1, 4, 3], [1, 5, 2]]


@pytest.mark.parametrize(
    ("given", "options", "words"),
    [
        (X, {}, ["ndarray", "measure(x, y)", "targets=COLUMN"]),
        (object(), {}, ["object", "measure(x, y)"]),
        (3, {}, ["int", "measure(x, y)"]),
        ([], {}, ["list", "measure(x, y)"]),
        (Items([X[0]] * 120), {}, ["Items", "measure(x, y)"]),
        ({"x": X}, {}, ["dict", "['x']"]),
        ({"a": X[:, 0], "b": X[:60, 1], "y": LABELS}, {}, ["dict", "one length", "60"]),
        ({"a": [], "y": []}, {}, ["dict", "no rows"]),
        (WIDE, {"targets": "seson"}, ["dict", '"season"']),
        (WIDE, {}, ["dict", "targets=COLUMN"]),
        (WIDE | {"season": X}, {"targets": "season", "tokens": "words"}, ["tokens"]),
        ({"x": X, "y": LABELS}, {"targets": "y"}, ["targets", "leave it out"]),
        (WIDE, {"targets": "season", "patch": 4}, ["patch"]),
        (WIDE | {"name": TEXTS}, {"targets": "season"}, ["column name", "its words are read"]),
        (WIDE | {"when": ["2024-01-05"] * 120}, {"targets": "season"}, ["column when", "dates", "days"]),
        ([{"x": X[0], "y": 1}, {"x": X[0]}], {}, ["list", "keys"]),
    ],
)
def test_what_is_no_data_is_refused(given, options, words):
    with refused(*words):
        task_of(given, None, options)


def test_what_is_said_twice():
    with refused("y was given twice"):
        task_of({"x": X, "y": LABELS}, LABELS, {})
    half = {"x": X[:90], "y": LABELS[:90], "x_validation": X[90:], "y_validation": LABELS[90:]}
    with refused("held_out", "one of the two"):
        task_of(half, None, {"held_out": 30})


def test_frames_whose_names_are_their_own():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(plain(WIDE))
    said = task_of(frame.rename_axis("day"), None, {"targets": "season"}).notes
    assert any("index day" in note for note in said)
    assert not any("index" in note for note in task_of(frame, None, {"targets": "season"}).notes)
    twice = frame.set_axis(["a", "a", "b", "c", "season"], axis=1)
    with refused("two columns", '"a"'):
        task_of(twice, None, {"targets": "season"})
    texts = pandas.Series(TEXTS)
    with refused("different indexes"):
        task_of(texts, pandas.Series(LABELS, index=texts.index[::-1]), {})


@pytest.mark.parametrize("library", ["dict", "pandas", "polars", "pyarrow", "datasets"])
@pytest.mark.parametrize("name", ["wind", "age", "season"])
def test_missing_values_are_counted_with_what_to_do(library, name):
    values = np.asarray(WIDE[name]).astype(object).tolist()
    values[4] = values[7] = None
    with refused("2 of 120", f"column {name}", "row 5", "2 rows", "dropna", "fill them in"):
        task_of(as_frame(library, plain(WIDE) | {name: values}), None, {"targets": "season"})
