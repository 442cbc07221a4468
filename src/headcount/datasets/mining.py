"""Hard negatives: passages that look like answers to a query and are not known to be.

Words and meaning take turns: the best passage by BM25, then the nearest by the cosine of given vectors, then the next
by BM25. A known answer is never taken, nor a text twice. When no further passage shares a word with the query,
nearness fills the list.

Both rankings are exact, and ties go to the earlier passage. Searches in float32 only propose; the order is that of
cosines summed in float64, and a proposal counts only as far down as rounding cannot have hidden a better passage. So
the lists are the same with faiss, without it, and on every run.
"""

import hashlib
import importlib
import importlib.util
import io
import json
import os
import tempfile
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from jaxtyping import Float32, Int, Int32

from .._errors import HeadcountError, InputError, require, require_count
from .passages import PassageSet

FORMAT = 1
BM25 = {"method": "lucene", "k1": 0.9, "b": 0.4}
QUERIES_AT_ONCE = 256
NUMBERS_AT_ONCE = 2**23

Vectors = tuple[Float32[np.ndarray, "queries dim"], Float32[np.ndarray, "passages dim"]]
Negatives = Int32[np.ndarray, "queries most"]


class Ranked(NamedTuple):
    """The best passages for a query, best first; `whole` when no passage that counts is missing."""

    places: list[int]
    whole: bool


class Ranking(Protocol):
    def best(self, queries: Int[np.ndarray, " some"], depth: int) -> list[Ranked]:
        """For each of `queries`, about `depth` passages in exact order."""
        ...


def _in_silence(done: int, total: int) -> None:
    pass


def mine(
    corpus: PassageSet,
    *,
    most: int,
    vectors: Vectors,
    cache: Path | None = None,
    on_progress: Callable[[int, int], None] = _in_silence,
) -> Negatives:
    """The `most` hardest negatives of each query, best first, as places in `corpus.passages`.

    With `cache`, the lists are kept in that folder under a name that covers all they depend on. `on_progress(done,
    total)` counts queries.
    """
    require_count("most", most)
    _check_vectors(corpus, vectors)
    texts = _Texts(corpus)
    for query, query_id in enumerate(corpus.query_ids):
        usable = texts.usable(query)
        if usable < most:
            raise InputError(
                f"query {query_id} has {usable} usable negatives among {len(corpus.passages)} passages; lists of "
                f"{most + 1} candidates need {most}: give more passages, or ask for shorter lists."
            )
    if cache is None:
        return _mined(corpus, texts, most, vectors, on_progress)
    file = _CacheFile(cache, _key(corpus, most, vectors))
    kept = file.read((len(corpus.queries), most), len(corpus.passages))
    if kept is None:
        kept = _mined(corpus, texts, most, vectors, on_progress)
        file.write(kept)
    return kept


def fewest_usable(corpus: PassageSet) -> int:
    """How many negatives can be mined for the query that can have the fewest."""
    texts = _Texts(corpus)
    return min(map(texts.usable, range(len(corpus.queries))))


def given_negatives(corpus: PassageSet, most: int | None = None) -> Negatives:
    """The first `most` negatives that the user gave for each query, less its answers and texts that come again.

    Without `most`, as many as every query has.
    """
    if most is not None:
        require_count("most", most)
    if corpus.negatives is None:
        raise InputError(f"{corpus.name} has no negatives of its own, so they are to be mined.")
    texts = _Texts(corpus)
    lists: list[list[int]] = []
    for query, places in enumerate(corpus.negatives):
        used, taken = set(texts.answers[query]), []
        for place in places:
            if texts.group[place] not in used:
                used.add(texts.group[place])
                taken.append(place)
        needed = 1 if most is None else most
        require(
            len(taken) >= needed,
            f"query {corpus.query_ids[query]} has {len(taken)} usable negatives; lists of {needed + 1} candidates "
            f"need {needed}: give more, or leave negatives out so that they are mined.",
        )
        lists.append(taken)
    kept = min(map(len, lists)) if most is None else most
    return np.array([taken[:kept] for taken in lists], np.int32)


class _Texts:
    """Which passages say the same, and what answers each query; a query asked twice has the answers of both."""

    def __init__(self, corpus: PassageSet):
        groups: dict[str, int] = {}
        self.group = [groups.setdefault(_normalised(text), len(groups)) for text in corpus.passages]
        self.different = len(groups)
        by_query: dict[str, set[int]] = {}
        self.answers = []
        for query, places in zip(corpus.queries, corpus.positives, strict=True):
            answers = by_query.setdefault(_normalised(query), set())
            answers.update(self.group[place] for place in places)
            self.answers.append(answers)

    def usable(self, query: int) -> int:
        """Different texts that do not answer a query."""
        return self.different - len(self.answers[query])


def _normalised(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _mined(
    corpus: PassageSet, texts: _Texts, most: int, vectors: Vectors, on_progress: Callable[[int, int], None]
) -> Negatives:
    rankings: tuple[Ranking, Ranking] = (_Words(corpus), _Nearness(*vectors))
    passages, queries = len(corpus.passages), len(corpus.queries)
    negatives = np.empty((queries, most), np.int32)
    for start in range(0, queries, QUERIES_AT_ONCE):
        short = np.arange(start, min(start + QUERIES_AT_ONCE, queries))
        depth = most + 32
        while len(short):
            ranked = [ranking.best(short, min(depth, passages)) for ranking in rankings]
            taken = [
                _alternate((words, near), texts.group, texts.answers[query], most)
                for query, words, near in zip(short, *ranked, strict=True)
            ]
            for query, places in zip(short, taken, strict=True):
                if places is not None:
                    negatives[query] = places
            short = short[[places is None for places in taken]]
            depth *= 4
        on_progress(min(start + QUERIES_AT_ONCE, queries), queries)
    return negatives


def _alternate(rankings: tuple[Ranked, Ranked], group: Sequence[int], answers: set[int], most: int) -> list[int] | None:
    """The next passage of each ranking in turn; None when one that is not whole came to its end too soon."""
    used, taken = set(answers), []
    rest = [iter(ranked.places) for ranked in rankings]
    turn = 0
    while len(taken) < most:
        place = next((place for place in rest[turn] if group[place] not in used), None)
        if place is not None:
            used.add(group[place])
            taken.append(place)
        elif not rankings[turn].whole:
            return None
        else:
            assert turn == 0, "nearness ranks every passage, and there were enough of them"
        turn = 1 - turn
    return taken


class _Words:
    """BM25: the passages that share words with a query."""

    def __init__(self, corpus: PassageSet):
        try:
            import bm25s
        except ImportError as error:
            raise HeadcountError("mining negatives needs the package bm25s: pip install 'headcount[text]'.") from error
        words: Any = bm25s.tokenize(list(corpus.passages), stopwords="english", show_progress=False)
        self.index = None
        self.queries = []
        if words.vocab:  # else every passage is made of stopwords, and none has a score
            self.index = bm25s.BM25(**BM25)
            self.index.index(words, show_progress=False)
            asked: Any = bm25s.tokenize(
                list(corpus.queries), stopwords="english", return_ids=False, show_progress=False
            )
            self.queries = [self.index.get_tokens_ids(tokens) for tokens in asked]

    def best(self, queries: Int[np.ndarray, " some"], depth: int) -> list[Ranked]:
        return [self._best(query, depth) for query in queries.tolist()]

    def _best(self, query: int, depth: int) -> Ranked:
        if self.index is None or not self.queries[query]:
            return Ranked([], True)
        scores = self.index.get_scores_from_ids(self.queries[query])
        hits = np.flatnonzero(scores > 0)
        whole = len(hits) <= depth
        if not whole:
            least = np.partition(scores[hits], len(hits) - depth)[len(hits) - depth]
            hits = hits[scores[hits] >= least]
        return Ranked(hits[np.argsort(-scores[hits], kind="stable")].tolist(), whole)


class _Nearness:
    """Cosines: all passages, from the nearest to the farthest."""

    def __init__(
        self, query_vectors: Float32[np.ndarray, "queries dim"], passage_vectors: Float32[np.ndarray, "passages dim"]
    ):
        self.queries, self.passages = _units(query_vectors), _units(passage_vectors)
        faiss = _faiss()
        self.index = None if faiss is None else faiss.IndexFlatIP(self.passages.shape[1])
        if self.index is not None:
            self.index.add(self.passages)

    def best(self, queries: Int[np.ndarray, " some"], depth: int) -> list[Ranked]:
        count, dim = self.passages.shape
        at_once = max(1, min(NUMBERS_AT_ONCE // count, NUMBERS_AT_ONCE // (depth * dim)))
        found = []
        for start in range(0, len(queries), at_once):
            units = self.queries[queries[start : start + at_once]]
            places, cosines = self._proposed(units, depth)
            exact = np.multiply(units[:, None], self.passages[places], dtype=np.float64).sum(axis=-1)
            # A passage that was not proposed has a cosine of at most this: float32 sums of `dim` products of units.
            hidden = cosines.min(axis=1) + 1.01 * (dim + 8) * 2.0**-24
            for row in range(len(units)):
                order = np.lexsort((places[row], -exact[row]))
                certain = count if depth == count else int(np.sum(exact[row] > hidden[row]))
                found.append(Ranked(places[row, order[:certain]].tolist(), depth == count))
        return found

    def _proposed(
        self, units: Float32[np.ndarray, "some dim"], depth: int
    ) -> tuple[Int[np.ndarray, "some depth"], Float32[np.ndarray, "some depth"]]:
        """`depth` passages whose cosines, as float32 has them, no other passage exceeds, in any order."""
        if self.index is not None:
            cosines, places = self.index.search(units, depth)
            return places, cosines
        cosines = units @ self.passages.T
        places = np.argpartition(cosines, cosines.shape[1] - depth, axis=1)[:, cosines.shape[1] - depth :]
        return places, np.take_along_axis(cosines, places, axis=1)


def _faiss() -> Any:
    """The package, or None: it is an extra, and NumPy does the same."""
    return None if importlib.util.find_spec("faiss") is None else importlib.import_module("faiss")


def _units(vectors: Float32[np.ndarray, "some dim"]) -> Float32[np.ndarray, "some dim"]:
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    return np.divide(vectors, lengths[:, None], out=np.empty(vectors.shape, np.float32), casting="same_kind")


def _check_vectors(corpus: PassageSet, vectors: Vectors) -> None:
    for what, array, count in zip(
        ("query", "passage"), vectors, (len(corpus.queries), len(corpus.passages)), strict=True
    ):
        require(
            array.ndim == 2 and len(array) == count,
            f"{corpus.name}: {what} vectors of shape {array.shape} cannot serve {count} texts.",
        )
        require(bool(np.all(np.isfinite(array))), f"{corpus.name}: {what} vectors must be finite numbers.")
        zero = int(np.sum(~np.any(array, axis=1)))
        require(zero == 0, f"{corpus.name}: {zero} {what} vectors are zero, and have no direction to compare.")
    widths = [array.shape[1] for array in vectors]
    require(
        widths[0] == widths[1],
        f"{corpus.name}: query vectors are {widths[0]} wide and passage vectors {widths[1]}; they must agree.",
    )


def _key(corpus: PassageSet, most: int, vectors: Vectors) -> str:
    """A name for all that the lists depend on."""
    settings = {"format": FORMAT, "corpus": corpus.fingerprint, "most": most, "bm25": BM25}
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for array in vectors:
        digest.update(f"{array.shape}{array.dtype}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


class _CacheFile:
    """Lists on disk: an .npy file and, after its end, a hash of it; anything else is as good as no file."""

    def __init__(self, folder: Path, key: str):
        self.path, self.key = folder / f"negatives-{key}.npy", key

    def read(self, shape: tuple[int, int], passages: int) -> Negatives | None:
        try:
            content = self.path.read_bytes()
            array, digest = content[:-32], content[-32:]
            if digest != self._digest(array):
                return None
            lists = np.load(io.BytesIO(array), allow_pickle=False)
        except (OSError, ValueError, EOFError):
            return None
        right = lists.dtype == np.int32 and lists.shape == shape and lists.min() >= 0 and lists.max() < passages
        return lists if right else None

    def write(self, lists: Negatives) -> None:
        buffer = io.BytesIO()
        np.save(buffer, lists)
        content = buffer.getvalue()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=f"{self.path.stem}-", suffix=".part", dir=self.path.parent)
            try:
                with open(handle, "wb") as file:
                    file.write(content + self._digest(content))
                os.replace(name, self.path)
            finally:
                Path(name).unlink(missing_ok=True)
        except OSError as error:
            raise HeadcountError(f"the mined negatives cannot be kept in {self.path.parent} ({error}).") from error

    def _digest(self, content: bytes) -> bytes:
        return hashlib.sha256(self.key.encode() + content).digest()
