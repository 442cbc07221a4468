"""Data that cannot be used are refused in one sentence, and with no other kind of error."""

import numpy as np
import pytest

from headcount.tasks import ArrayTask

from ..helpers.refusals import refused

X = np.random.default_rng(0).normal(size=(120, 6, 2))
Y = X[:, :, 0].max(axis=1)


def with_one(values: np.ndarray, value: float) -> np.ndarray:
    """A copy of `values` with one number replaced."""
    copy = values.copy()
    copy.flat[7] = value
    return copy


def ragged() -> np.ndarray:
    """What `np.array(sequences, dtype=object)` makes of sequences of two lengths."""
    sequences = np.empty(120, object)
    sequences[:] = [X[i, : 3 + i % 2].tolist() for i in range(120)]
    return sequences


def with_sequence(sequence) -> list:
    """Sequences with one replaced."""
    return [*ragged()[:7], sequence, *ragged()[8:]]


IDS = np.random.default_rng(1).integers(0, 4, (120, 6))


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        (with_one(X, np.nan), Y, ["x", "1 NaN", "in 1440", "mask"]),
        (X, with_one(Y, np.inf), ["y", "1 NaN or infinite", "in 120"]),
        (X, with_one(Y, 1e300), ["y"]),
        (X, np.full(120, 2.5), ["all equal to 2.5"]),
        (np.full((120, 6, 2), "word"), Y, ["x must hold numbers", "<U4", "token ids"]),
        (["a text"] * 120, Y, ["x must hold numbers", "token ids"]),
        (X + 1j, Y, ["x must hold numbers", "complex128", "imag"]),
        (X, Y + 1j, ["y must hold numbers", "complex128"]),
        (np.full((120, 6), "2024-01-01", "datetime64[D]"), Y, ["x must hold numbers", "datetime64", "timedelta64"]),
        (X, Y[:100], ["120 examples", "100"]),
        (X[:, 0, 0], Y, ["x", "(120,)"]),
        (X[..., None], Y, ["x", "(120, 6, 2, 1)"]),
        (X, X, ["y", "(120, 6, 2)", "answered_at"]),
        (X, X[..., 0], ["(120, 6)", 'answered_at="tokens"']),
        (X, X[..., None], ["y", "(120, 6, 2, 1)"]),
        (X, np.float64(3), ["y", "()"]),
        (X, None, ["y"]),
        (X, [["cat", "dog"]] * 120, ["y", "(120, 2)"]),
        ({"x": X}, Y, ["x"]),
        (X[:39], Y[:39], ["39 examples", "40"]),
        (X[:, :0], Y, ["(120, 0, 2)", "empty"]),
        (X, np.empty((120, 0)), ["(120, 0)", "empty"]),
        (X, [*range(119), None], ["y", "object"]),
        (X, ["cat", "dog", 3] * 40, ["y", "object"]),
        (np.ma.masked_array(X, X > 2), Y, ["x", "masked", "mask"]),
        # Unequal lengths.
        (with_sequence([]), Y, ["sequence 7", "no token"]),
        (with_sequence([[1.0, 2.0, 3.0]] * 4), Y, ["sequence 7", "(4, 3)", "(3, 2)"]),
        (with_sequence([[1.0, 2.0], [3.0]]), Y, ["x is ragged inside"]),
        (with_sequence([1.0, 2.0, 3.0]), Y, ["sequence 7", "(3,)"]),
        (with_sequence([["a", "b"]] * 2), Y, ["sequence 7", "<U1"]),
        (with_sequence([[1.0, np.nan]] * 2), Y, ["2 NaN"]),
        (X, [[1.0], [2.0, 3.0]] * 60, ["y", "object"]),
        # Token ids.
        (IDS - 1, Y, ["got -1", "mask", "astype(float)"]),
        (IDS * 10**6, Y, ["3000001", "262144", "np.unique"]),
    ],
)
def test_bad_arrays(x, y, words):
    with refused(*words):
        ArrayTask(x, y)


def test_an_index_of_every_kind_is_read_for_its_dtype():
    for kind in (np.uint8, np.int16, np.uint64):
        assert ArrayTask(IDS.astype(kind), Y).vocabulary == 4


HALVES = np.median(Y) < Y


@pytest.mark.parametrize(
    ("y", "what", "words"),
    [
        (np.zeros(120, int), "y", ["(0,)", "2 classes"]),
        (np.full(120, "cat"), "y", ["'cat'"]),
        (with_one(1.0 * HALVES, 0.25), "y", ["0.25"]),
        (with_one(1.0 * HALVES, np.nan), "y", ["nan"]),
        (with_one(1.0 * HALVES, 1e300), "y", ["1e+300"]),
        (with_one(HALVES.astype(object), None), "y", ["object"]),
        (HALVES.astype("S1"), "y", ["|S1"]),
        (HALVES * 1j, "y", ["complex128"]),
        (X[:, :2, 0], "y", ["(120, 2)"]),
        (np.minimum(np.arange(120), 60), "labels", ["61", "120", "--labels"]),
    ],
)
def test_bad_labels(y, what, words):
    with refused(*words) as caught:
        ArrayTask(X, y, labels=True)
    assert caught.value.what == what


def test_labels_of_which_a_split_has_one_class():
    with refused("validation", "one class"):
        ArrayTask(X, np.arange(120) < 60, labels=True, held_out=30)


def test_words_that_are_said_to_be_no_labels():
    with refused("y", "<U3", "--regression") as caught:
        ArrayTask(X, np.where(HALVES, "cat", "dog"), labels=False)
    assert caught.value.what == "labels"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"shorter": "first"}, ['"first"', "leading"]),
        ({"validation_fraction": 0.0}, ["validation_fraction", "got 0."]),
        ({"validation_fraction": 0.9}, ["validation_fraction", "0.9"]),
        ({"length": 7}, ["length", "at most 6", "got 7"]),
        ({"length": 3}, ["length 6", "length 3", "--shorter"]),
        ({"labels": "yes"}, ["labels", "yes"]),
        ({"held_out": "30"}, ["held_out", "'30'"]),
        ({"validation_fraction": "0.2"}, ["validation_fraction", "'0.2'"]),
        ({"answered_at": "token"}, ['"token"', "tokens"]),
        ({"answered_at": "tokens"}, ["y", "(120,)", "tokens"]),
        ({"answered_at": "query", "shorter": "leading", "length": 1}, ["length", "2", "got 1"]),
        ({"mask": np.ones((120, 5), bool)}, ["mask", "(120, 5)", "(120, 6)"]),
        ({"mask": np.ones((120, 6, 2), bool)}, ["mask", "(120, 6, 2)"]),
        ({"mask": np.full((120, 6), 0.5)}, ["mask", "0.5"]),
        ({"mask": np.full((120, 6), "yes")}, ["mask", "<U3"]),
        ({"mask": np.arange(120)[:, None] != np.full(6, 3)}, ["sequence 3", "no token", "mask"]),
        (
            {"mask": np.arange(6) < 1 + (np.arange(120)[:, None] != 3), "answered_at": "query"},
            ["sequence 3", "one token"],
        ),
        ({"vocabulary": 3}, ["vocabulary", "(120, 6, 2)"]),
        ({"vocabulary": 0}, ["vocabulary", "0"]),
    ],
)
def test_bad_options(options, words):
    with refused(*words):
        ArrayTask(X, Y, **options)


def test_options_that_do_not_go_with_the_data():
    mask = np.arange(6) < 1 + np.arange(120)[:, None] % 6
    with refused("mask", "unequal"):
        ArrayTask(ragged(), Y, mask=mask)
    with refused("tokens", "mask"):
        ArrayTask(X, X, mask=mask, answered_at="tokens")
    with refused("(120, 5)", "one class label per token"):
        ArrayTask(X, IDS[:, :5], labels=True, answered_at="tokens")
    with refused("example 3 has 6 tokens", "(5,)"):
        ArrayTask(X, [tags[: 6 - (place == 3)] for place, tags in enumerate(IDS)], answered_at="tokens")
    with refused("example 0 has 3 tokens", "(3, 2)"):
        ArrayTask(ragged(), ragged(), answered_at="tokens")
    with refused("one length", "labels"):
        ArrayTask(ragged(), [np.ones(3 + i % 2) * 0.5 for i in range(120)], answered_at="tokens")
    with refused("metric", "numbers"):
        ArrayTask(X, Y, metric="balanced")
    with refused("class 1", "2 of 120", "join"):
        ArrayTask(X, (np.arange(120) % 60 == 0) * 1, labels=True, metric="balanced")
    with refused("metric", "balanced", "auc"):
        ArrayTask(X, HALVES, metric="auc")
    with refused("6 tokens", "5 targets"):
        ArrayTask(X, X[:, :5], answered_at="tokens")
    with refused("vocabulary = 3", "got 3"):
        ArrayTask(IDS, Y, vocabulary=3)
    with refused(".5", "whole"):
        ArrayTask(IDS + 0.5, Y, vocabulary=9)
    with refused("one token"):
        ArrayTask(X[:, :1], Y, answered_at="query")


@pytest.mark.parametrize("length", [0, -1, 7, 2.5])
def test_a_length_that_cannot_be_made(length):
    task = ArrayTask(X, Y, shorter="leading")
    with refused("length", str(length)):
        task.at(length)


def test_rows_that_pandas_would_pair_by_name_are_not_paired_by_place():
    pandas = pytest.importorskip("pandas")
    frame, column = pandas.DataFrame(X[:, :, 0]), pandas.Series(Y)
    assert ArrayTask(frame, column).length == X.shape[1]
    with refused("different indexes"):
        ArrayTask(frame.iloc[::-1], column)
