"""Small corpora and models, written in the true formats, for the tests of passages, mining and embeddings."""

import gzip
import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from headcount.papers.data.passages import PassageSet

WORDS = ("heron", "river", "stone", "lamp", "the", "winter", "Heron", "RIVER", "of")
VOCABULARY = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "heron", "river", "stone", "fly", "##ing", "##s", ".")


def write(path: Path, content: str | bytes) -> Path:
    """A file with `content`, gzipped where its name says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(raw) if path.name.endswith(".gz") else raw)
    return path


def write_records(path: Path, records: Iterable[object]) -> Path:
    return write(path, "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))


def write_official(folder: Path, splits: Iterable[str] = ("dev.small",), end: str = "") -> Path:
    """Five passages, and in every split three queries of which the last has no answer."""
    write(folder / f"collection.tsv{end}", "".join(f"{pid}\tpassage number {pid}\n" for pid in (10, 11, 12, 13, 14)))
    for split in splits:
        write(folder / f"queries.{split}.tsv{end}", f"7\tfirst of {split}\n8\tsecond, with é\n9\tnobody knows\n")
        write(folder / f"qrels.{split}.tsv{end}", "8\t0\t13\t1\n7\t0\t12\t1\n8\t0\t10\t1\n7\t0\t14\t0\n")
    return folder


def write_beir(folder: Path, end: str = ".gz") -> Path:
    """The same in the layout of BEIR, with a title."""
    passages = [{"_id": str(pid), "title": "", "text": f"passage number {pid}"} for pid in (10, 11, 12, 13)]
    passages.append({"_id": "14", "title": "Fourteen", "text": "passage number 14"})
    write_records(folder / f"corpus.jsonl{end}", passages)
    queries = {"7": "first of dev", "8": "second, with é", "9": "nobody knows"}
    write_records(folder / f"queries.jsonl{end}", ({"_id": name, "text": text} for name, text in queries.items()))
    write(folder / "qrels" / "dev.tsv", "query-id\tcorpus-id\tscore\n8\t13\t1\n7\t12\t1\n8\t10\t1\n7\t14\t0\n")
    return folder


def made_up(queries: int, passages: int, seed: int = 0) -> tuple[PassageSet, tuple[np.ndarray, np.ndarray]]:
    """A corpus of random words, and vectors for it."""
    generator = np.random.default_rng(seed)
    texts = [" ".join(f"word{number}" for number in generator.integers(0, 40, 6)) for _ in range(queries + passages)]
    corpus = PassageSet(
        name="made up",
        query_ids=tuple(str(place) for place in range(queries)),
        queries=tuple(texts[:queries]),
        passages=tuple(texts[queries:]),
        positives=tuple((int(place),) for place in generator.integers(0, passages, queries)),
    )
    vectors = generator.normal(size=(queries + passages, 8)).astype(np.float32)
    return corpus, (vectors[:queries], vectors[queries:])


@st.composite
def parts_of_corpora(draw) -> tuple[dict[str, tuple], tuple[np.ndarray, np.ndarray]]:
    """The fields of a corpus (not the corpus: beartype draws random numbers, which Hypothesis forbids), and vectors.

    Texts have few words and vectors small integers, so that equal texts and ties are common.
    """
    text = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
    passages = draw(st.lists(text, min_size=4, max_size=24))
    queries = draw(st.lists(text, min_size=1, max_size=4))
    places = st.integers(0, len(passages) - 1)
    parts = {
        "query_ids": tuple(f"q{place}" for place in range(len(queries))),
        "queries": tuple(queries),
        "passages": tuple(passages),
        "positives": tuple(tuple(draw(st.lists(places, min_size=1, max_size=2, unique=True))) for _ in queries),
        "negatives": tuple(tuple(draw(st.lists(places, max_size=24, unique=True))) for _ in queries),
    }
    dim = draw(st.integers(1, 3))
    vector = st.lists(st.integers(-2, 2), min_size=dim, max_size=dim).filter(any)
    vectors = [np.array([draw(vector) for _ in texts], np.float32) for texts in (queries, passages)]
    return parts, (vectors[0], vectors[1])


def bert_tensors(dim: int = 6, vocabulary: int = len(VOCABULARY), places: int = 10) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(3)
    shapes = {
        "embeddings.word_embeddings.weight": (vocabulary, dim),
        "embeddings.position_embeddings.weight": (places, dim),
        "embeddings.token_type_embeddings.weight": (2, dim),
        "embeddings.LayerNorm.weight": (dim,),
        "embeddings.LayerNorm.bias": (dim,),
        "encoder.layer.0.attention.self.query.weight": (dim, dim),
    }
    return {name: generator.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def write_bert(
    folder: Path, tensors: dict[str, np.ndarray] | None = None, vocabulary: Iterable[str] = VOCABULARY
) -> Path:
    """A tiny model with BERT's files: an uncased tokenizer, padding and truncation on as in the hub's files."""
    folder.mkdir(parents=True, exist_ok=True)
    save_file(bert_tensors() if tensors is None else tensors, folder / "model.safetensors")
    words = {word: place for place, word in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.WordPiece(words, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens([word for word in words if word.startswith("[")])
    tokenizer.enable_padding()
    tokenizer.enable_truncation(2)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder
