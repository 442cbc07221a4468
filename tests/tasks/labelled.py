"""Small data with labels: images told apart by their colour, passages told apart by a word."""

from pathlib import Path

import numpy as np

from headcount.data.images import ImageSet
from headcount.papers.data.embeddings import WordEmbeddings, load_embeddings
from headcount.papers.data.passages import PassageSet

from ..papers.data.texts import bert_tensors, write_bert

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WORDS = ("heron", "river", "stone", "lamp", "winter", "glass", "moss", "##s")
TEXTS = ("river", "stone", "lamp", "winter", "glass", "moss", "rivers", "lamps", "unheard")
"""What texts are made of; an answer to a query has the word heron too, in front."""


def some_images(count: int = 160, side: int = 8, held_out: int | None = 40, seed: int = 0, **changes) -> ImageSet:
    """Noise, redder in the second class; no image is like another."""
    generator = np.random.default_rng(seed)
    labels = np.tile(np.array([0, 1], np.int32), count // 2)
    images = generator.integers(0, 156, (count, side, side, 3))
    images[..., 0] += 99 * labels[:, None, None]
    parts = {"classes": ("blue", "red"), "held_out": held_out} | changes
    return ImageSet(name="colours", images=images.astype(np.uint8), labels=labels, **parts)


def some_passages(queries: int = 125, negatives: int | None = None, seed: int = 0) -> PassageSet:
    """As many answers as queries, and twice as many other passages; `negatives` of them given for each query."""
    generator = np.random.default_rng(seed)

    def text(most: int) -> str:
        return " ".join(generator.choice(TEXTS[:-1], 1)) + "".join(
            f" {word}" for word in generator.choice(TEXTS, generator.integers(0, most))
        )

    # A number that nobody knows at the end: no two passages say the same.
    others = tuple(f"{text(5)} {place}" for place in range(2 * queries))
    answers = tuple(f"heron {text(4)} {place}" for place in range(queries))
    given = None
    if negatives is not None:
        given = tuple(tuple(map(int, generator.choice(2 * queries, negatives, replace=False))) for _ in range(queries))
    return PassageSet(
        name="made up",
        query_ids=tuple(f"q{place}" for place in range(queries)),
        queries=tuple(text(4) for _ in range(queries)),
        passages=others + answers,
        positives=tuple((2 * queries + place,) for place in range(queries)),
        negatives=given,
    )


def tiny_bert(folder: Path, dim: int = 6, places: int = 12) -> WordEmbeddings:
    vocabulary = SPECIAL + WORDS
    return load_embeddings(write_bert(folder / "tiny", bert_tensors(dim, len(vocabulary), places), vocabulary))
