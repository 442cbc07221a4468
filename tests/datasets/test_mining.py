"""Mined negatives obey their rules on any corpus, and a damaged file of them is never believed."""

import gzip
import importlib.util
import io
import json
import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from headcount._errors import HeadcountError
from headcount.datasets import mining
from headcount.datasets.mining import given_negatives, mine
from headcount.datasets.passages import PassageSet, read_passages

from ..tasks.laws import refused
from .texts import made_up, parts_of_corpora

MARCO = Path(__file__).parents[3] / "shared" / "data" / "msmarco"
needs_faiss = pytest.mark.skipif(importlib.util.find_spec("faiss") is None, reason="faiss is not installed")


def normalised(text: str) -> str:
    return " ".join(text.lower().split())


def answers(corpus: PassageSet, query: int) -> set[str]:
    """The texts that answer `query`, also where it is asked a second time."""
    return {
        normalised(corpus.passages[place])
        for text, places in zip(corpus.queries, corpus.positives, strict=True)
        if normalised(text) == normalised(corpus.queries[query])
        for place in places
    }


def most_usable(corpus: PassageSet) -> int:
    texts = {normalised(text) for text in corpus.passages}
    return min(len(texts - answers(corpus, query)) for query in range(len(corpus.queries)))


def slowly(corpus: PassageSet, most: int, vectors: tuple[np.ndarray, np.ndarray]) -> list[list[int]]:
    """The rule as it is said: two sorted lists of all passages, and a turn for each."""
    import bm25s

    index = bm25s.BM25(method="lucene", k1=0.9, b=0.4)
    tokens = bm25s.tokenize([*corpus.passages, "unseen"], return_ids=False, show_progress=False)[:-1]
    if any(tokens):
        index.index(tokens, show_progress=False)
    units = [v.astype(np.float64) / np.linalg.norm(v.astype(np.float64), axis=1)[:, None] for v in vectors]
    query_units, passage_units = (unit.astype(np.float32).astype(np.float64) for unit in units)
    lists = []
    for query, asked in enumerate(bm25s.tokenize(list(corpus.queries), return_ids=False, show_progress=False)):
        known = [word for word in asked if any(word in passage for passage in tokens)]
        scores = index.get_scores(known) if known else np.zeros(len(tokens))
        by_words = sorted((place for place in range(len(tokens)) if scores[place] > 0), key=lambda p: (-scores[p], p))
        cosines = [np.sum(query_units[query] * unit) for unit in passage_units]
        by_nearness = sorted(range(len(tokens)), key=lambda p: (-cosines[p], p))
        taken, used = [], answers(corpus, query)
        while len(taken) < most:
            for ranked in (by_words, by_nearness):
                free = [place for place in ranked if normalised(corpus.passages[place]) not in used]
                if free and len(taken) < most:
                    taken.append(free[0])
                    used.add(normalised(corpus.passages[free[0]]))
        lists.append(taken)
    return lists


class TestLaws:
    @settings(max_examples=40, deadline=None)
    @given(drawn=parts_of_corpora(), data=st.data())
    def test_the_rule(self, drawn, data):
        corpus, vectors = PassageSet("drawn", **drawn[0]), drawn[1]
        assume(most_usable(corpus) >= 1)
        most = data.draw(st.integers(1, most_usable(corpus)))
        lists = mine(corpus, most=most, vectors=vectors)
        assert lists.dtype == np.int32
        assert lists.shape == (len(corpus.queries), most)
        for query, places in enumerate(lists):
            texts = [normalised(corpus.passages[place]) for place in places]
            assert len(set(texts)) == most
            assert not set(texts) & answers(corpus, query)
        assert lists.tolist() == slowly(corpus, most, vectors)
        np.testing.assert_array_equal(mine(corpus, most=most, vectors=vectors), lists)

    @needs_faiss
    @settings(max_examples=40, deadline=None)
    @given(drawn=parts_of_corpora())
    def test_the_same_without_faiss(self, drawn):
        corpus, vectors = PassageSet("drawn", **drawn[0]), drawn[1]
        most = most_usable(corpus)
        assume(most >= 1)
        lists = mine(corpus, most=most, vectors=vectors)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(mining, "_faiss", lambda: None)
            np.testing.assert_array_equal(mine(corpus, most=most, vectors=vectors), lists)

    @settings(max_examples=40, deadline=None)
    @given(drawn=parts_of_corpora())
    def test_given_negatives_keep_their_order(self, drawn):
        corpus = PassageSet("drawn", **drawn[0])
        assert corpus.negatives is not None
        usable = []
        for query, places in enumerate(corpus.negatives):
            used, kept = answers(corpus, query), []
            for place in places:
                if normalised(corpus.passages[place]) not in used:
                    used.add(normalised(corpus.passages[place]))
                    kept.append(place)
            usable.append(kept)
        most = min(map(len, usable))
        if most:
            np.testing.assert_array_equal(given_negatives(corpus, most), [kept[:most] for kept in usable])
        short = next(query for query, kept in enumerate(usable) if len(kept) == most)
        with refused(f"query q{short} has {most} usable", f"{most + 2} candidates need {most + 1}", "mined"):
            given_negatives(corpus, most + 1)


class TestNearness:
    @pytest.mark.parametrize("faiss", [pytest.param(True, marks=needs_faiss), False])
    def test_close_calls_are_decided_exactly(self, monkeypatch, faiss):
        """Cosines that differ by less than float32 can tell, where a search in float32 proposes a wrong order."""
        if not faiss:
            monkeypatch.setattr(mining, "_faiss", lambda: None)
        generator = np.random.default_rng(5)
        centre = generator.normal(size=64)
        passages = (centre + 1e-4 * generator.normal(size=(500, 64))).astype(np.float32)
        queries = (centre + 1e-4 * generator.normal(size=(7, 64))).astype(np.float32)
        ranking = mining._Nearness(queries, passages)
        units = ranking.queries.astype(np.float64), ranking.passages.astype(np.float64)
        exact = np.array([[np.sum(query * passage) for passage in units[1]] for query in units[0]])
        orders = np.argsort(-exact, axis=1, kind="stable")
        for depth in (1, 20, 499, 500):
            for found, order in zip(ranking.best(np.arange(7), depth), orders, strict=True):
                assert found.places == order[: len(found.places)].tolist()
                assert found.whole == (depth == 500)

    def test_a_long_way_down_equal_vectors(self):
        corpus, (queries, passages) = made_up(3, 300)
        lists = mine(corpus, most=120, vectors=(queries, np.ones_like(passages)))
        assert lists.tolist() == slowly(corpus, 120, (queries, np.ones_like(passages)))


class TestWords:
    def test_scores_are_those_of_the_formula(self):
        corpus, _ = made_up(6, 30)
        words = mining._Words(corpus)
        passages = [text.split() for text in corpus.passages]
        mean = sum(map(len, passages)) / len(passages)
        for query, text in enumerate(corpus.queries):
            scores = np.zeros(len(passages))
            for word in text.split():
                having = sum(word in passage for passage in passages)
                weight = math.log(1 + (len(passages) - having + 0.5) / (having + 0.5))
                for place, passage in enumerate(passages):
                    count = passage.count(word)
                    scores[place] += weight * count / (count + 0.9 * (1 - 0.4 + 0.4 * len(passage) / mean))
            ranked = words._best(query, 30)
            assert ranked.whole
            assert set(ranked.places) == set(np.flatnonzero(scores))
            assert np.all(np.diff(scores[ranked.places]) < 1e-5)

    @pytest.mark.parametrize("passages", [("the", "of", "and", "it"), ("lamp", "stone", "fire", "river")])
    def test_nearness_alone_where_no_word_is_shared(self, passages):
        vectors = np.array([[1.0, 0.1], [1, 1], [1, 0.5], [1, 0.2]], np.float32)
        corpus = PassageSet("none", ("1",), ("the heron",), passages, ((0,),))
        assert mine(corpus, most=3, vectors=(vectors[:1], vectors)).tolist() == [[3, 2, 1]]

    def test_turns_begin_with_words(self):
        passages = ("answer", "heron heron", "heron stone river", "lamp", "fire")
        vectors = np.array([[1, 0], [-1, 0], [-1, 0.1], [1, 0.2], [1, 0.1]], np.float32)
        corpus = PassageSet("turns", ("1",), ("heron",), passages, ((0,),))
        assert mine(corpus, most=4, vectors=(vectors[:1], vectors)).tolist() == [[1, 4, 2, 3]]


class TestRefusals:
    def test_too_few_passages(self):
        corpus, vectors = made_up(3, 10)
        with refused("query 0", "9 usable", "10 passages", "lists of 11", "need 10"):
            mine(corpus, most=10, vectors=vectors)

    def test_an_answer_under_another_name_is_an_answer(self):
        corpus = PassageSet("twice", ("1", "2"), ("Heron?", "heron?"), ("a", "b", "c", "C "), ((0,), (1,)))
        vectors = np.ones((2, 2), np.float32), np.ones((4, 2), np.float32)
        assert mine(corpus, most=1, vectors=vectors).tolist() == [[2], [2]]
        with refused("query 1", "1 usable"):
            mine(corpus, most=2, vectors=vectors)

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            (lambda q, p: (q[1:], p), ["query vectors", "(2, 8)", "3 texts"]),
            (lambda q, p: (q, p[0]), ["passage vectors", "(8,)"]),
            (lambda q, p: (q, p[:, 1:]), ["8 wide", "7"]),
            (lambda q, p: (q, p * np.float32(np.nan)), ["passage vectors", "finite"]),
            (lambda q, p: (q * np.float32(0), p), ["3 query vectors are zero"]),
        ],
    )
    def test_bad_vectors(self, change, words):
        corpus, vectors = made_up(3, 10)
        with refused(*words):
            mine(corpus, most=2, vectors=change(*vectors))

    def test_no_negatives_were_given(self):
        with refused("made up", "mined"):
            given_negatives(made_up(3, 10)[0], 2)

    @pytest.mark.parametrize("most", [0, -1, 2.5])
    def test_counts(self, most):
        corpus, vectors = made_up(3, 10)
        with refused("most", str(most)):
            mine(corpus, most=most, vectors=vectors)

    def test_without_the_package(self, monkeypatch):
        corpus, vectors = made_up(3, 10)
        monkeypatch.setitem(sys.modules, "bm25s", None)
        with pytest.raises(HeadcountError, match=r"needs the package bm25s: pip install 'headcount\[text\]'"):
            mine(corpus, most=2, vectors=vectors)


class TestCache:
    @pytest.fixture
    def case(self):
        corpus, vectors = made_up(5, 40)
        return corpus, vectors, mine(corpus, most=9, vectors=vectors)

    @staticmethod
    def files(folder: Path) -> list[str]:
        return sorted(path.name for path in folder.iterdir())

    def test_a_hit_equals_fresh_lists(self, case, tmp_path, monkeypatch):
        corpus, vectors, fresh = case
        folder = tmp_path / "made" / "when needed"
        np.testing.assert_array_equal(mine(corpus, most=9, vectors=vectors, cache=folder), fresh)
        (name,) = self.files(folder)
        assert name.startswith("negatives-")
        np.testing.assert_array_equal(np.load(folder / name), fresh)
        monkeypatch.setattr(mining, "_mined", None)
        np.testing.assert_array_equal(mine(corpus, most=9, vectors=vectors, cache=folder), fresh)

    def test_whatever_matters_has_its_own_file(self, case, tmp_path):
        corpus, (queries, passages), _ = case
        renamed = replace(corpus, name="other")
        other = replace(corpus, queries=("word1 word2", *corpus.queries[1:]))
        for asked, most, vectors in (
            (corpus, 9, (queries, passages)),
            (corpus, 8, (queries, passages)),
            (other, 9, (queries, passages)),
            (corpus, 9, (queries, -passages)),
            (corpus, 9, (-queries, passages)),
            (renamed, 9, (queries, passages)),
        ):
            lists = mine(asked, most=most, vectors=vectors, cache=tmp_path)
            np.testing.assert_array_equal(lists, mine(asked, most=most, vectors=vectors))
        assert len(self.files(tmp_path)) == 5

    def test_damaged_files_are_made_again(self, case, tmp_path):
        corpus, vectors, fresh = case
        mine(corpus, most=9, vectors=vectors, cache=tmp_path)
        (path,) = tmp_path.iterdir()
        good = path.read_bytes()
        flipped = [
            bytes([*good[:place], good[place] ^ 1, *good[place + 1 :]]) for place in (0, 100, 150, len(good) - 1)
        ]
        cut = [good[:length] for length in (0, 10, 32, 128, len(good) - 32, len(good) - 1)]
        bare = io.BytesIO()
        np.save(bare, fresh)
        for bad in (*flipped, *cut, good + b"more", b"no lists at all" * 10, bare.getvalue()):
            path.write_bytes(bad)
            np.testing.assert_array_equal(mine(corpus, most=9, vectors=vectors, cache=tmp_path), fresh)
            assert path.read_bytes() == good

    def test_files_that_are_whole_and_wrong_are_made_again(self, case, tmp_path):
        corpus, vectors, fresh = case
        mine(corpus, most=9, vectors=vectors, cache=tmp_path)
        (path,) = tmp_path.iterdir()
        good = path.read_bytes()
        file = mining._CacheFile(tmp_path, path.stem.removeprefix("negatives-"))
        for lists in (fresh[:-1], fresh[:, :-1], fresh.astype(np.int64), fresh + np.int32(40), fresh - np.int32(40)):
            buffer = io.BytesIO()
            np.save(buffer, lists)
            path.write_bytes(buffer.getvalue() + file._digest(buffer.getvalue()))
            np.testing.assert_array_equal(mine(corpus, most=9, vectors=vectors, cache=tmp_path), fresh)
            assert path.read_bytes() == good

    @pytest.mark.parametrize("fault", [KeyboardInterrupt(), OSError("the disk is full")])
    def test_an_interrupted_write_leaves_nothing(self, case, tmp_path, monkeypatch, fault):
        corpus, vectors, fresh = case

        def stop(*_):
            raise fault

        with monkeypatch.context() as patch:
            patch.setattr(mining.os, "replace", stop)
            with pytest.raises(KeyboardInterrupt if isinstance(fault, KeyboardInterrupt) else HeadcountError):
                mine(corpus, most=9, vectors=vectors, cache=tmp_path)
        assert self.files(tmp_path) == []
        np.testing.assert_array_equal(mine(corpus, most=9, vectors=vectors, cache=tmp_path), fresh)

    def test_a_file_where_the_folder_should_be(self, case, tmp_path):
        corpus, vectors, _ = case
        (tmp_path / "file").write_text("not a folder")
        with pytest.raises(HeadcountError, match="cannot be kept"):
            mine(corpus, most=9, vectors=vectors, cache=tmp_path / "file")

    def test_progress_counts_queries(self, monkeypatch):
        corpus, vectors = made_up(10, 40)
        whole = mine(corpus, most=5, vectors=vectors)
        monkeypatch.setattr(mining, "QUERIES_AT_ONCE", 4)
        monkeypatch.setattr(mining, "NUMBERS_AT_ONCE", 100)
        heard = []
        blocked = mine(corpus, most=5, vectors=vectors, on_progress=lambda done, total: heard.append((done, total)))
        assert heard == [(4, 10), (8, 10), (10, 10)]
        np.testing.assert_array_equal(blocked, whole)


@pytest.mark.skipif(not MARCO.is_dir(), reason="the MS MARCO dev-small files are not at hand")
def test_dev_small():
    """300 of its queries in the whole pool; the file carries BM25 negatives of its own, made with other words."""
    corpus = read_passages(MARCO, max_queries=300)
    generator = np.random.default_rng(0)
    vectors = [
        generator.normal(size=(len(texts), 16)).astype(np.float32) for texts in (corpus.queries, corpus.passages)
    ]
    lists = mine(corpus, most=20, vectors=(vectors[0], vectors[1]))
    for places, positives in zip(lists.tolist(), corpus.positives, strict=True):
        assert len(set(places)) == 20
        assert not set(places) & set(positives)
    with gzip.open(MARCO / "dev_small_queries.jsonl.gz", "rt", encoding="utf-8") as file:
        records = {record["query_id"]: record for record in map(json.loads, file)}
    firsts = [records[name]["bm25_negatives"][:10] for name in corpus.query_ids]
    shared = [len(set(ours[::2]) & set(theirs)) for ours, theirs in zip(lists.tolist(), firsts, strict=True)]
    assert np.mean(shared) > 5
