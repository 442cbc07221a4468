"""Examples of models that read whole texts: embeddings, masked tokens, classes. Needs torch."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from ..._draws import named_generator
from ..._limits import require_fits
from ...errors import require
from .batches import FEWEST_BATCHES, Batch, Parts, in_batches
from .pair_parts import shared_words, split_pairs
from .sizes import Sizes, wanted_examples
from .text_files import Pair

BATCH_TOKENS = 1024
"""No logits per token, so more tokens fit than for a decoder."""
MASKED_BATCH_TOKENS = 384
MASKED_SHARE = 0.15
RANDOM_LENGTH = 32


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
        inputs, counted = padded_rows(tokenizer, [rows[place] for place in places])
        extras = {} if labels is None else {"labels": torch.tensor([labels[kept[place]] for place in places])}
        return Batch(inputs, len(places), counted, extras)

    return _grouped_parts(split_by_tokens(counts, sizes, limit), counts, max(most, sizes.batch), batch)


def pair_batches(
    tokenizer: Any, pairs: Sequence[Pair], sizes: Sizes, seed: int, limit: int | None
) -> tuple[Parts, str]:
    """Pairs, each an example, in parts that share no text where that can be; and in words, where they do."""
    sides = split_pairs(pairs, seed)
    most = limit or _most_texts(sizes)
    chosen = [pairs[place] for side in sides for place in side[:most]]
    sides_texts = [first for first, _, _ in chosen], [second for _, second, _ in chosen]
    rows = [tokenised(tokenizer, texts, sizes.length) for texts in sides_texts]
    counts = [len(first) + len(second) for first, second in zip(*rows, strict=True)]
    middle = min(most, len(sides[0]))
    held_out, calibration = list(range(middle)), list(range(middle, len(chosen)))
    if limit is None:
        held_out = first_tokens(held_out, counts, sizes.held_out)
        calibration = first_tokens(calibration, counts, sizes.calibration)
    else:
        held_out, calibration = held_out[: max(1, limit // 3)], calibration[: max(1, limit - limit // 3)]

    def batch(places: Sequence[int]) -> Batch:
        inputs, counted = padded_rows(tokenizer, [rows[side][place] for side in (0, 1) for place in places])
        return Batch(inputs, len(places), counted, {"scores": torch.tensor([chosen[place][2] for place in places])})

    longest = [2 * max(len(first), len(second)) for first, second in zip(*rows, strict=True)]
    parts = _grouped_parts((held_out, calibration), longest, max(BATCH_TOKENS, sizes.batch), batch)
    shared = shared_words([chosen[place] for place in held_out], [chosen[place] for place in calibration])
    return parts, shared


def random_texts(model: Any, tokenizer: Any, sizes: Sizes, seed: int, limit: int | None) -> Parts:
    """Texts of random tokens, between the marks that the tokenizer puts around a text."""
    generator = named_generator(seed, "random texts")
    vocabulary = model.config.get_text_config().vocab_size
    length = min(sizes.length, RANDOM_LENGTH)
    marks = tokenizer("")["input_ids"] if tokenizer is not None else []
    special = set(tokenizer.all_special_ids) if tokenizer is not None else {0}
    ordinary = np.array([token for token in range(vocabulary) if token not in special])
    held_out, calibration = wanted_examples(sizes, length, limit)
    count = held_out + calibration
    require_fits(f"a sample of {count:,} texts of {length:,} tokens", 8 * count * length)
    before, after = marks[: len(marks) // 2], marks[len(marks) // 2 :]
    drawn = generator.choice(ordinary, size=(count, max(1, length - len(marks))))
    rows = [[*before, *line, *after] for line in drawn.tolist()]

    def batch(some: list[list[int]]) -> Batch:
        inputs, counted = padded_rows(tokenizer, some)
        return Batch(inputs, len(counted), counted)

    return in_batches(rows[:held_out], rows[held_out:], max(BATCH_TOKENS, sizes.batch) // length, batch)


def masked(parts: Parts, tokenizer: Any, seed: int, most: int | None = None) -> Parts:
    """Mask some tokens of the same texts; `most` masks exactly that number per text.

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


def padded_rows(tokenizer: Any, rows: Sequence[Sequence[int]]) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """Token rows as inputs of a model, padded on the right with the tokenizer's token (else 0), and which are real."""
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
    places, total = list(range(len(counts))), sum(counts)
    if limit is not None:
        end = max(1, min(limit, len(places)) // 3)
        return places[:end], places[end:limit]
    wanted = sizes.held_out if total >= sizes.held_out + sizes.calibration else min(sizes.held_out, total / 3)
    held_out = first_tokens(places[:-1], counts, wanted)
    return held_out, first_tokens(places[len(held_out) :], counts, sizes.calibration)


def first_tokens(places: list[int], counts: Sequence[int], tokens: float) -> list[int]:
    """The first places that together have at least this many tokens."""
    sums = np.cumsum([counts[place] for place in places])
    return places[: int(np.searchsorted(sums, tokens)) + 1]


def _grouped_parts(
    parts: tuple[list[int], list[int]], counts: Sequence[int], most: int, batch: Callable[[Sequence[int]], Batch]
) -> Parts:
    held_out, calibration = (
        [batch(group) for group in grouped_by_size(part, counts, most, fewest)]
        for part, fewest in zip(parts, (1, FEWEST_BATCHES), strict=True)
    )
    return held_out, calibration


def grouped_by_size(places: Sequence[int], counts: Sequence[int], most: int, fewest: int = 1) -> list[list[int]]:
    """Places in batches of at most `most` tokens with padding, those of like size together.

    There are at least `fewest` batches, where there are as many places. Sizes are in random order, so that the first
    few batches are like the others.
    """
    rows = max(1, len(places) // fewest)
    batches: list[list[int]] = []
    for place in sorted(places, key=lambda place: (counts[place], place)):
        if batches and len(batches[-1]) < rows and counts[place] * (len(batches[-1]) + 1) <= most:
            batches[-1].append(place)
        else:
            batches.append([place])
    return [batches[turn] for turn in named_generator(0, "order of batches").permutation(len(batches))]


def _most_texts(sizes: Sizes) -> int:
    """More than can be used, if a text has four tokens; the rest is not tokenised."""
    return max(64, (sizes.held_out + sizes.calibration) // 4)
