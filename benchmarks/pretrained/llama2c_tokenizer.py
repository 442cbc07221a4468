"""The tokenizer next to a llama2.c model, as a fast tokenizer of transformers.

A tokenizer file is the longest piece's length, then a float32 score, a length and the bytes of every piece. It is
SentencePiece's byte-pair encoding without the list of merges, which follows from the scores: the two neighbours whose
joined piece has the highest score are joined first.

Source of the format: https://github.com/karpathy/llama2.c, `tokenizer.py`, MIT.
"""

import struct
from typing import Any

SPECIAL = {0: "<unk>", 1: "<s>", 2: "</s>"}  # The file writes these with line breaks around them.
FIRST_BYTE, BYTES = 3, 256  # Pieces 3 to 258 are the single bytes, for text outside the vocabulary.


def pieces(content: bytes, vocabulary: int) -> tuple[list[str], list[float]]:
    """Read the pieces and scores of a tokenizer file.

    As in SentencePiece, a space is written `▁` and a single byte `<0x0A>`.
    Raises ValueError where the file does not hold exactly as many pieces as the vocabulary.
    """
    names, scores, offset = [], [], 4
    try:
        for number in range(vocabulary):
            score, size = struct.unpack_from("<fi", content, offset)
            offset += 8 + size
            scores.append(score)
            names.append(content[offset - size : offset].decode().replace(" ", "▁"))
            if number in SPECIAL:
                names[-1] = SPECIAL[number]
            elif FIRST_BYTE <= number < FIRST_BYTE + BYTES:
                names[-1] = f"<0x{number - FIRST_BYTE:02X}>"
    except struct.error:
        raise ValueError(f"the tokenizer ends after {len(names):,} of {vocabulary:,} pieces") from None
    if offset != len(content):
        raise ValueError(f"the tokenizer has {len(content) - offset:,} bytes after its {vocabulary:,} pieces")
    return names, scores


def merges(names: list[str], scores: list[float]) -> list[tuple[str, str]]:
    """Return the pairs of pieces that byte-pair encoding joins, best score of the joined piece first."""
    number = {name: index for index, name in enumerate(names)}
    pairs = []
    for name in names[FIRST_BYTE + BYTES :]:
        splits = [(name[:cut], name[cut:]) for cut in range(1, len(name))]
        known = [(left, right) for left, right in splits if left in number and right in number]
        pairs += sorted(known, key=lambda pair: (number[pair[0]], number[pair[1]]))
    return sorted(pairs, key=lambda pair: -scores[number[pair[0] + pair[1]]])


def encoder(content: bytes, vocabulary: int) -> Any:
    """Return the `tokenizers.Tokenizer` of a llama2.c tokenizer file; it adds the begin token, not the end token."""
    from tokenizers import Tokenizer, decoders, models, normalizers, processors

    names, scores = pieces(content, vocabulary)
    bpe = Tokenizer(
        models.BPE(
            vocab={name: index for index, name in enumerate(names)},
            merges=merges(names, scores),
            unk_token=SPECIAL[0],
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    bpe.add_special_tokens(list(SPECIAL.values()))
    bpe.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    bpe.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    bpe.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[(SPECIAL[1], 1)]
    )
    return bpe


def tokenizer(content: bytes, vocabulary: int, length: int) -> Any:
    """Return the encoder as transformers' tokenizer, of a model that reads at most `length` tokens."""
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(
        tokenizer_object=encoder(content, vocabulary),
        unk_token=SPECIAL[0],
        bos_token=SPECIAL[1],
        eos_token=SPECIAL[2],
        pad_token=SPECIAL[2],
        model_max_length=length,
    )
