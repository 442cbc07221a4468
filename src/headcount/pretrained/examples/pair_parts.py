"""Pairs of texts in two parts that share no text, where the pairs allow it."""

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from ..._draws import named_generator
from ...errors import require
from .text_files import Pair

HELD_OUT = 0.4
"""Share of the pairs, or of the texts, that are held out, about."""
LEAST_HELD_OUT, LEAST_CALIBRATION = 0.1, 0.2
"""Shares of the pairs that a split must leave in its two parts."""

Places = list[int]


def split_pairs(pairs: Sequence[Pair], seed: int) -> tuple[Places, Places]:
    """Places of the pairs to hold out and to calibrate on; every first text is used before one is used again.

    Pairs that are connected by their texts stay together. Where that leaves one part nearly empty, texts are split, and
    pairs with a text in each part are in none. Where that does too, first texts are split: second texts are then in
    both parts (`shared_words`).
    """
    order = [int(place) for place in named_generator(seed, "pairs").permutation(len(pairs))]
    for split in (_by_connection, _by_text):
        held_out, calibration = split(pairs, order, seed)
        if len(held_out) >= LEAST_HELD_OUT * len(pairs) and len(calibration) >= LEAST_CALIBRATION * len(pairs):
            break
    else:
        held_out, calibration = _by_first_text(pairs, order, seed)
    return _in_turn(pairs, held_out), _in_turn(pairs, calibration)


def shared_words(held_out: Sequence[Pair], calibration: Sequence[Pair]) -> str:
    """Say how many held-out pairs have a text that is calibrated on too; "" where none has."""
    seen = {text for first, second, _ in calibration for text in (first, second)}
    count = sum(first in seen or second in seen for first, second, _ in held_out)
    if not count:
        return ""
    return (
        f"{count} of {len(held_out)} held-out pairs have a text that is in calibration pairs too: no other split "
        "leaves enough of both. New texts may lose more."
    )


def _by_connection(pairs: Sequence[Pair], order: Places, seed: int) -> tuple[Places, Places]:
    connected = _connected(pairs)
    groups: dict[int, Places] = {}
    for place in order:
        groups.setdefault(connected[place], []).append(place)
    held_out: Places = []
    for group in groups.values():
        if len(held_out) + len(group) <= HELD_OUT * len(pairs):
            held_out += group
    if not held_out:
        held_out = min(groups.values(), key=len)
    return _parted(order, set(held_out).__contains__)


def _connected(pairs: Sequence[Pair]) -> list[int]:
    """The same number for pairs that share a text, or are each connected with a third."""
    parents: dict[str, str] = {}

    def root(text: str) -> str:
        parents.setdefault(text, text)
        while parents[text] != text:
            parents[text] = parents[parents[text]]
            text = parents[text]
        return text

    for first, second, _ in pairs:
        parents[root(first)] = root(second)
    numbers: dict[str, int] = {}
    return [numbers.setdefault(root(first), len(numbers)) for first, _, _ in pairs]


def _by_text(pairs: Sequence[Pair], order: Places, seed: int) -> tuple[Places, Places]:
    away = _drawn_texts(sorted({text for first, second, _ in pairs for text in (first, second)}), seed)
    inside = [place for place in order if (pairs[place][0] in away) == (pairs[place][1] in away)]
    return _parted(inside, lambda place: pairs[place][0] in away)


def _by_first_text(pairs: Sequence[Pair], order: Places, seed: int) -> tuple[Places, Places]:
    firsts = sorted({first for first, _, _ in pairs})
    require(len(firsts) >= 2, f"the pairs have {len(firsts)} different first texts; at least 2 are needed.")
    away = _drawn_texts(firsts, seed)
    return _parted(order, lambda place: pairs[place][0] in away)


def _drawn_texts(texts: Sequence[str], seed: int) -> set[Hashable]:
    order = named_generator(seed, "examples").permutation(len(texts))
    return {texts[place] for place in order[: max(1, int(len(texts) * HELD_OUT))]}


def _parted(places: Places, held_out: Callable[[int], bool]) -> tuple[Places, Places]:
    return [place for place in places if held_out(place)], [place for place in places if not held_out(place)]


def _in_turn(pairs: Sequence[Pair], places: Places) -> Places:
    """The first pair of every first text, then the second of each, ..."""
    turns: dict[str, int] = {}
    keys = []
    for place in places:
        turns[pairs[place][0]] = turns.get(pairs[place][0], -1) + 1
        keys.append(turns[pairs[place][0]])
    return [places[rank] for rank in np.argsort(keys, kind="stable")]
