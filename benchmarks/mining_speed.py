"""python benchmarks/mining_speed.py [--data DIR] [--queries N] [--passages N]

Seconds to mine the 63 hardest negatives per query, compared with the simplest program: per query, `bm25s.retrieve` and
a full sort of the cosines (timed on 200 queries and extrapolated). Without --data, random texts with Zipf-distributed
words, 60 per passage and 7 per query. Vectors are random, of width 384.
"""

import argparse
import time
from pathlib import Path

import bm25s
import numpy as np

from headcount._draws import named_generator
from headcount.papers.data.mining import mine
from headcount.papers.data.passages import PassageSet, read_passages
from headcount.papers.data.rankings import Vectors

COUNT = 63
DIM = 384
TIMED_QUERIES = 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--queries", type=int, default=7000)
    parser.add_argument("--passages", type=int, default=7000)
    options = parser.parse_args()
    corpus = read_passages(options.data) if options.data else random_corpus(options.queries, options.passages)
    generator = named_generator(0, "random vectors")
    vectors = Vectors(
        *(
            generator.standard_normal((len(texts), DIM)).astype(np.float32)
            for texts in (corpus.queries, corpus.passages)
        )
    )
    began = time.perf_counter()
    mine(corpus, count=COUNT, vectors=vectors)
    ours = time.perf_counter() - began
    simple = one_by_one(corpus, vectors) * len(corpus.queries) / min(TIMED_QUERIES, len(corpus.queries))
    print(f"{len(corpus.queries)} queries, {len(corpus.passages)} passages, {COUNT} negatives each")
    print(f"headcount {ours:.1f} s; one query at a time {simple:.1f} s; ratio {simple / ours:.1f}")


def random_corpus(queries: int, passages: int) -> PassageSet:
    generator = named_generator(0, "random texts")

    def texts(count: int, words: int) -> tuple[str, ...]:
        drawn = generator.zipf(1.3, (count, words)) % 30_000
        return tuple(" ".join(f"w{word}" for word in row) for row in drawn)

    return PassageSet(
        name="random",
        query_ids=tuple(map(str, range(queries))),
        queries=texts(queries, 7),
        passages=texts(passages, 60),
        positives=tuple((place % passages,) for place in range(queries)),
    )


def one_by_one(corpus: PassageSet, vectors: tuple[np.ndarray, ...]) -> float:
    """Seconds for the first queries, without indexing."""
    index = bm25s.BM25(method="lucene", k1=0.9, b=0.4)
    index.index(bm25s.tokenize(list(corpus.passages), show_progress=False), show_progress=False)
    queries, passages = (part / np.linalg.norm(part, axis=1, keepdims=True) for part in vectors)
    began = time.perf_counter()
    for place, query in enumerate(corpus.queries[:TIMED_QUERIES]):
        index.retrieve(bm25s.tokenize(query, show_progress=False), k=2 * COUNT, show_progress=False)
        np.argsort(-(passages @ queries[place]))[: 2 * COUNT]
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
