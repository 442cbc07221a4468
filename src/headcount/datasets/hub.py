"""MS MARCO passages and BERT's embeddings from the Hugging Face hub, over plain HTTPS.

MS MARCO comes as the copy of the BEIR benchmark (8.8 million passages, over a gigabyte), which `read_passages` reads.
The data are for non-commercial research.
"""

from pathlib import Path

from .download import OnBytes, Source, fetch

HUB = "https://huggingface.co"
PASSAGES = "datasets/BeIR/msmarco"
JUDGEMENTS = "datasets/BeIR/msmarco-qrels"
BERT = "google-bert/bert-base-uncased"
JUDGED = "qrels"
MARCO_FILES = ("queries.jsonl.gz", "corpus.jsonl.gz")  # the corpus last: by it a folder is known for passages
BERT_FILES = ("config.json", "vocab.txt", "tokenizer.json", "model.safetensors")


def fetch_marco(folder: Path, on_bytes: OnBytes) -> Path:
    """`folder` with the passages, queries and judgements of MS MARCO; what is there already is not fetched again."""
    for split in ("train", "dev", "test"):
        _fetch(JUDGEMENTS, f"{split}.tsv", folder / JUDGED, on_bytes)
    for name in MARCO_FILES:
        _fetch(PASSAGES, name, folder, on_bytes)
    return folder


def fetch_bert(folder: Path, on_bytes: OnBytes) -> Path:
    """`folder` with the weights and the tokenizer of the uncased BERT, 768 wide."""
    for name in BERT_FILES:
        _fetch(BERT, name, folder, on_bytes)
    return folder


def _fetch(repository: str, name: str, folder: Path, on_bytes: OnBytes) -> None:
    fetch(Source(f"{HUB}/{repository}/resolve/main/{name}", name), folder, on_bytes=on_bytes)
