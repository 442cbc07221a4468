"""Examples of models that read whole texts: embeddings, masked tokens, classes. Needs torch."""

from collections.abc import Sequence
from typing import Any

import torch

from ..._draws import named_generator
from ...errors import require
from .batches import Batch
from .pair_parts import shared_words, split_pairs
from .sizes import FEWEST_BATCHES, Sizes
from .text_files import Pair
from .texts import first_tokens, grouped_by_size, padded, split_by_tokens, tokenised

BATCH_TOKENS = 1024
"""No logits per token, so more tokens fit than for a decoder."""
MASKED_BATCH_TOKENS = 384
MASKED_SHARE = 0.15

Parts = tuple[list[Batch], list[Batch]]
"""Held-out and calibration batches."""


def text_batches(
    tokenizer: Any,
    texts: Sequence[str],
    sizes: Sizes,
    seed: int,
    limit: int | None,
    labels: Sequence[int] | None = None,
    most: int = BATCH_TOKENS,
) -> Parts:
    """Texts, each an example. Equal texts count once."""
    first: dict[str, int] = {}
    for place, text in enumerate(texts):
        first.setdefault(text, place)
    different = list(first.values())
    order = named_generator(seed, "examples").permutation(len(different))
    kept = [different[int(place)] for place in order][: limit or _most_texts(sizes)]
    rows = tokenised(tokenizer, [texts[place] for place in kept], sizes.length)
    require(len(rows) >= 2, f"the data have {len(rows)} different texts; at least 2 are needed.")
    counts = [len(row) for row in rows]

    def batch(places: Sequence[int]) -> Batch:
        inputs, counted = padded(tokenizer, [rows[place] for place in places])
        extras = {} if labels is None else {"labels": torch.tensor([labels[kept[place]] for place in places])}
        return Batch(inputs, len(places), counted, extras)

    parts = split_by_tokens(counts, sizes, limit)
    held_out, calibration = (
        [batch(group) for group in grouped_by_size(part, counts, max(most, sizes.batch), fewest)]
        for part, fewest in zip(parts, (1, FEWEST_BATCHES), strict=True)
    )
    return held_out, calibration


def pair_batches(
    tokenizer: Any, pairs: Sequence[Pair], sizes: Sizes, seed: int, limit: int | None
) -> tuple[Parts, str]:
    """Pairs, each an example, in parts that share no text where that can be; and in words, where they do."""
    sides = split_pairs(pairs, seed)
    most = limit or _most_texts(sizes)
    chosen = [pairs[place] for side in sides for place in side[:most]]
    rows = [
        tokenised(tokenizer, [first for first, _, _ in chosen], sizes.length),
        tokenised(tokenizer, [second for _, second, _ in chosen], sizes.length),
    ]
    counts = [len(first) + len(second) for first, second in zip(*rows, strict=True)]
    middle = min(most, len(sides[0]))
    limits = (None, None) if limit is None else (max(1, limit // 3), max(1, limit - limit // 3))
    held_out = first_tokens(range(middle), counts, sizes.held_out, limits[0])
    calibration = first_tokens(range(middle, len(chosen)), counts, sizes.calibration, limits[1])

    def batch(places: Sequence[int]) -> Batch:
        inputs, counted = padded(tokenizer, [rows[side][place] for side in (0, 1) for place in places])
        return Batch(inputs, len(places), counted, {"scores": torch.tensor([chosen[place][2] for place in places])})

    longest = [2 * max(len(first), len(second)) for first, second in zip(*rows, strict=True)]
    held, calibrated = (
        [batch(group) for group in grouped_by_size(part, longest, max(BATCH_TOKENS, sizes.batch), fewest)]
        for part, fewest in ((held_out, 1), (calibration, FEWEST_BATCHES))
    )
    shared = shared_words([chosen[place] for place in held_out], [chosen[place] for place in calibration])
    return (held, calibrated), shared


def masked(parts: Parts, tokenizer: Any, seed: int, most: int | None = None) -> Parts:
    """The same texts with some tokens masked; `most` masks exactly so many per text.

    Which tokens is drawn once, from a named key, so every change is judged on the same ones.
    """
    mask_token: Any = getattr(tokenizer, "mask_token_id", None)
    require(
        mask_token is not None,
        "a masked language model needs a tokenizer with a mask token; give the folder one, "
        "or your own loss: --data mine.py:loss.",
    )
    special = set(tokenizer.all_special_ids)
    answer: list[list[Batch]] = []
    for name, batches in zip(("held-out", "calibration"), parts, strict=True):
        generator = named_generator(seed, "masks", name)
        answer.append([])
        for batch in batches:
            tokens = batch.inputs["input_ids"]
            places = torch.zeros_like(tokens, dtype=torch.bool)
            for row, line in enumerate(tokens.tolist()):
                real = [place for place, token in enumerate(line) if token not in special]
                real = real or [0]
                count = most or max(1, round(MASKED_SHARE * len(real)))
                places[row, generator.choice(real, size=min(count, len(real)), replace=False)] = True
            inputs = {**batch.inputs, "input_ids": tokens.masked_fill(places, mask_token)}
            extras = {"places": places, "targets": tokens}
            answer[-1].append(Batch(inputs, batch.examples, batch.counted, extras))
    return answer[0], answer[1]


def _most_texts(sizes: Sizes) -> int:
    """More than can be used, if a text has four tokens; the rest is not tokenised."""
    return max(64, (sizes.held_out + sizes.calibration) // 4)
