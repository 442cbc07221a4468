"""Candidates and pairs: against BERT's own order, word by word, in float64; and candidate lists."""

import dataclasses
import functools
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from headcount._precision import in_double
from headcount.papers.data.mining import given_negatives
from headcount.papers.tasks.ranking import Ranking, ranking

from ...helpers.compiling import compile_quickly  # noqa: F401
from ...helpers.refusals import refused
from ...helpers.tolerance import assert_close
from ...tasks.labelled import some_passages, tiny_bert
from ...tasks.laws import ALL, Construction, LabelledTaskLaws, shown

QUERIES, MOST = 125, 9
QUERY_TOKENS, PASSAGE_TOKENS = 3, 4
JOINED = QUERY_TOKENS + PASSAGE_TOKENS + 3


@functools.cache
def embeddings():
    with tempfile.TemporaryDirectory() as folder:
        return tiny_bert(Path(folder))


@functools.cache
def corpus():
    return some_passages(QUERIES, negatives=MOST)


def make(layout: str = "candidates", length: int = 4, **changes) -> Ranking:
    tokens = {"query_tokens": QUERY_TOKENS, "passage_tokens": PASSAGE_TOKENS}
    return Ranking(
        corpus(), embeddings(), given_negatives(corpus()), length=length, layout=layout, **(tokens | changes)
    )


CONSTRUCTIONS = {
    "candidates": Construction(
        make=make, answered_at="tokens", other_length=7, stored=(100, 25), tokens=lambda length: (length + 1, 6)
    ),
    "pairs": Construction(
        make=lambda: make("pairs"),
        answered_at="query",
        other_length=7,
        stored=(100, 25),
        tokens=lambda length: (length, JOINED, 6),
    ),
}


class TestRanking(LabelledTaskLaws):
    constructions = CONSTRUCTIONS

    @staticmethod
    def names(part):
        return part.content["query"].tolist()

    def test_a_task_with_tokens_of_zeros_is_padded(self, task):
        tokens = np.asarray(shown(task))
        assert task.padded == bool(np.any(np.all(tokens == 0, axis=-1)))


# Candidate lists.


def everyone(task: Ranking, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Queries, their candidates and the places of the right ones, of training and validation together."""
    parts = task.examples(ALL, ALL, seed)
    joined = [
        np.concatenate([read(part) for part in parts])
        for read in (lambda part: part.content["query"], lambda part: part.content["candidates"], lambda p: p.targets)
    ]
    return joined[0], joined[1], joined[2]


@pytest.mark.parametrize("length", [2, 4, MOST + 1])
def test_the_positive_stands_once_among_the_first_negatives(length):
    queries, candidates, labels = everyone(make(length=length))
    assert sorted(queries.tolist()) == list(range(QUERIES))
    assert candidates.shape == (QUERIES, length)
    for query, listed, label in zip(queries, candidates.tolist(), labels, strict=True):
        (positive,) = corpus().positives[query]
        assert listed[label] == positive
        assert listed.count(positive) == 1
        others = [place for place in listed if place != positive]
        assert sorted(others) == sorted(corpus().negatives[query][: length - 1])


def test_a_shorter_list_is_part_of_a_longer_one():
    task = make(length=MOST + 1)
    short, long = everyone(task.at(3)), everyone(task)
    assert np.array_equal(short[0], long[0])
    for few, many in zip(short[1].tolist(), long[1].tolist(), strict=True):
        assert set(few) < set(many)


def test_the_positive_stands_anywhere():
    """8 x 125 draws of four places: 250 each, give or take 14; and another seed has other places."""
    labels = [everyone(make(), seed) for seed in range(8)]
    counts = np.bincount(np.concatenate([places for _, _, places in labels]), minlength=4)
    assert counts.min() > 180
    assert counts.max() < 320
    by_query = [dict(zip(queries.tolist(), places.tolist(), strict=True)) for queries, _, places in labels]
    assert len({tuple(sorted(places.items())) for places in by_query}) == len(by_query)


def test_given_negatives_are_taken_as_given(tmp_path):
    task = ranking(corpus(), tiny_bert(tmp_path, places=64))
    assert task.length == 8
    assert task.negatives[:, :4].tolist() == [list(places[:4]) for places in corpus().negatives]


def test_without_negatives_they_are_mined(tmp_path):
    bare = dataclasses.replace(corpus(), negatives=None)
    bert = tiny_bert(tmp_path, places=64)  # mined with the vectors of the paper's lengths
    task = ranking(bare, bert, cache=tmp_path / "mined")
    assert task.negatives.shape == (QUERIES, 63)
    assert not np.any(task.negatives == task.positives[:, None])
    assert task.at(64).length == 64
    again = ranking(bare, bert, cache=tmp_path / "mined")
    assert again.spec() == task.spec()
    assert len(list((tmp_path / "mined").iterdir())) == 1


def test_more_candidates_than_there_are_are_refused():
    with refused("length", str(MOST + 2), f"there are {MOST}"):
        make().at(MOST + 2)
    with refused("length", str(MOST + 2), f"there are {MOST}"):
        make(length=MOST + 2)


@pytest.mark.parametrize("length", [1, 0, 2.0, True])
def test_a_list_of_one_is_no_choice(length):
    with refused("length", repr(length), "at least 2"):
        make().at(length)


def test_an_unknown_layout_is_refused():
    with refused("layout must be one of candidates, pairs", '"pair"'):
        make("pair")


def test_more_joined_tokens_than_positions_are_refused():
    with refused("13 tokens", "tiny has 12"):
        make("pairs", passage_tokens=7)
    assert make("pairs", passage_tokens=6).sequences == (4, 12)


def test_the_spec_covers_layout_negatives_and_tokens():
    shorter = given_negatives(corpus())[:, : MOST - 1]
    tokens = {"query_tokens": QUERY_TOKENS, "passage_tokens": PASSAGE_TOKENS}
    others = [
        make(),
        make("pairs"),
        make(query_tokens=2),
        make(passage_tokens=5),
        Ranking(corpus(), embeddings(), shorter, **tokens),
        Ranking(some_passages(QUERIES, negatives=MOST, seed=1), embeddings(), shorter, **tokens),
    ]
    assert len({str(task.spec()) for task in others}) == len(others)


# Tokens.


def pieces(text: str, most: int) -> list[int]:
    return embeddings().tokenizer.encode(text, add_special_tokens=False).ids[:most]


def embedded(word: int, position: int, segment: int) -> np.ndarray:
    """BERT's embedding of one token, in float64."""
    bert = embeddings()
    total = bert.word[word].astype(np.float64) + bert.position[position] + bert.segment[segment]
    normed = (total - total.mean()) / np.sqrt(total.var() + 1e-12)
    return normed * bert.norm_gain + bert.norm_bias


def joined_slowly(query: int, passage: int) -> np.ndarray:
    """[CLS] query [SEP] passage [SEP] as BERT reads it; then [CLS] goes last, and free slots stay zero."""
    bert = embeddings()
    asked, held = (
        pieces(corpus().queries[query], QUERY_TOKENS),
        pieces(corpus().passages[passage], PASSAGE_TOKENS),
    )
    cls, sep = map(bert.token_id, ("[CLS]", "[SEP]"))
    words = [cls, *asked, sep, *held, sep]
    segments = [0] * (len(asked) + 2) + [1] * (len(held) + 1)
    tokens = [embedded(*token) for token in zip(words, range(len(words)), segments, strict=True)]
    slots = np.zeros((JOINED, bert.dim))
    slots[-1] = tokens[0]
    slots[: len(asked)] = tokens[1 : 1 + len(asked)]
    slots[QUERY_TOKENS] = tokens[1 + len(asked)]
    slots[QUERY_TOKENS + 1 : QUERY_TOKENS + 1 + len(held)] = tokens[2 + len(asked) : 2 + len(asked) + len(held)]
    slots[-2] = tokens[-1]
    return slots


def in_double_precision(task: Ranking, count: int = 30) -> tuple[dict, np.ndarray]:
    """The content of some examples, and their tokens in float64."""
    content, _ = task.examples(count, 20).train
    with jax.enable_x64(True):
        show = jax.tree.map(jnp.asarray, in_double(task.tokenise))
        tokens = jax.jit(jax.vmap(show))(jax.tree.map(jnp.asarray, content), jr.split(jr.key(0), count))
        return content, np.asarray(tokens)


def test_pairs_are_joined_as_bert_joins_them():
    content, shown_tokens = in_double_precision(make("pairs"))
    assert shown_tokens.dtype == np.float64
    counts = set()
    for query, candidates, tokens in zip(content["query"], content["candidates"], shown_tokens, strict=True):
        for passage, pair in zip(candidates, tokens, strict=True):
            want = joined_slowly(query, passage)
            assert_close(pair, want)
            assert np.array_equal(np.all(pair == 0, axis=1), np.all(want == 0, axis=1))
            counts.add(int(np.sum(np.any(want != 0, axis=1))))
    assert len(counts) > 3, "texts of one length would show no gaps"


def test_the_class_token_stands_last_and_is_the_same_for_all():
    _, shown_tokens = in_double_precision(make("pairs"))
    class_tokens = shown_tokens[..., -1, :]
    cls = embeddings().token_id("[CLS]")
    assert_close(class_tokens, np.broadcast_to(embedded(cls, 0, 0), class_tokens.shape))


def test_candidates_are_the_means_of_their_words():
    content, shown_tokens = in_double_precision(make())

    def mean(text: str, most: int, segment: int) -> np.ndarray:
        tokens = [embedded(word, place, segment) for place, word in enumerate(pieces(text, most), start=1)]
        return np.mean(tokens, axis=0).astype(np.float32)  # as they are kept

    for query, candidates, tokens in zip(content["query"], content["candidates"], shown_tokens, strict=True):
        for passage, token in zip(candidates, tokens[:-1], strict=True):
            assert_close(token, mean(corpus().passages[passage], PASSAGE_TOKENS, 1))
        assert_close(tokens[-1], mean(corpus().queries[query], QUERY_TOKENS, 0))
