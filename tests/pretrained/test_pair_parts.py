"""Pairs of texts in two parts: no text in both where that can be, and said where it cannot."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.errors import InputError
from headcount.pretrained.examples.pair_parts import shared_words, split_pairs

TEXTS = st.sampled_from("abcdefghijkl")


def parts_of(pairs, seed=0):
    return [[pairs[place] for place in part] for part in split_pairs(pairs, seed)]


CHAINS = [(f"{chain}.{step}", f"{chain}.{step + 1}", 0.0) for chain in range(10) for step in range(3)]
EVERY_PAIR = [(first, second, 0.0) for first, second in itertools.combinations(map(str, range(50)), 2)]


@pytest.mark.parametrize("pairs", [CHAINS, EVERY_PAIR, CHAINS + [(b, a, 1.0) for a, b, _ in CHAINS]])
def test_parts_share_no_text(pairs):
    held_out, calibration = parts_of(pairs)
    assert not shared_words(held_out, calibration)
    assert len(held_out) >= 0.1 * len(pairs)
    assert len(calibration) >= 0.2 * len(pairs)
    if pairs is CHAINS:
        assert len(held_out) + len(calibration) == len(pairs)


def test_pairs_that_cannot_be_split_are_named():
    star = [(first, "hub", 0.0) for first in "abcde"]
    held_out, calibration = parts_of(star)
    assert "2 of 2" in shared_words(held_out, calibration)
    with pytest.raises(InputError, match="1 different"):
        parts_of([("hub", second, 0.0) for second in "abc"])


@given(st.lists(st.tuples(TEXTS, TEXTS, st.floats(0, 1)), min_size=2, max_size=30), st.integers(0, 3))
def test_no_pair_is_in_both_parts_and_first_texts_take_turns(pairs, seed):
    if len({first for first, _, _ in pairs}) < 2:
        return
    held_out, calibration = split_pairs(pairs, seed)
    assert held_out
    assert calibration
    assert not set(held_out) & set(calibration)
    assert not {pairs[place][0] for place in held_out} & {pairs[place][0] for place in calibration}
    for part in (held_out, calibration):
        firsts = [pairs[place][0] for place in part]
        assert len(set(firsts[: len(set(firsts))])) == len(set(firsts))
