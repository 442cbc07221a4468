"""Texts become token ids: the same on every machine, the most frequent words first, cut at a stated length."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.data.texts import LONGEST, MAX_WORDS, as_texts, token_ids

from ..helpers.refusals import refused

TEXTS = st.lists(st.text("ab cdé,!", max_size=12), min_size=1, max_size=6)


@given(texts=TEXTS, tokens=st.sampled_from(["words", "bytes"]))
def test_every_text_has_a_token_and_every_id_is_below_the_vocabulary(texts, tokens):
    read = token_ids(texts, len(texts), tokens, None)
    assert len(read.ids) == len(texts)
    assert all(0 < len(ids) <= LONGEST[tokens] for ids in read.ids)
    assert all(ids.min() >= 0 and ids.max() < read.vocabulary for ids in read.ids)
    assert all(map(np.array_equal, read.ids, token_ids(texts, len(texts), tokens, None).ids))


def test_words_are_numbered_by_how_often_they_occur_in_training():
    read = token_ids(["Tea or tea", "tea, or no", "milk milk"], 2, None, None)
    assert [ids.tolist() for ids in read.ids] == [[1, 2, 1], [1, 0, 2, 0], [0, 0]]
    assert (read.vocabulary, "training" in read.note) == (3, True)
    other = token_ids(["Tea or tea", "tea, or no", "milk milk"], 3, None, None)
    assert "all examples" in other.note
    assert token_ids(["milk it", "milk it", "tea it"], 3, None, 2).vocabulary == 2


def test_a_word_of_one_validation_text_has_no_id():
    """The control: of the same texts, all for training, it has one."""
    texts = ["a b", "a b", "z a", "z b"]
    assert token_ids(texts, 2, "words", None).ids[2][0] == 0
    assert token_ids(texts, 4, "words", None).ids[2][0] > 0


def test_bytes_are_those_of_utf_8():
    read = token_ids(["é", "A"], 2, None, None)
    assert ([ids.tolist() for ids in read.ids], read.vocabulary) == ([[195, 169], [65]], 256)
    with refused("vocabulary", "256"):
        token_ids(["é", "A"], 2, "bytes", 100)


@pytest.mark.parametrize("tokens", ["words", "bytes"])
def test_long_texts_are_cut_and_it_is_said(tokens):
    text = "a " * LONGEST[tokens] * 2
    read = token_ids([text, "a b"], 2, tokens, None)
    assert [len(ids) for ids in read.ids] == [LONGEST[tokens], 2 if tokens == "words" else 3]
    assert f"1 of 2 texts are cut after {LONGEST[tokens]} {tokens}" in read.note
    assert "cut" not in token_ids(["a b", "b a"], 2, tokens, None).note


def test_no_more_words_than_the_largest_vocabulary():
    many = " ".join(f"w{place}" for place in range(100))
    texts = [many.replace("w", f"w{block}x") for block in range(30)] * 2
    assert token_ids(texts, len(texts), None, None).vocabulary == MAX_WORDS


def test_what_is_texts():
    assert as_texts(["a"]) == ["a"]
    assert as_texts(np.array(["a", "b"], object)) == ["a", "b"]
    assert as_texts([["a", "b"], ["c"]]) is not None
    for other in (
        "text",
        [1.0],
        [[1, 2], [3]],
        [],
        None,
        np.array(3.0),
        np.array("a"),
        np.ones((2, 3)),
        {"x": "a"},
        [[[1], [2, 3]]],
    ):
        assert as_texts(other) is None


def test_a_text_that_is_missing_and_a_kind_that_is_none():
    with refused("text 1", "leave"):
        token_ids(["a b", None, "c"], 3, None, None)
    with refused("tokens", '"word"'):
        token_ids(["a b"], 1, "word", None)
    with refused("vocabulary", "2", "got 0"):
        token_ids(["a b"], 1, None, 0)
