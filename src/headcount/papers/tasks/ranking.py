"""Which of `length` candidate passages answers a query: one positive among mined or given negatives.

The paper does not say how candidates enter the encoder; there are two layouts:

    candidates   one sequence: a token per candidate, the mean of its frozen word embeddings, and the query's token
                 last; a score is read at each candidate's token, so attention compares candidates
    pairs        a sequence per candidate: query and passage joined word by word, as BERT reads them; a score is read
                 at [CLS], the last token, which keeps BERT's first position; attention is within one pair

Source: the MS MARCO experiment of Yu et al. (arXiv 2510.06662), Tables 6 and 7.
"""

from pathlib import Path
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from ..._choices import AnsweredAt, require_choice
from ..._shapes import AnyArray, Key, Tokens
from ...errors import require, require_count
from ...keys import named_generator
from ...tasks.base import AbstractTask, Examples, Split, Tokenise, fingerprint
from ...tasks.labelled import split_indices
from ...tasks.objective import Choice
from ..data.embeddings import WordEmbeddings
from ..data.mining import given_negatives, min_usable, mine
from ..data.passages import PassageSet

Layout = Literal["candidates", "pairs"]
LAYOUTS: tuple[Layout, ...] = ("candidates", "pairs")
QUERY_TOKENS, PASSAGE_TOKENS, PAIR_TOKENS = 16, 45, 64
"""Word pieces kept of a query and of a passage, and with [CLS] and two [SEP] all tokens of a pair."""
MAX_CANDIDATES = 64
QUERY_SEGMENT, PASSAGE_SEGMENT = 0, 1
NORM_FLOOR = 1e-12


class CandidateTokens(Tokenise):
    """A token per candidate, then the query's."""

    queries: Float[AnyArray, "queries dim"]
    passages: Float[AnyArray, "passages dim"]

    def __call__(self, content: dict[str, AnyArray], key: Key) -> Tokens:
        return jnp.concatenate([self.passages[content["candidates"]], self.queries[content["query"]][None]])


class JoinedPairs(Tokenise):
    """A sequence per candidate: query, [SEP], passage, [SEP], [CLS].

    Tokens that a shorter text leaves free are zeros. Positions are BERT's: they count from [CLS], without gaps.
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
        query_count, passage_count = self.query_counts[query], self.passage_counts[passage]
        query_places = jnp.arange(self.query_words.shape[1])
        passage_places = jnp.arange(self.passage_words.shape[1])
        separator, start = jnp.full(1, self.separator), jnp.full(1, self.classes)
        words = jnp.concatenate([self.query_words[query], separator, self.passage_words[passage], separator, start])
        # Padding may point past the last position; it is zeroed below.
        present = jnp.concatenate(
            [query_places < query_count, jnp.ones(1, bool), passage_places < passage_count, jnp.ones(2, bool)]
        )
        places = jnp.concatenate(
            [
                1 + query_places,
                (1 + query_count)[None],
                2 + query_count + passage_places,
                (2 + query_count + passage_count)[None],
                jnp.zeros(1, int),
            ]
        )
        of_passage = jnp.arange(len(words)) > self.query_words.shape[1]
        segment = jnp.where(of_passage.at[-1].set(False), PASSAGE_SEGMENT, QUERY_SEGMENT)
        summed = self.words[words] + self.positions[places] + self.segments[segment]
        centred = summed - jnp.mean(summed, axis=-1, keepdims=True)
        normed = centred * jax.lax.rsqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + NORM_FLOOR)
        return jnp.where(present[:, None], normed * self.gain + self.shift, 0.0)


class Ranking(AbstractTask):
    """Choosing the candidate passage that answers a query; `length` is the number of candidates.

    Args:
        corpus: Queries, passages, and which passages answer which query.
        embeddings: Frozen word embeddings of BERT.
        negatives: Indices of passages that do not answer each query, hardest first; a list of `length` candidates uses
            the first `length - 1`.
        length: Candidates per query.
        layout: "candidates" (one token each) or "pairs" (a sequence of query and passage each).
        query_tokens: Word pieces kept per query.
        passage_tokens: Word pieces kept per passage.

    Raises:
        InputError: `layout` is unknown, there are fewer than `length - 1` negatives, or a pair has more tokens than
            the embeddings have positions. `examples` raises it for fewer than 100 training or 20 validation queries.

    Example:
        >>> import numpy as np
        >>> from tokenizers import Tokenizer, models, pre_tokenizers
        >>> import headcount as hc
        >>> from headcount.papers.data.embeddings import WordEmbeddings
        >>> from headcount.papers.data.passages import PassageSet
        >>> vocabulary = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "heron", "lamp", "river")
        >>> words = {word: index for index, word in enumerate(vocabulary)}
        >>> tokenizer = Tokenizer(models.WordPiece(words, unk_token="[UNK]"))
        >>> tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
        >>> table = np.random.default_rng(0).normal(size=(64, 6)).astype(np.float32)
        >>> embeddings = WordEmbeddings("tiny", table[:7], table, table[:2], table[0], table[1], tokenizer)
        >>> passages = ("heron river", "lamp", "river lamp")
        >>> corpus = PassageSet("birds", ("q1",), ("heron",), passages, positives=((0,),))
        >>> task = hc.Ranking(corpus, embeddings, np.array([[2, 1]], np.int32), length=3)
        >>> task.length, task.dim, task.answered_at, task.at(2).length
        (3, 6, 'tokens', 2)
    """

    positives: Int[np.ndarray, " queries"]
    negatives: Int[np.ndarray, "queries negatives"]
    tokens_of: Tokenise
    length: int = eqx.field(static=True)
    dim: int = eqx.field(static=True)
    name: str = eqx.field(static=True)
    layout: Layout = eqx.field(static=True)
    content: dict[str, Any] = eqx.field(static=True)
    uses_positions: bool = eqx.field(static=True, default=False, init=False)
    pair_tokens: int = eqx.field(static=True)

    def __init__(
        self,
        corpus: PassageSet,
        embeddings: WordEmbeddings,
        negatives: Int[np.ndarray, "queries negatives"],
        *,
        length: int = 8,
        layout: Layout = "candidates",
        query_tokens: int = QUERY_TOKENS,
        passage_tokens: int = PASSAGE_TOKENS,
    ):
        require_choice("layout", layout, LAYOUTS)
        self.positives = np.array([places[0] for places in corpus.positives], np.int32)
        self.negatives = negatives
        require_count("query_tokens", query_tokens)
        require_count("passage_tokens", passage_tokens)
        sizes = (corpus, embeddings, query_tokens, passage_tokens)
        vectors: Any = _mean_vectors(*sizes) if layout == "candidates" else ()
        self.tokens_of = CandidateTokens(*vectors) if vectors else _joined_pairs(*sizes)
        self.dim, self.name, self.layout = embeddings.word.shape[1], corpus.name, layout
        self.content = {
            "corpus": corpus.fingerprint,
            "embeddings": embeddings.fingerprint,
            "negatives": fingerprint(negatives),
            "query_tokens": query_tokens,
            "passage_tokens": passage_tokens,
        }
        self.pair_tokens = query_tokens + passage_tokens + 3
        self.length = self._checked(length)

    @property
    def outputs(self) -> int:
        """One score per candidate."""
        return 1

    @property
    def answered_at(self) -> AnsweredAt:
        """At every candidate's token, or once per pair of a query and a candidate."""
        return "tokens" if self.layout == "candidates" else "query"

    @property
    def objective(self) -> Choice:
        """The choice of one candidate."""
        return Choice(self.length)

    @property
    def tokenise(self) -> Tokenise:
        """Turns a query with its candidates into the tokens of its sequences."""
        return self.tokens_of

    @property
    def sequences(self) -> tuple[int, int]:
        """How many sequences an example has, and the tokens of each."""
        return (self.length, self.pair_tokens) if self.layout == "pairs" else (1, self.length + 1)

    @property
    def padded(self) -> bool:
        """Whether sequences have absent tokens: pairs have unequal lengths."""
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
        negatives = self.negatives.shape[1]
        require(
            length <= negatives + 1,
            f"{self.name}: length {length} needs {length - 1} negatives per query, there are {negatives}.",
            what="length",
            given=length,
            needed=f"at most {negatives + 1}",
        )
        return length


def ranking(
    corpus: PassageSet, embeddings: WordEmbeddings, *, layout: Layout = "candidates", cache: Path | None = None
) -> Ranking:
    """Return the task of a corpus, of 8 candidates or as many as there are, with its negatives or with mined ones.

    `cache` is a folder for mined negatives. Raises InputError where a query has too few negatives.
    """
    if corpus.negatives is not None:
        negatives = given_negatives(corpus)
    else:
        vectors = _mean_vectors(corpus, embeddings, QUERY_TOKENS, PASSAGE_TOKENS)
        negatives = mine(corpus, count=most_candidates(corpus) - 1, vectors=vectors, cache=cache)
    return Ranking(corpus, embeddings, negatives, length=min(8, negatives.shape[1] + 1), layout=layout)


def most_candidates(corpus: PassageSet) -> int:
    """The longest list of candidates: with the negatives that are given, or up to 64 with mined ones."""
    if corpus.negatives is not None:
        return given_negatives(corpus).shape[1] + 1
    return min(MAX_CANDIDATES, max(1, min_usable(corpus)) + 1)


def _mean_vectors(
    corpus: PassageSet, embeddings: WordEmbeddings, query_tokens: int, passage_tokens: int
) -> tuple[Float[np.ndarray, "queries dim"], Float[np.ndarray, "passages dim"]]:
    return (
        embeddings.mean_vectors(corpus.queries, segment=QUERY_SEGMENT, max_tokens=query_tokens),
        embeddings.mean_vectors(corpus.passages, segment=PASSAGE_SEGMENT, max_tokens=passage_tokens),
    )


def _joined_pairs(
    corpus: PassageSet, embeddings: WordEmbeddings, query_tokens: int, passage_tokens: int
) -> JoinedPairs:
    places = query_tokens + passage_tokens + 3
    require(
        places <= len(embeddings.position),
        f"{places} tokens per pair need {places} positions, but {embeddings.name} has {len(embeddings.position)}; "
        "keep fewer tokens.",
    )
    texts = (*embeddings.encode(corpus.queries, query_tokens), *embeddings.encode(corpus.passages, passage_tokens))
    tables = (embeddings.word, embeddings.position, embeddings.segment, embeddings.norm_gain, embeddings.norm_bias)
    arrays: Any = (*texts, *tables)
    return JoinedPairs(*arrays, *map(embeddings.token_id, ("[CLS]", "[SEP]")))
