"""Mined negatives follow the rule on any corpus, and a damaged cache file is never used."""

import io
import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from headcount.errors import HeadcountError
from headcount.papers.data import mining, rankings
from headcount.papers.data.mining import given_negatives, mine
from headcount.papers.data.passages import PassageSet, read_passages

from ...helpers.refusals import refused
from ...helpers.shared_data import convert_marco, marco_queries, needs_marco
from .texts import made_up, parts_of_corpora


def normalised(text: str) -> str:
    return " ".join(text.lower().split())


def answers(corpus: PassageSet, query: int) -> set[str]:
    """The texts that answer `query`, or another query with the same text."""
    return {
        normalised(corpus.passages[place])
        for text, places in zip(corpus.queries, corpus.positives, strict=True)
        if normalised(text) == normalised(corpus.queries[query])
        for place in places
    }


def max_count(corpus: PassageSet) -> int:
    texts = {normalised(text) for text in corpus.passages}
    return min(len(texts - answers(corpus, query)) for query in range(len(corpus.queries)))


def slowly(corpus: PassageSet, count: int, vectors: tuple[np.ndarray, np.ndarray]) -> list[list[int]]:
    """The rule, literally: two sorted lists of all passages, used in turn."""
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
        while len(taken) < count:
            for ranked in (by_words, by_nearness):
                free = [place for place in ranked if normalised(corpus.passages[place]) not in used]
                if free and len(taken) < count:
                    taken.append(free[0])
                    used.add(normalised(corpus.passages[free[0]]))
        lists.append(taken)
    return lists


class TestLaws:
    @settings(max_examples=25, deadline=None)
    @given(drawn=parts_of_corpora(), block=st.sampled_from([1, 100, 2**23]), data=st.data())
    def test_the_rule(self, drawn, block, data):
        corpus, vectors = PassageSet("drawn", **drawn[0]), drawn[1]
        assume(max_count(corpus) >= 1)
        count = data.draw(st.integers(1, max_count(corpus)))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(mining, "BLOCK_QUERIES", 1 + block % 3)
            patch.setattr(rankings, "BLOCK_NUMBERS", block)
            lists = mine(corpus, count=count, vectors=vectors)
        assert lists.dtype == np.int32
        assert lists.tolist() == slowly(corpus, count, vectors)
        for query, places in enumerate(lists):
            texts = {normalised(corpus.passages[place]) for place in places}
            assert len(texts) == count
            assert not texts & answers(corpus, query)

    @settings(max_examples=25, deadline=None)
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
        count = min(map(len, usable))
        if count:
            np.testing.assert_array_equal(given_negatives(corpus), [kept[:count] for kept in usable])
        else:
            short = next(query for query, kept in enumerate(usable) if not kept)
            with refused(f"query q{short} ", "no usable negatives"):
                given_negatives(corpus)


class TestRankings:
    def test_close_cosines_are_ordered_exactly(self):
        """Cosines that differ by less than float32 resolves, where a search in float32 proposes a wrong order."""
        generator = np.random.default_rng(5)
        centre = generator.normal(size=64)
        queries, passages = ((centre + 1e-4 * generator.normal(size=(n, 64))).astype(np.float32) for n in (7, 500))
        ranking = rankings.CosineRanking((queries, passages))
        units = ranking.queries.astype(np.float64), ranking.passages.astype(np.float64)
        exact = np.array([[np.sum(query * passage) for passage in units[1]] for query in units[0]])
        orders = np.argsort(-exact, axis=1, kind="stable")
        for depth in (1, 20, 499, 500):
            for ranked, order in zip(ranking.best(np.arange(7), depth), orders, strict=True):
                assert ranked.places == order[: len(ranked.places)].tolist()
                assert ranked.complete == (depth == 500)

    def test_many_equal_vectors(self):
        corpus, (queries, passages) = made_up(3, 300)
        lists = mine(corpus, count=120, vectors=(queries, np.ones_like(passages)))
        assert lists.tolist() == slowly(corpus, 120, (queries, np.ones_like(passages)))

    def test_bm25_scores_are_those_of_the_formula(self):
        corpus, _ = made_up(6, 30)
        words = rankings.WordRanking(corpus.queries, corpus.passages)
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
            (ranked,) = words.best(np.array([query]), 30)
            assert ranked.complete
            assert set(ranked.places) == set(np.flatnonzero(scores))
            assert np.all(np.diff(scores[ranked.places]) < 1e-5)

    @pytest.mark.parametrize("passages", [("the", "of", "and", "it"), ("lamp", "stone", "fire", "river")])
    def test_cosines_alone_where_no_word_is_shared(self, passages):
        vectors = np.array([[1.0, 0.1], [1, 1], [1, 0.5], [1, 0.2]], np.float32)
        corpus = PassageSet("none", ("1",), ("the heron",), passages, ((0,),))
        assert mine(corpus, count=3, vectors=(vectors[:1], vectors)).tolist() == [[3, 2, 1]]


class TestRefusals:
    def test_too_few_passages(self):
        corpus, vectors = made_up(3, 10)
        with refused("query 0", " 9 ", "10 passages", "need 10"):
            mine(corpus, count=10, vectors=vectors)

    def test_equal_queries_share_their_answers(self):
        corpus = PassageSet("twice", ("1", "2"), ("Heron?", "heron?"), ("a", "b", "c", "C "), ((0,), (1,)))
        vectors = np.ones((2, 2), np.float32), np.ones((4, 2), np.float32)
        assert mine(corpus, count=1, vectors=vectors).tolist() == [[2], [2]]
        assert mining.min_usable(corpus) == 1
        with refused("query 1", " 1 ", "need 2"):
            mine(corpus, count=2, vectors=vectors)

    def test_without_the_package(self, monkeypatch):
        corpus, vectors = made_up(3, 10)
        monkeypatch.setitem(sys.modules, "bm25s", None)
        with pytest.raises(HeadcountError, match=r"bm25s.*pip install 'headcount\[text\]'"):
            mine(corpus, count=2, vectors=vectors)


class TestCache:
    @pytest.fixture
    def case(self):
        corpus, vectors = made_up(5, 40)
        return corpus, vectors, mine(corpus, count=9, vectors=vectors)

    @staticmethod
    def files(folder: Path) -> list[str]:
        return sorted(path.name for path in folder.iterdir())

    def test_a_hit_equals_fresh_lists(self, case, tmp_path, monkeypatch):
        corpus, vectors, fresh = case
        folder = tmp_path / "made" / "when needed"
        np.testing.assert_array_equal(mine(corpus, count=9, vectors=vectors, cache=folder), fresh)
        (name,) = self.files(folder)
        assert name.startswith("negatives-")
        np.testing.assert_array_equal(np.load(folder / name), fresh)
        monkeypatch.setattr(mining, "_mined", None)
        np.testing.assert_array_equal(mine(corpus, count=9, vectors=vectors, cache=folder), fresh)

    def test_whatever_matters_has_its_own_file(self, case, tmp_path):
        corpus, (queries, passages), _ = case
        other = replace(corpus, queries=("word1 word2", *corpus.queries[1:]))
        for asked, count, vectors in (
            (corpus, 9, (queries, passages)),
            (corpus, 8, (queries, passages)),
            (other, 9, (queries, passages)),
            (corpus, 9, (queries, -passages)),
            (corpus, 9, (-queries, passages)),
            (replace(corpus, name="other"), 9, (queries, passages)),
        ):
            lists = mine(asked, count=count, vectors=vectors, cache=tmp_path)
            np.testing.assert_array_equal(lists, mine(asked, count=count, vectors=vectors))
        assert len(self.files(tmp_path)) == 5

    def test_damaged_files_are_replaced(self, case, tmp_path):
        corpus, vectors, fresh = case
        mine(corpus, count=9, vectors=vectors, cache=tmp_path)
        (path,) = tmp_path.iterdir()
        good = path.read_bytes()
        flipped = [
            bytes([*good[:place], good[place] ^ 1, *good[place + 1 :]]) for place in (0, 100, 150, len(good) - 1)
        ]
        truncated = [good[:length] for length in (0, 10, 32, 128, len(good) - 32, len(good) - 1)]
        bare = io.BytesIO()
        np.save(bare, fresh)
        for bad in (*flipped, *truncated, good + b"more", bare.getvalue()):
            path.write_bytes(bad)
            np.testing.assert_array_equal(mine(corpus, count=9, vectors=vectors, cache=tmp_path), fresh)
            assert path.read_bytes() == good

    @pytest.mark.parametrize("fault", [KeyboardInterrupt(), OSError("the disk is full")])
    def test_an_interrupted_write_leaves_nothing(self, case, tmp_path, monkeypatch, fault):
        corpus, vectors, fresh = case

        def stop(*_):
            raise fault

        with monkeypatch.context() as patch:
            patch.setattr("os.replace", stop)
            with pytest.raises(KeyboardInterrupt if isinstance(fault, KeyboardInterrupt) else HeadcountError):
                mine(corpus, count=9, vectors=vectors, cache=tmp_path)
        assert self.files(tmp_path) == []
        np.testing.assert_array_equal(mine(corpus, count=9, vectors=vectors, cache=tmp_path), fresh)

    def test_a_file_instead_of_the_folder(self, case, tmp_path):
        corpus, vectors, _ = case
        (tmp_path / "file").write_text("not a folder")
        with pytest.raises(HeadcountError, match=str(tmp_path / "file")):
            mine(corpus, count=9, vectors=vectors, cache=tmp_path / "file")


@pytest.mark.slow
@needs_marco
def test_dev_small(tmp_path):
    """300 queries against all passages; half of ours should be among the file's BM25 negatives (other stop words)."""
    corpus = read_passages(convert_marco(tmp_path), max_queries=300)
    generator = np.random.default_rng(0)
    vectors = [
        generator.normal(size=(len(texts), 16)).astype(np.float32) for texts in (corpus.queries, corpus.passages)
    ]
    lists = mine(corpus, count=20, vectors=(vectors[0], vectors[1]))
    records = {record["query_id"]: record for record in marco_queries()}
    published = [records[name]["bm25_negatives"][:10] for name in corpus.query_ids]
    shared = [len(set(ours[::2]) & set(theirs)) for ours, theirs in zip(lists.tolist(), published, strict=True)]
    assert np.mean(shared) > 5
