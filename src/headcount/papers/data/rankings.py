"""Two exact rankings of passages for a query: by BM25 and by the cosine of given vectors.

Ties go to the earlier passage. The cosine search in float32 only proposes: the order is that of cosines summed in
float64, and a ranking is cut where rounding could have hidden a better passage. So every run gives the same lists.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32, Int

from ...errors import HeadcountError

BM25 = {"method": "lucene", "k1": 0.9, "b": 0.4}
BLOCK_NUMBERS = 2**23

Vectors = tuple[Float32[np.ndarray, "queries dim"], Float32[np.ndarray, "passages dim"]]


class Ranked(NamedTuple):
    """The best passages for a query, best first; `complete` if no passage that has a rank is missing."""

    places: list[int]
    complete: bool


class WordRanking:
    """BM25: ranks the passages that share a word with the query."""

    def __init__(self, queries: Sequence[str], passages: Sequence[str]):
        try:
            import bm25s
        except ImportError as error:
            raise HeadcountError("mining negatives needs the package bm25s: pip install 'headcount[text]'.") from error
        words: Any = bm25s.tokenize(list(passages), stopwords="english", show_progress=False)
        self.index = None
        self.queries = []
        if words.vocab:  # else all passages consist of stop words, and none has a score
            self.index = bm25s.BM25(**BM25)
            self.index.index(words, show_progress=False)
            tokens: Any = bm25s.tokenize(list(queries), stopwords="english", return_ids=False, show_progress=False)
            self.queries = [self.index.get_tokens_ids(query) for query in tokens]

    def best(self, queries: Int[np.ndarray, " some"], depth: int) -> list[Ranked]:
        return [self._best(query, depth) for query in queries.tolist()]

    def _best(self, query: int, depth: int) -> Ranked:
        if self.index is None or not self.queries[query]:
            return Ranked([], True)
        scores = self.index.get_scores_from_ids(self.queries[query])
        hits = np.flatnonzero(scores > 0)
        complete = len(hits) <= depth
        if not complete:
            threshold = np.partition(scores[hits], len(hits) - depth)[len(hits) - depth]
            hits = hits[scores[hits] >= threshold]
        return Ranked(hits[np.argsort(-scores[hits], kind="stable")].tolist(), complete)


class CosineRanking:
    """Cosine similarity: ranks all passages."""

    def __init__(self, vectors: Vectors):
        self.queries, self.passages = map(_units, vectors)

    def best(self, queries: Int[np.ndarray, " some"], depth: int) -> list[Ranked]:
        count, dim = self.passages.shape
        block = max(1, min(BLOCK_NUMBERS // count, BLOCK_NUMBERS // (depth * dim)))
        rankings = []
        for start in range(0, len(queries), block):
            units = self.queries[queries[start : start + block]]
            cosines = units @ self.passages.T
            places = np.argpartition(cosines, count - depth, axis=1)[:, count - depth :]
            exact = np.multiply(units[:, None], self.passages[places], dtype=np.float64).sum(axis=-1)
            # Upper bound of the cosine of a passage that was not proposed: float32 sums of `dim` products of units.
            hidden = np.take_along_axis(cosines, places, axis=1).min(axis=1) + 1.01 * (dim + 8) * 2.0**-24
            for row in range(len(units)):
                order = np.lexsort((places[row], -exact[row]))
                certain = count if depth == count else int(np.sum(exact[row] > hidden[row]))
                rankings.append(Ranked(places[row, order[:certain]].tolist(), depth == count))
        return rankings


def _units(vectors: Float32[np.ndarray, "some dim"]) -> Float32[np.ndarray, "some dim"]:
    norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    return np.divide(vectors, norms[:, None], out=np.empty(vectors.shape, np.float32), casting="same_kind")
