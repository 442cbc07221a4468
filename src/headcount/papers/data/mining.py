"""Hard negatives: passages that look like answers to a query but are not known to be.

The best passage by BM25 and the nearest by cosine are taken in turn; known answers and texts already taken are
skipped. When no further passage shares a word with the query, cosines fill the list.
"""

import hashlib
import io
import json
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Int32

from ..._files import read_regular, write_whole
from ...errors import HeadcountError, require
from .passages import PassageSet
from .rankings import BM25, CosineRanking, Ranked, Vectors, WordRanking

FORMAT = 1
BLOCK_QUERIES = 256

Negatives = Int32[np.ndarray, "queries count"]


def mine(corpus: PassageSet, *, count: int, vectors: Vectors, cache: Path | None = None) -> Negatives:
    """Mine the `count` hardest negatives of every query, as indices into `corpus.passages`, hardest first.

    `vectors`, one per query and one per passage, are for the cosines; `cache` is a folder to keep the lists in, under
    a hash of all that they depend on. Raises InputError where a query has too few passages, HeadcountError without the
    `text` extra or where the cache cannot be written.
    """
    texts = _Texts(corpus)
    for query, query_id in enumerate(corpus.query_ids):
        usable = texts.usable(query)
        require(
            usable >= count,
            f"query {query_id} has {usable} usable negatives among {len(corpus.passages)} passages, but lists of "
            f"{count + 1} candidates need {count}; add passages or ask for shorter lists.",
        )
    path = None if cache is None else cache / f"negatives-{_key(corpus, count, vectors)}.npy"
    lists = None if path is None else _load_lists(path, (len(corpus.queries), count))
    if lists is None:
        lists = _mined(corpus, texts, count, vectors)
        if path is not None:
            _save_lists(path, lists)
    return lists


def min_usable(corpus: PassageSet) -> int:
    """Return the number of negatives that can be mined for every query."""
    texts = _Texts(corpus)
    return min(map(texts.usable, range(len(corpus.queries))))


def given_negatives(corpus: PassageSet) -> Negatives:
    """Return the user's negatives, as many as every query has, without known answers and duplicate texts.

    Raises `InputError` if a query has none.
    """
    texts, lists = _Texts(corpus), []
    for query, places in enumerate(corpus.negatives or ()):
        first: dict[int, int] = {}
        for place in places:
            if texts.group[place] not in texts.answers[query]:
                first.setdefault(texts.group[place], place)
        require(
            len(first) > 0,
            f"query {corpus.query_ids[query]} has no usable negatives; give some, or none at all to have them mined.",
        )
        lists.append([*first.values()])
    shortest = min(map(len, lists))
    return np.array([taken[:shortest] for taken in lists], np.int32)


class _Texts:
    """Groups of passages with equal texts, and the groups that answer each query; equal queries share answers."""

    def __init__(self, corpus: PassageSet):
        groups: dict[str, int] = {}
        self.group = [groups.setdefault(_normalised(text), len(groups)) for text in corpus.passages]
        self.groups = len(groups)
        by_query: dict[str, set[int]] = {}
        self.answers = []
        for query, places in zip(corpus.queries, corpus.positives, strict=True):
            answers = by_query.setdefault(_normalised(query), set())
            answers.update(self.group[place] for place in places)
            self.answers.append(answers)

    def usable(self, query: int) -> int:
        """Return the number of different texts that do not answer a query."""
        return self.groups - len(self.answers[query])


def _normalised(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _mined(corpus: PassageSet, texts: _Texts, count: int, vectors: Vectors) -> Negatives:
    rankings = WordRanking(corpus.queries, corpus.passages), CosineRanking(vectors)
    passages, queries = len(corpus.passages), len(corpus.queries)
    negatives = np.empty((queries, count), np.int32)
    for start in range(0, queries, BLOCK_QUERIES):
        pending = np.arange(start, min(start + BLOCK_QUERIES, queries))
        depth = count + 32
        while len(pending):
            ranked = [ranking.best(pending, min(depth, passages)) for ranking in rankings]
            taken = [
                _alternate((by_words, by_cosine), texts.group, texts.answers[query], count)
                for query, by_words, by_cosine in zip(pending, *ranked, strict=True)
            ]
            for query, places in zip(pending, taken, strict=True):
                if places is not None:
                    negatives[query] = places
            pending = pending[[places is None for places in taken]]
            depth *= 4
    return negatives


def _alternate(
    rankings: tuple[Ranked, Ranked], group: Sequence[int], answers: set[int], count: int
) -> list[int] | None:
    """Return the next passage of each ranking in turn; None if an incomplete ranking is too short."""
    used, taken = set(answers), []
    remaining = [iter(ranked.places) for ranked in rankings]
    turn = 0
    while len(taken) < count:
        place = next((place for place in remaining[turn] if group[place] not in used), None)
        if place is not None:
            used.add(group[place])
            taken.append(place)
        elif not rankings[turn].complete:
            return None
        turn = 1 - turn
    return taken


def _key(corpus: PassageSet, count: int, vectors: Vectors) -> str:
    settings = {"format": FORMAT, "corpus": corpus.fingerprint, "count": count, "bm25": BM25}
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for array in vectors:
        digest.update(f"{array.shape}{array.dtype}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def _load_lists(path: Path, shape: tuple[int, int]) -> Negatives | None:
    try:
        content = read_regular(path)
        if content[-32:] != hashlib.sha256(path.name.encode() + content[:-32]).digest():
            return None
        lists = np.load(io.BytesIO(content[:-32]), allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return lists if lists.dtype == np.int32 and lists.shape == shape else None


def _save_lists(path: Path, lists: Negatives) -> None:
    buffer = io.BytesIO()
    np.save(buffer, lists)
    content = buffer.getvalue()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content + hashlib.sha256(path.name.encode() + content).digest())
    except OSError as error:
        raise HeadcountError(f"the mined negatives cannot be written to {path.parent} ({error}).") from error
