"""Texts as token ids: their most frequent words, or their bytes. Equal texts give equal ids, on every machine.

words    lower-cased words and punctuation marks; ids from 1 by frequency in the training texts, 0 for every other
bytes    of the text in UTF-8, an id from 0 to 255 each; for texts without spaces, such as names or DNA
"""

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .._choices import require_choice
from ..errors import require, require_count

TOKENS = ("words", "bytes")
WORD = re.compile(r"\w+|[^\w\s]")
MAX_WORDS, MIN_TEXTS = 2000, 2
"""Ids of words at most, where no vocabulary is given, and how many training texts a word with an id occurs in."""
LONGEST = {"words": 128, "bytes": 256}
"""Tokens after which a text is cut."""
BYTE_IDS = 256
HINT = '--tokens {other} (tokens="{other}") reads {other}'


class TextIds(NamedTuple):
    """The ids of each text, how many ids there are, and what was done in words."""

    ids: list[np.ndarray]
    vocabulary: int
    note: str


def as_texts(values: Any) -> list[Any] | None:
    """Return values as texts, or as lists of words, where they are such; None where they are not."""
    values = values.to_numpy() if hasattr(values, "to_numpy") else values
    several = isinstance(values, Sequence | np.ndarray) and not isinstance(values, str | bytes)
    if not several or not getattr(values, "ndim", 1) or not len(values):
        return None
    first = values[0]
    if isinstance(first, list | tuple | np.ndarray) and len(first):
        first = first[0]
    return list(values) if isinstance(first, str) else None


def token_ids(texts: list[Any], training: int, tokens: str | None, vocabulary: int | None) -> TextIds:
    """Return texts as token ids; the first `training` of them decide which words have one.

    Args:
        texts: Texts, or lists of words.
        training: How many of them, the first, are for training.
        tokens: "words" or "bytes"; None: words where texts have at least two on average.
        vocabulary: How many ids words have at most.

    Raises:
        InputError: `tokens` is neither, or a text is missing.

    Example:
        >>> read = token_ids(["The cat.", "the dog", "a cat"], 3, None, None)
        >>> [ids.tolist() for ids in read.ids], read.vocabulary
        ([[2, 1, 0], [2, 0], [0, 1]], 3)
    """
    if tokens is not None:
        require_choice("tokens", tokens, TOKENS)
    if vocabulary is not None:
        require_count("vocabulary", vocabulary, least=2)
    wrong = next(
        (place for place, text in enumerate(texts) if not isinstance(text, str | list | tuple | np.ndarray)), None
    )
    fault = f"text {wrong} of x (counted from 0) is missing or no text; leave such examples out."
    require(wrong is None, fault, what="x")
    if tokens is None:
        several = sum(len(text.split() if isinstance(text, str) else text) for text in texts) >= 2 * len(texts)
        tokens = "words" if several else "bytes"
    longest = LONGEST[tokens] + 1  # one more shows that a text is cut
    if tokens == "bytes":
        fixed = vocabulary in (None, BYTE_IDS)
        require(fixed, what="vocabulary", given=vocabulary, needed=f"{BYTE_IDS} for bytes, or left out")
        plain = (text if isinstance(text, str) else " ".join(text) for text in texts)
        parts = [np.frombuffer(text[:longest].encode(errors="replace")[:longest], np.uint8) for text in plain]
        return _cut([part.astype(int) for part in parts], tokens, BYTE_IDS, f"bytes; {HINT.format(other='words')}")
    words = [_words(text, longest) for text in texts]
    counts, occurs = Counter[str](), Counter[str]()
    for each in words[:training]:
        counts.update(each[: LONGEST[tokens]])
        occurs.update(set(each[: LONGEST[tokens]]))
    common = sorted((word for word in counts if occurs[word] >= MIN_TEXTS), key=lambda word: (-counts[word], word))
    kept = {word: place for place, word in enumerate(common[: (vocabulary or MAX_WORDS) - 1], start=1)}
    other = sum(word not in kept for each in words for word in each) / max(1, sum(map(len, words)))
    where = "the training examples" if training < len(texts) else "all examples"
    how = (
        f"words, lower-cased: the {len(kept):,} most frequent in {where}, and one id for others ({other:.1%} of words)"
    )
    ids = [np.array([kept.get(word, 0) for word in each], int) for each in words]
    return _cut(ids, tokens, len(kept) + 1, f"{how}; {HINT.format(other='bytes')}")


def _words(text: Any, most: int) -> list[str]:
    """Return the first words of a text, or of a list of words, in lower case."""
    if isinstance(text, str):
        return [found[0].lower() for found in itertools.islice(WORD.finditer(text), most)]
    return [str(each).lower() for each in text[:most]]


def _cut(ids: list[np.ndarray], tokens: str, vocabulary: int, how: str) -> TextIds:
    """Cut long texts, and give an empty one a token."""
    longest = LONGEST[tokens]
    count = sum(len(each) > longest for each in ids)
    cut = f"; {count:,} of {len(ids):,} texts are cut after {longest} {tokens}" if count else ""
    return TextIds([each[:longest] if len(each) else np.zeros(1, int) for each in ids], vocabulary, f"{how}{cut}")
