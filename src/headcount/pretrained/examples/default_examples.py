"""Examples for a model without data: sampled from a decoder itself, or random. Needs torch."""

import inspect
from typing import Any

import numpy as np
import torch
from torch import nn

from ..._draws import named_generator
from ..._limits import require_fits
from ..losses.loss import device_of
from .batches import Batch
from .encoder_texts import BATCH_TOKENS
from .images import smooth_images, tokens_per_image
from .sizes import FEWEST_BATCHES, Sizes
from .texts import batches_of, padded, rows_per_batch, wanted_sequences

RANDOM_LENGTH = 32


def sampled_sequences(model: Any, sizes: Sizes, seed: int, limit: int | None) -> tuple[list[Batch], list[Batch]]:
    """Sequences that the model writes by itself at temperature 1.

    Each begins with the mark of a text's beginning; where the model has none, with a random token.
    """
    held_out, calibration = wanted_sequences(sizes, limit)
    vocabulary = model.config.get_text_config().vocab_size  # each sequence has the chances of its next token
    sampled = f"a sample of {held_out + calibration:,} sequences of {sizes.length:,} tokens"
    require_fits(sampled, 8 * (held_out + calibration) * (sizes.length + vocabulary))
    generator = named_generator(seed, "sampled sequences")
    start = getattr(model.config.get_text_config(), "bos_token_id", None)
    sequences = _sample(model, held_out + calibration, sizes.length, generator, start)
    return batches_of(sequences[:held_out], sizes), batches_of(sequences[held_out:], sizes, FEWEST_BATCHES)


def random_texts(model: Any, tokenizer: Any, sizes: Sizes, seed: int, limit: int | None):
    """Texts of random tokens, between the marks that the tokenizer puts around a text."""
    generator = named_generator(seed, "random texts")
    vocabulary = model.config.get_text_config().vocab_size
    length = min(sizes.length, RANDOM_LENGTH)
    marks = tokenizer("")["input_ids"] if tokenizer is not None else []
    special = set(tokenizer.all_special_ids) if tokenizer is not None else {0}
    ordinary = np.array([token for token in range(vocabulary) if token not in special])
    held_out, calibration = wanted_sequences(Sizes(length, sizes.held_out, sizes.calibration), limit)
    require_fits(
        f"a sample of {held_out + calibration:,} texts of {length:,} tokens", 8 * (held_out + calibration) * length
    )
    before, after = marks[: len(marks) // 2], marks[len(marks) // 2 :]
    drawn = generator.choice(ordinary, size=(held_out + calibration, max(1, length - len(marks))))
    rows = [[*before, *line, *after] for line in drawn.tolist()]

    def batches(part: list[list[int]], fewest: int) -> list[Batch]:
        step = rows_per_batch(len(part), max(BATCH_TOKENS, sizes.batch) // length, fewest)
        answer = []
        for begin in range(0, len(part), step):
            inputs, counted = padded(tokenizer, part[begin : begin + step])
            answer.append(Batch(inputs, len(counted), counted))
        return answer

    return batches(rows[:held_out], 1), batches(rows[held_out:], FEWEST_BATCHES)


def random_images(model: Any, sizes: Sizes, seed: int, limit: int | None) -> tuple[list[Batch], list[Batch]]:
    """Random smooth images."""
    per_image = tokens_per_image(model)
    held_out, calibration = wanted_sequences(Sizes(per_image, sizes.held_out, sizes.calibration), limit)
    if limit is None:
        held_out, calibration = max(held_out, 8), max(calibration, 8)
    pixels = smooth_images(model, held_out + calibration, seed)

    def batches(part: torch.Tensor, fewest: int) -> list[Batch]:
        step = rows_per_batch(len(part), sizes.batch // per_image, fewest)
        pieces = [part[begin : begin + step] for begin in range(0, len(part), step)]
        return [Batch({"pixel_values": piece}, len(piece), per_example=per_image) for piece in pieces]

    return batches(pixels[:held_out], 1), batches(pixels[held_out:], FEWEST_BATCHES)


def _sample(model: nn.Module, count: int, length: int, generator: np.random.Generator, start: int | None) -> np.ndarray:
    """Tokens of shape (count, length), drawn one after another from the model's own predictions."""
    device, vocabulary = device_of(model), model.config.get_text_config().vocab_size  # type: ignore[union-attr]
    first = generator.integers(vocabulary, size=(count, 1)) if start is None else np.full((count, 1), start)
    sequences = torch.from_numpy(first.astype(np.int64)).to(device)
    keeps = "past_key_values" in inspect.signature(model.forward).parameters
    past = None
    with torch.no_grad():
        for _ in range(length - 1):
            if keeps:
                answer = model(
                    input_ids=sequences[:, -1:] if past is not None else sequences, past_key_values=past, use_cache=True
                )
                past = answer.past_key_values
            else:
                answer = model(input_ids=sequences)
            points = torch.from_numpy(generator.random((count, 1))).to(device)
            chances = torch.cumsum(torch.softmax(answer.logits[:, -1].double(), -1), -1)
            token = torch.searchsorted(chances, points).clamp(max=chances.shape[-1] - 1)
            sequences = torch.cat([sequences, token], 1)
    return sequences.cpu().numpy()
