"""Passages, embeddings, and what commands made of them."""

import base64
import re
from pathlib import Path

from headcount.store import Record, Store

from ..papers.data.texts import bert_tensors, write_bert
from ..report.laws import check_page
from ..tasks.labelled import SPECIAL, WORDS, some_passages

METRICS = {"error", "final_error", "train_error", "cross_entropy", "fitted_error", "fitted_cross_entropy"}


def tiny_bert(folder: Path, dim: int = 4, missing: int = 0) -> Path:
    vocabulary = SPECIAL + WORDS
    return write_bert(folder, bert_tensors(dim, len(vocabulary) - missing, 64), vocabulary)


def lines(count: int = 125, negatives: int = 3) -> list[dict]:
    """As many queries, each with its answer and some negatives of its own."""
    corpus = some_passages(count, negatives)
    return [
        {"query": query, "positive": corpus.passages[good[0]], "negatives": [corpus.passages[place] for place in bad]}
        for query, good, bad in zip(corpus.queries, corpus.positives, corpus.negatives, strict=True)
    ]


def records_in(folder: Path) -> list[Record]:
    with Store.open_for_reading(folder) as store:
        return store.records()


def said_on(page: Path) -> tuple[str, list[bytes]]:
    """What a page says and the pictures in it; it asks for nothing from anywhere else."""
    text = page.read_text()
    pictures = re.findall(r'<img src="data:image/png;base64,([A-Za-z0-9+/=]+)" [^>]*alt="[^"]+">', text)
    assert text.count("<img") == len(pictures)
    return check_page(re.sub("<img [^>]*>", "", text)).said, [base64.b64decode(picture) for picture in pictures]
