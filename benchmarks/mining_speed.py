"""python benchmarks/mining_speed.py [--data DIR] [--queries N] [--passages N]

Seconds to mine the 63 hardest negatives of every query: by BM25 and by cosine in turn, answers and repeated texts left
out. Without --data, made-up texts whose words are as uneven as a language's, 60 to a passage and 7 to a query, and
random vectors of 384 numbers. Beside it, one query at a time with bm25s's own `retrieve` and a full sort of the
cosines: what one would write instead, timed on some of the queries and multiplied.
"""

import argparse
import time
from pathlib import Path

import bm25s
import numpy as np

from headcount.datasets.mining import mine
from headcount.datasets.passages import PassageSet, read_passages

MOST = 63
DIM = 384
TRIED = 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--queries", type=int, default=7000)
    parser.add_argument("--passages", type=int, default=7000)
    options = parser.parse_args()
    corpus = read_passages(options.data) if options.data else made_up(options.queries, options.passages)
    generator = np.random.default_rng(1)
    vectors = tuple(
        generator.standard_normal((len(texts), DIM)).astype(np.float32) for texts in (corpus.queries, corpus.passages)
    )
    began = time.perf_counter()
    mine(corpus, most=MOST, vectors=vectors)
    ours = time.perf_counter() - began
    plain = plainly(corpus, vectors) * len(corpus.queries) / min(TRIED, len(corpus.queries))
    print(f"{len(corpus.queries)} queries, {len(corpus.passages)} passages, {MOST} negatives each")
    print(f"headcount {ours:.1f} s; one query at a time {plain:.1f} s; ratio {plain / ours:.1f}")


def made_up(queries: int, passages: int) -> PassageSet:
    generator = np.random.default_rng(0)

    def texts(count: int, words: int) -> tuple[str, ...]:
        drawn = generator.zipf(1.3, (count, words)) % 30_000
        return tuple(" ".join(f"w{word}" for word in row) for row in drawn)

    return PassageSet(
        name="made up",
        query_ids=tuple(map(str, range(queries))),
        queries=texts(queries, 7),
        passages=texts(passages, 60),
        positives=tuple((place % passages,) for place in range(queries)),
        negatives=None,
    )


def plainly(corpus: PassageSet, vectors: tuple[np.ndarray, ...]) -> float:
    """Seconds for the first queries, indexing left out."""
    index = bm25s.BM25(method="lucene", k1=0.9, b=0.4)
    index.index(bm25s.tokenize(list(corpus.passages), show_progress=False), show_progress=False)
    queries, passages = (part / np.linalg.norm(part, axis=1, keepdims=True) for part in vectors)
    began = time.perf_counter()
    for place, query in enumerate(corpus.queries[:TRIED]):
        index.retrieve(bm25s.tokenize(query, show_progress=False), k=2 * MOST, show_progress=False)
        np.argsort(-(passages @ queries[place]))[: 2 * MOST]
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
