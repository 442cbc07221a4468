"""Examples of models that predict the next token: texts packed into sequences, or sampled. Needs torch."""

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ..._draws import named_generator
from ..._limits import require_fits
from ...errors import require
from ..losses.loss import device_of
from .batches import Batch, Parts, in_batches
from .sizes import Sizes, wanted_examples

FEWEST_DOCUMENTS = 8
"""Fewer texts are cut into sequences before they are split into parts, not after."""


def packed(tokenizer: Any, texts: Sequence[str], sizes: Sizes, seed: int, limit: int | None) -> Parts:
    """Held-out and calibration batches of sequences, all of one length, for a model that predicts the next token.

    Texts are split into the two parts first and then joined, an end mark between them, and cut. Equal texts count once.
    """
    texts = list(dict.fromkeys(texts))
    order = named_generator(seed, "examples").permutation(len(texts))
    held_out, calibration = wanted_examples(sizes, sizes.length, limit)
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
    return _sequence_parts(*parts, sizes)


def sampled_sequences(model: Any, sizes: Sizes, seed: int, limit: int | None) -> Parts:
    """Sequences that the model writes by itself at temperature 1.

    Each begins with the mark of a text's beginning; where the model has none, with a random token.
    """
    held_out, calibration = wanted_examples(sizes, sizes.length, limit)
    count, config = held_out + calibration, model.config.get_text_config()
    # each sequence has the chances of its next token
    size = 8 * count * (sizes.length + config.vocab_size)
    require_fits(f"a sample of {count:,} sequences of {sizes.length:,} tokens", size)
    generator = named_generator(seed, "sampled sequences")
    start = getattr(config, "bos_token_id", None)
    first = generator.integers(config.vocab_size, size=(count, 1)) if start is None else np.full((count, 1), start)
    sequences = _continued(model, first, sizes.length, generator)
    return _sequence_parts(sequences[:held_out], sequences[held_out:], sizes)


def _continued(model: Any, first: np.ndarray, length: int, generator: np.random.Generator) -> np.ndarray:
    """Sequences of this length, drawn one token after another from the model's own predictions."""
    device = device_of(model)
    sequences = torch.from_numpy(first.astype(np.int64)).to(device)
    keeps = "past_key_values" in inspect.signature(model.forward).parameters
    past = None
    with torch.no_grad():
        for _ in range(length - 1):
            if keeps:
                given = sequences if past is None else sequences[:, -1:]
                answer = model(input_ids=given, past_key_values=past, use_cache=True)
                past = answer.past_key_values
            else:
                answer = model(input_ids=sequences)
            points = torch.from_numpy(generator.random((len(first), 1))).to(device)
            chances = torch.cumsum(torch.softmax(answer.logits[:, -1].double(), -1), -1)
            token = torch.searchsorted(chances, points).clamp(max=chances.shape[-1] - 1)
            sequences = torch.cat([sequences, token], 1)
    return sequences.cpu().numpy()


def _sequence_parts(held_out: np.ndarray, calibration: np.ndarray, sizes: Sizes) -> Parts:
    """Sequences of one length as batches without padding."""

    def batch(rows: np.ndarray) -> Batch:
        tokens = torch.from_numpy(rows.astype(np.int64))
        return Batch({"input_ids": tokens}, len(tokens), torch.ones_like(tokens, dtype=torch.bool))

    return in_batches(held_out, calibration, round(sizes.batch / held_out.shape[1]), batch)


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
