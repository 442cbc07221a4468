"""Tokens of texts: packed into sequences of one length for decoders, padded for encoders. Needs torch."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ..._draws import named_generator
from ...errors import InputError, require
from .batches import Batch
from .sizes import FEWEST_BATCHES, Sizes

FEWEST_DOCUMENTS = 8
"""Fewer texts are cut into sequences before they are split into parts, not after."""


def packed(
    tokenizer: Any, texts: Sequence[str], sizes: Sizes, seed: int, limit: int | None
) -> tuple[list[Batch], list[Batch]]:
    """Held-out and calibration batches of sequences, all of one length, for a model that predicts the next token.

    Texts are split into the two parts first and then joined, an end mark between them, and cut. Equal texts count once.
    """
    texts = list(dict.fromkeys(texts))
    order = named_generator(seed, "examples").permutation(len(texts))
    held_out, calibration = wanted_sequences(sizes, limit)
    streams = _tokens_in_turn(tokenizer, texts, order, (held_out + calibration) * sizes.length)
    total = sum(map(len, streams))
    length = min(sizes.length, total // 4)
    require(length >= 8, f"the data have {total} tokens; at least 32 are needed, give more text.")
    if total < (held_out + calibration) * length:
        held_out, calibration = (total // length) // 3, None
        held_out = max(1, held_out)
    if len(streams) >= FEWEST_DOCUMENTS:
        taken, count = 0, 0
        while count < held_out * length and taken < len(streams) - 1:
            count += len(streams[taken])
            taken += 1
        parts = _cut(streams[:taken], length)[:held_out], _cut(streams[taken:], length)[:calibration]
    else:
        sequences = _cut(streams, length)
        sequences = sequences[named_generator(seed, "sequences").permutation(len(sequences))]
        end = None if calibration is None else held_out + calibration
        parts = sequences[:held_out], sequences[held_out:end]
    require(
        min(map(len, parts)) > 0,
        f"the data have {total} tokens, too few for two parts of sequences of {length} tokens; give more text.",
    )
    return batches_of(parts[0], sizes), batches_of(parts[1], sizes, FEWEST_BATCHES)


def wanted_sequences(sizes: Sizes, limit: int | None) -> tuple[int, int]:
    """How many sequences to hold out and to calibrate on; a third and the rest of `limit` where it is given."""
    if limit is not None:
        return max(1, limit // 3), limit - max(1, limit // 3)
    return max(1, sizes.held_out // sizes.length), max(1, sizes.calibration // sizes.length)


def batches_of(sequences: np.ndarray, sizes: Sizes, fewest: int = 1) -> list[Batch]:
    """Sequences of one length as batches without padding, at least `fewest` where there are as many sequences."""
    rows = rows_per_batch(len(sequences), round(sizes.batch / sequences.shape[1]), fewest)
    batches = []
    for start in range(0, len(sequences), rows):
        tokens = torch.from_numpy(sequences[start : start + rows].astype(np.int64))
        batches.append(Batch({"input_ids": tokens}, len(tokens), torch.ones_like(tokens, dtype=torch.bool)))
    return batches


def rows_per_batch(examples: int, most: int, fewest: int) -> int:
    """Examples of a batch: at most `most`, and so few that there are `fewest` batches where that can be."""
    return max(1, min(most, examples // fewest))


def need_tokenizer(tokenizer: Any) -> Any:
    if tokenizer is None:
        raise InputError(
            "text needs the model's tokenizer, and its folder has none; copy tokenizer.json and tokenizer_config.json "
            "into it (in Python: or pass tokenizer=...), or leave the data out."
        )
    return tokenizer


def _tokens_in_turn(tokenizer: Any, texts: Sequence[str], order: np.ndarray, wanted: int) -> list[list[int]]:
    """Tokens of the texts in this order, until there are enough for both parts."""
    end = tokenizer.eos_token_id
    streams: list[list[int]] = []
    total = 0
    for start in range(0, len(order), 64):
        some = [texts[place] for place in order[start : start + 64]]
        for tokens in tokenizer(some, add_special_tokens=True)["input_ids"]:
            ended = list(tokens) if end is None or (tokens and tokens[-1] == end) else [*tokens, end]
            streams.append(ended)
            total += len(ended)
        if total > 1.1 * wanted and len(streams) >= FEWEST_DOCUMENTS:
            break
    return streams


def _cut(streams: Sequence[Sequence[int]], length: int) -> np.ndarray:
    joined = np.concatenate([np.asarray(stream, np.int64) for stream in streams])
    count = len(joined) // length
    return joined[: count * length].reshape(count, length)


def padded(tokenizer: Any, rows: Sequence[Sequence[int]]) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """Token rows as inputs of a model, padded on the right, and which tokens are real.

    Args:
        tokenizer: Names the padding token; None pads with 0.
        rows: Tokens per text.
    """
    filler = getattr(tokenizer, "pad_token_id", None) or 0
    longest = max(map(len, rows))
    tokens = np.full((len(rows), longest), filler, np.int64)
    counted = np.zeros((len(rows), longest), bool)
    for place, row in enumerate(rows):
        tokens[place, : len(row)] = row
        counted[place, : len(row)] = True
    inputs = {"input_ids": torch.from_numpy(tokens), "attention_mask": torch.from_numpy(counted.astype(np.int64))}
    return inputs, torch.from_numpy(counted)


def tokenised(tokenizer: Any, texts: Sequence[str], length: int) -> list[list[int]]:
    """Tokens of each text, cut to this length, with the marks that the tokenizer adds."""
    return tokenizer(list(texts), truncation=True, max_length=length)["input_ids"] if texts else []


def split_by_tokens(counts: Sequence[int], sizes: Sizes, limit: int | None) -> tuple[list[int], list[int]]:
    """Examples that are held out and that calibrate, as places, taken in turn until each part has its tokens.

    Where there are too few, or a limit is given, a third is held out.
    """
    places = list(range(len(counts)))
    if limit is not None:
        end = max(1, min(limit, len(places)) // 3)
        return places[:end], places[end:limit]
    sums = np.cumsum(counts)
    wanted = sizes.held_out if sums[-1] >= sizes.held_out + sizes.calibration else min(sizes.held_out, sums[-1] / 3)
    end = max(1, min(int(np.searchsorted(sums, wanted)) + 1, len(places) - 1))
    last = int(np.searchsorted(sums, sums[end - 1] + sizes.calibration)) + 1
    return places[:end], places[end:last]


def first_tokens(places: Sequence[int], counts: Sequence[int], tokens: int, limit: int | None) -> list[int]:
    """The first `limit` places; without a limit, the first that together have so many tokens."""
    if limit is not None:
        return list(places)[:limit]
    sums = np.cumsum([counts[place] for place in places])
    return list(places)[: int(np.searchsorted(sums, tokens)) + 1]


def grouped_by_size(places: Sequence[int], counts: Sequence[int], most: int, fewest: int = 1) -> list[list[int]]:
    """Places in batches of at most `most` tokens with padding, those of like size together.

    There are at least `fewest` batches, where there are as many places. Sizes are in random order, so that the first
    few batches are like the others.
    """
    rows = rows_per_batch(len(places), len(places), fewest)
    batches: list[list[int]] = []
    for place in sorted(places, key=lambda place: (counts[place], place)):
        if batches and len(batches[-1]) < rows and counts[place] * (len(batches[-1]) + 1) <= most:
            batches[-1].append(place)
        else:
            batches.append([place])
    return [batches[turn] for turn in named_generator(0, "order of batches").permutation(len(batches))]
