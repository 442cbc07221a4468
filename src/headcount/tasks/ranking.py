"""Which of `length` candidate passages answers a query: one positive, and negatives that were mined to be hard.

The paper does not say how candidates enter the encoder; there are two layouts:

    candidates   one sequence: a token for each candidate, the mean of its frozen word embeddings, and the query's as
                 the last; a score is read at each candidate's token, so candidates are compared by attention
    pairs        a sequence for each candidate: query and passage joined word by word, as BERT reads them; a score is
                 read at [CLS], which stands last, its position still the first; attention sees one pair at a time

Source: the MS MARCO experiment of Yu et al. (arXiv 2510.06662), Tables 6 and 7.
"""

from pathlib import Path
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from .._choices import AnsweredAt
from .._errors import require, require_count
from .._keys import named_generator
from .._shapes import AnyArray, Key, Tokens
from ..datasets.embeddings import WordEmbeddings
from ..datasets.mining import given_negatives, min_usable, mine
from ..datasets.passages import PassageSet
from .base import Examples, Split, Tokenise, fingerprint
from .labelled import LabelledTask, split_indices
from .objective import Choice

Layout = Literal["candidates", "pairs"]
LAYOUTS: tuple[Layout, ...] = ("candidates", "pairs")
QUERY_TOKENS, PASSAGE_TOKENS = 16, 45
"""Word pieces kept of a query and of a passage; joined by [CLS] and twice [SEP] they are 64 tokens."""
MAX_CANDIDATES = 64
QUERY_SEGMENT, PASSAGE_SEGMENT = 0, 1
NORM_FLOOR = 1e-12


class CandidateTokens(Tokenise):
    """A token for each candidate, and the query last."""

    queries: Float[AnyArray, "queries dim"]
    passages: Float[AnyArray, "passages dim"]

    def __call__(self, content: dict[str, AnyArray], key: Key) -> Tokens:
        return jnp.concatenate([self.passages[content["candidates"]], self.queries[content["query"]][None]])


class JoinedPairs(Tokenise):
    """Query and candidate joined, a sequence for each candidate: query, [SEP], passage, [SEP], [CLS].

    Slots that a shorter text leaves free are zeros. Positions count as BERT's do, from [CLS] on and without gaps.
    """

    query_words: Int[AnyArray, "queries query_tokens"]
    query_counts: Int[AnyArray, " queries"]
    passage_words: Int[AnyArray, "passages passage_tokens"]
    passage_counts: Int[AnyArray, " passages"]
    words: Float[AnyArray, "vocabulary dim"]
    positions: Float[AnyArray, "places dim"]
    segments: Float[AnyArray, "2 dim"]
    gain: Float[AnyArray, " dim"]
    shift: Float[AnyArray, " dim"]
    classes: int = eqx.field(static=True)
    separator: int = eqx.field(static=True)

    def __call__(self, content: dict[str, AnyArray], key: Key) -> Float[AnyArray, "candidates length dim"]:
        return jax.vmap(self.pair, in_axes=(None, 0))(content["query"], content["candidates"])

    def pair(self, query: Int[AnyArray, ""], passage: Int[AnyArray, ""]) -> Tokens:
        asked, held = self.query_counts[query], self.passage_counts[passage]
        query_places = jnp.arange(self.query_words.shape[1])
        passage_places = jnp.arange(self.passage_words.shape[1])
        separator, start = jnp.full(1, self.separator), jnp.full(1, self.classes)
        words = jnp.concatenate([self.query_words[query], separator, self.passage_words[passage], separator, start])
        # What is not there may count past the last position; it is zeroed, wherever it points.
        there = jnp.concatenate([query_places < asked, jnp.ones(1, bool), passage_places < held, jnp.ones(2, bool)])
        places = jnp.concatenate(
            [
                1 + query_places,
                (1 + asked)[None],
                2 + asked + passage_places,
                (2 + asked + held)[None],
                jnp.zeros(1, int),
            ]
        )
        of_passage = jnp.arange(len(words)) > self.query_words.shape[1]
        segment = jnp.where(of_passage.at[-1].set(False), PASSAGE_SEGMENT, QUERY_SEGMENT)
        summed = self.words[words] + self.positions[places] + self.segments[segment]
        centred = summed - jnp.mean(summed, axis=-1, keepdims=True)
        normed = centred * jax.lax.rsqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + NORM_FLOOR)
        return jnp.where(there[:, None], normed * self.gain + self.shift, 0.0)


class Ranking(LabelledTask):
    """The candidate that answers the query. `negatives` are a query's, the hardest first; a shorter list has fewer."""

    positives: Int[np.ndarray, " queries"]
    negatives: Int[np.ndarray, "queries most"]
    tokens_of: Tokenise
    length: int = eqx.field(static=True)
    dim: int = eqx.field(static=True)
    name: str = eqx.field(static=True)
    layout: Layout = eqx.field(static=True)
    content: dict[str, Any] = eqx.field(static=True)
    outputs: int = eqx.field(static=True)
    uses_positions: bool = eqx.field(static=True)
    pair_tokens: int = eqx.field(static=True)

    def __init__(
        self,
        corpus: PassageSet,
        embeddings: WordEmbeddings,
        negatives: Int[np.ndarray, "queries most"],
        *,
        length: int = 8,
        layout: Layout = "candidates",
        query_tokens: int = QUERY_TOKENS,
        passage_tokens: int = PASSAGE_TOKENS,
    ):
        require(layout in LAYOUTS, f'layout must be one of {", ".join(LAYOUTS)}, got "{layout}".')
        self.positives = np.array([known[0] for known in corpus.positives], np.int32)
        self.negatives = negatives
        make = _candidate_tokens if layout == "candidates" else _joined_pairs
        self.tokens_of = make(corpus, embeddings, query_tokens, passage_tokens)
        self.dim, self.name, self.layout = embeddings.word.shape[1], corpus.name, layout
        self.content = {
            "corpus": corpus.fingerprint,
            "embeddings": embeddings.fingerprint,
            "negatives": fingerprint(negatives),
            "query_tokens": query_tokens,
            "passage_tokens": passage_tokens,
        }
        self.outputs, self.uses_positions = 1, False
        self.pair_tokens = query_tokens + passage_tokens + 3
        self.length = self._checked(length)

    @property
    def answered_at(self) -> AnsweredAt:
        return "tokens" if self.layout == "candidates" else "query"

    @property
    def objective(self) -> Choice:
        return Choice(self.length)

    @property
    def tokenise(self) -> Tokenise:
        return self.tokens_of

    @property
    def sequences(self) -> tuple[int, int]:
        return (self.length, self.pair_tokens) if self.layout == "pairs" else (1, self.length)

    @property
    def padded(self) -> bool:
        return self.layout == "pairs"

    def examples(self, train_examples: int, validation_examples: int, seed: int = 0) -> Split:
        count = len(self.positives)
        parts = split_indices(count, None, train_examples, validation_examples, seed, self.name)
        candidates = np.concatenate([self.positives[:, None], self.negatives[:, : self.length - 1]], axis=1)
        # Drawn once for all queries, so that a query's order does not depend on which others are used.
        order = named_generator(seed, "places", self.length).permuted(
            np.tile(np.arange(self.length), (count, 1)), axis=1
        )
        candidates = np.take_along_axis(candidates, order, axis=1)
        labels = np.argmin(order, axis=1).astype(np.int32)

        def part(chosen: np.ndarray) -> Examples:
            content = {"query": chosen.astype(np.int32), "candidates": candidates[chosen].astype(np.int32)}
            return Examples(content, labels[chosen])

        return Split(*map(part, parts))

    def at(self, length: int) -> "Ranking":
        return self._with_length(self._checked(length))

    def spec(self) -> dict[str, Any]:
        return {"task": self.name, "layout": self.layout, "queries": len(self.positives)} | self.content

    def _checked(self, length: int) -> int:
        require_count("length", length, least=2)
        most = self.negatives.shape[1] + 1
        require(
            length <= most,
            f"{self.name}: a list of {length} candidates needs {length - 1} negatives, there are {most - 1}.",
        )
        return length


def ranking(
    corpus: PassageSet,
    embeddings: WordEmbeddings,
    *,
    length: int | None = None,
    most: int | None = None,
    layout: Layout = "candidates",
    query_tokens: int = QUERY_TOKENS,
    passage_tokens: int = PASSAGE_TOKENS,
    cache: Path | None = None,
) -> Ranking:
    """The task of a corpus, with all the negatives that were given, or mined for lists of up to `most` candidates.

    They are mined once and kept in the folder `cache`, under a name that changes with what they were mined from.
    Without `most`, lists have up to 64 candidates, or as many as there are; without `length`, 8.
    """
    if corpus.negatives is not None:
        negatives = given_negatives(corpus, None if most is None else most - 1)
    else:
        most = min(MAX_CANDIDATES, min_usable(corpus) + 1) if most is None else most
        require_count("most", most, least=2)
        vectors = mean_vectors(corpus, embeddings, query_tokens, passage_tokens)
        negatives = mine(corpus, count=most - 1, vectors=vectors, cache=cache)
    return Ranking(
        corpus,
        embeddings,
        negatives,
        length=min(8, negatives.shape[1] + 1) if length is None else length,
        layout=layout,
        query_tokens=query_tokens,
        passage_tokens=passage_tokens,
    )


def mean_vectors(
    corpus: PassageSet,
    embeddings: WordEmbeddings,
    query_tokens: int,
    passage_tokens: int,
) -> tuple[Float[np.ndarray, "queries dim"], Float[np.ndarray, "passages dim"]]:
    """A vector for each query and passage: the mean of its embedded words."""
    return (
        embeddings.mean_vectors(corpus.queries, segment=QUERY_SEGMENT, max_tokens=query_tokens),
        embeddings.mean_vectors(corpus.passages, segment=PASSAGE_SEGMENT, max_tokens=passage_tokens),
    )


def _candidate_tokens(
    corpus: PassageSet, embeddings: WordEmbeddings, query_tokens: int, passage_tokens: int
) -> CandidateTokens:
    vectors: Any = mean_vectors(corpus, embeddings, query_tokens, passage_tokens)
    return CandidateTokens(*vectors)


def _joined_pairs(
    corpus: PassageSet, embeddings: WordEmbeddings, query_tokens: int, passage_tokens: int
) -> JoinedPairs:
    places = query_tokens + passage_tokens + 3
    require(
        places <= len(embeddings.position),
        f"{places} joined tokens need as many positions, and {embeddings.name} has {len(embeddings.position)}; "
        "keep fewer tokens.",
    )
    texts = (*embeddings.encode(corpus.queries, query_tokens), *embeddings.encode(corpus.passages, passage_tokens))
    tables = (embeddings.word, embeddings.position, embeddings.segment, embeddings.norm_gain, embeddings.norm_bias)
    arrays: Any = (*texts, *tables)
    return JoinedPairs(
        *arrays,
        classes=embeddings.cls,
        separator=embeddings.sep,
    )
